//! The judgement at the end: every key is there once, every task succeeded, every log is dense and ends with
//! the task, and no finished step was called again.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use futures_util::{StreamExt, TryStreamExt, stream};
use ostler_client::view::{StepFinished, StepKind, StepOutcome};
use ostler_client::{Client, EventBody, EventView, TaskQuery, TaskView};
use ostler_kernel::{RunId, StepId};

use super::Ground;
use super::journal::{Finished, Journal};
use super::workload::{self, N_STEPS, ONCE};

/// Logs read at once.
const AT_ONCE: usize = 8;

const PAGE: usize = 1000;

/// What was found.
#[derive(Debug, Default)]
pub struct Verdict {
    pub n_tasks: usize,
    pub n_succeeded: usize,
    /// Finished steps in all logs.
    pub n_steps: usize,
    /// Steps that were called again although they had finished, or finished twice.
    pub n_repeated: usize,
    /// Steps that were finished when an attempt that began before made its call, which was late.
    pub n_late: usize,
    /// Logs with a gap or a repeat.
    pub n_gaps: usize,
    /// Calls that were interrupted and must not be repeated.
    pub n_unknown: usize,
    /// One line for each thing that is wrong.
    pub failures: Vec<String>,
}

pub async fn judge(
    client: &Client,
    keys: &BTreeSet<String>,
    journal: &Journal,
    ground: &Ground,
) -> anyhow::Result<Verdict> {
    let tasks = all_tasks(client).await?;
    let mut verdict = Verdict { n_tasks: tasks.len(), ..Verdict::default() };
    verdict.check_keys(keys, &tasks);
    verdict.check_calls(journal, ground);
    let logs = stream::iter(&tasks).map(async |task| {
        let events = client.all_events(&task.metadata.uid).await;
        events.map(|events| (task, events)).context("a log can't be read")
    });
    let mut logs = logs.buffer_unordered(AT_ONCE);
    while let Some((task, events)) = logs.try_next().await? {
        verdict.check_task(task);
        verdict.check_log(task, &events, journal);
    }
    Ok(verdict)
}

async fn all_tasks(client: &Client) -> anyhow::Result<Vec<TaskView>> {
    let mut query = TaskQuery { limit: Some(PAGE), ..TaskQuery::default() };
    let mut tasks = Vec::new();
    loop {
        let page = client.tasks(&query).await.context("the tasks can't be listed")?;
        tasks.extend(page.items);
        match page.next {
            Some(next) => query.before = Some(next),
            None => return Ok(tasks),
        }
    }
}

impl Verdict {
    fn fail(&mut self, failure: String) {
        self.failures.push(failure);
    }

    fn check_keys(&mut self, keys: &BTreeSet<String>, tasks: &[TaskView]) {
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for task in tasks {
            *found.entry(task.spec.idempotency_key.as_deref().unwrap_or_default()).or_default() += 1;
        }
        for key in keys {
            match found.remove(key.as_str()) {
                Some(1) => {}
                n_found => {
                    self.fail(format!("{key} was accepted, and is there {} times", n_found.unwrap_or(0)))
                }
            }
        }
        let strangers: Vec<_> =
            found.into_keys().map(|key| format!("nobody asked for task {key:?}")).collect();
        self.failures.extend(strangers);
    }

    /// What the servers saw, beside what the log says.
    fn check_calls(&mut self, journal: &Journal, ground: &Ground) {
        self.failures.extend(journal.violations().cloned());
        self.n_repeated = self.failures.len();
        for (step, finished) in journal.finished() {
            let (received, _) = ground.calls(&step.to_string());
            let Finished { received: before, attempts, .. } = finished;
            if received > *attempts {
                self.n_repeated += 1;
                self.fail(format!("step {step} was called {received} times in {attempts} attempts"));
            } else if received > *before {
                self.n_late += 1;
            }
        }
        for (id, call) in ground.tools.calls() {
            if call.count > 1 && call.tool.contains(ONCE) {
                self.fail(format!("{id} is not idempotent and was called {} times", call.count));
            }
            if call.distinct_bodies > 1 {
                self.fail(format!("{id} was called with {} different bodies", call.distinct_bodies));
            }
        }
        let violations = ground.model.violations();
        self.failures.extend(violations.iter().map(|violation| format!("the model was sent {violation:?}")));
    }

    fn check_task(&mut self, task: &TaskView) {
        let name = &task.metadata.name;
        if !task.succeeded() {
            let status = &task.status;
            return self.fail(format!("{name} is {}: {:?}", status.state, status.last_error));
        }
        self.n_succeeded += 1;
        if task.output() != Some(&workload::output(name)) {
            self.fail(format!("{name} gave {:?}", task.output()));
        }
    }

    fn check_log(&mut self, task: &TaskView, events: &[EventView], journal: &Journal) {
        let name = &task.metadata.name;
        let is_dense = events.iter().zip(1..).all(|(event, seq)| event.seq == seq);
        if !is_dense {
            self.n_gaps += 1;
            let seqs: Vec<_> = events.iter().map(|event| event.seq).collect();
            self.fail(format!("the log of {name} has the sequence {seqs:?}"));
        }
        let is_last = |event: &EventView| matches!(event.body, EventBody::TaskEnded { .. });
        if events.iter().position(is_last) != events.len().checked_sub(1) {
            self.fail(format!("the log of {name} doesn't end with the task's end"));
        }
        let steps: Vec<_> = events.iter().filter_map(finished_step).collect();
        self.n_steps += steps.len();
        let mut runs: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        steps.iter().for_each(|step| runs.entry(&step.run).or_default().push(step.step));
        let is_whole = runs.values().all(|steps| steps.iter().copied().eq(0..N_STEPS));
        if !is_whole || runs.len() != workload::n_agents_of(name) {
            self.fail(format!("{name} finished the steps {runs:?}"));
        }
        for step in steps {
            self.check_step(name, step, journal);
        }
    }

    /// A step ended well, or it is a call that was interrupted and must not be repeated.
    fn check_step(&mut self, name: &str, step: &StepFinished, journal: &Journal) {
        let once = matches!(&step.kind, StepKind::Tool { call, .. } if call.name == ONCE);
        let run: Option<RunId> = step.run.parse().ok();
        let finished = run.and_then(|run| journal.finished().get(&StepId { run, index: step.step }));
        let id = format!("{}.{}", step.run, step.step);
        let Some(Finished { interrupted, .. }) = finished else {
            return self.fail(format!("{name}: step {id} is in the log and not in the store"));
        };
        match &step.outcome {
            StepOutcome::Ok if once && *interrupted => {
                self.fail(format!("{name}: step {id} was interrupted, and yet it is said to have gone well"));
            }
            StepOutcome::Ok => {}
            StepOutcome::Failed { failure } if failure.code == "outcome_unknown" && once && *interrupted => {
                self.n_unknown += 1;
            }
            outcome => self.fail(format!("{name}: step {id} ended as {outcome:?}")),
        }
    }
}

fn finished_step(event: &EventView) -> Option<&StepFinished> {
    match &event.body {
        EventBody::StepFinished(step) => Some(step),
        _ => None,
    }
}
