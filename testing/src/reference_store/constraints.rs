//! What may never be true of the rows, whatever a bundle expects. A second fence behind the expectations:
//! but for two inputs at once, the kernel's bundles should never come this far.

use ostler_kernel::{Run, Session, Step, StepId, Task, Write, bundle::Clash};

use super::tables::Tables;

/// What is in the way of the first write that can't stand behind those before it.
pub(super) fn clash(tables: &Tables, writes: &[Write]) -> Option<Clash> {
    let places = 0..writes.len();
    let mut kept_out = places.filter(|place| !has_room(tables, &writes[..*place], &writes[*place]));
    kept_out.next().and_then(|place| Clash::of(&writes[place]))
}

fn has_room(tables: &Tables, before: &[Write], write: &Write) -> bool {
    match write {
        Write::NewTask(task) => has_no_twin(tables, before, task),
        Write::NewRun(run) => {
            let twin = |write: &Write| matches!(write, Write::NewRun(other) if other.id == run.id);
            !tables.runs.contains_key(&run.id) && !before.iter().any(twin)
        }
        Write::Run(run) => is_alone_in_its_session(tables, before, run),
        Write::Session(session) if session.version > 1 => true,
        Write::Session(session) => is_new(tables, before, session),
        Write::Step(step) => follows(tables, before, step),
        Write::Entry { session, seq, .. } => {
            let said =
                |write: &&Write| matches!(write, Write::Entry { session: other, .. } if other == session);
            let stored = tables.entries.range((*session, 0)..=(*session, u64::MAX)).count();
            *seq == (stored + before.iter().filter(said).count()) as u64
        }
        Write::Input(input) => {
            let place = (input.task, input.number);
            let same =
                |write: &Write| matches!(write, Write::Input(other) if (other.task, other.number) == place);
            !tables.inputs.contains_key(&place) && !before.iter().any(same)
        }
        Write::Task(_)
        | Write::RunProgress(_)
        | Write::Event { .. }
        | Write::Consume { .. }
        | Write::Blocker(_)
        | Write::Archive { .. }
        | Write::Forget(_)
        | Write::ForgetSession { .. }
        | Write::Worker(_)
        | Write::ForgetWorker { .. }
        | Write::Renewal { .. }
        | Write::Standing { .. }
        | Write::Limit { .. }
        | Write::Resource(_)
        | Write::DeleteResource(_)
        | Write::Blob { .. }
        | Write::ForgetBlob { .. } => true,
    }
}

/// No other task has its id, its name or its key.
fn has_no_twin(tables: &Tables, before: &[Write], task: &Task) -> bool {
    let key = |task: &Task| task.request.idempotency_key.clone();
    let twin = |other: &Task| {
        let namesake = other.name == task.name || (key(task).is_some() && key(other) == key(task));
        other.id == task.id || (other.namespace == task.namespace && namesake)
    };
    let earlier = before.iter().any(|write| matches!(write, Write::NewTask(other) if twin(other)));
    !earlier && !tables.tasks.values().any(|row| twin(&row.task))
}

/// No other session has its id or its key.
fn is_new(tables: &Tables, before: &[Write], session: &Session) -> bool {
    let place = |session: &Session| (session.namespace.clone(), session.subject.clone(), session.key.clone());
    let twin =
        |other: &Session| other.id == session.id || (session.key.is_some() && place(other) == place(session));
    let earlier = before
        .iter()
        .any(|write| matches!(write, Write::Session(other) if other.version <= 1 && twin(other)));
    !earlier && !tables.sessions.values().any(twin)
}

/// Steps are opened in the order of their numbers, and each is then done once.
fn follows(tables: &Tables, before: &[Write], step: &Step) -> bool {
    let steps = |write: &'_ Write| match write {
        Write::Step(other) if other.id.run == step.id.run => Some(other.clone()),
        _ => None,
    };
    let earlier: Vec<Step> = before.iter().filter_map(steps).collect();
    if step.is_open() {
        let first = StepId { run: step.id.run, index: 0 };
        let last = StepId { run: step.id.run, index: u32::MAX };
        let opened = earlier.iter().filter(|step| step.is_open()).count();
        return step.id.index as usize == tables.steps.range(first..=last).count() + opened;
    }
    let former = earlier.iter().rev().find(|former| former.id == step.id);
    former.or_else(|| tables.steps.get(&step.id)).is_some_and(Step::is_open)
}

/// A session has one writer.
fn is_alone_in_its_session(tables: &Tables, before: &[Write], run: &Run) -> bool {
    let latest = |stored: &Run| {
        let written = before.iter().rev().find_map(|write| match write {
            Write::Run(later) if later.id == stored.id => Some(later.is_live()),
            _ => None,
        });
        written.unwrap_or(stored.is_live())
    };
    let rival = |other: &Run| other.session == run.session && other.id != run.id && latest(other);
    !run.is_live() || !tables.runs.contains_key(&run.id) || !tables.runs.values().any(rival)
}
