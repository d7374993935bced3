//! Workers: who there is, and what is decided about them.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    response::Response,
    routing::{get, post},
};
use http::StatusCode;
use ostler_kernel::worker::Standing;

use super::answer;
use crate::{
    gate::App,
    parameters::{Name, Parameters},
    problem::Problem,
    wire::{list::List, worker::WorkerView},
};

pub fn routes() -> Router<Arc<App>> {
    let decide = |standing| post(move |app, name, parameters| stand(standing, app, name, parameters));
    Router::new()
        .route("/v1/workers", get(list))
        .route("/v1/workers/{name}", get(read))
        .route("/v1/workers/{name}/cordon", decide(Standing::Cordoned))
        .route("/v1/workers/{name}/drain", decide(Standing::Draining))
        .route("/v1/workers/{name}/uncordon", decide(Standing::Open))
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
