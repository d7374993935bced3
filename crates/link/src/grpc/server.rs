//! A server's end: takes requests off a stream, has the worker port answer them, and sends the answers back.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt as _, future::FutureExt as _, stream};
use ostler_kernel::{
    Runtime,
    runtime::{AbortOnDrop, BoxFuture},
};
use tokio::sync::mpsc;
use tonic::{Response as GrpcResponse, Status, Streaming, body::Body, metadata::MetadataMap, server};

use super::{
    Answer, SERVICE, VERSION_HEADER, VERSIONS, VERSIONS_HEADER, WORKER_HEADER, common_version,
    frame::{Assembly, Frame, FrameCodec, Room, cut},
    path_of, read_versions,
};
use crate::{LinkError, Request, Response, WorkerPort};

/// Requests of one stream that may be under way; more of them wait on the worker's side.
const AT_ONCE: usize = 1024;

/// Frames that may wait to be sent.
const ROOM: usize = 64;

#[derive(Clone)]
pub struct LinkServer {
    port: Arc<dyn WorkerPort>,
    runtime: Arc<dyn Runtime>,
}

impl LinkServer {
    pub fn new(port: Arc<dyn WorkerPort>, runtime: Arc<dyn Runtime>) -> Self {
        Self { port, runtime }
    }

    /// Whether a request of HTTP is one of the link.
    pub fn is_meant(path: &str) -> bool {
        path.starts_with(SERVICE)
    }

    /// Serves a stream until the worker is gone. Once `closing` is over, what is under way is still answered, and
    /// who only waits for something is sent away: it asks elsewhere.
    pub async fn answer<B>(
        &self,
        request: http::Request<B>,
        closing: BoxFuture<'static, ()>,
    ) -> http::Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    {
        let path = match request.uri().path() {
            super::CONTROL => super::CONTROL,
            super::BULK => super::BULK,
            other => return Status::unimplemented(format!("there is no {other}")).into_http(),
        };
        let opening = Opening { server: self.clone(), path, closing: Some(closing) };
        server::Grpc::new(FrameCodec).streaming(opening, request).await
    }
}

/// A stream that a worker wants to open.
struct Opening {
    server: LinkServer,
    path: &'static str,
    closing: Option<BoxFuture<'static, ()>>,
}

impl server::StreamingService<Frame> for Opening {
    type Response = Frame;
    type ResponseStream = stream::BoxStream<'static, Result<Frame, Status>>;
    type Future = std::future::Ready<Result<GrpcResponse<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Frame>>) -> Self::Future {
        std::future::ready(self.open(request))
    }
}

impl Opening {
    fn open(
        &mut self,
        request: tonic::Request<Streaming<Frame>>,
    ) -> Result<GrpcResponse<stream::BoxStream<'static, Result<Frame, Status>>>, Status> {
        let (version, worker) = introduction(request.metadata())?;
        let (out, mut frames) = mpsc::channel(ROOM);
        let (ended, has_ended) = mpsc::unbounded_channel();
        let stream = Stream {
            port: Arc::clone(&self.server.port),
            runtime: Arc::clone(&self.server.runtime),
            path: self.path,
            worker,
            out,
            room: Arc::default(),
            ended,
            calls: BTreeMap::new(),
        };
        let closing = self.closing.take().unwrap_or_else(|| Box::pin(std::future::ready(())));
        let serving = stream.serve(request.into_inner(), has_ended, closing);
        self.server.runtime.spawn("link stream", Box::pin(serving)).detach();
        let answers = stream::poll_fn(move |cx| frames.poll_recv(cx)).map(Ok);
        let mut response = GrpcResponse::new(answers.boxed());
        response.metadata_mut().insert(VERSION_HEADER, version.into());
        Ok(response)
    }
}

/// The version to speak, and with whom.
fn introduction(metadata: &MetadataMap) -> Result<(u32, String), Status> {
    let text = |header| metadata.get(header).and_then(|value| value.to_str().ok());
    let versions = text(VERSIONS_HEADER).and_then(read_versions);
    let theirs = versions.ok_or_else(|| {
        Status::invalid_argument(format!("{VERSIONS_HEADER} must say versions, such as 1-2"))
    })?;
    let version = common_version(theirs, VERSIONS)
        .ok_or_else(|| Status::failed_precondition(nothing_in_common(theirs, VERSIONS)))?;
    let worker = text(WORKER_HEADER).filter(|name| !name.is_empty());
    let worker =
        worker.ok_or_else(|| Status::invalid_argument(format!("{WORKER_HEADER} must name the worker")))?;
    Ok((version, worker.to_owned()))
}

fn nothing_in_common(theirs: (u32, u32), ours: (u32, u32)) -> String {
    let ((oldest, newest), (first, last)) = (ours, theirs);
    let older = if last < oldest { "worker" } else { "server" };
    format!(
        "this server speaks versions {oldest} to {newest} of the link, the worker {first} to {last}; \
         bring the {older} up to date, which is the older of the two"
    )
}

struct Stream {
    port: Arc<dyn WorkerPort>,
    runtime: Arc<dyn Runtime>,
    path: &'static str,
    worker: String,
    out: mpsc::Sender<Frame>,
    room: Arc<Room>,
    ended: mpsc::UnboundedSender<u64>,
    calls: BTreeMap<u64, Call>,
}

/// A request under way; dropped with the stream it came by.
struct Call {
    /// It only waits for something to happen.
    waits: bool,
    _activity: AbortOnDrop,
}

impl Stream {
    async fn serve(
        mut self,
        mut incoming: Streaming<Frame>,
        mut has_ended: mpsc::UnboundedReceiver<u64>,
        closing: BoxFuture<'static, ()>,
    ) {
        let mut assembly = Assembly::default();
        let mut closing = closing.fuse();
        let mut is_closing = false;
        while !(is_closing && self.calls.is_empty()) {
            let has_room = self.calls.len() < AT_ONCE && !is_closing;
            tokio::select! {
                biased;
                Some(call) = has_ended.recv() => drop(self.calls.remove(&call)),
                () = &mut closing, if !is_closing => {
                    is_closing = true;
                    self.calls.retain(|_, call| !call.waits);
                }
                frame = incoming.message(), if has_room => match frame {
                    Ok(Some(frame)) => if let Err(error) = self.take(frame, &mut assembly) {
                        tracing::warn!(worker = self.worker, error, "a worker sends what makes no sense");
                        return;
                    },
                    Ok(None) => return,
                    Err(status) => {
                        tracing::debug!(worker = self.worker, %status, "a worker's stream ended");
                        return;
                    }
                },
                () = self.out.closed() => return,
            }
        }
    }

    fn take(&mut self, frame: Frame, assembly: &mut Assembly) -> Result<(), String> {
        let number = frame.call;
        if frame.cancel {
            assembly.forget(number);
            self.calls.remove(&number);
            return Ok(());
        }
        let Some(message) = assembly.add(frame).map_err(|error| error.to_string())? else { return Ok(()) };
        // A newer worker may ask what we don't know: it is told so, and goes on without.
        let request = serde_json::from_slice::<Request>(&message)
            .map_err(|error| LinkError::not_understood(&error))
            .and_then(|request| self.check(request));
        let waits = matches!(request, Ok(Request::Claim(_) | Request::Signals(_)));
        let (port, out, ended) = (Arc::clone(&self.port), self.out.clone(), self.ended.clone());
        let room = Arc::clone(&self.room);
        let call = async move {
            let answer = match request {
                Ok(request) => port.call(request).await,
                Err(error) => Err(error),
            };
            send(&out, &room, number, answer).await;
            // The stream is gone? Then so is what it kept of us.
            let _ = ended.send(number);
        };
        let activity = self.runtime.spawn("link call", Box::pin(call)).abort_on_drop();
        self.calls.insert(number, Call { waits, _activity: activity });
        Ok(())
    }

    /// A worker speaks for itself alone, and on the stream that is meant for what it says.
    fn check(&self, request: Request) -> Result<Request, LinkError> {
        let refuse = |message: String| Err(LinkError::Rejected { message });
        if request.worker() != self.worker {
            return refuse(format!("{:?} can't speak for {:?}", self.worker, request.worker()));
        }
        if path_of(&request) != self.path {
            return refuse(format!("this belongs on {}", path_of(&request)));
        }
        Ok(request)
    }
}

async fn send(out: &mpsc::Sender<Frame>, room: &Room, number: u64, answer: Result<Response, LinkError>) {
    let mut message = written(answer);
    let _held = match room.enter(message.len()).await {
        Ok(held) => held,
        // Whoever asks again is told the same.
        Err(error) => {
            tracing::error!(%error, "an answer can't be sent");
            message = written(Err(error));
            None
        }
    };
    for frame in cut(number, message.into()) {
        if out.send(frame).await.is_err() {
            return;
        }
    }
}

fn written(answer: Result<Response, LinkError>) -> Vec<u8> {
    serde_json::to_vec(&Answer::from(answer)).unwrap_or_else(|error| {
        tracing::error!(%error, "an answer can't be written down");
        Vec::new()
    })
}
