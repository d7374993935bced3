//! What a task tells of itself: its status, its messages and their figures, its trace.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use ostler_control::{ControlError, store::TaskRow};
use serde_json::json;

use super::{answer, find, find_in, now, template};
use crate::{
    dialect::Dialect,
    gate::App,
    parameters::{Name, Parameters},
    problem::Problem,
    wire::{
        message::{MessageFilter, MessageView, Messages, Metrics, PHASES, messages as messages_of},
        task::TaskView,
        trace::trace as trace_of,
    },
};

pub async fn status(
    State(app): State<Arc<App>>,
    dialect: Dialect,
    Name(task): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    let namespace = parameters.namespace_or_default()?;
    let mut row = match app.control.task(namespace, &task).await {
        Err(ControlError::NotFound { .. }) => {
            let template = template(&app, namespace, &task).await?;
            let told = json!({ "metadata": template.metadata, "status": template.status });
            return Ok(answer(StatusCode::OK, &dialect.status(told)));
        }
        found => found?,
    };
    app.control.count_so_far(&mut row).await?;
    let blocker = app.control.blocker(&row.task).await?;
    let telling = app.control.telling(&row).await?;
    let view = TaskView::from(&row).waiting_for(blocker.as_ref()).in_full(&row.task, &telling);
    Ok(answer(StatusCode::OK, &dialect.status(view.status_alone())))
}

pub async fn messages(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let (row, all, filter) = asked_for(&app, &task, parameters).await?;
    Ok(answer(StatusCode::OK, &Messages::new(&row.task, all, &filter)))
}

pub async fn metrics(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let (row, all, filter) = asked_for(&app, &task, parameters).await?;
    Ok(answer(StatusCode::OK, &Metrics::new(&row.task, &all, &filter, now(&app))))
}

/// Names of how many messages at most.
const LIMITS: [&str; 2] = ["limit", "max_results"];

async fn asked_for(
    app: &App,
    task: &str,
    parameters: Parameters,
) -> Result<(TaskRow, Vec<MessageView>, MessageFilter), Problem> {
    let known = ["namespace", "phase", "lifecycle", "from_agent", "to_agent", "branch_id", "trace_id"];
    let parameters = parameters.only(&[&known[..], &LIMITS].concat())?;
    let text = |name| parameters.get(name).map(str::to_owned);
    let filter = MessageFilter {
        phases: phases(parameters.one_of(&["phase", "lifecycle"])?.unwrap_or_default())?,
        from_agent: text("from_agent"),
        to_agent: text("to_agent"),
        branch_id: text("branch_id"),
        trace_id: text("trace_id"),
        limit: parameters.limit_as(&LIMITS)?,
    };
    let row = find_in(app, parameters.namespace_or_default()?, task).await?;
    let all = messages_of(&row.task, &app.control.telling(&row).await?);
    Ok((row, all, filter))
}

fn phases(text: &str) -> Result<Vec<String>, Problem> {
    let check = |phase: &str| match PHASES.iter().any(|known| known.eq_ignore_ascii_case(phase)) {
        true => Ok(phase.to_owned()),
        false => {
            let known = PHASES.join(", ");
            Err(Problem::bad_parameter(format!("phase: unknown phase {phase:?}; there are {known}")))
        }
    };
    text.split(',').map(str::trim).filter(|phase| !phase.is_empty()).map(check).collect()
}

pub async fn trace(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let row = find(&app, &task, parameters).await?;
    let (name, namespace) = (&row.task.name, &row.task.namespace);
    let trace = trace_of(&row.task, &app.control.telling(&row).await?);
    Ok(answer(StatusCode::OK, &json!({ "name": name, "namespace": namespace, "trace": trace })))
}
