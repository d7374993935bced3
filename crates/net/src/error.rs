//! Why a call failed, in terms a caller can act on: whether it may pass by itself, and whether the other side
//! may have seen the request.

use std::{error::Error, net::IpAddr, time::Duration};

use http::StatusCode;

use crate::{
    address::AddressKind,
    resolver::RefusedAddress,
    watchdog::{Late, Waiting},
};

#[derive(Debug, thiserror::Error)]
pub enum NetError {
    #[error("the address to call is not usable: {reason}")]
    BadUrl { reason: String },
    #[error("`{host}` leads to {address}, {kind}, which must not be called")]
    RefusedAddress { host: String, address: IpAddr, kind: AddressKind },
    #[error("no address is known for `{host}`")]
    Dns { host: String, source: reqwest::Error },
    #[error("could not connect to `{host}`")]
    Connect { host: String, source: reqwest::Error },
    #[error("could not make a secure connection to `{host}`")]
    Tls { host: String, source: rustls::Error },
    #[error("waited {after:?} in vain for {waiting}")]
    Timeout { waiting: Waiting, after: Duration, sent: bool },
    #[error("the connection broke off")]
    Cut { sent: bool, source: reqwest::Error },
    #[error("the answer was not HTTP")]
    NotHttp { source: reqwest::Error },
    #[error("the answer is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("answered {status} with a redirect to `{location}`, which is not followed: {reason}")]
    Redirect { status: StatusCode, location: String, reason: RefusedRedirect },
    #[error("after a redirect to `{host}`")]
    Redirected { host: String, source: Box<NetError> },
    #[error("{reason}")]
    BadSetting { reason: String },
    #[error("the HTTP client could not be set up")]
    Setup { source: Box<dyn Error + Send + Sync> },
}

/// Why a redirect is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedRedirect {
    #[error("name the address that it leads to, if that is the right one")]
    Never,
    #[error("it would repeat the request without its body; name the address that it leads to")]
    LosesBody,
    #[error("{max} were followed already")]
    TooMany { max: u8 },
    #[error("it leads from https to http")]
    Insecure,
    #[error("it does not say where to")]
    Nowhere,
    #[error("that is no address that could be called")]
    Unusable,
}

impl NetError {
    /// May pass by itself, so that the same call is worth another try.
    pub fn is_transient(&self) -> bool {
        match self {
            NetError::Dns { .. }
            | NetError::Connect { .. }
            | NetError::Timeout { .. }
            | NetError::Cut { .. }
            | NetError::NotHttp { .. } => true,
            NetError::Redirected { source, .. } => source.is_transient(),
            NetError::BadUrl { .. }
            | NetError::RefusedAddress { .. }
            | NetError::Tls { .. }
            | NetError::TooLarge { .. }
            | NetError::Redirect { .. }
            | NetError::BadSetting { .. }
            | NetError::Setup { .. } => false,
        }
    }

    /// The other side may have seen the request, and acted on it.
    pub fn may_have_been_sent(&self) -> bool {
        match self {
            NetError::Timeout { sent, .. } | NetError::Cut { sent, .. } => *sent,
            // Whoever answered with a redirect has seen the request, and may have acted on it.
            NetError::NotHttp { .. }
            | NetError::TooLarge { .. }
            | NetError::Redirect { .. }
            | NetError::Redirected { .. } => true,
            NetError::BadUrl { .. }
            | NetError::RefusedAddress { .. }
            | NetError::Dns { .. }
            | NetError::Connect { .. }
            | NetError::Tls { .. }
            | NetError::BadSetting { .. }
            | NetError::Setup { .. } => false,
        }
    }

    /// What happened and its deepest cause, in one line. What lies between is the HTTP library's own affair.
    pub fn explain(&self) -> String {
        match chain(self).last() {
            Some(root) if self.source().is_some() => format!("{self}: {root}"),
            _ => self.to_string(),
        }
    }

    pub(crate) fn refused(host: &str, refused: &RefusedAddress) -> Self {
        NetError::RefusedAddress { host: host.to_owned(), address: refused.address, kind: refused.kind }
    }

    pub(crate) fn late(late: Late, sent: bool) -> Self {
        NetError::Timeout { waiting: late.waiting, after: late.after, sent }
    }

    /// A call that failed before the head of its answer came.
    pub(crate) fn before_answer(error: reqwest::Error, host: &str, sent: bool) -> Self {
        let source = error.without_url();
        if let Some(refused) = find::<RefusedAddress>(&source) {
            return Self::refused(host, refused);
        }
        let host = host.to_owned();
        if source.is_dns() {
            return NetError::Dns { host, source };
        }
        if source.is_connect() {
            return match find::<rustls::Error>(&source) {
                Some(cause) => NetError::Tls { host, source: cause.clone() },
                None => NetError::Connect { host, source },
            };
        }
        Self::in_answer(source, sent)
    }

    /// A connection that failed under way.
    pub(crate) fn in_answer(error: reqwest::Error, sent: bool) -> Self {
        let source = error.without_url();
        match find::<hyper::Error>(&source).is_some_and(hyper::Error::is_parse) {
            true => NetError::NotHttp { source },
            false => NetError::Cut { sent, source },
        }
    }
}

fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error))
}

/// An I/O error gives its cause's cause as its source, never the cause itself.
fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    chain(error).find_map(|error| error.downcast_ref::<E>())
}
