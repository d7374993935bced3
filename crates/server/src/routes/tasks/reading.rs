//! Reads the tasks of a list a few at a time, the newest first: each may be large, and there may be a million of them.

use ostler_control::store::{StoreExt, TaskFilter, TaskRow};
use ostler_kernel::{Selector, TaskId};

use crate::{gate::App, problem::Problem};

/// So many are held at once: each may have brought images.
const AT_ONCE: usize = 50;

pub struct Reading<'a> {
    app: &'a App,
    filter: TaskFilter,
    /// The same without what no index knows.
    found: TaskFilter,
    /// So many more are looked at one by one.
    left: usize,
}

pub struct Part {
    pub rows: Vec<TaskRow>,
    pub end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    More,
    Over,
    /// Enough were looked at; whoever wants more goes on behind this one.
    StoppedAt(TaskId),
}

impl<'a> Reading<'a> {
    /// What the filter means, where up to `look_at` tasks are looked at by what no index knows.
    pub fn new(app: &'a App, filter: TaskFilter, look_at: usize) -> Self {
        let found = TaskFilter { labels: Selector::default(), agent: None, system: None, ..filter.clone() };
        let left = if filter.is_selective() { look_at } else { usize::MAX };
        Self { app, filter, found, left }
    }

    /// The next few. No more than `wanted` of them are of use.
    pub async fn next(&mut self, wanted: usize) -> Result<Part, Problem> {
        let wanted = if self.filter.is_selective() { self.left } else { wanted };
        self.found.limit = wanted.clamp(1, AT_ONCE);
        let mut rows = self.app.control.store().tasks(self.found.clone()).await?;
        let is_over = rows.len() < self.found.limit;
        self.left = self.left.saturating_sub(rows.len());
        self.found.before = rows.last().map(|row| row.task.id);
        let end = match self.found.before {
            Some(last) if !is_over && self.left == 0 => End::StoppedAt(last),
            Some(_) if !is_over => End::More,
            Some(_) | None => End::Over,
        };
        rows.retain(|row| self.filter.selects(&row.task.request));
        Ok(Part { rows, end })
    }
}
