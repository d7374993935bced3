//! TLS as every call uses it: ring for the cryptography, the system's certificates for trust, HTTP/1.1 only.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::Verifier;

/// The configuration, and why no `https` call can succeed if the system has no certificates. That must not
/// keep a machine without any from calling what needs none.
pub(crate) fn config() -> Result<(ClientConfig, Option<rustls::Error>), rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let (mut config, missing) = match Verifier::new(provider) {
        Ok(verifier) => {
            let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
            (builder.with_no_client_auth(), None)
        }
        Err(error) => {
            let builder = builder.with_root_certificates(RootCertStore::empty());
            (builder.with_no_client_auth(), Some(error))
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((config, missing))
}
