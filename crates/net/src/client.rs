//! The client: one call with all its hops, each of them checked, under one set of bounds.

use std::{fmt, sync::Arc, time::Duration};

use ostler_kernel::Runtime;

use crate::{
    NetConfig, NetError, Request, Response, Timeouts,
    body::{NotedBody, Sent},
    dns::{Nameservers, Resolver, System},
    hop::Hop,
    outgoing,
    pools::Pools,
    proxy::Judge,
    tls,
    watchdog::{Waiting, Watchdog},
};

/// Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    config: NetConfig,
    direct: Pools,
    /// Where a proxy is used.
    proxied: Option<Proxied>,
    runtime: Arc<dyn Runtime>,
    missing_roots: Option<rustls::Error>,
}

struct Proxied {
    pools: Pools,
    judge: Judge,
}

impl Client {
    /// A client as it is by default.
    pub fn new(runtime: Arc<dyn Runtime>) -> Result<Self, NetError> {
        Self::configured(runtime, NetConfig::default())
    }

    /// The clock that its waits are measured with.
    pub fn monotonic(&self) -> Duration {
        self.inner.runtime.monotonic()
    }

    pub fn configured(runtime: Arc<dyn Runtime>, config: NetConfig) -> Result<Self, NetError> {
        let (tls, missing_roots) = tls::config().map_err(|error| NetError::Setup { source: error.into() })?;
        let resolver: Arc<dyn Resolver> = match config.nameservers.as_slice() {
            [] => Arc::new(System::new()),
            servers => Arc::new(Nameservers::new(servers.to_vec(), runtime.clone())),
        };
        let direct = Pools::direct(&config, &tls, &resolver)?;
        let proxied = match config.proxy.is_none() {
            true => None,
            false => Some(Proxied {
                pools: Pools::proxied(&config, &tls, &resolver)?,
                judge: Judge::new(resolver, runtime.clone()),
            }),
        };
        Ok(Self { inner: Arc::new(Inner { config, direct, proxied, runtime, missing_roots }) })
    }

    /// Makes the call and gives its answer as soon as the head of it is there. Dropping the future or the
    /// answer closes the connection, so that the other side can notice.
    pub async fn send(&self, mut request: Request) -> Result<Response, NetError> {
        outgoing::stamp(&mut request.headers);
        let (timeouts, max_body) = (request.timeouts, request.max_body);
        let mut watchdog = Watchdog::new(self.inner.runtime.clone(), timeouts.total);
        let mut hop = Hop::first(request)?;
        loop {
            let answer = self.make(&hop, timeouts, &mut watchdog).await.map_err(|error| hop.blame(error))?;
            match hop.next(answer.status(), answer.headers())? {
                Ok(next) => hop = next,
                Err(_arrived) => return Ok(Response::new(answer, watchdog, timeouts.idle, max_body)),
            }
        }
    }

    async fn make(
        &self,
        hop: &Hop,
        timeouts: Timeouts,
        watchdog: &mut Watchdog,
    ) -> Result<reqwest::Response, NetError> {
        if let Some(error) = self.inner.missing_roots.as_ref().filter(|_| hop.target.is_tls()) {
            let host = hop.target.host().to_owned();
            return Err(NetError::Tls { host, source: error.clone() });
        }
        let sent = Sent::default();
        let connect = timeouts.connect.min(self.inner.config.connect_timeout).min(timeouts.first_byte);
        let limit = || match sent.get() {
            false => (Waiting::Connect, connect),
            true => (Waiting::FirstByte, timeouts.first_byte),
        };
        let answer = watchdog.watch(limit, self.execute(hop, sent.clone())).await;
        answer.map_err(|late| NetError::late(late, sent.get()))?
    }

    async fn execute(&self, hop: &Hop, sent: Sent) -> Result<reqwest::Response, NetError> {
        let pools = match &self.inner.proxied {
            Some(proxied) if self.inner.config.proxy.serves(&hop.target) => {
                proxied.judge.judge(&hop.target, hop.allow_private).await?;
                &proxied.pools
            }
            Some(_) | None => &self.inner.direct,
        };
        let mut outgoing = reqwest::Request::new(hop.method.clone(), hop.target.url().clone());
        *outgoing.headers_mut() = hop.headers.clone();
        *outgoing.body_mut() = Some(reqwest::Body::wrap(NotedBody::new(hop.body.clone(), sent.clone())));
        let answer = pools.get(hop.allow_private).execute(outgoing).await;
        answer.map_err(|error| NetError::before_answer(error, &hop.target.host_and_port(), sent.get()))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}
