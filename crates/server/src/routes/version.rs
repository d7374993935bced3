//! Whether a server is there, and which.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use ostler_control::store::StoreExt;
use serde_json::json;

use super::answer;
use crate::{gate::App, listen::Phase, parameters::Parameters, problem::Problem};

pub async fn health() -> Response {
    answer(StatusCode::OK, &json!({ "status": "ok" }))
}

pub async fn version(parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&[])?;
    Ok(answer(StatusCode::OK, &json!({ "name": "ostler", "version": env!("CARGO_PKG_VERSION") })))
}

/// Whether it can work: a store that is away makes it useless to send anybody here, and so does an end that is near.
pub async fn ready(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    if *app.phase.borrow() != Phase::Serving {
        let detail = "the server is about to stop";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
            .remedy("ask another server, or this one when it is back"));
    }
    app.control.store().next_due().await?;
    Ok(answer(StatusCode::OK, &json!({ "status": "ready" })))
}
