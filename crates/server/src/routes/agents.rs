//! What an agent did lately, over all its tasks.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use ostler_control::store::{StoreExt, TaskFilter};
use ostler_kernel::Event;
use ostler_spec::Kind;
use serde_json::{Value, json};

use super::{
    answer,
    parameter::{NAMESPACE, USER_AGENT},
    table::{Need, Route, Routes, Shape},
};
use crate::{
    dialect::Dialect,
    gate::App,
    parameters::{Name, Parameters},
    problem::Problem,
    wire::log_line,
};

/// The last so many lines, of the last so many tasks, among so many that are looked at.
const LINES: usize = 200;
const TASKS: usize = 20;
const LOOK_AT: usize = 2000;

pub fn routes() -> Routes {
    Routes::new().add(
        Route::get("/v1/agents/{name}/logs", Need::Read, "What an agent did lately, as lines for people.")
            .takes(&[NAMESPACE])
            .heeds(&[USER_AGENT])
            .answers(200, Shape::Json("Logs")),
        logs,
    )
}

async fn logs(
    State(app): State<Arc<App>>,
    dialect: Dialect,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    let namespace = parameters.namespace_or_default()?;
    let found = app.control.resource(Kind::Agent, namespace, &name).await?;
    found.ok_or_else(|| Problem::not_found(Kind::Agent.name(), &name))?;
    let filter = TaskFilter {
        namespace: Some(namespace.to_owned()),
        agent: Some(name.clone()),
        archived: true,
        limit: TASKS,
        look_at: Some(LOOK_AT),
        ..TaskFilter::default()
    };
    let mut lines: Vec<(Event, String)> = Vec::new();
    for row in app.control.store().tasks(filter).await? {
        let after = row.last_seq.saturating_sub(LINES as u64);
        let events = app.control.store().events(row.task.id, after, LINES).await?;
        lines.extend(events.into_iter().map(|event| (event, row.task.name.clone())));
    }
    lines.sort_by_key(|(event, _)| event.position);
    let surplus = lines.len().saturating_sub(LINES);
    let line = |(event, task): &(Event, String)| {
        dialect.log_line(event.at, &format!("{task}: {}", log_line::what(&event.body)))
    };
    let lines: Vec<Value> = lines[surplus..].iter().map(line).collect();
    Ok(answer(StatusCode::OK, &json!({ "name": name, "logs": lines })))
}
