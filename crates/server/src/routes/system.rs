//! What this server is and what it holds: namespaces, what it can do, its figures, its description.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use super::{
    answer,
    parameter::USER_AGENT,
    table::{Need, Route, Routes, Shape},
};
use crate::{dialect::Dialect, gate::App, metrics, openapi, parameters::Parameters, problem::Problem};

pub fn routes() -> Routes {
    Routes::new()
        .add(
            Route::get("/v1/namespaces", Need::Read, "The caller's namespaces that something lives in.")
                .heeds(&[USER_AGENT])
                .answers(200, Shape::Json("Namespaces")),
            namespaces,
        )
        .add(
            Route::get("/v1/capabilities", Need::Read, "What this server can do.")
                .answers(200, Shape::Json("Capabilities")),
            capabilities,
        )
        .add(
            Route::get(super::METRICS, Need::Oversee, "Figures for Prometheus.").answers(200, Shape::Text),
            figures,
        )
        .add(
            Route::get("/openapi.json", Need::Read, "This description.")
                .answers(200, Shape::Json("Anything")),
            description,
        )
}

async fn namespaces(
    State(app): State<Arc<App>>,
    dialect: Dialect,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&[])?;
    let mine = &parameters.caller()?.grant().namespaces;
    let all = app.control.namespaces().await?;
    let names: Vec<String> = all.into_iter().filter(|name| mine.has(name)).collect();
    Ok(match dialect {
        Dialect::Ours => answer(StatusCode::OK, &json!({ "namespaces": names })),
        Dialect::OrlojJavaScript | Dialect::OrlojPython => answer(StatusCode::OK, &names),
    })
}

/// What can be told apart, and whether it is there.
const CAPABILITIES: [(&str, bool, &str); 6] = [
    ("core.api.crud", true, "Resources of every kind are kept, listed, watched and replaced."),
    ("core.runtime.sequential", true, "A task on a system runs its agents one after the other."),
    ("core.runtime.message_driven", false, "Agents of a system hand messages to each other along a graph."),
    (
        "core.governance.agent_roles",
        false,
        "Roles and policies are kept, and whatever they hold for is refused.",
    ),
    ("core.ui.baseline", false, "A console in the browser."),
    ("core.self_host", true, "One program with its store inside."),
];

async fn capabilities(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let all = CAPABILITIES.map(|(id, enabled, description)| {
        json!({ "id": id, "enabled": enabled, "description": description, "source": "core" })
    });
    let generated_at = app.runtime.now().to_string();
    Ok(answer(StatusCode::OK, &json!({ "generated_at": generated_at, "capabilities": all })))
}

async fn figures(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let text = metrics::text(&app.figures().await?);
    let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, kind)], text).into_response())
}

async fn description(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let text: &Bytes = app.description.get_or_init(|| openapi::text(&super::table()).into());
    let kind = HeaderValue::from_static("application/json");
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, kind)], text.clone()).into_response())
}
