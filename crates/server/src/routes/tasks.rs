//! Tasks: accept, read, delete; how they are listed, what is done to them and what they tell is in the files below. A task's request never
//! changes. A template is no task: it is kept like any other resource, and is never run itself.

mod commands;
mod list;
mod log;
mod observe;
mod overrides;
mod reading;
mod sorted;

pub use list::mode;

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use ostler_control::{Again, ControlError, Created, Effect, NewTask, Precondition, store::TaskRow};
use ostler_kernel::Timestamp;
use ostler_spec::{Kind, Path, Resource, Spec, TaskMode};
use serde_json::json;

use self::overrides::Stray;
use super::{
    answer,
    parameter::{
        AFTER, AGENT, ARCHIVED, BEFORE, BRANCH_ID, DRY_RUN, DRY_RUN_CAMEL, FROM_AGENT, IDEMPOTENCY_KEY,
        IF_MATCH, LABEL_SELECTOR, LABELS, LAST_EVENT_ID, LIFECYCLE, LIMIT, MAX_RESULTS, MODE, NAMESPACE,
        OFFSET, ORDER, PHASE, RERUN, SCOPE, SEQUENCE, SORT, STATE, SYSTEM, TO_AGENT, TRACE_ID, USER_AGENT,
    },
    resources,
    table::{Body, Need, Route, Routes, Shape},
    watch,
};
use crate::{
    gate::App,
    manifest::{self, MAX_KEY, Rerun},
    parameters::{Name, Parameters},
    precondition,
    problem::Problem,
    wire::task::TaskView,
};

pub fn routes() -> Routes {
    let task = Shape::Resource(Kind::Task);
    let get = |path: &str, summary: &str| Route::get(path, Need::Read, summary);
    let post = |path: &str, summary: &str| Route::post(path, Need::Write, summary).takes(&[NAMESPACE]);
    let listed = get("/v1/tasks", "Tasks, the newest first.")
        .takes(&[SCOPE, LIMIT, AFTER, BEFORE, LABEL_SELECTOR, LABELS])
        .takes(&[STATE, PHASE, ARCHIVED, SYSTEM, AGENT, MODE, OFFSET, SORT, ORDER])
        .answers(200, Shape::List(Kind::Task));
    let created = post("/v1/tasks", "Accepts a task: once this is answered, it survives.")
        .takes(&[DRY_RUN, DRY_RUN_CAMEL, RERUN])
        .heeds(&[IDEMPOTENCY_KEY])
        .carries(Body::Request("TaskRequest"))
        .answers(201, task)
        .answers(200, task);
    let replaced = Route::put("/v1/tasks/{task}", Need::Write, "Replaces a template. A task never changes.")
        .takes(&[NAMESPACE, DRY_RUN, DRY_RUN_CAMEL])
        .heeds(&[IF_MATCH])
        .carries(Body::Manifest(Kind::Task))
        .answers(200, task);
    let deleted =
        Route::delete("/v1/tasks/{task}", Need::Write, "Forgets an ended task, or deletes a template.")
            .takes(&[NAMESPACE])
            .heeds(&[IF_MATCH])
            .answers(204, Shape::Nothing);
    let cancelled = post("/v1/tasks/{task}/cancel", "Ends a task at once.")
        .carries(Body::Optional("CancelRequest"))
        .answers(200, task);
    let retried = post("/v1/tasks/{task}/retry", "Asks for an ended task again: a new task.")
        .heeds(&[IDEMPOTENCY_KEY, USER_AGENT])
        .carries(Body::Optional("RetryRequest"))
        .answers(201, task)
        .answers(200, task);
    let routes = Routes::new()
        .add(listed, list::list)
        .add(created, create)
        .add(
            get("/v1/tasks/{task}", "A task, by its name or its uid.").takes(&[NAMESPACE]).answers(200, task),
            read,
        )
        .add(replaced, replace)
        .add(deleted, delete)
        .add(cancelled, commands::cancel)
        .add(retried, commands::retry)
        .add(
            post("/v1/tasks/{task}/release", "Lets a quarantined task go on.").answers(200, task),
            commands::release,
        )
        .add(
            post("/v1/tasks/{task}/archive", "Puts an ended task out of sight.").answers(200, task),
            commands::archive,
        );
    routes.merge(tellings()).merge(watch::routes_of(Kind::Task))
}

/// What a task tells.
fn tellings() -> Routes {
    let get = |path: &str, summary: &str| Route::get(path, Need::Read, summary).takes(&[NAMESPACE]);
    let messages = [PHASE, LIFECYCLE, FROM_AGENT, TO_AGENT, BRANCH_ID, TRACE_ID, LIMIT, MAX_RESULTS];
    Routes::new()
        .add(
            get("/v1/tasks/{task}/status", "What a task came to.")
                .heeds(&[USER_AGENT])
                .answers(200, Shape::Json("TaskStatusAlone")),
            observe::status,
        )
        .add(
            Route::put(
                "/v1/tasks/{task}/status",
                Need::Report,
                "The phase Failed cancels a task; any other status follows from its runs, and is refused.",
            )
            .takes(&[NAMESPACE])
            .heeds(&[IF_MATCH])
            .carries(Body::Json("StatusReport"))
            .answers(200, Shape::Resource(Kind::Task)),
            commands::put_status,
        )
        .add(
            get("/v1/tasks/{task}/steps", "What was done for a task, step by step.")
                .answers(200, Shape::Json("Steps")),
            log::steps,
        )
        .add(
            get("/v1/tasks/{task}/events", "A task's log, as a list or live.")
                .takes(&[SEQUENCE, LIMIT])
                .heeds(&[LAST_EVENT_ID])
                .answers(200, Shape::Json("TaskEvents"))
                .answers(204, Shape::Nothing),
            log::events,
        )
        .add(
            get("/v1/tasks/{task}/logs", "A task's log as lines for people.")
                .heeds(&[USER_AGENT])
                .answers(200, Shape::Json("Logs")),
            log::logs,
        )
        .add(
            get("/v1/tasks/{task}/messages", "What the agents of a task were told.")
                .takes(&messages)
                .answers(200, Shape::Json("Messages")),
            observe::messages,
        )
        .add(
            get("/v1/tasks/{task}/metrics", "Figures of the messages of a task.")
                .takes(&messages)
                .answers(200, Shape::Json("TaskMetrics")),
            observe::metrics,
        )
        .add(
            get("/v1/tasks/{task}/trace", "A task's log as a trace.").answers(200, Shape::Json("Trace")),
            observe::trace,
        )
}

const IDEMPOTENCY: HeaderName = HeaderName::from_static("idempotency-key");

async fn create(
    State(app): State<Arc<App>>,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace", "dry_run", "dryRun", "rerun"])?;
    let effect = parameters.effect()?;
    if parameters.flag("rerun")?
        && let Some(created) = rerun(&app, &headers, &body, &parameters, effect).await?
    {
        return Ok(created);
    }
    let mut task = manifest::task(&headers, &body, &parameters)?;
    if task.spec.mode == TaskMode::Template {
        let template = manifest::resource(Kind::Task, &headers, &body, &parameters)?;
        let stored = app.control.apply_if(template, &Precondition::Any, effect).await?;
        return Ok(answer(StatusCode::CREATED, &stored));
    }
    task.spec.idempotency_key = idempotency_key(&headers, task.spec.idempotency_key.as_deref())?;
    if effect == Effect::DryRun {
        return created(&app, app.control.try_task(task).await?).await;
    }
    created(&app, app.control.create_task(task).await?).await
}

/// Asks for a task again; none if the body is a template, which is put in place and never run.
async fn rerun(
    app: &App,
    headers: &HeaderMap,
    body: &[u8],
    parameters: &Parameters,
    effect: Effect,
) -> Result<Option<Response>, Problem> {
    let Rerun { namespace, name, api_version, key, wanted, otherwise, labels, annotations } =
        manifest::rerun(headers, body, parameters)?;
    if wanted.as_ref().is_some_and(|wanted| wanted.spec.mode == TaskMode::Template) {
        return Ok(None);
    }
    if effect == Effect::DryRun {
        let detail = "rerun and dry_run: a task that is asked for again is not tried";
        return Err(Problem::bad_parameter(detail));
    }
    let idempotency_key = idempotency_key(headers, key.as_deref())?;
    let again = Again { namespace, name, api_version, idempotency_key, wanted };
    let change = |mut former: NewTask| {
        former.labels.extend(labels);
        former.annotations.extend(annotations);
        overrides::changed_spec(&former.spec, otherwise, Stray::IsUnknown)
            .map(|spec| NewTask { spec, ..former })
    };
    created(app, app.control.rerun(again, change).await?).await.map(Some)
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

/// By which a request is known when it is sent again. Header and body may both say it.
fn idempotency_key(headers: &HeaderMap, in_body: Option<&str>) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY) else { return Ok(in_body.map(str::to_owned)) };
    let key =
        std::str::from_utf8(value.as_bytes()).map_err(|_| Problem::bad_utf8("the header Idempotency-Key"))?;
    if key.is_empty() || key.len() > MAX_KEY {
        let detail = format!("Idempotency-Key: expected 1 to {MAX_KEY} bytes, found {}", key.len());
        return Err(Problem::bad_parameter(detail));
    }
    match in_body.filter(|written| *written != key) {
        Some(written) => {
            let detail = format!("the header says idempotency key {key:?}, the body {written:?}");
            Err(Problem::bad_parameter(detail))
        }
        None => Ok(Some(key.to_owned())),
    }
}

async fn read(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    let namespace = parameters.namespace_or_default()?;
    let mut row = match app.control.task(namespace, &task).await {
        Err(ControlError::NotFound { .. }) => {
            return Ok(answer(StatusCode::OK, &template(&app, namespace, &task).await?));
        }
        found => found?,
    };
    app.control.count_so_far(&mut row).await?;
    let blocker = app.control.blocker(&row.task).await?;
    let telling = app.control.telling(&row).await?;
    let view = TaskView::from(&row).waiting_for(blocker.as_ref()).in_full(&row.task, &telling);
    Ok(answer(StatusCode::OK, &view))
}

async fn template(app: &App, namespace: &str, name: &str) -> Result<Resource, Problem> {
    let found = app.control.resource(Kind::Task, namespace, name).await?;
    found.ok_or_else(|| Problem::not_found("task", name))
}

async fn replace(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let namespace = manifest::namespace(&headers, &body, &parameters)?;
    if let Ok(row) = app.control.task(&namespace, &task).await {
        check_version(&row, &precondition::of(&headers)?.unwrap_or(Precondition::Any))?;
        let telling = app.control.telling(&row).await?;
        let view = TaskView::from(&row).in_full(&row.task, &telling);
        if manifest::says_the_same(&headers, &body, &json!(view)) {
            return Ok(answer(StatusCode::OK, &view));
        }
        let detail = format!("task {:?} was accepted as it is, and never changes", row.task.name);
        return Err(Problem::new(StatusCode::CONFLICT, "immutable", detail)
            .remedy("cancel it if it is not wanted, and retry it with `overrides`: that makes a new task"));
    }
    let template = manifest::resource(Kind::Task, &headers, &body, &parameters)?;
    if !matches!(&template.spec, Spec::Task(spec) if spec.mode == TaskMode::Template) {
        let problem =
            ostler_spec::Problem::new(Path::of("spec.mode"), "a template stays one: expected template");
        return Err(Problem::invalid_manifest(&[problem]));
    }
    resources::replace(Kind::Task, State(app), Name(task), parameters, headers, body).await
}

async fn delete(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    let namespace = parameters.namespace_or_default()?;
    let precondition = precondition::of(&headers)?.unwrap_or(Precondition::Any);
    match app.control.task(namespace, &task).await {
        Err(ControlError::NotFound { .. }) => {
            let deleted = app.control.delete_if(Kind::Task, namespace, &task, &precondition).await;
            deleted.map_err(|error| match error {
                ControlError::NotFound { .. } => Problem::not_found("task", &task),
                other => other.into(),
            })?;
        }
        found => {
            let row = found?;
            check_version(&row, &precondition)?;
            app.control.delete_task(row.task.id).await?;
        }
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn check_version(row: &TaskRow, precondition: &Precondition) -> Result<(), Problem> {
    match precondition {
        Precondition::Version(wanted) if *wanted != row.task.version.to_string() => {
            let detail = format!("task {:?} is at version {}, not {wanted}", row.task.name, row.task.version);
            Err(Problem::new(StatusCode::CONFLICT, "conflict", detail))
        }
        Precondition::Version(_) | Precondition::Any => Ok(()),
    }
}

/// The task that an address names, by its name or its uid.
async fn find(app: &App, task: &str, parameters: Parameters) -> Result<TaskRow, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    find_in(app, parameters.namespace_or_default()?, task).await
}

async fn find_in(app: &App, namespace: &str, task: &str) -> Result<TaskRow, Problem> {
    match app.control.task(namespace, task).await {
        Err(ControlError::NotFound { .. }) => {
            template(app, namespace, task).await?;
            let detail = format!("{task:?} is a template: tasks are made of it, and it is none itself");
            Err(Problem::new(StatusCode::NOT_FOUND, "not_found", detail).remedy(
                "name a task that was made of it, or POST it to /v1/tasks?rerun=true to have one made",
            ))
        }
        found => Ok(found?),
    }
}

fn now(app: &App) -> Timestamp {
    app.runtime.now()
}
