//! Names to addresses: the port, and who stands behind it. Whether an address may be dialled is not decided here.

mod message;
mod nameserver;
mod system;

use std::{net::IpAddr, net::SocketAddr, time::Duration};

use ostler_kernel::runtime::BoxFuture;

pub(crate) use nameserver::Nameservers;
pub(crate) use system::System;

/// Who knows the addresses of names. Two do: the system, with all that its administrator set up, and nameservers
/// that an operator named.
///
/// A lookup ends within a few seconds, gives at least one address and at most [`MAX_ADDRESSES`], and can be dropped.
pub(crate) trait Resolver: Send + Sync {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, DnsError>>;
}

/// No honest name has as many. One that has more is refused, for each of them would have to be judged.
pub(crate) const MAX_ADDRESSES: usize = 64;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DnsError {
    #[error("it is no name that could be looked up")]
    BadName,
    #[error("there is no such name")]
    NoSuchName,
    #[error("the name has no address")]
    NoAddress,
    #[error("the name has more than {MAX_ADDRESSES} addresses")]
    TooMany,
    #[error("the name leads to another one, and so on without an end")]
    Endless,
    #[error("nameserver {server} refused to answer (code {code})")]
    Refused { server: SocketAddr, code: u8 },
    #[error("nameserver {server} gave an answer that can't be read")]
    Unreadable { server: SocketAddr },
    #[error("nameserver {server} did not answer within {after:?}")]
    Silent { server: SocketAddr, after: Duration },
    #[error("too many names are being looked up")]
    Busy,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// What was found, if it is neither nothing nor too much.
fn bounded(found: Vec<IpAddr>) -> Result<Vec<IpAddr>, DnsError> {
    match found.len() {
        0 => Err(DnsError::NoAddress),
        n if n > MAX_ADDRESSES => Err(DnsError::TooMany),
        _ => Ok(found),
    }
}
