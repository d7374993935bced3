//! The judgement at the end: every key is there once, every task succeeded unless it was cancelled, every log is dense and
//! ends with the task, no finished step was called again, and none was called that no log has.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use futures_util::{StreamExt, TryStreamExt, stream};
use ostler_client::view::{StepFinished, StepKind, StepOutcome};
use ostler_client::{Client, EventBody, EventView, TaskQuery, TaskView};
use ostler_kernel::{RunId, StepId};

use super::journal::{Finished, Journal};
use super::workload::{self, N_STEPS, ONCE};
use super::{Feeder, Ground, Meddled};

/// Logs read at once.
const AT_ONCE: usize = 8;

const PAGE: usize = 1000;

/// What was found.
#[derive(Debug, Default)]
pub struct Verdict {
    pub n_tasks: usize,
    pub n_succeeded: usize,
    pub n_cancelled: usize,
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
    feeder: &Feeder,
    journal: &Journal,
    ground: &Ground,
) -> anyhow::Result<Verdict> {
    let tasks = all_tasks(client).await?;
    let mut verdict = Verdict { n_tasks: tasks.len(), ..Verdict::default() };
    let meddled = feeder.meddled();
    verdict.check_keys(&feeder.keys(), &tasks);
    verdict.check_calls(journal, ground);
    let logs = stream::iter(&tasks).map(async |task| {
        let events = client.all_events(&task.metadata.uid).await;
        events.map(|events| (task, events)).context("a log can't be read")
    });
    let mut logs = logs.buffer_unordered(AT_ONCE);
    while let Some((task, events)) = logs.try_next().await? {
        verdict.check_task(task, &meddled);
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
            let Finished { received: before, attempts, is_cut_off, .. } = finished;
            if received > *attempts {
                self.n_repeated += 1;
                self.fail(format!("step {step} was called {received} times in {attempts} attempts"));
            } else if received > *before && !is_cut_off {
                self.n_late += 1;
            }
        }
        let called = [ground.model.desk().by_id(|_| true), ground.tools.desk().by_id(|_| true)];
        for id in called.iter().flat_map(BTreeMap::keys) {
            // It began behind the end of its run, or nobody began it.
            if !id.parse().is_ok_and(|step: StepId| journal.finished().contains_key(&step)) {
                self.fail(format!("step {id} was called, and no log has it"));
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

    fn check_task(&mut self, task: &TaskView, meddled: &Meddled) {
        let name = &task.metadata.name;
        if is_cancelled(task) {
            self.n_cancelled += 1;
            if !meddled.cancelled.contains(name) {
                self.fail(format!("{name} is cancelled, and nobody was told that it would be"));
            }
            return;
        }
        if meddled.cancelled.contains(name) {
            self.fail(format!("{name} was cancelled, and is {}", task.status.state));
        }
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
        // Who is given something else to do is done sooner or later than planned, and who is cancelled may not have begun.
        let is_cut_short = is_cancelled(task) || events.iter().any(is_input);
        let is_right = |steps: &Vec<u32>| {
            let n_steps = if is_cut_short { steps.len() as u32 } else { N_STEPS };
            steps.iter().copied().eq(0..n_steps)
        };
        let n_agents = workload::n_agents_of(name);
        let are_all = if is_cancelled(task) { runs.len() <= n_agents } else { runs.len() == n_agents };
        if !are_all || !runs.values().all(is_right) {
            self.fail(format!("{name} finished the steps {runs:?}"));
        }
        for step in steps {
            self.check_step(task, step, journal);
        }
    }

    /// A step ended well, or it is a call that was interrupted and must not be repeated, or its task was cancelled meanwhile.
    fn check_step(&mut self, task: &TaskView, step: &StepFinished, journal: &Journal) {
        let name = &task.metadata.name;
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
            StepOutcome::Interrupted if is_cancelled(task) => {}
            StepOutcome::Failed { failure } if failure.code == "outcome_unknown" && once && *interrupted => {
                self.n_unknown += 1;
            }
            outcome => self.fail(format!("{name}: step {id} ended as {outcome:?}")),
        }
    }
}

fn is_cancelled(task: &TaskView) -> bool {
    task.status.state == "cancelled"
}

fn is_input(event: &EventView) -> bool {
    matches!(event.body, EventBody::InputAccepted { .. })
}

fn finished_step(event: &EventView) -> Option<&StepFinished> {
    match &event.body {
        EventBody::StepFinished(step) => Some(step),
        _ => None,
    }
}
