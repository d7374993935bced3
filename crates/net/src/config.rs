//! What an operator may decide about outgoing calls. Nothing here can let a call reach an address that the check
//! refuses; a proxy alone stands outside of it, and is therefore only used where it was asked for.

use std::{net::SocketAddr, time::Duration};

use crate::{NetError, proxy::ProxyConfig};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetConfig {
    pub proxy: ProxyConfig,
    /// Who is asked for the addresses of names; without any, the system is.
    pub nameservers: Vec<SocketAddr>,
    /// No call waits longer than this for a connection, whatever it asked for.
    pub connect_timeout: Duration,
    /// How long a connection is kept that nobody uses. Shorter than the 60 s and more that servers and load balancers
    /// keep one for, so that it is we who close it, and rarely they, at the moment of the next request.
    pub idle_timeout: Duration,
    /// Above this, an idle connection to one host is closed instead of kept.
    pub idle_per_host: usize,
}

impl Default for NetConfig {
    fn default() -> Self {
        Self {
            proxy: ProxyConfig::default(),
            nameservers: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(55),
            idle_per_host: 1024,
        }
    }
}

impl NetConfig {
    /// More would only make a call wait longer for its failure.
    pub const MAX_NAMESERVERS: usize = 3;

    /// Reads `ADDRESS` or `ADDRESS:PORT`, as in `10.0.0.2`, `10.0.0.2:5353`, `[fd00::2]:53`.
    pub fn nameserver(text: &str) -> Result<SocketAddr, NetError> {
        let with_port = text.parse::<SocketAddr>().ok();
        let bare = || text.parse().ok().map(|address| SocketAddr::new(address, 53));
        with_port.or_else(bare).ok_or_else(|| NetError::BadSetting {
            reason: format!("{text:?} is no nameserver: expected ADDRESS or ADDRESS:PORT, such as 10.0.0.2"),
        })
    }
}
