//! One export: a request over HTTP/1.1, or a unary call over gRPC, on a connection that is kept.

mod connection;
mod tls;

use std::{sync::Arc, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use ostler_kernel::{Runtime, runtime::timeout};
use prost::Message as _;

pub use tls::SetupError;

use self::connection::Connection;
use crate::{
    config::{Protocol, Target},
    otlp::PartialAnswer,
};

/// A collector has little to say.
const MOST_ANSWER: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("it can't be reached: {0}")]
    Unreachable(String),
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("it answered {status}{said}")]
    Refused { status: StatusCode, said: String, retry_after: Option<Duration> },
    #[error("it answered gRPC status {code}{said}")]
    RefusedCall { code: u32, said: String },
}

impl SendError {
    /// As the protocol lists them.
    pub fn is_transient(&self) -> bool {
        match self {
            SendError::Unreachable(_) | SendError::Late(_) => true,
            SendError::Refused { status, .. } => matches!(status.as_u16(), 429 | 502 | 503 | 504),
            // Cancelled, deadline exceeded, resource exhausted, aborted, out of range, unavailable, data loss.
            SendError::RefusedCall { code, .. } => matches!(code, 1 | 4 | 8 | 10 | 11 | 14 | 15),
        }
    }

    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            SendError::Refused { retry_after, .. } => *retry_after,
            SendError::Unreachable(_) | SendError::Late(_) | SendError::RefusedCall { .. } => None,
        }
    }
}

pub(crate) struct Sender {
    target: Target,
    tls: Option<Arc<rustls::ClientConfig>>,
    runtime: Arc<dyn Runtime>,
    connection: Option<Connection>,
}

impl Sender {
    pub fn new(target: Target, runtime: Arc<dyn Runtime>) -> Result<Self, SetupError> {
        let tls = if target.is_tls { Some(tls::config(&target)?) } else { None };
        Ok(Self { target, tls, runtime, connection: None })
    }

    /// Whom it sends to.
    pub fn shown(&self) -> String {
        self.target.shown()
    }

    /// How many of what was sent were rejected.
    pub async fn send(&mut self, body: Bytes) -> Result<u64, SendError> {
        let (limit, runtime) = (self.target.timeout, Arc::clone(&self.runtime));
        let sent = timeout(&*runtime, limit, self.try_send(body)).await;
        let sent = sent.unwrap_or(Err(SendError::Late(limit)));
        if sent.is_err() {
            self.connection = None;
        }
        sent
    }

    async fn try_send(&mut self, body: Bytes) -> Result<u64, SendError> {
        let request = self.request(body)?;
        let open = self.connection.take().filter(Connection::is_open);
        let mut connection = match open {
            Some(connection) => connection,
            None => Connection::open(&self.target, self.tls.as_ref(), &self.runtime).await?,
        };
        let response = connection.send(request).await?;
        self.connection = Some(connection);
        match self.target.protocol {
            Protocol::Http => read_answer(response).await,
            Protocol::Grpc => read_call(response).await,
        }
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, SendError> {
        let Target { protocol, path, host, port, .. } = &self.target;
        let authority =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let scheme = if self.target.is_tls { "https" } else { "http" };
        let request = match protocol {
            Protocol::Http => Request::post(path.as_str())
                .header(header::HOST, authority)
                .header(header::CONTENT_TYPE, "application/x-protobuf")
                .body(Full::new(body)),
            Protocol::Grpc => Request::post(format!("{scheme}://{authority}{path}"))
                .header(header::CONTENT_TYPE, "application/grpc")
                .header(header::TE, "trailers")
                .body(Full::new(framed(&body))),
        };
        let mut request = request.map_err(|error| SendError::Unreachable(error.to_string()))?;
        let agent =
            HeaderValue::from_static(concat!("OTel-OTLP-Exporter-Ostler/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(header::USER_AGENT, agent);
        for (name, value) in &self.target.headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        Ok(request)
    }
}

/// As gRPC frames a message: not compressed, and its length.
fn framed(body: &Bytes) -> Bytes {
    let mut frame = BytesMut::with_capacity(body.len() + 5);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(body.len()).unwrap_or(u32::MAX));
    frame.put_slice(body);
    frame.freeze()
}

async fn read_answer(response: Response<Incoming>) -> Result<u64, SendError> {
    let status = response.status();
    let retry_after = seconds(response.headers());
    let body = Limited::new(response.into_body(), MOST_ANSWER).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    if !status.is_success() {
        return Err(SendError::Refused { status, said: said(&String::from_utf8_lossy(&body)), retry_after });
    }
    Ok(rejected(&body))
}

async fn read_call(response: Response<Incoming>) -> Result<u64, SendError> {
    if !response.status().is_success() {
        let (status, retry_after) = (response.status(), seconds(response.headers()));
        return Err(SendError::Refused { status, said: String::new(), retry_after });
    }
    let head = response.headers().clone();
    let body = Limited::new(response.into_body(), MOST_ANSWER).collect().await;
    let body = body.map_err(|error| SendError::Unreachable(error.to_string()))?;
    let trailers = body.trailers().cloned().unwrap_or_default();
    let of = |name: &str| trailers.get(name).or_else(|| head.get(name)).and_then(|value| value.to_str().ok());
    match of("grpc-status").and_then(|code| code.parse().ok()) {
        Some(0) => Ok(rejected(body.to_bytes().get(5..).unwrap_or_default())),
        Some(code) => {
            Err(SendError::RefusedCall { code, said: said(of("grpc-message").unwrap_or_default()) })
        }
        None => Err(SendError::Unreachable("the answer broke off".to_owned())),
    }
}

fn rejected(body: &[u8]) -> u64 {
    let answer = PartialAnswer::decode(body).unwrap_or_default();
    let Some(partial) = answer.partial_success.filter(|partial| partial.rejected > 0) else { return 0 };
    tracing::warn!(
        rejected = partial.rejected,
        said = partial.error_message,
        "the collector did not take everything"
    );
    partial.rejected.cast_unsigned()
}

fn seconds(headers: &HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

fn said(text: &str) -> String {
    let plain = |letter: &char| !letter.is_control();
    let text: String = text.chars().filter(plain).take(200).collect();
    if text.is_empty() { text } else { format!(": {text}") }
}
