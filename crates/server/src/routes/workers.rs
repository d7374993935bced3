//! Workers: who there is, and what is decided about them.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use ostler_kernel::worker::Standing;

use super::{
    answer,
    table::{Need, Route, Routes},
};
use crate::{
    gate::App,
    parameters::{Name, Parameters},
    problem::Problem,
    wire::{list::List, worker::WorkerView},
};

pub fn routes() -> Routes {
    let routes = Routes::new()
        .add(Route::get("/v1/workers", Need::Read, "Who works for this system."), list)
        .add(Route::get("/v1/workers/{name}", Need::Read, "A worker."), read);
    let decisions = [
        ("cordon", Standing::Cordoned, "Gives a worker no new runs."),
        ("drain", Standing::Draining, "Empties a worker: no new runs, and it gives back those it has."),
        ("uncordon", Standing::Open, "Lets a worker take runs again."),
    ];
    decisions.into_iter().fold(routes, |routes, (verb, standing, summary)| {
        let route = Route::post(format!("/v1/workers/{{name}}/{verb}"), Need::Administer, summary);
        routes.add(route, move |app, name, parameters| stand(standing, app, name, parameters))
    })
}

/// All of them: there are as many as machines. They belong to no namespace.
async fn list(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&["namespace"])?;
    let workers: Vec<WorkerView> = app.control.workers().await?.iter().map(WorkerView::from).collect();
    let count = workers.len();
    Ok(answer(StatusCode::OK, &List::page(workers, count, |_| String::new())))
}

async fn read(
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&["namespace"])?;
    Ok(answer(StatusCode::OK, &WorkerView::from(&app.control.worker(&name).await?)))
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
