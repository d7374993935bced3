//! How connections are made: TLS only where the address asks for it, no proxy in front of this machine.

use std::{net::IpAddr, sync::Arc, time::Duration};

use reqwest::{Url, redirect::Policy};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;

use crate::ClientError;

/// The longest that an ordinary answer may take. Streams and backups have no such limit.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(60);

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

const USER_AGENT: &str = concat!("ostler/", env!("CARGO_PKG_VERSION"));

pub(crate) fn connections(base: &Url, certificates: Option<&[u8]>) -> Result<reqwest::Client, ClientError> {
    let setup = |error: reqwest::Error| ClientError::Setup(error.into());
    let trust = match (base.scheme(), certificates) {
        ("https", Some(certificates)) => Trust::Only(roots(certificates)?),
        ("https", None) => Trust::Machine,
        _ => Trust::Nobody,
    };
    let tls = tls(trust).map_err(|error| ClientError::Setup(error.into()))?;
    #[expect(clippy::disallowed_methods, reason = "it dials the server that its user named, and nobody else")]
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        // Whoever redirects would be given the token.
        .redirect(Policy::none())
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_WITHIN)
        .user_agent(USER_AGENT);
    let builder = if is_loopback(base) { builder.no_proxy() } else { builder };
    builder.build().map_err(setup)
}

/// Who vouches for the server.
enum Trust {
    /// For plain http nothing is looked up: a machine without certificates can talk to itself.
    Nobody,
    Machine,
    Only(RootCertStore),
}

fn tls(trust: Trust) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let mut config = match trust {
        Trust::Nobody => builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
        Trust::Only(roots) => builder.with_root_certificates(roots).with_no_client_auth(),
        Trust::Machine => {
            let verifier = Arc::new(Verifier::new(provider)?);
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn roots(pem: &[u8]) -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| ClientError::Setup(error.to_string().into()))?;
        roots.add(certificate).map_err(|error| ClientError::Setup(error.into()))?;
    }
    if roots.is_empty() {
        return Err(ClientError::Setup("there is no certificate in what should vouch for the server".into()));
    }
    Ok(roots)
}

fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
