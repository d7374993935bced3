//! Whether a server is there, and which.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use ostler_control::store::StoreExt;
use serde_json::json;

use super::answer;
use crate::{gate::App, parameters::Parameters, problem::Problem};

pub async fn health() -> Response {
    answer(StatusCode::OK, &json!({ "status": "ok" }))
}

pub async fn version(parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&[])?;
    Ok(answer(StatusCode::OK, &json!({ "name": "ostler", "version": env!("CARGO_PKG_VERSION") })))
}

/// Whether it can work: a store that is away makes it useless to send anybody here.
pub async fn ready(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    app.control.store().next_due().await?;
    Ok(answer(StatusCode::OK, &json!({ "status": "ready" })))
}
