//! Workers: who there is, and what is decided about them. They work for all namespaces, and what they have to do tells of
//! all: who is let into some of them alone does not see them.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use ostler_kernel::worker::Standing;

use super::{
    answer,
    parameter::{AFTER, IF_MATCH, LABEL_SELECTOR, LABELS, LAST_EVENT_ID, LIMIT, NAME, SCOPE},
    table::{Body, Need, Route, Routes, Shape},
};
use crate::{
    gate::App,
    parameters::{Name, Parameters},
    problem::Problem,
    sse,
    wire::{list::List, worker::WorkerView},
};

pub fn routes() -> Routes {
    let routes = Routes::new()
        .add(
            Route::get("/v1/workers", Need::Oversee, "Who works for this system.")
                .takes(&[SCOPE, LIMIT, AFTER, LABEL_SELECTOR, LABELS])
                .answers(200, Shape::Json("WorkerList")),
            list,
        )
        .add(
            Route::get("/v1/workers/{name}", Need::Oversee, "A worker.")
                .takes(&[SCOPE])
                .answers(200, Shape::Json("WorkerView")),
            read,
        )
        .add(
            Route::get("/v1/workers/{name}/status", Need::Oversee, "What is known of a worker.")
                .takes(&[SCOPE])
                .answers(200, Shape::Json("Status")),
            status,
        )
        .add(
            Route::put("/v1/workers/{name}/status", Need::Report, "Refused: a worker tells of itself.")
                .takes(&[SCOPE])
                .heeds(&[IF_MATCH])
                .carries(Body::Json("StatusReport")),
            refuse_status,
        )
        .add(
            Route::get("/v1/workers/watch", Need::Oversee, "Workers as they come, go and change, live.")
                .takes(&[SCOPE, NAME, LABEL_SELECTOR, LABELS])
                .heeds(&[LAST_EVENT_ID])
                .answers(200, Shape::Events),
            watch,
        );
    let decisions = [
        ("cordon", Standing::Cordoned, "Gives a worker no new runs."),
        ("drain", Standing::Draining, "Empties a worker: no new runs, and it gives back those it has."),
        ("uncordon", Standing::Open, "Lets a worker take runs again."),
    ];
    decisions.into_iter().fold(routes, |routes, (verb, standing, summary)| {
        let route = Route::post(format!("/v1/workers/{{name}}/{verb}"), Need::Administer, summary)
            .takes(&[SCOPE])
            .answers(200, Shape::Json("WorkerView"));
        routes.add(route, move |app, name, parameters| stand(standing, app, name, parameters))
    })
}

/// Whether an address stands for workers, or for one of them.
pub fn is_one_or_all(path: &str) -> bool {
    let behind = path.strip_prefix("/v1/workers");
    behind.is_some_and(|name| name.is_empty() || name.starts_with('/') && !name[1..].contains('/'))
}

/// There are as many as machines, by name. They belong to no namespace.
async fn list(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace", "limit", "after", "labelSelector", "labels"])?;
    let (limit, labels) = (parameters.limit()?, parameters.selector()?);
    let after = parameters.get("after").unwrap_or_default();
    let all = app.control.workers().await?;
    let wanted = all
        .iter()
        .filter(|view| view.worker.name.as_str() > after && labels.matches(&view.worker.offer.labels));
    let workers: Vec<WorkerView> = wanted.take(limit + 1).map(WorkerView::from).collect();
    Ok(answer(StatusCode::OK, &List::page(workers, limit, |worker| worker.name().to_owned())))
}

async fn status(
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&["namespace"])?;
    let view = WorkerView::from(&app.control.worker(&name).await?);
    Ok(answer(StatusCode::OK, &view.status_alone()))
}

/// Nobody else can say how a worker is.
async fn refuse_status(
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&["namespace"])?;
    app.control.worker(&name).await?;
    let detail = format!("the status of worker {name:?} follows from its signs of life and can't be written");
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_available", detail)
        .remedy("to keep runs from it, POST to its /cordon or /drain"))
}

async fn watch(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace", "name", "labelSelector", "labels"])?;
    let (name, labels) = (parameters.get("name").map(str::to_owned), parameters.selector()?);
    let room = app.room_for_a_watch(parameters.caller()?)?;
    let watch = app.control.watch_workers(name, labels);
    Ok(sse::stream(&app, sse::WorkerStream::new(watch, room)))
}

async fn read(
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&["namespace"])?;
    let worker = WorkerView::from(&app.control.worker(&name).await?);
    Ok(answer(StatusCode::OK, &worker.with_tasks(app.control.tasks_of_worker(&name).await?)))
}

async fn stand(
    standing: Standing,
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&["namespace"])?;
    Ok(answer(StatusCode::OK, &WorkerView::from(&app.control.stand(&name, standing).await?)))
}
