//! Watches: resources and tasks as they change, and every event there is.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::HeaderMap;
use ostler_control::{Watched, access::Namespaces};
use ostler_kernel::Selector;
use ostler_spec::{Kind, TaskMode};

use super::{
    parameter::{
        EVENT_SCOPE, KIND, LABEL_SELECTOR, LABELS, LAST_EVENT_ID, NAME, RESOURCE_VERSION, SCOPE, SINCE,
        SOURCE, TYPE, USER_AGENT, WATCH_MODE,
    },
    table::{Need, Route, Routes, Shape},
    tasks,
};
use crate::{
    dialect::Dialect,
    gate::App,
    parameters::{Parameters, Scope, last_event_id_given},
    problem::Problem,
    sse,
    wire::event::EventFilter,
};

pub fn routes() -> Routes {
    Routes::new().add(
        Route::get("/v1/events/watch", Need::Read, "Everything that happens, live.")
            .takes(&[SINCE, SOURCE, TYPE, KIND, NAME, EVENT_SCOPE])
            .heeds(&[LAST_EVENT_ID, USER_AGENT])
            .answers(200, Shape::Events),
        events,
    )
}

pub fn routes_of(kind: Kind) -> Routes {
    let path = format!("/v1/{}/watch", kind.plural());
    let route = Route::get(path, Need::Read, format!("Resources of kind {kind} as they change, live."))
        .takes(&[SCOPE, NAME, LABEL_SELECTOR, LABELS, RESOURCE_VERSION])
        .takes(if kind == Kind::Task { &[WATCH_MODE] } else { &[] })
        .heeds(&[LAST_EVENT_ID])
        .answers(200, Shape::Events);
    Routes::new().add(route, move |app, parameters, headers| watch(kind, app, parameters, headers))
}

async fn watch(
    kind: Kind,
    State(app): State<Arc<App>>,
    parameters: Parameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let known = ["namespace", "name", "labelSelector", "labels", "resourceVersion", "mode"];
    let known = if kind == Kind::Task { &known[..] } else { &known[..5] };
    let parameters = parameters.only(known)?;
    let watched = Watched {
        kind,
        namespace: match parameters.scope()? {
            Scope::One(namespace) => Some(namespace),
            Scope::All => None,
        },
        name: parameters.get("name").map(str::to_owned),
        labels: parameters.selector()?,
        mode: mode(kind, &parameters)?,
        newer_than: parameters.place("resourceVersion")?.unwrap_or(0),
    };
    let after = last_event_id_given(&headers);
    let room = app.room_for_a_watch(parameters.caller()?)?;
    let watch = app.control.watch(watched, after).await?;
    Ok(sse::stream(&app, sse::ResourceStream::new(watch, room)))
}

/// Of tasks what a list shows, too. Who names one means whatever has the name, as whoever reads it.
fn mode(kind: Kind, parameters: &Parameters) -> Result<Option<TaskMode>, Problem> {
    match (kind, tasks::mode(parameters)?) {
        (Kind::Task, None) if parameters.get("name").is_none() => Ok(Some(TaskMode::Run)),
        (_, mode) => Ok(mode),
    }
}

async fn events(
    State(app): State<Arc<App>>,
    dialect: Dialect,
    parameters: Parameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["since", "source", "type", "kind", "name", "namespace"])?;
    let text = |name| parameters.get(name).map(str::to_owned);
    let filter = EventFilter {
        source: text("source"),
        r#type: text("type"),
        kind: text("kind"),
        name: text("name"),
        namespaces: namespaces(&parameters)?,
        shows_workers: parameters.caller()?.check_all_namespaces().is_ok(),
    };
    let after = match last_event_id_given(&headers) {
        Some(after) => Some(after),
        None => parameters.place("since")?,
    };
    let room = app.room_for_a_watch(parameters.caller()?)?;
    let watch = app.control.watch_events(after).await?;
    let workers = app.control.watch_workers(None, Selector::default());
    Ok(sse::stream(&app, sse::EventStream::new(watch, workers, filter, room).called(dialect.event_name())))
}

/// The one that is named, or else all that the caller is let into.
fn namespaces(parameters: &Parameters) -> Result<Namespaces, Problem> {
    match parameters.get("namespace") {
        None => Ok(parameters.caller()?.grant().namespaces.clone()),
        Some(_) => Ok(match parameters.scope()? {
            Scope::One(namespace) => Namespaces::from(vec![namespace]),
            Scope::All => Namespaces::All,
        }),
    }
}
