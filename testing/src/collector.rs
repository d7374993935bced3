//! A stand-in for an OpenTelemetry collector: real gRPC and real HTTP on one port, told apart by what the client speaks. It
//! reads the protocol with a reader of its own (`wire`), so that what our exporter writes is held against the protocol and
//! not against itself.

mod read;
mod wire;

pub use read::{SeenMetric, SeenSpan, SpanKind};

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinSet};

use crate::loopback::{bind, pause};

/// How it behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Takes,
    /// 503, or UNAVAILABLE.
    Refuses,
    /// Answers nothing.
    Stalls,
}

/// Gone when dropped.
pub struct Collector {
    state: Arc<State>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct State(Mutex<Seen>);

struct Seen {
    mood: Mood,
    spans: Vec<SeenSpan>,
    metrics: Vec<SeenMetric>,
    exports: Vec<Export>,
}

/// One export, as it came.
#[derive(Debug, Clone)]
pub struct Export {
    pub path: String,
    pub is_grpc: bool,
    pub headers: HeaderMap,
    /// The message, without a frame.
    pub body: Bytes,
}

impl Collector {
    /// On a free port.
    pub async fn start() -> io::Result<Self> {
        let listener = bind(0).await?.into_std()?;
        let address = listener.local_addr()?;
        let (mood, spans, metrics, exports) = (Mood::Takes, Vec::new(), Vec::new(), Vec::new());
        let state = Arc::new(State(Mutex::new(Seen { mood, spans, metrics, exports })));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&state);
        let thread = std::thread::Builder::new().name("collector".to_owned()).spawn(move || {
            runtime.block_on(async move {
                // It comes from tokio, so it is non-blocking already.
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = serve(listener, served) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { state, address, stop: Some(stop), thread: Some(thread) })
    }

    /// What `OTEL_EXPORTER_OTLP_ENDPOINT` is to say.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn be(&self, mood: Mood) {
        self.state.lock().mood = mood;
    }

    pub fn spans(&self) -> Vec<SeenSpan> {
        self.state.lock().spans.clone()
    }

    /// Figures, newest last.
    pub fn metrics(&self) -> Vec<SeenMetric> {
        self.state.lock().metrics.clone()
    }

    pub fn exports(&self) -> Vec<Export> {
        self.state.lock().exports.clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there has already been printed.
            let _ = thread.join();
        }
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message, once it has been taken down.
    fn take(&self, export: Export) -> Result<(), wire::Malformed> {
        let mut seen = self.lock();
        if export.path.ends_with("TraceService/Export") || export.path == "/v1/traces" {
            let spans = read::spans(&export.body)?;
            seen.spans.extend(spans);
        } else {
            let metrics = read::metrics(&export.body)?;
            seen.metrics.extend(metrics);
        }
        seen.exports.push(export);
        Ok(())
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&state), request));
            let connection = auto::Builder::new(TokioExecutor::new());
            // A client that went away is none of our concern.
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

type Answer = Response<BoxBody<Bytes, hyper::Error>>;

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    let (parts, body) = request.into_parts();
    let content_type = parts.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_grpc = content_type.is_some_and(|kind| kind.starts_with(b"application/grpc"));
    let body = body.collect().await?.to_bytes();
    let mood = state.lock().mood;
    match mood {
        Mood::Takes => {}
        Mood::Refuses if is_grpc => return Ok(called(14)),
        Mood::Refuses => return Ok(answered(StatusCode::SERVICE_UNAVAILABLE)),
        Mood::Stalls => {
            // Longer than anybody waits.
            pause(Duration::from_secs(600)).await;
        }
    }
    let body = if is_grpc { unframed(&body) } else { Some(body) };
    let taken = body.map(|body| {
        let path = parts.uri.path().to_owned();
        state.take(Export { path, is_grpc, headers: parts.headers, body })
    });
    Ok(match (taken, is_grpc) {
        (Some(Ok(())), true) => called(0),
        (Some(Ok(())), false) => answered(StatusCode::OK),
        // Invalid argument.
        (_, true) => called(3),
        (_, false) => answered(StatusCode::BAD_REQUEST),
    })
}

/// One message behind its flag and length.
fn unframed(body: &Bytes) -> Option<Bytes> {
    let length = u32::from_be_bytes(body.get(1..5)?.try_into().ok()?) as usize;
    let is_whole = body.first() == Some(&0) && body.len() == length + 5;
    is_whole.then(|| body.slice(5..))
}

fn answered(status: StatusCode) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::new()).map_err(|never| match never {}).boxed());
    *answer.status_mut() = status;
    answer
}

fn called(status: u16) -> Answer {
    // An empty message: everything was taken.
    let message = if status == 0 { Bytes::from_static(&[0; 5]) } else { Bytes::new() };
    let trailers =
        HeaderMap::from_iter([(header::HeaderName::from_static("grpc-status"), HeaderValue::from(status))]);
    let body = Full::new(message).with_trailers(std::future::ready(Some(Ok(trailers))));
    let mut answer = Response::new(body.map_err(|never| match never {}).boxed());
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    answer
}
