//! TLS of a worker that dials: whom it believes to be its server.

use std::{io, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::BuilderVerifierExt;

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("can't read {path:?} as certificates in PEM")]
    File {
        path: std::path::PathBuf,
        #[source]
        error: rustls::pki_types::pem::Error,
    },
    #[error("{path:?} holds no certificate")]
    Empty { path: std::path::PathBuf },
    #[error("TLS can't be set up")]
    Rustls(#[from] rustls::Error),
}

/// Believes the authorities in `ca`, or else those that this machine believes.
pub fn client_config(ca: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let mut config = match ca {
        Some(path) => builder.with_root_certificates(roots(path)?).with_no_client_auth(),
        None => builder.with_platform_verifier()?.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The certificates of a file, in its order.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |error| TlsError::File { path: path.to_owned(), error };
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(failed)?.collect();
    let certificates = read.map_err(failed)?;
    if certificates.is_empty() {
        return Err(TlsError::Empty { path: path.to_owned() });
    }
    Ok(certificates)
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// What went wrong with a handshake, in the words of TLS instead of those of sockets.
pub fn handshake_error(error: io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(error) => error.to_string(),
        None => error.to_string(),
    }
}
