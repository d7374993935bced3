//! What every request passes before its route and every answer after it: a name, the checks of who asks and
//! from where, the body read within bounds, and problems written out.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{Request, request::Parts};
use hyper::{body::Incoming, service::Service};
use hyper_util::service::TowerToHyperService;
use ostler_control::{
    Control, ControlError,
    secrets::Redactor,
    telemetry::{Family, Telemetry},
};
use ostler_kernel::Runtime;
use ostler_link::grpc::server::LinkServer;
use tokio::sync::{Semaphore, watch};
use tonic::Status;

use crate::{
    access::{Caller, Identity, Peer, SignIns, identify},
    auth::Token,
    body,
    cors::{self, Origins},
    hosts::Hosts,
    limits::{Account, Limits, Payer, Permit, Rates, Streams, Within, counted, is_over},
    listen::{Phase, reached},
    metrics::{self, Requests},
    problem::Problem,
    request_id::{REQUEST_ID, RequestIds},
    routes,
    secret_keys::KeySource,
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
    /// Who shows that token.
    pub itself: Caller,
    pub worker_token: Token,
    pub sign_ins: SignIns,
    pub rates: Rates,
    pub streams: Arc<Streams>,
    pub hosts: Hosts,
    /// Of other sites' pages, those that are let in.
    pub origins: Origins,
    pub request_ids: RequestIds,
    pub phase: watch::Receiver<Phase>,
    /// One backup is made at a time: each needs as much room as the store.
    pub backups: Semaphore,
    /// Each watch reads the log for itself.
    pub watches: Arc<Streams>,
    pub requests: Requests,
    /// The description of the routes, made when it is first asked for.
    pub description: OnceLock<Bytes>,
    /// Knows what must not be shown.
    pub redactor: Redactor,
    pub key_source: KeySource,
    /// One turns the keys at a time.
    pub turning: Semaphore,
    pub telemetry: Telemetry,
}

impl App {
    /// All that is counted and known of this process.
    pub async fn figures(&self) -> Result<Vec<Family>, ControlError> {
        let gauges = self.control.gauges().await?;
        let figures = self.control.meter().figures();
        Ok(metrics::families(&figures, &gauges, &self.requests.figures(), self.telemetry.families()))
    }

    /// A place among those who watch, held as long as they do.
    pub fn room_for_a_watch(&self, caller: &Caller) -> Result<Permit, Problem> {
        self.watches.open(Account::of(caller))
    }
}

pub struct Gate {
    app: Arc<App>,
    routes: TowerToHyperService<axum::Router>,
    open_paths: BTreeSet<String>,
    within: Within,
    link: LinkServer,
}

impl Gate {
    pub fn new(app: Arc<App>, limits: Limits) -> Self {
        let routes = TowerToHyperService::new(routes::all(Arc::clone(&app)));
        let link = LinkServer::new(Arc::clone(&app.control) as _, Arc::clone(&app.runtime));
        Self { app, routes, open_paths: routes::open_paths(), within: Within::new(limits), link }
    }

    pub async fn answer(&self, request: Request<Incoming>, from: IpAddr) -> Result<Response, Infallible> {
        if LinkServer::is_meant(request.uri().path()) {
            return Ok(self.answer_worker(request).await.map(Body::new));
        }
        let (parts, body) = request.into_parts();
        let (method, began) = (parts.method.clone(), self.app.runtime.monotonic());
        let request_id = self.app.request_ids.of(&parts.headers);
        let page = self.app.origins.of(&parts.headers);
        let mut response = if page.is_some() && cors::is_preflight(&parts.method, &parts.headers) {
            self.answer_preflight(&parts).unwrap_or_else(IntoResponse::into_response)
        } else {
            self.answer_asked(parts, body, from).await
        };
        if let Some(mut problem) = response.extensions_mut().remove::<Problem>() {
            problem.hide(&self.app.redactor);
            problem.render(&mut response, request_id.to_str().unwrap_or_default());
        }
        if let Some(page) = page {
            cors::show_to(page, &mut response);
        }
        response.headers_mut().insert(REQUEST_ID, request_id);
        let took = self.app.runtime.monotonic().saturating_sub(began);
        self.app.requests.count(&method, response.status().as_u16(), took);
        Ok(response)
    }

    /// What a browser asks on its own, without saying on whose behalf.
    fn answer_preflight(&self, parts: &Parts) -> Result<Response, Problem> {
        let app = &*self.app;
        app.hosts.check_host(&parts.uri, &parts.headers)?;
        app.rates.take(app.runtime.monotonic())?;
        Ok(cors::preflight(&parts.headers))
    }

    async fn answer_asked(&self, mut parts: Parts, body: Incoming, from: IpAddr) -> Response {
        match self.admit(&mut parts, body, from).await {
            Ok((body, caller)) => {
                let response = self.serve(Request::from_parts(parts, body)).await;
                if Streams::is_stream(&response) { self.follow(response, caller, from) } else { response }
            }
            Err(problem) => problem.into_response(),
        }
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

    /// Lets a request in, with who asks in its extensions; or else reads on, so that the refusal is heard.
    async fn admit(
        &self,
        parts: &mut Parts,
        body: Incoming,
        from: IpAddr,
    ) -> Result<(Body, Option<Caller>), Problem> {
        let app = &*self.app;
        match self.check(parts, from).await {
            Ok(caller) => Ok((body::read(&*app.runtime, &parts.headers, body).await?.into(), caller)),
            Err(problem) => {
                body::discard(&*app.runtime, &parts.headers, body).await;
                Err(problem)
            }
        }
    }

    /// Who asks, if they may be let in; nobody, where nobody need be known.
    async fn check(&self, parts: &mut Parts, from: IpAddr) -> Result<Option<Caller>, Problem> {
        let (app, path) = (&*self.app, parts.uri.path());
        match app.origins.of(&parts.headers) {
            Some(_) => app.hosts.check_host(&parts.uri, &parts.headers).map(drop)?,
            None => app.hosts.check(&parts.uri, &parts.headers)?,
        }
        // Who looks after the server is not held up by those who use it too much.
        let is_counted = !matches!(path, routes::HEALTH | routes::READY);
        let now = app.runtime.monotonic();
        if is_counted {
            app.rates.take(now)?;
        }
        let identity = identify(app, &parts.method, &parts.headers).await;
        let caller = identity.as_ref().ok().cloned();
        if is_counted {
            app.rates.take_for(Payer::of(caller.as_ref(), from), now)?;
        }
        if let Err(problem) = &identity
            && !self.open_paths.contains(path)
        {
            return Err(problem.clone());
        }
        parts.extensions.insert(Identity(identity));
        parts.extensions.insert(Peer(from));
        Ok(caller)
    }

    async fn serve(&self, request: Request<Body>) -> Response {
        let (method, is_unhurried) = (request.method().clone(), request.uri().path() == routes::BACKUP);
        let routed = self.routes.call(request);
        let answering = async move {
            match routed.await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        };
        match is_unhurried {
            true => answering.await,
            false => self.within.answer(&*self.app.runtime, &method, Box::pin(answering)).await,
        }
    }

    /// An answer that goes on is counted, and ends with what its caller was let in by.
    fn follow(&self, response: Response, caller: Option<Caller>, from: IpAddr) -> Response {
        let app = &self.app;
        let account = caller.as_ref().map_or(Account::Address(from), Account::of);
        let permit = match app.streams.open(account) {
            Ok(permit) => permit,
            Err(problem) => return problem.into_response(),
        };
        // The server's own token can't be taken away while it runs.
        let over = caller
            .filter(|caller| caller.proof().is_some())
            .map(|caller| Box::pin(is_over(Arc::clone(&app.control), Arc::clone(&app.runtime), caller)) as _);
        counted(response, permit, over)
    }
}
