//! A small HTTP/1 server on 127.0.0.1, under the scripted model server and the tool server alike.
//!
//! It owns the socket, the thread and the way an answer is put on the wire (`reply`), ill-behaved answers
//! included, and it counts who came and who was answered (`desk`). What to answer is the handler's business.

mod desk;
mod reply;

pub use desk::{Desk, Tally, Ticket};
pub use reply::{Hangup, Reply, Write};

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// What answers the requests of a [`Loopback`]: the model server or the tool server.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request; an `Err` closes the connection without a byte.
    fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Reply>, Hangup>> + Send;
}

/// A running server with a thread of its own, so that neither a busy nor a paused test runtime slows it.
/// Dropping it closes the port and every connection.
pub struct Loopback {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Loopback {
    /// Starts `handler` on a free port.
    pub async fn start<H: Handler>(handler: Arc<H>) -> io::Result<Self> {
        let listener = bind(0).await?.into_std()?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(format!("loopback-{}", address.port()))
            .spawn(move || run(&runtime, listener, handler, stopped))?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the server's thread has already been printed; it must not become a second one here.
            let _ = thread.join();
        }
    }
}

/// Takes a port on 127.0.0.1; 0 means any free one.
pub async fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", port)).await
}

/// Serves until the future is dropped, which ends every connection too.
pub async fn serve<H: Handler>(listener: TcpListener, handler: Arc<H>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&handler)));
                }
                // Out of file descriptors, most likely: others will close soon.
                Err(_) => pause(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Waits in real time: latency on a wire is what these servers are for.
#[expect(clippy::disallowed_methods, reason = "latency on the wire is real time, outside any simulation")]
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Reads a request body whole.
pub async fn read_body(body: Incoming) -> Result<Bytes, Hangup> {
    body.collect().await.map(|collected| collected.to_bytes()).map_err(|_| Hangup)
}

/// The value of `key` in a query string, as it stands: what our own tests send needs no decoding.
pub fn query_value<'q>(query: Option<&'q str>, key: &str) -> Option<&'q str> {
    query?
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(name, _)| *name == key)
        .map(|pair| pair.1)
}

fn run<H: Handler>(
    runtime: &Runtime,
    listener: std::net::TcpListener,
    handler: Arc<H>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async move {
        // The listener is already non-blocking: it comes from tokio.
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        tokio::select! {
            () = serve(listener, handler) => {}
            _ = stopped => {}
        }
    });
}

async fn converse<H: Handler>(stream: TcpStream, handler: Arc<H>) {
    // Best effort: without it an answer is only later.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| Arc::clone(&handler).handle(request));
    // An error here is a client that went away, or a fault that was asked for.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
