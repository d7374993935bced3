//! The routes, one file for each resource.

mod agents;
mod backup;
mod check;
mod later;
pub mod parameter;
mod resources;
mod secret_keys;
mod sessions;
mod sign_in;
mod system;
pub mod table;
mod tasks;
mod tokens;
mod users;
mod version;
mod watch;
mod workers;

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Router,
    extract::DefaultBodyLimit,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use serde::Serialize;

pub use self::table::{Need, Route};
use self::table::{Routes, Shape};
use crate::{gate::App, problem::Problem};

/// Whether the server lives, and whether it can work: asked by who looks after it, as often as it likes.
pub const HEALTH: &str = "/healthz";
pub const READY: &str = "/readyz";

/// The figures.
pub const METRICS: &str = "/metrics";

/// Takes as long as the store is large.
pub const BACKUP: &str = "/v1/backup";

pub fn all(app: Arc<App>) -> Router {
    let (router, _) = declared().into_parts();
    router
        .fallback(unknown_route)
        .method_not_allowed_fallback(method_not_allowed)
        // The gate has read the body already, within its own bounds.
        .layer(DefaultBodyLimit::disable())
        .with_state(app)
}

/// Every route there is, in the order in which they are declared.
pub fn table() -> Vec<Route> {
    declared().into_parts().1
}

/// The paths of routes that ask for nothing. A request for any other is refused before its body is read, unless it is
/// known whom it comes from.
pub fn open_paths() -> BTreeSet<String> {
    table().into_iter().filter(|route| route.need == Need::Nothing).map(|route| route.path).collect()
}

fn declared() -> Routes {
    Routes::new()
        .add(
            Route::get(HEALTH, Need::Nothing, "Whether the server lives.")
                .answers(200, Shape::Json("Health")),
            version::health,
        )
        .add(
            Route::get(READY, Need::Nothing, "Whether the server can work.")
                .answers(200, Shape::Json("Health")),
            version::ready,
        )
        .add(
            Route::get("/v1/version", Need::Read, "Which server this is.")
                .answers(200, Shape::Json("Version")),
            version::version,
        )
        .add(
            Route::post(BACKUP, Need::Administer, "A consistent copy of the embedded store.")
                .answers(200, Shape::Bytes),
            backup::create,
        )
        .merge(system::routes())
        .merge(sign_in::routes())
        .merge(users::routes())
        .merge(tokens::routes())
        .merge(resources::routes())
        .merge(secret_keys::routes())
        .merge(agents::routes())
        .merge(check::routes())
        .merge(sessions::routes())
        .merge(later::routes())
        .merge(tasks::routes())
        .merge(workers::routes())
        .merge(watch::routes())
}

async fn unknown_route(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_route", format!("there is no route {:?}", uri.path()))
        .remedy("routes look like /v1/agents, /v1/tasks/<name> or /v1/tasks/<name>/events")
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("{:?} does not take {method}", uri.path());
    if workers::is_one_or_all(uri.path()) {
        let detail = format!("{detail}: a worker registers itself when it starts, and is not declared");
        return Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail).remedy(
            "start one with `ostler worker`; POST to /v1/workers/<name>/cordon or /drain keeps runs from one",
        );
    }
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        .remedy("the Allow header lists what it takes")
}

/// An answer in JSON.
pub fn answer<T: Serialize>(status: StatusCode, body: &T) -> Response {
    // Our own types can always be written.
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_declared_once_and_says_what_it_is_for() {
        let table = table();
        let mut names: Vec<String> =
            table.iter().map(|route| format!("{} {}", route.method, route.path)).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for route in &table {
            assert!(route.summary.ends_with('.'), "{} {} has no summary", route.method, route.path);
            if route.need > Need::SignIn && !route.path.starts_with("/v1/auth/") && route.path != "/v1/tokens"
            {
                let reads = route.method == http::Method::GET;
                assert_eq!(reads, route.need <= Need::Oversee, "{} {}", route.method, route.path);
            }
        }
    }
}
