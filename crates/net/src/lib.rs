//! The one outbound HTTP client: address checks, redirects, proxies, timeouts.
//!
//! Every call that leaves this process by HTTP goes through [`Client`], so that each address is checked when
//! it is dialled, each wait and each answer is bounded, and each failure says whether the other side may have
//! seen the request. What a status or a body means is for the caller to say.

mod address;
mod body;
mod client;
mod config;
mod dns;
mod error;
mod hop;
mod outgoing;
mod pools;
mod proxy;
mod redact;
mod request;
mod resolver;
mod response;
mod retry_after;
mod target;
mod tls;
mod watchdog;

pub use address::{AddressKind, classify};
pub use bytes::Bytes;
pub use client::Client;
pub use config::NetConfig;
pub use error::{NetError, RefusedRedirect};
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
pub use outgoing::{Held, Outgoing};
pub use proxy::ProxyConfig;
pub use redact::{excerpt, redact};
pub use request::{Redirects, Request, Timeouts};
pub use response::{Response, status_text};
pub use watchdog::Waiting;
