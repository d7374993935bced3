//! The routes, one file for each resource.

mod backup;
mod resources;
mod tasks;
mod version;
mod workers;

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use serde::Serialize;

use crate::{gate::App, problem::Problem};

/// The routes that ask for no token: whether the server lives, and whether it can work.
pub const HEALTH: &str = "/healthz";
pub const READY: &str = "/readyz";

pub fn all(app: Arc<App>) -> Router {
    Router::new()
        .route(HEALTH, get(version::health))
        .route(READY, get(version::ready))
        .route("/v1/version", get(version::version))
        .route("/v1/backup", post(backup::create))
        .merge(resources::routes())
        .merge(tasks::routes())
        .merge(workers::routes())
        .fallback(unknown_route)
        .method_not_allowed_fallback(method_not_allowed)
        // The gate has read the body already, within its own bounds.
        .layer(DefaultBodyLimit::disable())
        .with_state(app)
}

async fn unknown_route(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_route", format!("there is no route {:?}", uri.path()))
        .remedy("routes look like /v1/agents, /v1/tasks/<name> or /v1/tasks/<name>/events")
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("{:?} does not take {method}", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        .remedy("the Allow header lists what it takes")
}

/// An answer in JSON.
fn answer<T: Serialize>(status: StatusCode, body: &T) -> Response {
    // Our own types can always be written.
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], bytes).into_response()
}
