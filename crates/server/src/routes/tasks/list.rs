//! Tasks as a list: which, in which order, and how it goes on.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use ostler_control::{
    ControlError,
    store::{TaskFilter, TaskRow},
};
use ostler_kernel::TaskId;
use ostler_spec::{Kind, TaskMode};

use super::{
    super::{answer, resources},
    reading::{End, Part, Reading},
    sorted::Sort,
};
use crate::{
    gate::App,
    parameters::{Parameters, Scope},
    problem::Problem,
    wire::{
        list::Pages,
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
    match mode(&parameters)? {
        Some(TaskMode::Template) => return resources::page(Kind::Task, &app, &parameters).await,
        Some(TaskMode::Run) | None => {}
    }
    let (mut page, offset) = (Pages::new(parameters.limit()?), offset(&parameters)?);
    let behind = parameters.one_of(&["before", "after"])?;
    let next = match Sort::of(&parameters)? {
        Some(sort) => {
            let after = match behind {
                Some(text) => {
                    let row = named(&app, &parameters, text).await?;
                    Some(row.map_or_else(|| text.to_owned(), |row| sort.cursor(&row)))
                }
                None => None,
            };
            sort.fill(&app, &mut page, filter(&parameters, None)?, after.as_deref(), offset).await?
        }
        None => {
            let before = match behind {
                Some(text) => Some(last_of_the_page_before(&app, &parameters, text).await?),
                None => None,
            };
            fill(&app, &mut page, filter(&parameters, before)?, offset).await?
        }
    };
    Ok(answer(StatusCode::OK, &page.end(next)))
}

/// Whether tasks are asked for, or templates.
pub fn mode(parameters: &Parameters) -> Result<Option<TaskMode>, Problem> {
    match parameters.get("mode") {
        None => Ok(None),
        Some("run") => Ok(Some(TaskMode::Run)),
        Some("template") => Ok(Some(TaskMode::Template)),
        Some(other) => {
            Err(Problem::bad_parameter(format!("mode: expected run or template, found {other:?}")))
        }
    }
}

/// The newest first. Gives where the next page begins.
async fn fill(
    app: &App,
    page: &mut Pages,
    filter: TaskFilter,
    mut offset: usize,
) -> Result<Option<String>, Problem> {
    let (mut reading, mut last) = (Reading::new(app, filter, LOOK_AT), None);
    loop {
        // One more than there is room for tells whether it goes on.
        let Part { rows, end } = reading.next(offset + page.room() + 1).await?;
        for row in rows {
            if offset > 0 {
                offset -= 1;
            } else if page.is_full() {
                return Ok(last);
            } else {
                last = Some(row.task.id.to_string());
                add(app, page, row).await?;
            }
        }
        match end {
            End::More => {}
            End::Over => return Ok(None),
            End::StoppedAt(task) => return Ok(Some(task.to_string())),
        }
    }
}

/// Shows a task as a list does: what is long of it is shortened.
pub async fn add(app: &App, page: &mut Pages, mut row: TaskRow) -> Result<(), Problem> {
    app.control.count_so_far(&mut row).await?;
    page.add(&TaskView::listed(&row));
    Ok(())
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

fn filter(parameters: &Parameters, before: Option<TaskId>) -> Result<TaskFilter, Problem> {
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
        ..TaskFilter::default()
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

/// Its uid, `namespace/name` or, in a list of one namespace, its name.
async fn last_of_the_page_before(app: &App, parameters: &Parameters, text: &str) -> Result<TaskId, Problem> {
    if let Ok(task) = text.parse() {
        return Ok(task);
    }
    let found = named(app, parameters, text).await?.map(|row| row.task.id);
    found.ok_or_else(|| {
        let name = if parameters.get("after").is_some() { "after" } else { "before" };
        let detail = format!("{name}: expected the `continue` of the page before, or a task, found {text:?}");
        Problem::bad_parameter(detail)
    })
}

/// The task of this name: with its namespace before it, or in a list of one namespace.
async fn named(app: &App, parameters: &Parameters, text: &str) -> Result<Option<TaskRow>, Problem> {
    let (namespace, name) = match (text.split_once('/'), parameters.scope()?) {
        (Some((namespace, name)), _) => {
            parameters.caller()?.check_namespace(namespace)?;
            (namespace.to_owned(), name)
        }
        (None, Scope::One(namespace)) => (namespace, text),
        (None, Scope::All) => return Ok(None),
    };
    match app.control.task(&namespace, name).await {
        Ok(row) => Ok(Some(row)),
        Err(ControlError::NotFound { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}
