//! Tasks in another order than the newest first. They are sorted here, so there may not be too many of them: no index knows
//! them in every order, and a list that starts from the newest costs what it shows, whatever there is.

use ostler_control::store::{TaskFilter, TaskPage, TaskRow};
use ostler_kernel::TaskId;

use crate::{gate::App, parameters::Parameters, problem::Problem, wire::task::PHASES};

/// So many are sorted.
const MOST: usize = 10_000;

/// By what, and which end comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    by: By,
    is_descending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Name,
    Created,
    Phase,
}

/// Where a task stands in the list. What is the same otherwise stands in the order of acceptance.
type Place = (String, String, TaskId);

impl Sort {
    /// None is the newest first, which every list is by itself.
    pub fn of(parameters: &Parameters) -> Result<Option<Self>, Problem> {
        let by = match parameters.get("sort") {
            None | Some("created_at" | "createdAt") => By::Created,
            Some("name") => By::Name,
            Some("phase") => By::Phase,
            Some(other) => {
                let detail = format!("sort: expected name, created_at or phase, found {other:?}");
                return Err(Problem::bad_parameter(detail));
            }
        };
        let is_descending = match parameters.get("order") {
            None => by == By::Created,
            Some("asc") => false,
            Some("desc") => true,
            Some(other) => {
                let detail = format!("order: expected asc or desc, found {other:?}");
                return Err(Problem::bad_parameter(detail));
            }
        };
        let sort = Self { by, is_descending };
        Ok(Some(sort).filter(|sort| *sort != Self { by: By::Created, is_descending: true }))
    }

    /// Up to `limit` of those that the filter means, behind the place that a page before ended at.
    pub async fn page(
        self,
        app: &App,
        filter: TaskFilter,
        after: Option<&str>,
        (offset, limit): (usize, usize),
    ) -> Result<Vec<TaskRow>, Problem> {
        let after = after.map(read_place).transpose()?;
        let filter = TaskFilter { limit: MOST + 1, before: None, look_at: Some(MOST + 1), ..filter };
        let TaskPage { mut rows, stopped_at } = app.control.tasks(filter).await?;
        if rows.len() > MOST || stopped_at.is_some() {
            let detail = format!("sort: there are more than {MOST} tasks to sort");
            return Err(Problem::bad_parameter(detail).remedy(
                "ask for fewer, by state, phase or namespace; or leave `sort` out: the newest come first",
            ));
        }
        rows.sort_by_cached_key(|row| self.place(row));
        if self.is_descending {
            rows.reverse();
        }
        let is_behind = |row: &TaskRow| {
            after.as_ref().is_none_or(|after| match self.is_descending {
                true => self.place(row) < *after,
                false => self.place(row) > *after,
            })
        };
        Ok(rows.into_iter().filter(is_behind).skip(offset).take(limit).collect())
    }

    /// The cursor behind a task.
    pub fn cursor(self, row: &TaskRow) -> String {
        serde_json::to_string(&self.place(row)).unwrap_or_default()
    }

    fn place(self, row: &TaskRow) -> Place {
        let task = &row.task;
        match self.by {
            By::Created => (String::new(), String::new(), task.id),
            By::Name => (task.name.clone(), task.namespace.clone(), task.id),
            By::Phase => (phase(task.state.name()).to_owned(), String::new(), task.id),
        }
    }
}

fn phase(state: &str) -> &'static str {
    PHASES.iter().find(|(_, states)| states.contains(&state)).map_or("", |(phase, _)| phase)
}

fn read_place(after: &str) -> Result<Place, Problem> {
    serde_json::from_str(after).map_err(|_| {
        let detail = format!("after: expected the `continue` of the page before, found {after:?}");
        Problem::bad_parameter(detail)
    })
}
