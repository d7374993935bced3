//! Declared objects of every kind: put in place, listed, read, replaced, deleted, watched. Task and Worker have routes of
//! their own beside these.

mod status;

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use ostler_control::{Precondition, ResourcePage};
use ostler_spec::{Kind, Resource, check_name, kinds};
use serde_json::json;

use super::{
    answer,
    parameter::{AFTER, DRY_RUN, DRY_RUN_CAMEL, IF_MATCH, LABEL_SELECTOR, LABELS, LIMIT, NAMESPACE, SCOPE},
    table::{Body, Need, Route, Routes, Shape},
    watch,
};
use crate::{
    gate::App,
    manifest,
    parameters::{Name, Parameters, Scope},
    precondition,
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
    let change = need_to_change(kind);
    let deleted = if kind == Kind::McpServer { (200, Shape::Json("Deleted")) } else { (204, Shape::Nothing) };
    let listed = Route::get(&all, Need::Read, format!("Resources of kind {kind}."))
        .takes(&[SCOPE, LIMIT, AFTER, LABEL_SELECTOR, LABELS])
        .answers(200, Shape::List(kind));
    let routes = match kind {
        // Those that are going on are listed there too.
        Kind::Session => Routes::new(),
        _ => Routes::new().add(listed, move |app, parameters| list(kind, app, parameters)),
    };
    let routes = routes
        .add(
            Route::post(&all, change, format!("Puts a resource of kind {kind} in place."))
                .takes(&[NAMESPACE, DRY_RUN, DRY_RUN_CAMEL])
                .heeds(&[IF_MATCH])
                .carries(Body::Manifest(kind))
                .answers(201, Shape::Resource(kind)),
            move |app, parameters, headers, body| apply(kind, app, parameters, headers, body),
        )
        .add(
            Route::get(&one, Need::Read, format!("A resource of kind {kind}."))
                .takes(&[NAMESPACE])
                .answers(200, Shape::Resource(kind)),
            move |app, name, parameters| read(kind, app, name, parameters),
        );
    let replaced = Route::put(&one, change, format!("Replaces a resource of kind {kind}, or renames it."))
        .takes(&[NAMESPACE, DRY_RUN, DRY_RUN_CAMEL])
        .heeds(&[IF_MATCH])
        .carries(Body::Manifest(kind))
        .answers(200, Shape::Resource(kind));
    let routes = match kind {
        // What is asked for doesn't become something else while somebody decides about it.
        Kind::ToolApproval => routes,
        _ => routes.add(replaced, move |app, name, parameters, headers, body| {
            replace(kind, app, name, parameters, headers, body)
        }),
    };
    routes
        .add(
            Route::delete(&one, change, format!("Deletes a resource of kind {kind}."))
                .takes(&[NAMESPACE])
                .heeds(&[IF_MATCH])
                .answers(deleted.0, deleted.1),
            move |app, name, parameters, headers| delete(kind, app, name, parameters, headers),
        )
        .merge(watch::routes_of(kind))
        .merge(status::routes_of(kind))
}

/// What it takes to put something of the kind in place.
pub fn need_to_change(kind: Kind) -> Need {
    match kind {
        // It runs programs, beside the agents and outside of any sandbox.
        Kind::McpServer => Need::Manage,
        // It bounds those who write in its namespace, and decides between them and others.
        Kind::Quota => Need::Administer,
        _ => Need::Write,
    }
}

async fn list(kind: Kind, State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace", "limit", "after", "labelSelector", "labels"])?;
    page(kind, &app, &parameters).await
}

/// A page of resources, by namespace and name.
pub async fn page(kind: Kind, app: &App, parameters: &Parameters) -> Result<Response, Problem> {
    let (limit, scope) = (parameters.limit()?, parameters.scope()?);
    let page = ResourcePage {
        after: parameters.get("after").map(|after| cursor(after, &scope)).transpose()?,
        namespace: match scope {
            Scope::One(namespace) => Some(namespace),
            Scope::All => None,
        },
        labels: parameters.selector()?,
        limit: limit + 1,
    };
    let found = app.control.page(kind, page).await?;
    Ok(answer(StatusCode::OK, &List::page(found, limit, Resource::key)))
}

/// `namespace/name`, the last of the page before. In a list of one namespace its name is enough.
fn cursor(after: &str, scope: &Scope) -> Result<(String, String), Problem> {
    match (after.split_once('/'), scope) {
        (Some((namespace, name)), _) => Ok((namespace.to_owned(), name.to_owned())),
        (None, Scope::One(namespace)) if check_name(after).is_ok() => {
            Ok((namespace.clone(), after.to_owned()))
        }
        (None, Scope::One(_) | Scope::All) => {
            let detail = format!("after: expected the `continue` of the page before, found {after:?}");
            Err(Problem::bad_parameter(detail))
        }
    }
}

async fn apply(
    kind: Kind,
    State(app): State<Arc<App>>,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace", "dry_run", "dryRun"])?;
    let resource = manifest::resource(kind, &headers, &body, &parameters)?;
    let precondition = precondition::of(&headers)?.unwrap_or(Precondition::Any);
    let stored = app.control.apply_if(resource, &precondition, parameters.effect()?).await?;
    Ok(answer(StatusCode::CREATED, &stored))
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

/// Puts what the body says in the place of the resource with this name.
pub async fn replace(
    kind: Kind,
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace", "dry_run", "dryRun"])?;
    let resource = manifest::resource(kind, &headers, &body, &parameters)?;
    // As the address says, or else the body.
    let namespace = &resource.metadata.namespace.clone();
    if app.control.resource(kind, namespace, &name).await?.is_none() {
        return Err(Problem::not_found(kind.name(), &name));
    }
    let given = resource.metadata.resource_version.clone();
    let precondition = precondition::required(&headers, given)?;
    let stored = app.control.replace(&name, resource, &precondition, parameters.effect()?).await?;
    Ok(answer(StatusCode::OK, &stored))
}

async fn delete(
    kind: Kind,
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    let precondition = precondition::of(&headers)?.unwrap_or(Precondition::Any);
    app.control.delete_if(kind, parameters.namespace_or_default()?, &name, &precondition).await?;
    Ok(match kind {
        Kind::McpServer => answer(StatusCode::OK, &json!({ "deleted": name })),
        _ => StatusCode::NO_CONTENT.into_response(),
    })
}
