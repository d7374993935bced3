//! What is done to a task that exists: cancel, retry, release, archive.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use ostler_control::ControlError;
use ostler_kernel::Task;
use ostler_spec::{Path, Spec, TaskMode, TaskSpec};
use serde_json::{Map, Value, json};

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
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let overrides = overrides(&headers, &body)?;
    let row = find(&app, &task, parameters).await?;
    let change = |spec: TaskSpec| match overrides {
        Some(overrides) => changed_spec(&spec, overrides),
        None => Ok(spec),
    };
    created(&app, app.control.retry(row.task.id, change).await?).await
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
    match only_field("reason", headers, body)? {
        None => Ok(None),
        Some(Value::String(reason)) => Ok(Some(reason)),
        Some(_) => Err(refuse("reason", "expected a string")),
    }
}

/// `{"overrides": {...}}`: fields of the spec that are to be others this time.
fn overrides(headers: &HeaderMap, body: &[u8]) -> Result<Option<Map<String, Value>>, Problem> {
    match only_field("overrides", headers, body)? {
        None => Ok(None),
        Some(Value::Object(overrides)) => Ok(Some(overrides)),
        Some(_) => Err(refuse("overrides", "expected an object with fields of the spec")),
    }
}

/// The spec with these fields in the place of its own, in either spelling, read like any other manifest.
fn changed_spec(spec: &TaskSpec, overrides: Map<String, Value>) -> Result<TaskSpec, ControlError> {
    let mut fields = serde_json::to_value(spec).unwrap_or_default();
    if let Some(fields) = fields.as_object_mut() {
        for (name, value) in overrides {
            fields.insert(snake_case(&name), value);
        }
    }
    let document = json!({"kind": "Task", "metadata": {"name": "again"}, "spec": fields});
    let read = ostler_spec::from_json(&document).map_err(ControlError::Invalid)?;
    match read.spec {
        Spec::Task(spec) if spec.mode == TaskMode::Template => {
            Err(ControlError::BadReference("what is asked for again is run, and no template".to_owned()))
        }
        Spec::Task(spec) => Ok(spec),
        _ => Err(ControlError::BadReference("only a task can be asked for again".to_owned())),
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The one field that a body may have; nothing if it is not there, or no body is.
fn only_field(name: &str, headers: &HeaderMap, body: &[u8]) -> Result<Option<Value>, Problem> {
    let text = manifest::text(body)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    manifest::expect_json(headers)?;
    let Value::Object(mut members) = json::read(text)? else { return Err(refuse("", "expected an object")) };
    let value = members.remove(name).filter(|value| !value.is_null());
    match members.keys().next() {
        Some(other) => Err(refuse(other, &format!("unknown field, only {name} is known"))),
        None => Ok(value),
    }
}

fn refuse(field: &str, message: &str) -> Problem {
    let path = if field.is_empty() { Path::default() } else { Path::of(field) };
    Problem::invalid_manifest(&[ostler_spec::Problem::new(path, message)])
}
