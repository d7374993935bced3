//! What may never be true of the rows, whatever a bundle expects. A second fence behind the expectations:
//! the kernel's bundles should never come this far.

use std::collections::{BTreeMap, BTreeSet};

use ostler_kernel::{Bundle, Run, RunId, Step, StepId, Write};

use super::tables::Tables;

/// The first rule that the bundle's writes would break, in words.
pub(super) fn breach(tables: &Tables, bundle: &Bundle) -> Option<String> {
    written_twice(tables, bundle)
        .or_else(|| step_out_of_order(tables, bundle))
        .or_else(|| two_live_runs(tables, bundle))
}

/// Tasks, runs, entries and inputs are put in their places once.
fn written_twice(tables: &Tables, bundle: &Bundle) -> Option<String> {
    let mut places = BTreeSet::new();
    for write in &bundle.writes {
        let (place, taken) = match write {
            Write::NewTask(task) => (format!("{}", task.id), tables.tasks.contains_key(&task.id)),
            Write::NewRun(run) => (format!("{}", run.id), tables.runs.contains_key(&run.id)),
            Write::Entry { session, seq, .. } => {
                (format!("entry {seq} of {session}"), tables.entries.contains_key(&(*session, *seq)))
            }
            Write::Input(input) => {
                let place = (input.task, input.number);
                (format!("input {} of {}", input.number, input.task), tables.inputs.contains_key(&place))
            }
            Write::Session(session) if session.version == 1 => {
                (format!("{}", session.id), tables.sessions.contains_key(&session.id))
            }
            _ => continue,
        };
        if taken || !places.insert(place.clone()) {
            return Some(format!("{place} is there already"));
        }
    }
    None
}

/// A step is opened once, and then done once.
fn step_out_of_order(tables: &Tables, bundle: &Bundle) -> Option<String> {
    let mut before: BTreeMap<StepId, &Step> = BTreeMap::new();
    for write in &bundle.writes {
        let Write::Step(step) = write else { continue };
        let former = before.insert(step.id, step).or_else(|| tables.steps.get(&step.id));
        let follows = match former {
            None => step.is_open(),
            Some(former) => former.is_open() && !step.is_open(),
        };
        if !follows {
            return Some(format!("step {} was {:?} before", step.id, former.map(|former| &former.state)));
        }
    }
    None
}

/// A session has one writer.
fn two_live_runs(tables: &Tables, bundle: &Bundle) -> Option<String> {
    let mut after: BTreeMap<RunId, &Run> = BTreeMap::new();
    for write in &bundle.writes {
        if let Write::NewRun(run) | Write::Run(run) = write {
            after.insert(run.id, run);
        }
    }
    let untouched = |run: &&Run| !after.contains_key(&run.id);
    let live = |run: &&&Run| run.is_live();
    for run in after.values().filter(live) {
        let others = tables.runs.values().filter(untouched).chain(after.values().copied());
        if let Some(other) = others
            .filter(|other| other.is_live())
            .find(|other| other.session == run.session && other.id != run.id)
        {
            return Some(format!("{} is live in the session of {}", other.id, run.id));
        }
    }
    None
}
