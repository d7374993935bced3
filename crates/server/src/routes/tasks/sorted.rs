//! Tasks in another order than the newest first. They are sorted here, so there may not be too many of them: no index knows
//! them in every order, and a list that starts from the newest costs what it shows, whatever there is.

use ostler_control::store::{StoreExt, TaskFilter, TaskRef, TaskRow};
use ostler_kernel::TaskId;

use super::{
    list,
    reading::{End, Part, Reading},
};
use crate::{
    gate::App,
    parameters::Parameters,
    problem::Problem,
    wire::{list::Pages, task::PHASES},
};

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

    /// Takes into the page what the filter means, behind the place that a page before ended at. Gives where the next begins.
    pub async fn fill(
        self,
        app: &App,
        page: &mut Pages,
        filter: TaskFilter,
        after: Option<&str>,
        offset: usize,
    ) -> Result<Option<String>, Problem> {
        let after = after.map(read_place).transpose()?;
        let mut places = self.places(app, filter).await?;
        places.sort_unstable();
        if self.is_descending {
            places.reverse();
        }
        let is_behind = |place: &Place| {
            after.as_ref().is_none_or(|after| match self.is_descending {
                true => place < after,
                false => place > after,
            })
        };
        let mut last = None;
        for place in places.into_iter().filter(is_behind).skip(offset) {
            if page.is_full() {
                return Ok(last.as_ref().map(written));
            }
            // One that was deleted meanwhile is not shown.
            if let Some(row) = app.control.store().task(TaskRef::Id(place.2)).await? {
                list::add(app, page, row).await?;
            }
            last = Some(place);
        }
        Ok(None)
    }

    /// Where the list goes on behind this task.
    pub fn cursor(self, row: &TaskRow) -> String {
        written(&self.place(row))
    }

    /// Where each task stands, in no order. Of the tasks themselves no more are kept at once than are read at once.
    async fn places(self, app: &App, filter: TaskFilter) -> Result<Vec<Place>, Problem> {
        let (mut reading, mut places) = (Reading::new(app, filter, MOST + 1), Vec::new());
        loop {
            let Part { rows, end } = reading.next(MOST + 1).await?;
            places.extend(rows.iter().map(|row| self.place(row)));
            match end {
                End::More if places.len() <= MOST => {}
                End::Over if places.len() <= MOST => return Ok(places),
                End::More | End::Over | End::StoppedAt(_) => return Err(too_many()),
            }
        }
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

fn too_many() -> Problem {
    Problem::bad_parameter(format!("sort: there are more than {MOST} tasks to sort"))
        .remedy("ask for fewer, by state, phase or namespace; or leave `sort` out: the newest come first")
}

fn written((text, other, task): &Place) -> String {
    serde_json::json!([text, other, task]).to_string()
}

fn read_place(after: &str) -> Result<Place, Problem> {
    serde_json::from_str(after).map_err(|_| {
        let detail = format!("after: expected the `continue` of the page before, found {after:?}");
        Problem::bad_parameter(detail)
    })
}
