//! What is done to a task that exists: cancel, retry, release, archive.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use ostler_kernel::Task;
use ostler_spec::Path;
use serde_json::Value;

use super::{answer, created, find};
use crate::{
    gate::App,
    json, manifest,
    parameters::{Name, Parameters},
    problem::Problem,
    wire::task::TaskView,
};

pub async fn cancel(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let reason = reason(&headers, &body)?;
    let row = find(&app, &task, parameters).await?;
    app.control.cancel(row.task.id, reason.as_deref().unwrap_or("cancelled by request")).await?;
    changed(&app, &row.task).await
}

pub async fn retry(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let row = find(&app, &task, parameters).await?;
    created(&app, app.control.retry(row.task.id).await?).await
}

pub async fn release(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let row = find(&app, &task, parameters).await?;
    app.control.release(row.task.id).await?;
    changed(&app, &row.task).await
}

pub async fn archive(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let row = find(&app, &task, parameters).await?;
    app.control.archive(row.task.id).await?;
    changed(&app, &row.task).await
}

/// The task as it is now.
async fn changed(app: &App, task: &Task) -> Result<Response, Problem> {
    let row = app.control.task(&task.namespace, &task.id.to_string()).await?;
    Ok(answer(StatusCode::OK, &TaskView::from(&row)))
}

/// `{"reason": "..."}`, or nothing at all.
fn reason(headers: &HeaderMap, body: &[u8]) -> Result<Option<String>, Problem> {
    let text = manifest::text(body)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    manifest::expect_json(headers)?;
    let Value::Object(members) = json::read(text)? else { return Err(refuse("", "expected an object")) };
    let mut reason = None;
    for (key, value) in members {
        match (key.as_str(), value) {
            ("reason", Value::String(text)) => reason = Some(text),
            ("reason", Value::Null) => {}
            ("reason", _) => return Err(refuse("reason", "expected a string")),
            (_, _) => return Err(refuse(&key, "unknown field, only reason is known")),
        }
    }
    Ok(reason)
}

fn refuse(field: &str, message: &str) -> Problem {
    let path = if field.is_empty() { Path::default() } else { Path::of(field) };
    Problem::invalid_manifest(&[ostler_spec::Problem::new(path, message)])
}
