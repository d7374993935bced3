//! The connections. There are two pools, one that may hold private addresses and one that may not, and two more of
//! the same kinds where a proxy is used: a connection made for one kind of call is never lent to another.

use std::sync::Arc;

use reqwest::{Proxy, redirect::Policy};

use crate::{NetConfig, NetError, dns::Resolver, resolver::CheckedResolver};

/// Connections for calls that may reach private addresses, and for those that may not.
pub(crate) struct Pools {
    public: reqwest::Client,
    private: reqwest::Client,
}

const USER_AGENT: &str = concat!("ostler/", env!("CARGO_PKG_VERSION"));

/// Who is dialled.
enum Dialled<'a> {
    Hosts,
    /// Named by the operator: it may well have a private address.
    Proxy(&'a [Proxy]),
}

impl Pools {
    pub(crate) fn direct(
        config: &NetConfig,
        tls: &rustls::ClientConfig,
        resolver: &Arc<dyn Resolver>,
    ) -> Result<Self, NetError> {
        let pool = |allow_private| pool(config, tls, resolver, allow_private, &Dialled::Hosts);
        Ok(Self { public: pool(false)?, private: pool(true)? })
    }

    pub(crate) fn proxied(
        config: &NetConfig,
        tls: &rustls::ClientConfig,
        resolver: &Arc<dyn Resolver>,
    ) -> Result<Self, NetError> {
        let rules = config.proxy.rules()?;
        let pool = || pool(config, tls, resolver, true, &Dialled::Proxy(&rules));
        Ok(Self { public: pool()?, private: pool()? })
    }

    pub(crate) fn get(&self, allow_private: bool) -> &reqwest::Client {
        if allow_private { &self.private } else { &self.public }
    }
}

/// HTTP/1.1 only: what is known of a request that failed (whether a byte of it may have left) comes from how a
/// connection of its own is written to.
fn pool(
    config: &NetConfig,
    tls: &rustls::ClientConfig,
    resolver: &Arc<dyn Resolver>,
    allow_private: bool,
    dialled: &Dialled<'_>,
) -> Result<reqwest::Client, NetError> {
    #[expect(clippy::disallowed_methods, reason = "the one place where outgoing HTTP connections are made")]
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .dns_resolver(CheckedResolver { resolver: resolver.clone(), allow_private })
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .http1_only()
        .tcp_nodelay(true)
        .pool_idle_timeout(config.idle_timeout)
        .pool_max_idle_per_host(config.idle_per_host)
        .user_agent(USER_AGENT);
    let builder = match dialled {
        Dialled::Hosts => builder,
        Dialled::Proxy(rules) => rules.iter().fold(builder, |builder, rule| builder.proxy(rule.clone())),
    };
    builder.build().map_err(|error| NetError::Setup { source: error.into() })
}
