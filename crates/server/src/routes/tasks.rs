//! Tasks: accept, list, read; what is done to them and what they tell is in the files below.

mod commands;
mod log;

use std::sync::Arc;

use axum::{extract::State, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use ostler_control::{
    Created,
    store::{TaskFilter, TaskRow},
};
use ostler_kernel::TaskId;

use super::{
    answer,
    table::{Need, Route, Routes},
};
use crate::{
    gate::App,
    manifest,
    parameters::{Name, Parameters, Scope},
    problem::Problem,
    wire::{
        list::List,
        task::{STATES, TaskView},
    },
};

pub fn routes() -> Routes {
    let get = |path: &str, summary: &str| Route::get(path, Need::Read, summary);
    let post = |path: &str, summary: &str| Route::post(path, Need::Write, summary);
    Routes::new()
        .add(get("/v1/tasks", "Tasks, the newest first."), list)
        .add(post("/v1/tasks", "Accepts a task: once this is answered, it survives."), create)
        .add(get("/v1/tasks/{task}", "A task, by its name or its uid."), read)
        .add(post("/v1/tasks/{task}/cancel", "Ends a task at once."), commands::cancel)
        .add(post("/v1/tasks/{task}/retry", "Asks for an ended task again: a new task."), commands::retry)
        .add(post("/v1/tasks/{task}/release", "Lets a quarantined task go on."), commands::release)
        .add(post("/v1/tasks/{task}/archive", "Puts an ended task out of sight."), commands::archive)
        .add(get("/v1/tasks/{task}/steps", "What was done for a task, step by step."), log::steps)
        .add(get("/v1/tasks/{task}/events", "A task's log, as a list or live."), log::events)
        .add(get("/v1/tasks/{task}/logs", "A task's log as lines for people."), log::logs)
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest that a manifest may hold too.
const MAX_KEY: usize = 256;

async fn create(
    State(app): State<Arc<App>>,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    let mut task = manifest::task(&headers, &body, &parameters)?;
    if let Some(key) = idempotency_key(&headers)? {
        match &task.spec.idempotency_key {
            Some(written) if written != key => {
                let detail = format!("the header says idempotency key {key:?}, the body {written:?}");
                return Err(Problem::bad_parameter(detail));
            }
            _ => task.spec.idempotency_key = Some(key.to_owned()),
        }
    }
    created(&app, app.control.create_task(task).await?).await
}

/// The answer to whoever asked for a task, or for one again.
async fn created(app: &App, created: Created) -> Result<Response, Problem> {
    let Created { task, existed } = created;
    if !existed {
        return Ok(answer(StatusCode::CREATED, &TaskView::new(&task)));
    }
    let row = app.control.task(&task.namespace, &task.id.to_string()).await?;
    Ok(answer(StatusCode::OK, &TaskView::from(&row)))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key =
        std::str::from_utf8(value.as_bytes()).map_err(|_| Problem::bad_utf8("the header Idempotency-Key"))?;
    if key.is_empty() || key.len() > MAX_KEY {
        let detail = format!("Idempotency-Key: expected 1 to {MAX_KEY} bytes, found {}", key.len());
        return Err(Problem::bad_parameter(detail));
    }
    Ok(Some(key))
}

async fn list(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace", "state", "limit", "before", "archived"])?;
    let limit = parameters.limit()?;
    let filter = TaskFilter {
        namespace: match parameters.scope()? {
            Scope::One(namespace) => Some(namespace),
            Scope::All => None,
        },
        states: parameters.get("state").map(states).transpose()?.unwrap_or_default(),
        archived: parameters.flag("archived")?,
        before: parameters.get("before").map(before).transpose()?,
        limit: limit + 1,
    };
    let rows = app.control.tasks(filter).await?;
    let views = rows.iter().map(TaskView::from).collect();
    Ok(answer(StatusCode::OK, &List::page(views, limit, |view| view.metadata.uid.to_string())))
}

fn states(text: &str) -> Result<Vec<String>, Problem> {
    let check = |state: &str| match STATES.contains(&state) {
        true => Ok(state.to_owned()),
        false => {
            let known = STATES.join(", ");
            Err(Problem::bad_parameter(format!("state: unknown state {state:?}; there are {known}")))
        }
    };
    text.split(',').map(check).collect()
}

fn before(text: &str) -> Result<TaskId, Problem> {
    text.parse().map_err(|error| Problem::bad_parameter(format!("before: {error}")))
}

async fn read(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let mut row = find(&app, &task, parameters).await?;
    app.control.count_so_far(&mut row).await?;
    let blocker = app.control.blocker(&row.task).await?;
    Ok(answer(StatusCode::OK, &TaskView::from(&row).waiting_for(blocker.as_ref())))
}

/// The task that an address names, by its name or its uid.
async fn find(app: &App, task: &str, parameters: Parameters) -> Result<TaskRow, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    Ok(app.control.task(parameters.namespace_or_default()?, task).await?)
}
