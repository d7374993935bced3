//! What must be true of the store once all is calm, beside what the log shows by itself.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use ostler_kernel::{RunId, RunTag, SessionId, run::RunView};
use ostler_store::{PostgresStore, StoreExt as _};

use crate::load::{Attempts, Life, Meddled};

/// Reads at once.
const AT_ONCE: usize = 4;

/// Everything that is wrong; empty if all holds.
pub async fn check(
    store: &PostgresStore,
    attempts: &Attempts,
    meddled: &Meddled,
) -> anyhow::Result<Vec<String>> {
    let mut failures = Vec::new();
    let views = stream::iter(attempts.lives()).map(async |(run, life)| {
        let view = store.run_view(*run).await?;
        anyhow::Ok((*run, life, view))
    });
    let views: Vec<_> = views.buffer_unordered(AT_ONCE).try_collect().await?;
    let mut sessions: BTreeMap<SessionId, Vec<(RunId, u64, &Life)>> = BTreeMap::new();
    for (run, life, view) in &views {
        let Some(view) = view else {
            failures.push(format!("{run} is in the log and not in the store"));
            continue;
        };
        failures.extend(problems_of_run(view, life));
        failures.extend(problems_of_inputs(view, meddled));
        sessions.entry(view.run.session).or_default().push((*run, view.run.order, life));
    }
    for (session, runs) in &mut sessions {
        runs.sort_by_key(|(_, order, _)| *order);
        failures.extend(problems_of_order(*session, runs));
        failures.extend(problems_of_session(store, *session).await?);
    }
    for run in store.leased(None).await? {
        failures.push(format!("{} is still held by {:?}", run.id, run.lease()));
    }
    Ok(failures)
}

fn problems_of_run(view: &RunView, life: &Life) -> Vec<String> {
    let RunView { run, open_steps, .. } = view;
    let mut problems = Vec::new();
    if !run.is_terminal() {
        problems.push(format!("{} has not ended: it is {:?}", run.id, run.state));
    }
    if let Some(step) = open_steps.first() {
        problems.push(format!("{} left {} open", run.id, step.id));
    }
    if run.attempt != life.attempt {
        let (attempt, logged) = (run.attempt, life.attempt);
        problems.push(format!("{} counts {attempt} attempts, the log {logged}", run.id));
    }
    // Each claim raises the epoch, and so does each end of an attempt.
    if run.epoch < u64::from(2 * run.attempt) {
        problems.push(format!("{} has epoch {} after {} attempts", run.id, run.epoch, run.attempt));
    }
    problems
}

/// An input that was accepted is there, and a run that went well has taken it.
fn problems_of_inputs(view: &RunView, meddled: &Meddled) -> Vec<String> {
    let RunView { run, last_input, consumed_input, .. } = view;
    let mut problems = Vec::new();
    if let Some(key) = meddled.given.get(&run.task).filter(|_| *last_input == 0) {
        problems.push(format!("{key} was given an input, and has none"));
    }
    if run.tag() == RunTag::Ok && consumed_input < last_input {
        problems.push(format!("{} went well, and took {consumed_input} of {last_input} inputs", run.id));
    }
    problems
}

/// One run is live at a time, in the order in which they came.
fn problems_of_order(session: SessionId, runs: &[(RunId, u64, &Life)]) -> Vec<String> {
    let mut problems = Vec::new();
    for pair in runs.windows(2) {
        let [(first, _, before), (second, _, after)] = pair else { continue };
        if before.ended.is_none() || after.began.is_some_and(|began| before.ended > Some(began)) {
            problems.push(format!("{session}: {second} began before {first} had ended"));
        }
    }
    let places: BTreeSet<u64> = runs.iter().map(|(_, order, _)| *order).collect();
    if !places.iter().copied().eq(0..runs.len() as u64) {
        problems.push(format!("{session} has its runs at {places:?}"));
    }
    problems
}

/// Its entries are dense, and nobody is at its head.
async fn problems_of_session(store: &PostgresStore, id: SessionId) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    let Some(session) = store.session(id).await? else { return Ok(vec![format!("{id} is not there")]) };
    if let Some(head) = session.head {
        problems.push(format!("{id} has {head} at its head, and all have ended"));
    }
    let entries = store.entries(id, 0, None).await?;
    if !entries.iter().map(|(seq, _)| *seq).eq(0..session.next_entry) {
        let (n_entries, next) = (entries.len(), session.next_entry);
        problems.push(format!("{id} has {n_entries} entries, and goes on at {next}"));
    }
    Ok(problems)
}
