//! Declared objects of every kind but Task, which has routes of its own.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use ostler_spec::{Kind, Resource, kinds};

use super::{
    answer,
    table::{Need, Route, Routes},
};
use crate::{
    gate::App,
    manifest,
    parameters::{Name, Parameters, Scope},
    problem::Problem,
    wire::list::List,
};

pub fn routes() -> Routes {
    // These have routes of their own.
    let declared = kinds().map(|info| info.kind).filter(|kind| !matches!(kind, Kind::Task | Kind::Worker));
    declared.fold(Routes::new(), |routes, kind| routes.merge(routes_of(kind)))
}

fn routes_of(kind: Kind) -> Routes {
    let all = format!("/v1/{}", kind.plural());
    let one = format!("{all}/{{name}}");
    let change = match kind {
        // It runs programs, beside the agents and outside of any sandbox.
        Kind::McpServer => Need::Manage,
        // It bounds those who write in its namespace, and decides between them and others.
        Kind::Quota => Need::Administer,
        _ => Need::Write,
    };
    Routes::new()
        .add(Route::get(&all, Need::Read, format!("Resources of kind {kind}.")), move |app, parameters| {
            list(kind, app, parameters)
        })
        .add(
            Route::post(&all, change, format!("Puts a resource of kind {kind} in place.")),
            move |app, parameters, headers, body| apply(kind, app, parameters, headers, body),
        )
        .add(
            Route::get(&one, Need::Read, format!("A resource of kind {kind}.")),
            move |app, name, parameters| read(kind, app, name, parameters),
        )
        .add(
            Route::delete(&one, change, format!("Deletes a resource of kind {kind}.")),
            move |app, name, parameters| delete(kind, app, name, parameters),
        )
}

async fn list(kind: Kind, State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace", "limit", "after"])?;
    let namespace = match parameters.scope()? {
        Scope::One(namespace) => Some(namespace),
        Scope::All => None,
    };
    let (limit, after) = (parameters.limit()?, parameters.get("after").map(cursor).transpose()?);
    let found = app.control.resources(kind, namespace, after, limit + 1).await?;
    Ok(answer(StatusCode::OK, &List::page(found, limit, Resource::key)))
}

/// `namespace/name`, the last of the page before.
fn cursor(after: &str) -> Result<(String, String), Problem> {
    let place = after.split_once('/').map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
    place.ok_or_else(|| {
        let detail = format!("after: expected the `continue` of the page before, found {after:?}");
        Problem::bad_parameter(detail)
    })
}

async fn apply(
    kind: Kind,
    State(app): State<Arc<App>>,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    let resource = manifest::resource(kind, &headers, &body, &parameters)?;
    Ok(answer(StatusCode::CREATED, &app.control.apply(resource).await?))
}

async fn read(
    kind: Kind,
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    let found = app.control.resource(kind, parameters.namespace_or_default()?, &name).await?;
    let resource = found.ok_or_else(|| Problem::not_found(kind.name(), &name))?;
    Ok(answer(StatusCode::OK, &resource))
}

async fn delete(
    kind: Kind,
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
) -> Result<StatusCode, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    app.control.delete(kind, parameters.namespace_or_default()?, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
