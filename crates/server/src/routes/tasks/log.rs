//! What a task tells: its log as JSON, live or as lines, and its steps.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use ostler_control::store::{StoreExt, TaskRow};
use ostler_kernel::Step;
use serde::Serialize;
use serde_json::{Value, json};

use super::{answer, find, find_in};
use crate::{
    dialect::Dialect,
    gate::App,
    parameters::{Name, Parameters, last_event_id},
    problem::Problem,
    sse,
    wire::log_line,
};

/// The most lines that a log is shown with: the last ones.
const MAX_LINES: u64 = 10_000;

pub async fn steps(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let row = find(&app, &task, parameters).await?;
    let mut steps = Vec::new();
    for run in row.task.runs() {
        let agent = app.control.store().run(run).await?.map(|run| run.agent);
        let of_run = app.control.store().steps(run).await?;
        steps.extend(of_run.into_iter().map(|step| AgentStep { agent: agent.clone(), step }));
    }
    Ok(answer(StatusCode::OK, &json!({ "items": steps })))
}

/// A step, and whose it is.
#[derive(Serialize)]
struct AgentStep {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(flatten)]
    step: Step,
}

pub async fn events(
    State(app): State<Arc<App>>,
    Name(task): Name,
    parameters: Parameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace", "after", "limit"])?;
    let namespace = parameters.namespace_or_default()?;
    if wants_stream(&headers) {
        let after = match last_event_id(&headers)? {
            Some(after) => after,
            None => parameters.place("after")?.unwrap_or(0),
        };
        let new = task.parse().ok().filter(|_| after == 0);
        if let Some(follower) = new.and_then(|task| app.control.follow_new(namespace, task)) {
            return Ok(sse::stream(&app, follower));
        }
        return follow(&app, &find_in(&app, namespace, &task).await?, after);
    }
    let row = find_in(&app, namespace, &task).await?;
    let (after, limit) = (parameters.place("after")?.unwrap_or(0), parameters.limit()?);
    let events = app.control.store().events(row.task.id, after, limit).await?;
    let last = events.last().map_or(after, |event| event.seq);
    Ok(answer(StatusCode::OK, &json!({ "items": events, "last": last })))
}

fn follow(app: &Arc<App>, row: &TaskRow, after: u64) -> Result<Response, Problem> {
    if after > row.last_seq {
        let detail = format!("the log of task {:?} ends at {}, not at {after}", row.task.name, row.last_seq);
        return Err(Problem::bad_parameter(detail));
    }
    // Tells a browser, which would come back for ever, that there is nothing more to come.
    if after == row.last_seq && row.task.state.is_terminal() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(sse::stream(app, app.control.follow(row.task.id, after)))
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let essence = kind.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/event-stream")
    })
}

pub async fn logs(
    State(app): State<Arc<App>>,
    dialect: Dialect,
    Name(task): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let row = find(&app, &task, parameters).await?;
    let (after, limit) = (row.last_seq.saturating_sub(MAX_LINES), MAX_LINES as usize);
    let events = app.control.store().events(row.task.id, after, limit).await?;
    let lines: Vec<Value> =
        events.iter().map(|event| dialect.log_line(event.at, &log_line::what(&event.body))).collect();
    Ok(answer(StatusCode::OK, &json!({ "name": row.task.name, "logs": lines })))
}
