//! A connection to a collector, which its operator named.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use ostler_kernel::{Runtime, runtime::AbortOnDrop};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::SendError;
use crate::config::{Protocol, Target};

pub(super) struct Connection {
    sender: Requests,
    _driving: AbortOnDrop,
}

enum Requests {
    Http(http1::SendRequest<Full<Bytes>>),
    Grpc(http2::SendRequest<Full<Bytes>>),
}

impl Connection {
    #[expect(
        clippy::disallowed_methods,
        reason = "the collector that an operator named, often at a private address"
    )]
    pub async fn open(
        target: &Target,
        tls: Option<&Arc<rustls::ClientConfig>>,
        runtime: &Arc<dyn Runtime>,
    ) -> Result<Self, SendError> {
        let stream = TcpStream::connect((target.host.as_str(), target.port)).await.map_err(unreachable)?;
        // Without it exports are only slower.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return Self::begin(stream, target.protocol, runtime).await };
        let name = ServerName::try_from(target.host.clone()).map_err(unreachable)?;
        let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await.map_err(unreachable)?;
        Self::begin(stream, target.protocol, runtime).await
    }

    /// Speaks the protocol on the stream, and keeps it going in the background.
    async fn begin(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        protocol: Protocol,
        runtime: &Arc<dyn Runtime>,
    ) -> Result<Self, SendError> {
        let stream = TokioIo::new(stream);
        let (sender, driving) = match protocol {
            Protocol::Http => {
                let (sender, connection) = http1::handshake(stream).await.map_err(unreachable)?;
                let driving = Box::pin(async move { ended(connection.await) });
                (Requests::Http(sender), runtime.spawn("collector connection", driving))
            }
            Protocol::Grpc => {
                let (sender, connection) =
                    http2::handshake(TokioExecutor::new(), stream).await.map_err(unreachable)?;
                let driving = Box::pin(async move { ended(connection.await) });
                (Requests::Grpc(sender), runtime.spawn("collector connection", driving))
            }
        };
        Ok(Self { sender, _driving: driving.abort_on_drop() })
    }

    pub fn is_open(&self) -> bool {
        match &self.sender {
            Requests::Http(sender) => !sender.is_closed(),
            Requests::Grpc(sender) => !sender.is_closed(),
        }
    }

    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, SendError> {
        match &mut self.sender {
            Requests::Http(sender) => {
                sender.ready().await.map_err(unreachable)?;
                sender.send_request(request).await.map_err(unreachable)
            }
            Requests::Grpc(sender) => {
                sender.ready().await.map_err(unreachable)?;
                sender.send_request(request).await.map_err(unreachable)
            }
        }
    }
}

fn unreachable(error: impl ToString) -> SendError {
    SendError::Unreachable(error.to_string())
}

fn ended(result: hyper::Result<()>) {
    if let Err(error) = result {
        tracing::debug!(%error, "the connection to the collector ended");
    }
}
