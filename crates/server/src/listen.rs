//! Accepts connections and serves each until it is closed, or until the server stops.

use std::{io, net::IpAddr, pin::pin, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use ostler_kernel::{Runtime, runtime::timeout};
use ostler_link::grpc::{CONNECTION_WINDOW, STREAM_WINDOW};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
};
use tokio_rustls::TlsAcceptor;

use crate::{gate::Gate, open_files, telemetry};

/// Where the server is on its way to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// It still serves, and whoever asks whether it is ready is told to go elsewhere.
    Leaving,
    /// Requests under way may finish; streams end, and nothing new begins.
    Draining,
    /// Connections are cut.
    Stopped,
}

/// Waits until the server is there, or gone altogether.
pub async fn reached(phase: &mut watch::Receiver<Phase>, awaited: Phase) {
    // An error means that nobody will tell any more.
    let _ = phase.wait_for(|phase| *phase >= awaited).await;
}

/// How long a connection may say nothing, or take for the head of a request.
const SILENT_FOR: Duration = Duration::from_secs(75);

/// Who speaks HTTP/2 and answers nothing for so long is gone, whatever the network pretends.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
const ALIVE_WITHIN: Duration = Duration::from_secs(10);

/// Between two looks at a connection that has said too little.
const A_MOMENT: Duration = Duration::from_millis(1);

/// After a failure to accept: mostly a lack of file descriptors, which others give back.
const PAUSE: Duration = Duration::from_millis(50);

/// Held by everything that serves; when all are gone, nobody is served any more.
pub type Alive = mpsc::Sender<()>;

#[derive(Clone)]
pub struct Acceptor {
    pub gate: Arc<Gate>,
    pub tls: Option<TlsAcceptor>,
    /// At once; further ones wait.
    pub connections: usize,
    pub runtime: Arc<dyn Runtime>,
    pub phase: watch::Receiver<Phase>,
    pub alive: Alive,
}

impl Acceptor {
    pub async fn run(mut self, listener: TcpListener) {
        let room = Arc::new(Semaphore::new(open_files::connections().min(self.connections)));
        loop {
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, from)) => self.serve(stream, from.ip(), permit),
                    Err(error) => self.pause(&error).await,
                },
                () = reached(&mut self.phase, Phase::Draining) => return,
            }
        }
    }

    fn serve(&self, stream: TcpStream, from: IpAddr, permit: OwnedSemaphorePermit) {
        // Answers are written whole, so there is nothing to wait for. Without it they are only slower.
        let _ = stream.set_nodelay(true);
        let acceptor = self.clone();
        let connection = async move {
            acceptor.connection(stream, from).await;
            drop((permit, acceptor.alive));
        };
        self.runtime.spawn("connection", Box::pin(connection)).detach();
    }

    async fn pause(&self, error: &io::Error) {
        telemetry::accept_failed(error);
        self.runtime.sleep(PAUSE).await;
    }

    async fn connection(&self, stream: TcpStream, from: IpAddr) {
        let mut phase = self.phase.clone();
        let begun = tokio::select! {
            begun = timeout(&*self.runtime, SILENT_FOR, self.begin(stream)) => begun,
            () = reached(&mut phase, Phase::Draining) => return,
        };
        match begun {
            Ok(Ok(Begun::Plain(stream, http))) => self.serve_http(stream, from, http).await,
            Ok(Ok(Begun::Tls(stream, http))) => self.serve_http(*stream, from, http).await,
            Ok(Err(error)) => telemetry::not_begun(&error),
            Err(_) => {}
        }
    }

    /// Finds out what the other side speaks: over TLS it says so, else the first bytes tell.
    async fn begin(&self, stream: TcpStream) -> io::Result<Begun> {
        let Some(tls) = &self.tls else {
            let http = self.look(&stream).await?;
            return Ok(Begun::Plain(stream, http));
        };
        let stream = tls.accept(stream).await?;
        let http = if stream.get_ref().1.alpn_protocol() == Some(b"h2") { Http::Two } else { Http::One };
        Ok(Begun::Tls(Box::new(stream), http))
    }

    async fn look(&self, stream: &TcpStream) -> io::Result<Http> {
        // How HTTP/2 begins, and no method of HTTP/1.1 does.
        const BEGINNING: &[u8] = b"PRI";
        let mut seen = [0; BEGINNING.len()];
        loop {
            let count = stream.peek(&mut seen).await?;
            match &seen[..count] {
                BEGINNING => return Ok(Http::Two),
                part if count > 0 && BEGINNING.starts_with(part) => self.runtime.sleep(A_MOMENT).await,
                _ => return Ok(Http::One),
            }
        }
    }

    async fn serve_http(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        from: IpAddr,
        http: Http,
    ) {
        let gate = Arc::clone(&self.gate);
        let service = service_fn(move |request| {
            let gate = Arc::clone(&gate);
            async move { gate.answer(request, from).await }
        });
        let builder = builder(http);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut phase = self.phase.clone();
        let mut told = false;
        loop {
            let awaited = if told { Phase::Stopped } else { Phase::Draining };
            tokio::select! {
                served = connection.as_mut() => {
                    if let Err(error) = served {
                        telemetry::connection_failed(&error);
                    }
                    return;
                }
                () = reached(&mut phase, awaited) => {
                    if told {
                        return;
                    }
                }
            }
            told = true;
            connection.as_mut().graceful_shutdown();
        }
    }
}

/// A connection on which something may be asked.
enum Begun {
    Plain(TcpStream, Http),
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>, Http),
}

#[derive(Clone, Copy)]
enum Http {
    One,
    Two,
}

fn builder(http: Http) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(SILENT_FOR);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(ALIVE_EVERY)
        .keep_alive_timeout(ALIVE_WITHIN)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    match http {
        Http::One => builder.http1_only(),
        Http::Two => builder.http2_only(),
    }
}
