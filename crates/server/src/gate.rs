//! What every request passes before its route and every answer after it: a name, the checks of who asks and
//! from where, the body read within bounds, and problems written out.

use std::{
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{Request, StatusCode, request::Parts};
use hyper::{body::Incoming, service::Service};
use hyper_util::service::TowerToHyperService;
use ostler_control::Control;
use ostler_kernel::Runtime;
use ostler_link::grpc::server::LinkServer;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tonic::Status;

use crate::{
    auth::Token,
    body,
    hosts::Hosts,
    listen::{Phase, reached},
    metrics::Requests,
    problem::Problem,
    request_id::{REQUEST_ID, RequestIds},
    routes,
    store::Opened,
};

/// What requests share.
pub struct App {
    pub control: Arc<Control>,
    /// The same store that `control` uses, for what only this kind of store can do.
    pub store: Opened,
    pub runtime: Arc<dyn Runtime>,
    pub data: PathBuf,
    pub token: Token,
    pub worker_token: Token,
    pub hosts: Hosts,
    pub request_ids: RequestIds,
    pub phase: watch::Receiver<Phase>,
    /// One backup is made at a time: each needs as much room as the store.
    pub backups: Semaphore,
    /// Each watch reads the log for itself.
    pub watches: Arc<Semaphore>,
    pub requests: Requests,
    /// The description of the routes, made when it is first asked for.
    pub description: OnceLock<Bytes>,
}

/// So many watches a server keeps at once.
pub const MOST_WATCHES: usize = 512;

impl App {
    /// A place among those who watch, held as long as they do.
    pub fn room_for_a_watch(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.watches).try_acquire_owned().map_err(|_| {
            let detail = format!("{MOST_WATCHES} watches are open, which is as many as may");
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_watches", detail)
                .remedy("close one that nobody reads, or watch on another server")
        })
    }
}

pub struct Gate {
    app: Arc<App>,
    routes: TowerToHyperService<axum::Router>,
    link: LinkServer,
}

impl Gate {
    pub fn new(app: Arc<App>) -> Self {
        let routes = TowerToHyperService::new(routes::all(Arc::clone(&app)));
        let link = LinkServer::new(Arc::clone(&app.control) as _, Arc::clone(&app.runtime));
        Self { app, routes, link }
    }

    pub async fn answer(&self, request: Request<Incoming>) -> Result<Response, Infallible> {
        if LinkServer::is_meant(request.uri().path()) {
            return Ok(self.answer_worker(request).await.map(Body::new));
        }
        let (parts, body) = request.into_parts();
        let (method, began) = (parts.method.clone(), self.app.runtime.monotonic());
        let request_id = self.app.request_ids.of(&parts.headers);
        let mut response = match self.admit(&parts, body).await {
            Ok(body) => self.routes.call(Request::from_parts(parts, body)).await?,
            Err(problem) => problem.into_response(),
        };
        if let Some(problem) = response.extensions_mut().remove::<Problem>() {
            problem.render(&mut response, request_id.to_str().unwrap_or_default());
        }
        response.headers_mut().insert(REQUEST_ID, request_id);
        let took = self.app.runtime.monotonic().saturating_sub(began);
        self.app.requests.count(&method, response.status().as_u16(), took);
        Ok(response)
    }

    /// A worker that dials has a token of its own, which opens nothing else.
    async fn answer_worker(&self, request: Request<Incoming>) -> http::Response<tonic::body::Body> {
        let app = &*self.app;
        let admitted = app
            .hosts
            .check(request.uri(), request.headers())
            .and_then(|()| app.worker_token.check(request.headers()));
        if let Err(problem) = admitted {
            return Status::unauthenticated(problem.detail()).into_http();
        }
        let mut phase = app.phase.clone();
        let closing = async move { reached(&mut phase, Phase::Draining).await };
        self.link.answer(request, Box::pin(closing)).await
    }

    async fn admit(&self, parts: &Parts, body: Incoming) -> Result<Body, Problem> {
        let app = &*self.app;
        let checked = app.hosts.check(&parts.uri, &parts.headers).and_then(|()| match parts.uri.path() {
            routes::HEALTH | routes::READY => Ok(()),
            _ => app.token.check(&parts.headers),
        });
        if let Err(problem) = checked {
            body::discard(&*app.runtime, &parts.headers, body).await;
            return Err(problem);
        }
        Ok(body::read(&*app.runtime, &parts.headers, body).await?.into())
    }
}
