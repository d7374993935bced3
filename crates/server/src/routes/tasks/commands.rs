//! What is done to a task that exists: cancel, retry, release, archive.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use ostler_control::Precondition;
use ostler_kernel::Task;
use ostler_spec::{Kind, Path, TaskSpec};
use serde_json::{Map, Value};

use super::{
    answer, check_version, created, find, find_in, idempotency_key,
    overrides::{Stray, changed_spec},
};
use crate::{
    dialect::Dialect,
    gate::App,
    json, manifest,
    parameters::{Name, Parameters},
    precondition,
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

/// What a task came to follows from its runs; nobody else can say it. But that it failed is how Orloj's command line cancels
/// one: there is no other way to mean that.
pub async fn put_status(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    let report = manifest::status((Kind::Task, &task), &headers, &body, &parameters)?;
    let row = find_in(&app, &report.namespace, &task).await?;
    let text = |key: &str| report.status.get(key).and_then(Value::as_str);
    if text("phase") != Some("Failed") {
        let name = &row.task.name;
        let detail = format!("the status of task {name:?} follows from its runs and can't be written");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_available", detail)
            .remedy("to end a task, POST to its /cancel, or put the phase Failed"));
    }
    let given = report.version.clone().map(Precondition::Version);
    check_version(&row, &precondition::of(&headers)?.or(given).unwrap_or(Precondition::Any))?;
    let reason = text("lastError").filter(|reason| !reason.is_empty()).unwrap_or("cancelled by request");
    app.control.cancel(row.task.id, reason).await?;
    changed(&app, &row.task).await
}

pub async fn retry(
    State(app): State<Arc<App>>,
    dialect: Dialect,
    Name(task): Name,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let overrides = overrides(dialect, &headers, &body)?;
    let row = find(&app, &task, parameters).await?;
    let written = |name: &str| overrides.as_ref()?.get(name)?.as_str();
    let key = idempotency_key(&headers, written("idempotency_key").or_else(|| written("idempotencyKey")))?;
    let change = |spec: TaskSpec| {
        let spec = match overrides {
            Some(overrides) => changed_spec(&spec, overrides, Stray::IsInput),
            None => Ok(spec),
        };
        spec.map(|spec| TaskSpec { idempotency_key: key, ..spec })
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

/// `{"overrides": {...}}`: what is to be otherwise this time.
fn overrides(
    dialect: Dialect,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Option<Map<String, Value>>, Problem> {
    let Some(members) = members(headers, body)? else { return Ok(None) };
    let is_bare = match dialect {
        Dialect::Ours | Dialect::OrlojJavaScript => false,
        // It sends text under names, so nothing else than what is meant by us is an object there.
        Dialect::OrlojPython => !matches!(members.get("overrides"), Some(Value::Object(_))),
    };
    if is_bare {
        return Ok(Some(members).filter(|members| !members.is_empty()));
    }
    match only_member("overrides", members)? {
        None => Ok(None),
        Some(Value::Object(overrides)) => Ok(Some(overrides)),
        Some(_) => Err(refuse("overrides", "expected an object with fields of the spec")),
    }
}

/// The one field that a body may have; nothing if it is not there, or no body is.
fn only_field(name: &str, headers: &HeaderMap, body: &[u8]) -> Result<Option<Value>, Problem> {
    members(headers, body)?.map_or(Ok(None), |members| only_member(name, members))
}

/// What a body holds; nothing if there is none.
fn members(headers: &HeaderMap, body: &[u8]) -> Result<Option<Map<String, Value>>, Problem> {
    let text = manifest::text(body)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    manifest::expect_json(headers)?;
    match json::read(text)? {
        Value::Object(members) => Ok(Some(members)),
        _ => Err(refuse("", "expected an object")),
    }
}

fn only_member(name: &str, mut members: Map<String, Value>) -> Result<Option<Value>, Problem> {
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
