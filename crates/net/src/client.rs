//! The client. Inside are two pools of connections, one that may hold private addresses and one that may not:
//! a connection made for one kind of call is never lent to the other.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use ostler_kernel::Runtime;
use reqwest::{Url, redirect::Policy};

use crate::{
    NetError, Request, Response,
    body::{NotedBody, Sent},
    resolver::{self, CheckedResolver},
    tls,
    watchdog::{Waiting, Watchdog},
};

/// Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    public: reqwest::Client,
    private: reqwest::Client,
    runtime: Arc<dyn Runtime>,
    missing_roots: Option<rustls::Error>,
}

/// Shorter than the 60 s and more that servers and load balancers keep a connection for, so that it is we who
/// close it, and rarely they, at the moment of the next request.
const POOL_IDLE: Duration = Duration::from_secs(55);

/// Above this an idle connection is closed instead of kept.
const POOL_PER_HOST: usize = 1024;

const USER_AGENT: &str = concat!("ostler/", env!("CARGO_PKG_VERSION"));

impl Client {
    pub fn new(runtime: Arc<dyn Runtime>) -> Result<Self, NetError> {
        let (config, missing_roots) =
            tls::config().map_err(|error| NetError::Setup { source: error.into() })?;
        let public = pool(config.clone(), false)?;
        let private = pool(config, true)?;
        Ok(Self { inner: Arc::new(Inner { public, private, runtime, missing_roots }) })
    }

    /// Makes the call and gives its answer as soon as the head of it is there. Dropping the future or the
    /// answer closes the connection, so that the other side can notice.
    pub async fn send(&self, request: Request) -> Result<Response, NetError> {
        let url = self.check(&request)?;
        let host = host_and_port(&url);
        let sent = Sent::default();
        let Request { timeouts, max_body, .. } = request;
        let mut watchdog = Watchdog::new(self.inner.runtime.clone(), timeouts.total);
        let limit = || match sent.get() {
            false => (Waiting::Connect, timeouts.connect.min(timeouts.first_byte)),
            true => (Waiting::FirstByte, timeouts.first_byte),
        };
        let answer = self.execute(request, url, sent.clone());
        let answer = watchdog
            .watch(limit, answer)
            .await
            .map_err(|late| NetError::late(late, sent.get()))?
            .map_err(|error| NetError::before_answer(error, &host, sent.get()))?;
        Response::new(answer, watchdog, timeouts.idle, max_body)
    }

    /// What can be refused before anything is dialled. A name's addresses are looked at when it is resolved.
    fn check(&self, request: &Request) -> Result<Url, NetError> {
        let bad = |reason: &str| NetError::BadUrl { reason: reason.to_owned() };
        let url = Url::parse(&request.url).map_err(|error| bad(&error.to_string()))?;
        let is_tls = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(bad("it must begin with http:// or https://")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it must not hold credentials"));
        }
        let host = url.host_str().ok_or_else(|| bad("it has no host"))?;
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        if let Ok(address) = literal {
            let checked = resolver::check(address, request.allow_private);
            checked.map_err(|refused| NetError::refused(host, &refused))?;
        }
        match &self.inner.missing_roots {
            Some(error) if is_tls => Err(NetError::Tls { host: host.to_owned(), source: error.clone() }),
            _ => Ok(url),
        }
    }

    fn execute(
        &self,
        request: Request,
        url: Url,
        sent: Sent,
    ) -> impl Future<Output = reqwest::Result<reqwest::Response>> + use<> {
        let client = if request.allow_private { &self.inner.private } else { &self.inner.public };
        let mut outgoing = reqwest::Request::new(request.method, url);
        *outgoing.headers_mut() = request.headers;
        *outgoing.body_mut() = Some(reqwest::Body::wrap(NotedBody::new(request.body, sent)));
        client.execute(outgoing)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

fn pool(config: rustls::ClientConfig, allow_private: bool) -> Result<reqwest::Client, NetError> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(config)
        .dns_resolver(CheckedResolver { allow_private })
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .http1_only()
        .tcp_nodelay(true)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_PER_HOST)
        .user_agent(USER_AGENT)
        .build()
        .map_err(|error| NetError::Setup { source: error.into() })
}

/// What may be shown of an address: no path, no query.
fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
