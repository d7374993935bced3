//! TLS as the server offers it: HTTP/2 for workers, HTTP/1.1 for everyone.

use std::{path::PathBuf, sync::Arc};

use ostler_link::grpc::tls::{TlsError, certificates, provider};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, pem, pem::PemObject},
};
use tokio_rustls::TlsAcceptor;

use crate::TlsFiles;

#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    #[error(transparent)]
    Certificate(#[from] TlsError),
    #[error("can't read {path:?} as a private key in PEM")]
    Key {
        path: PathBuf,
        #[source]
        error: pem::Error,
    },
    #[error("the certificate in {certificate:?} and the key in {key:?} can't be used together")]
    Pair {
        certificate: PathBuf,
        key: PathBuf,
        #[source]
        error: rustls::Error,
    },
}

pub fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsSetupError> {
    let TlsFiles { certificate, key: key_file } = files;
    let chain = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_file(key_file)
        .map_err(|error| TlsSetupError::Key { path: key_file.clone(), error })?;
    let unusable =
        |error| TlsSetupError::Pair { certificate: certificate.clone(), key: key_file.clone(), error };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
