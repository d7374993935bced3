//! Whom we believe to be the collector.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::config::{Protocol, Target};

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("can't read {path:?}, which OTEL_EXPORTER_OTLP_CERTIFICATE names, as certificates in PEM")]
    Certificate {
        path: PathBuf,
        #[source]
        error: rustls::pki_types::pem::Error,
    },
    #[error("TLS to the collector can't be set up")]
    Tls(#[from] rustls::Error),
}

pub(super) fn config(target: &Target) -> Result<Arc<ClientConfig>, SetupError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let mut config = match &target.certificate {
        Some(path) => builder.with_root_certificates(roots(path)?).with_no_client_auth(),
        None => builder.with_platform_verifier()?.with_no_client_auth(),
    };
    config.alpn_protocols = match target.protocol {
        Protocol::Http => vec![b"http/1.1".to_vec()],
        Protocol::Grpc => vec![b"h2".to_vec()],
    };
    Ok(Arc::new(config))
}

fn roots(path: &PathBuf) -> Result<RootCertStore, SetupError> {
    let failed = |error| SetupError::Certificate { path: path.clone(), error };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(failed)? {
        roots.add(certificate.map_err(failed)?)?;
    }
    Ok(roots)
}
