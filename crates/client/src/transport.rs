//! How connections are made: TLS only where the address asks for it, no proxy in front of this machine.

use std::{net::IpAddr, sync::Arc, time::Duration};

use reqwest::{Url, redirect::Policy};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::Verifier;

use crate::ClientError;

/// The longest that an ordinary answer may take. Streams and backups have no such limit.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(60);

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

const USER_AGENT: &str = concat!("ostler/", env!("CARGO_PKG_VERSION"));

pub(crate) fn connections(base: &Url) -> Result<reqwest::Client, ClientError> {
    let setup = |error: reqwest::Error| ClientError::Setup(error.into());
    let tls = tls(base.scheme() == "https").map_err(|error| ClientError::Setup(error.into()))?;
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

/// For plain http nothing is looked up: a machine without certificates can talk to itself.
fn tls(is_used: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let mut config = if is_used {
        let verifier = Arc::new(Verifier::new(provider)?);
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    } else {
        builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
