//! Figures of a process that is no server: a worker shows its own to Prometheus, at an address that serves nothing else.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use ostler_control::telemetry::Source;
use ostler_kernel::{Runtime, runtime::timeout};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

use crate::{metrics, routes, telemetry};

/// Connections at once. Further ones wait: whoever scrapes comes alone.
const MOST: usize = 16;

/// How long a connection may last. Each scrape is over in a moment.
const LONGEST: Duration = Duration::from_secs(60);

/// After a failure to accept.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves the figures of `source` until the process ends, and gives the address it has. Whoever reaches it may read them:
/// they hold names and numbers.
pub async fn serve_figures(
    listen: SocketAddr,
    source: Source,
    runtime: Arc<dyn Runtime>,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    let accepting = accept(listener, source, Arc::clone(&runtime));
    runtime.spawn("figures", Box::pin(accepting)).detach();
    Ok(address)
}

async fn accept(listener: TcpListener, source: Source, runtime: Arc<dyn Runtime>) {
    let room = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (source, clock) = (Arc::clone(&source), Arc::clone(&runtime));
                let connection = async move {
                    // Who is still there then is gone for good.
                    let _ = timeout(&*clock, LONGEST, serve(stream, source)).await;
                    drop(permit);
                };
                runtime.spawn("figures connection", Box::pin(connection)).detach();
            }
            Err(error) => {
                telemetry::accept_failed(&error);
                runtime.sleep(PAUSE).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, source: Source) {
    let service = service_fn(move |request| {
        let source = Arc::clone(&source);
        async move { Ok::<_, Infallible>(answer(&request, &source).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(LONGEST);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        telemetry::connection_failed(&error);
    }
}

async fn answer(request: &Request<Incoming>, source: &Source) -> Response<Full<Bytes>> {
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    match request.uri().path() {
        routes::METRICS | routes::HEALTH if !is_reading => {
            plain(StatusCode::METHOD_NOT_ALLOWED, String::new())
        }
        routes::METRICS => {
            let mut page = plain(StatusCode::OK, metrics::text(&source().await));
            page.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE));
            page
        }
        routes::HEALTH => plain(StatusCode::OK, "ok\n".to_owned()),
        _ => plain(StatusCode::NOT_FOUND, String::new()),
    }
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}
