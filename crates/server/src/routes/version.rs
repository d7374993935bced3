//! Whether a server is there, and which.

use axum::response::Response;
use http::StatusCode;
use serde_json::json;

use super::answer;
use crate::{parameters::Parameters, problem::Problem};

pub async fn health() -> Response {
    answer(StatusCode::OK, &json!({ "status": "ok" }))
}

pub async fn version(parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&[])?;
    Ok(answer(StatusCode::OK, &json!({ "name": "ostler", "version": env!("CARGO_PKG_VERSION") })))
}
