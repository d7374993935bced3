//! Tasks as a list: which, in which order, and how it goes on.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use ostler_control::{
    ControlError,
    store::{TaskFilter, TaskPage, TaskRow},
};
use ostler_kernel::TaskId;
use ostler_spec::Kind;

use super::{
    super::{answer, resources},
    sorted::Sort,
};
use crate::{
    gate::App,
    parameters::{Parameters, Scope},
    problem::Problem,
    wire::{
        list::List,
        task::{PHASES, STATES, TaskView},
    },
};

/// Each of them is read.
const MOST_OFFSET: usize = 10_000;

/// How many tasks a list looks at by their labels, agent or system before it ends the page.
const LOOK_AT: usize = 10_000;

pub async fn list(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    let known = [
        "namespace",
        "state",
        "phase",
        "limit",
        "before",
        "after",
        "archived",
        "labelSelector",
        "labels",
        "system",
        "agent",
        "mode",
        "offset",
        "sort",
        "order",
    ];
    let parameters = parameters.only(&known)?;
    match parameters.get("mode") {
        Some("template") => return resources::page(Kind::Task, &app, &parameters).await,
        None | Some("run") => {}
        Some(other) => {
            let detail = format!("mode: expected run or template, found {other:?}");
            return Err(Problem::bad_parameter(detail));
        }
    }
    let (limit, offset) = (parameters.limit()?, offset(&parameters)?);
    if let Some(sort) = Sort::of(&parameters)? {
        let after = match parameters.one_of(&["before", "after"])? {
            Some(text) => {
                named(&app, &parameters, text).await?.map(|row| sort.cursor(&row)).or(Some(text.to_owned()))
            }
            None => None,
        };
        let rows =
            sort.page(&app, filter(&parameters, 0, None)?, after.as_deref(), (offset, limit + 1)).await?;
        let page = List::page(rows.iter().collect(), limit, |row| sort.cursor(row));
        return Ok(answer(StatusCode::OK, &page.map(TaskView::from)));
    }
    let before = match parameters.one_of(&["before", "after"])? {
        Some(text) => Some(before(&app, &parameters, text).await?),
        None => None,
    };
    let TaskPage { rows, stopped_at } =
        app.control.tasks(filter(&parameters, offset + limit + 1, before)?).await?;
    let views = rows.iter().skip(offset).map(TaskView::from).collect();
    let page = List::page(views, limit, |view| view.metadata.uid.to_string());
    Ok(answer(StatusCode::OK, &page.or_else_from(stopped_at.map(|task| task.to_string()))))
}

/// How many are passed over. A cursor costs less, and misses nothing that comes meanwhile.
fn offset(parameters: &Parameters) -> Result<usize, Problem> {
    let offset = parameters.place("offset")?.unwrap_or(0);
    usize::try_from(offset).ok().filter(|offset| *offset <= MOST_OFFSET).ok_or_else(|| {
        let detail =
            format!("offset: at most {MOST_OFFSET}; the `continue` of a page leads further, as `after`");
        Problem::bad_parameter(detail)
    })
}

fn filter(parameters: &Parameters, limit: usize, before: Option<TaskId>) -> Result<TaskFilter, Problem> {
    let mut states = parameters.get("state").map(states).transpose()?.unwrap_or_default();
    if let Some(phases) = parameters.get("phase") {
        if !states.is_empty() {
            return Err(Problem::bad_parameter("state and phase: give one of the two"));
        }
        states = states_of(phases)?;
    }
    let text = |name| parameters.get(name).map(str::to_owned);
    Ok(TaskFilter {
        namespace: match parameters.scope()? {
            Scope::One(namespace) => Some(namespace),
            Scope::All => None,
        },
        states,
        archived: parameters.flag("archived")?,
        before,
        labels: parameters.selector()?,
        agent: text("agent"),
        system: text("system"),
        limit,
        look_at: Some(LOOK_AT),
    })
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

fn states_of(phases: &str) -> Result<Vec<String>, Problem> {
    let mut states = Vec::new();
    for phase in phases.split(',') {
        let found = PHASES.iter().find(|(name, _)| name.eq_ignore_ascii_case(phase.trim()));
        let Some((_, names)) = found else {
            let known = PHASES.map(|(name, _)| name).join(", ");
            let detail = format!("phase: unknown phase {phase:?}; there are {known}");
            return Err(Problem::bad_parameter(detail));
        };
        states.extend(names.iter().map(|name| (*name).to_owned()));
    }
    Ok(states)
}

/// The last task of the page before: its uid or, in a list of one namespace, its name.
async fn before(app: &App, parameters: &Parameters, text: &str) -> Result<TaskId, Problem> {
    let error = match text.parse() {
        Ok(task) => return Ok(task),
        Err(error) => Problem::bad_parameter(format!("before: {error}")),
    };
    named(app, parameters, text).await?.map(|row| row.task.id).ok_or(error)
}

/// The task of this name, in a list of one namespace.
async fn named(app: &App, parameters: &Parameters, name: &str) -> Result<Option<TaskRow>, Problem> {
    let Scope::One(namespace) = parameters.scope()? else { return Ok(None) };
    match app.control.task(&namespace, name).await {
        Ok(row) => Ok(Some(row)),
        Err(ControlError::NotFound { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}
