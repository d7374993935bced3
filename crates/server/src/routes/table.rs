//! Every route, declared once: its method and path, what its caller must be allowed to, what it is for, what it takes and
//! what it answers. The router, the check of who may call it and its description all come from this one place, so that
//! none can be forgotten.

use std::{
    future::{Ready, ready},
    sync::Arc,
};

use axum::{
    Router,
    extract::Request,
    handler::Handler,
    response::{IntoResponse, Response},
    routing::MethodFilter,
};
use futures_util::future::Either;
use http::Method;
use ostler_spec::Kind;

use crate::{access::Identity, gate::App};

/// What a caller must be allowed to, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Anybody may ask.
    Nothing,
    /// Ask about oneself.
    SignIn,
    Read,
    /// Look at what belongs to no namespace, and tells about all of them.
    Oversee,
    Write,
    /// Say what was found out about a resource.
    Report,
    /// Put in place what runs programs beside the agents.
    Manage,
    /// Decide about the server itself and those who may use it.
    Administer,
}

impl Need {
    /// The least role that may.
    pub fn role(self) -> Option<&'static str> {
        match self {
            Need::Nothing => None,
            Need::SignIn | Need::Read | Need::Oversee => Some("reader"),
            Need::Write => Some("writer"),
            Need::Report => Some("controller"),
            Need::Manage | Need::Administer => Some("admin"),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Route {
    pub method: Method,
    /// As the router takes it: `/v1/tasks/{task}`.
    pub path: String,
    pub need: Need,
    /// What it is for, in a sentence.
    pub summary: String,
    /// What may stand behind the question mark.
    pub parameters: Vec<&'static Parameter>,
    /// Headers that it looks at.
    pub headers: Vec<&'static Parameter>,
    pub body: Body,
    pub answers: Vec<(u16, Shape)>,
}

/// A parameter of an address, or a header.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub about: &'static str,
    pub value: Value,
}

#[derive(Debug, Clone, Copy)]
pub enum Value {
    Text,
    /// True or false.
    Flag,
    /// From 1 to the most that a page may hold.
    Limit,
    /// A place in a log.
    Place,
}

/// What a request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    Nothing,
    /// A manifest, as JSON or YAML.
    Manifest(Kind),
    /// The same of a shape that the description names.
    Request(&'static str),
    /// Many of any kind: YAML of several documents, or a list in JSON.
    Manifests,
    /// JSON of a shape that the description names; it may be left out.
    Optional(&'static str),
    Json(&'static str),
}

/// What an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Nothing,
    Resource(Kind),
    List(Kind),
    /// A shape that the description names.
    Json(&'static str),
    /// Server-sent events.
    Events,
    Text,
    Bytes,
}

impl Route {
    pub fn get(path: impl Into<String>, need: Need, summary: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            need,
            summary: summary.into(),
            parameters: Vec::new(),
            headers: Vec::new(),
            body: Body::Nothing,
            answers: Vec::new(),
        }
    }

    pub fn post(path: impl Into<String>, need: Need, summary: impl Into<String>) -> Self {
        Self { method: Method::POST, ..Self::get(path, need, summary) }
    }

    pub fn put(path: impl Into<String>, need: Need, summary: impl Into<String>) -> Self {
        Self { method: Method::PUT, ..Self::get(path, need, summary) }
    }

    pub fn patch(path: impl Into<String>, need: Need, summary: impl Into<String>) -> Self {
        Self { method: Method::PATCH, ..Self::get(path, need, summary) }
    }

    pub fn delete(path: impl Into<String>, need: Need, summary: impl Into<String>) -> Self {
        Self { method: Method::DELETE, ..Self::get(path, need, summary) }
    }

    #[must_use]
    pub fn takes(mut self, parameters: &[&'static Parameter]) -> Self {
        self.parameters.extend(parameters);
        self
    }

    #[must_use]
    pub fn heeds(mut self, headers: &[&'static Parameter]) -> Self {
        self.headers.extend(headers);
        self
    }

    #[must_use]
    pub fn carries(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    #[must_use]
    pub fn answers(mut self, status: u16, shape: Shape) -> Self {
        self.answers.push((status, shape));
        self
    }
}

/// Routes with those who answer them.
#[derive(Default)]
pub struct Routes {
    router: Router<Arc<App>>,
    table: Vec<Route>,
}

impl Routes {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn add<H, T>(mut self, route: Route, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let guarded = Guarded { need: route.need, handler };
        self.router = self.router.route(&route.path, axum::routing::on(filter(&route.method), guarded));
        self.table.push(route);
        self
    }

    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.table.extend(other.table);
        self
    }

    pub fn into_parts(self) -> (Router<Arc<App>>, Vec<Route>) {
        (self.router, self.table)
    }
}

/// Answers only those who may what the route needs.
#[derive(Clone)]
struct Guarded<H> {
    need: Need,
    handler: H,
}

impl<H, T> Handler<T, Arc<App>> for Guarded<H>
where
    H: Handler<T, Arc<App>>,
    T: 'static,
{
    type Future = Either<H::Future, Ready<Response>>;

    fn call(self, request: Request, app: Arc<App>) -> Self::Future {
        match Identity::check(request.extensions(), self.need) {
            Ok(()) => Either::Left(self.handler.call(request, app)),
            Err(problem) => Either::Right(ready(problem.into_response())),
        }
    }
}

/// A method that no route is declared with would be answered by none.
fn filter(method: &Method) -> MethodFilter {
    MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::TRACE)
}
