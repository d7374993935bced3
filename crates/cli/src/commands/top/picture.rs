//! What the server said at one moment, as far as the screen shows it.

use std::cmp::Reverse;

use ostler_client::{TaskView, WorkerView, view::UsageView};

use super::state::Sort;
use crate::{clock, text};

/// One look at the server.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    pub tasks: Vec<TaskView>,
    /// There are more that have not ended than were asked for.
    pub has_more: bool,
    pub workers: Vec<WorkerView>,
}

/// A task as a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub doer: String,
    pub state: String,
    pub age_ms: i64,
    pub usage: UsageView,
    /// What it waits for, or why it failed.
    pub about: String,
}

impl Picture {
    pub fn count(&self, state: &str) -> usize {
        self.tasks.iter().filter(|task| task.status.state == state).count()
    }

    /// Tokens and cost, of the tasks that are shown.
    pub fn usage(&self) -> UsageView {
        self.tasks
            .iter()
            .map(|task| &task.status.usage)
            .fold(UsageView::default(), |sum, usage| sum.plus(usage))
    }

    /// The rows that the filter lets through, in their order.
    pub fn rows(&self, filter: &str, sort: Sort, now_ms: i64) -> Vec<Row> {
        let filter = filter.trim().to_lowercase();
        let is_shown = |row: &Row| {
            let has = |text: &str| text.to_lowercase().contains(&filter);
            filter.is_empty() || has(&row.name) || has(&row.doer) || has(&row.state) || has(&row.namespace)
        };
        let mut rows: Vec<Row> = self.tasks.iter().map(|task| row(task, now_ms)).filter(is_shown).collect();
        match sort {
            Sort::Age => rows.sort_by_key(|row| (is_over(&row.state), row.age_ms)),
            Sort::Name => rows.sort_by_key(|row| (row.namespace.clone(), row.name.clone())),
            Sort::State => rows.sort_by_key(|row| (row.state.clone(), row.age_ms)),
            Sort::Tokens => rows.sort_by_key(|row| Reverse(row.usage.total())),
            Sort::Cost => rows.sort_by_key(|row| Reverse(row.usage.cost_micro_usd)),
        }
        rows
    }
}

fn is_over(state: &str) -> bool {
    !matches!(state, "queued" | "running" | "waiting" | "sleeping")
}

fn row(task: &TaskView, now_ms: i64) -> Row {
    let created = clock::parse(&task.metadata.created_at).unwrap_or(now_ms);
    let doer = task.spec.system.clone().unwrap_or_else(|| task.spec.agent.clone());
    let waiting = task.status.waiting_for.as_ref().map(|waiting| waiting.summary.as_str());
    let sleeping = task.status.sleeping.as_ref().and_then(|sleeping| sleeping.error.as_ref());
    let sleeping = sleeping.map(|error| format!("{}: {}", error.code, error.message));
    let about = waiting.or(sleeping.as_deref()).or(task.status.last_error.as_deref()).unwrap_or_default();
    Row {
        uid: task.metadata.uid.clone(),
        namespace: task.metadata.namespace.clone(),
        name: text::one_line(&task.metadata.name),
        doer: text::one_line(&doer),
        state: task.status.state.clone(),
        age_ms: now_ms.saturating_sub(created),
        usage: task.status.usage,
        about: text::one_line(about),
    }
}

/// `950`, `12.3k`, `4.5M`.
pub fn amount(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}.{}k", number / 1_000, number % 1_000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_at_a_glance() {
        let shown = [0, 999, 1_000, 12_345, 999_999, 4_567_890].map(amount);
        assert_eq!(shown, ["0", "999", "1.0k", "12.3k", "999.9k", "4.5M"]);
    }
}
