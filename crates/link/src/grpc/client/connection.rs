//! One connection to one server, with its two streams.

use std::{
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::stream;
use http::uri::PathAndQuery;
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use ostler_kernel::{
    Runtime,
    runtime::{AbortOnDrop, timeout},
};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    sync::mpsc,
};
use tokio_rustls::TlsConnector;
use tonic::{
    Code, Status,
    body::Body,
    client::{Grpc, GrpcService},
    metadata::{AsciiMetadataValue, errors::InvalidMetadataValue},
};

use super::{Dial, DialError, ServerAddress, half::Half};
use crate::{
    LinkError, Request, Response,
    grpc::{
        BULK, CONNECTION_WINDOW, CONTROL, STREAM_WINDOW, VERSION_HEADER, VERSIONS, VERSIONS_HEADER,
        WORKER_HEADER, frame::FrameCodec, path_of, tls::handshake_error, write_versions,
    },
};

/// How long it may take until a server has let us in.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server that answers nothing for so long is gone, whatever the network pretends.
const ALIVE_EVERY: Duration = Duration::from_secs(2);
const ALIVE_WITHIN: Duration = Duration::from_secs(3);

/// Frames that may wait to be sent.
const ROOM: usize = 64;

pub struct Connection {
    control: Half,
    bulk: Half,
    version: String,
    /// Trials that failed since one went well.
    failed: AtomicU32,
    _driving: AbortOnDrop,
}

impl Connection {
    pub async fn open(
        server: &ServerAddress,
        dial: &Dial,
        tls: &Arc<rustls::ClientConfig>,
        runtime: &Arc<dyn Runtime>,
    ) -> Result<Self, DialError> {
        let opening = timeout(&**runtime, PATIENCE, Self::try_open(server, dial, tls, runtime));
        match opening.await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(failure)) => Err(failure.of(server)),
            Err(_) => Err(Failure::Unreachable("no answer".to_owned()).of(server)),
        }
    }

    async fn try_open(
        server: &ServerAddress,
        dial: &Dial,
        tls: &Arc<rustls::ClientConfig>,
        runtime: &Arc<dyn Runtime>,
    ) -> Result<Self, Failure> {
        let stream = reach(&addresses_of(server).await?, runtime).await?;
        // Without it answers are only slower.
        let _ = stream.set_nodelay(true);
        let (sender, driving) = if server.is_tls {
            let name = ServerName::try_from(server.host.clone())
                .map_err(|_| Failure::Refused(format!("{:?} is no name for TLS", server.host)))?;
            let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
            shake_hands(stream.map_err(|error| Failure::Distrusted(handshake_error(error)))?, runtime).await?
        } else {
            shake_hands(stream, runtime).await?
        };
        let mut opener = Opener { sender, server, dial, runtime };
        let (control, version) = opener.open(CONTROL).await?;
        let (bulk, _) = opener.open(BULK).await?;
        Ok(Self { control, bulk, version, failed: AtomicU32::new(0), _driving: driving })
    }

    pub fn is_open(&self) -> bool {
        self.control.is_open() && self.bulk.is_open()
    }

    /// Whoever waits for an answer is told that there will be none.
    pub fn abandon(&self) {
        self.control.close();
        self.bulk.close();
    }

    /// How a request went that the server is judged by; gives how many have failed in a row.
    pub fn tried(&self, failed: bool) -> u32 {
        if failed {
            return self.failed.fetch_add(1, Ordering::Relaxed) + 1;
        }
        self.failed.store(0, Ordering::Relaxed);
        0
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    pub async fn call(&self, request: &Request) -> Result<Response, LinkError> {
        match path_of(request) {
            BULK => self.bulk.call(request).await,
            _ => self.control.call(request).await,
        }
    }
}

enum Failure {
    Unreachable(String),
    Distrusted(String),
    OtherVersion(String),
    Refused(String),
}

impl Failure {
    fn of(self, server: &ServerAddress) -> DialError {
        let server = server.to_string();
        match self {
            Failure::Unreachable(reason) => DialError::Unreachable { server, reason },
            Failure::Distrusted(reason) => DialError::Distrusted { server, reason },
            Failure::OtherVersion(reason) => DialError::OtherVersion { server, reason },
            Failure::Refused(reason) => DialError::Refused { server, reason },
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a worker dials the servers that its operator named")]
async fn addresses_of(server: &ServerAddress) -> Result<Vec<SocketAddr>, Failure> {
    let found = lookup_host((server.host.as_str(), server.port)).await.map_err(unreachable)?;
    Ok(found.collect())
}

/// The first of a name's addresses that lets us in. Each gets a share of the time, so that one where nobody answers does not
/// hide those behind it.
#[expect(clippy::disallowed_methods, reason = "a worker dials the servers that its operator named")]
async fn reach(addresses: &[SocketAddr], runtime: &Arc<dyn Runtime>) -> Result<TcpStream, Failure> {
    let share = PATIENCE * 3 / 4 / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut failure = unreachable("the name has no address");
    for &address in addresses {
        match timeout(&**runtime, share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = unreachable(error),
            Err(_) => failure = unreachable(format!("no answer from {address}")),
        }
    }
    Err(failure)
}

fn unreachable(error: impl ToString) -> Failure {
    Failure::Unreachable(error.to_string())
}

/// Begins HTTP/2, and keeps it going in the background.
async fn shake_hands(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    runtime: &Arc<dyn Runtime>,
) -> Result<(http2::SendRequest<Body>, AbortOnDrop), Failure> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .keep_alive_interval(ALIVE_EVERY)
        .keep_alive_timeout(ALIVE_WITHIN)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let (sender, connection) = http.handshake(TokioIo::new(stream)).await.map_err(unreachable)?;
    let driving = async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the link was lost");
        }
    };
    Ok((sender, runtime.spawn("link connection", Box::pin(driving)).abort_on_drop()))
}

struct Opener<'a> {
    sender: http2::SendRequest<Body>,
    server: &'a ServerAddress,
    dial: &'a Dial,
    runtime: &'a Arc<dyn Runtime>,
}

impl Opener<'_> {
    /// Opens a stream, and says which version the server speaks on it.
    async fn open(&mut self, path: &'static str) -> Result<(Half, String), Failure> {
        let (frames, mut to_send) = mpsc::channel(ROOM);
        let mut request = tonic::Request::new(stream::poll_fn(move |cx| to_send.poll_recv(cx)));
        let no_header =
            |_: InvalidMetadataValue| Failure::Refused("the token or the name is no header".into());
        let mut insert = |header, value: String| {
            let value = value.parse::<AsciiMetadataValue>().map_err(no_header)?;
            request.metadata_mut().insert(header, value);
            Ok::<_, Failure>(())
        };
        insert("authorization", format!("Bearer {}", self.dial.token))?;
        insert(WORKER_HEADER, self.dial.worker.clone())?;
        insert(VERSIONS_HEADER, write_versions(VERSIONS))?;
        let mut grpc = Grpc::with_origin(Sender(self.sender.clone()), self.server.origin().clone());
        let opened = grpc.streaming(request, PathAndQuery::from_static(path), FrameCodec).await;
        let response = opened.map_err(|status| refusal(&status))?;
        let version = response.metadata().get(VERSION_HEADER).and_then(|version| version.to_str().ok());
        let version = version.map(ToOwned::to_owned);
        let version = version.ok_or_else(|| Failure::Refused("it is not an Ostler server".to_owned()))?;
        Ok((Half::new(frames, response.into_inner(), &**self.runtime), version))
    }
}

/// Who is not let in now won't be the next time either, unless something changes; all else may pass.
fn refusal(status: &Status) -> Failure {
    match status.code() {
        // Nothing else is a condition of being let in.
        Code::FailedPrecondition => Failure::OtherVersion(status.message().to_owned()),
        Code::Unauthenticated | Code::PermissionDenied | Code::InvalidArgument | Code::Unimplemented => {
            Failure::Refused(status.message().to_owned())
        }
        _ => Failure::Unreachable(status.message().to_owned()),
    }
}

/// What tonic asks of a connection.
struct Sender(http2::SendRequest<Body>);

impl GrpcService<Body> for Sender {
    type ResponseBody = Incoming;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use ostler_kernel::{
        Timestamp,
        runtime::{BoxFuture, Spawned},
    };
    use tokio::{
        net::{TcpListener, TcpSocket},
        runtime::Handle,
    };

    use super::*;
    use crate::TokioRuntime;

    /// A runtime in which little time is enough.
    struct Hasty(TokioRuntime);

    impl Runtime for Hasty {
        fn now(&self) -> Timestamp {
            self.0.now()
        }

        fn monotonic(&self) -> Duration {
            self.0.monotonic()
        }

        fn random(&self) -> u64 {
            self.0.random()
        }

        fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
            self.0.sleep(delay / 20)
        }

        fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) -> Spawned {
            self.0.spawn(name, future)
        }
    }

    fn any_port() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 0).into()
    }

    /// Someone who listens and answers nobody: those who have called already take up all the room there is.
    #[expect(clippy::disallowed_methods, reason = "dials itself")]
    async fn silent(runtime: &Hasty) -> (TcpListener, Vec<TcpStream>) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(any_port()).unwrap();
        let listener = socket.listen(1).unwrap();
        let (address, mut callers) = (listener.local_addr().unwrap(), Vec::new());
        while let Ok(Ok(caller)) = timeout(runtime, PATIENCE, TcpStream::connect(address)).await {
            callers.push(caller);
        }
        (listener, callers)
    }

    #[tokio::test]
    async fn of_two_addresses_the_second_is_reached_where_the_first_is_dead() {
        let hasty = Hasty(TokioRuntime::new(Handle::current()));
        let (silent, _callers) = silent(&hasty).await;
        let silent = silent.local_addr().unwrap();
        let gone = TcpListener::bind(any_port()).await.unwrap().local_addr().unwrap();
        let alive = TcpListener::bind(any_port()).await.unwrap();
        let runtime: Arc<dyn Runtime> = Arc::new(hasty);
        for dead in [silent, gone] {
            let addresses = [dead, alive.local_addr().unwrap()];
            // All of it within the time in which a server has to have let us in.
            let reached = timeout(&*runtime, PATIENCE, reach(&addresses, &runtime)).await;
            let Ok(Ok(stream)) = reached else { panic!("{dead} hides the one behind it") };
            assert_eq!(stream.peer_addr().unwrap(), addresses[1]);
        }
        let Err(Failure::Unreachable(reason)) = reach(&[gone, silent], &runtime).await else {
            panic!("both are dead")
        };
        assert_eq!(reason, format!("no answer from {silent}"));
    }
}
