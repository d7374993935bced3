//! What was found out about a resource: read by anybody, written by those who look after it.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use ostler_spec::{Kind, Resource};
use serde_json::json;

use crate::{
    dialect::Dialect,
    gate::App,
    manifest,
    parameters::{Name, Parameters},
    precondition,
    problem::Problem,
    routes::{
        answer,
        parameter::{IF_MATCH, NAMESPACE, USER_AGENT},
        table::{Body, Need, Route, Routes, Shape},
    },
};

pub fn routes_of(kind: Kind) -> Routes {
    let path = format!("/v1/{}/{{name}}/status", kind.plural());
    let routes = Routes::new().add(
        Route::get(&path, Need::Read, format!("What was found out about a resource of kind {kind}."))
            .takes(&[NAMESPACE])
            .heeds(&[USER_AGENT])
            .answers(200, Shape::Json("Status")),
        move |app, dialect, name, parameters| read(kind, app, dialect, name, parameters),
    );
    if !is_reported(kind) {
        return routes;
    }
    routes.add(
        Route::put(&path, Need::Report, format!("Says what was found out about a resource of kind {kind}."))
            .takes(&[NAMESPACE])
            .heeds(&[IF_MATCH])
            .carries(Body::Json("StatusReport"))
            .answers(200, Shape::Resource(kind)),
        move |app, name, parameters, headers, body| write(kind, app, name, parameters, headers, body),
    )
}

/// Whether somebody looks after such resources, and reports. What the server finds out by itself is told of all of them.
fn is_reported(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Agent
            | Kind::AgentSystem
            | Kind::ModelEndpoint
            | Kind::Tool
            | Kind::Memory
            | Kind::AgentPolicy
            | Kind::TaskSchedule
            | Kind::TaskWebhook
            | Kind::EvalDataset
            | Kind::EvalRun
    )
}

async fn read(
    kind: Kind,
    State(app): State<Arc<App>>,
    dialect: Dialect,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    let found = app.control.resource(kind, parameters.namespace_or_default()?, &name).await?;
    let Resource { metadata, status, .. } = found.ok_or_else(|| Problem::not_found(kind.name(), &name))?;
    Ok(answer(StatusCode::OK, &dialect.status(json!({ "metadata": metadata, "status": status }))))
}

async fn write(
    kind: Kind,
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    let report = manifest::status((kind, &name), &headers, &body, &parameters)?;
    let namespace = &report.namespace;
    if app.control.resource(kind, namespace, &name).await?.is_none() {
        return Err(Problem::not_found(kind.name(), &name));
    }
    let precondition = precondition::required(&headers, report.version)?;
    let stored = app.control.set_status(kind, namespace, &name, report.status, &precondition).await?;
    Ok(answer(StatusCode::OK, &stored))
}
