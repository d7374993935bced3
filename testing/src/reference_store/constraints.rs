//! What may never be true of the rows, whatever a bundle expects. A second fence behind the expectations:
//! but for two inputs at once, the kernel's bundles should never come this far.

use ostler_kernel::{Run, Session, Step, Task, Write, bundle::Clash};

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
            let same = |write: &Write| matches!(write, Write::Entry { session: other, seq: place, .. } if (other, place) == (session, seq));
            !tables.entries.contains_key(&(*session, *seq)) && !before.iter().any(same)
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
        | Write::Worker(_)
        | Write::Renewal { .. }
        | Write::Resource(_)
        | Write::DeleteResource(_)
        | Write::Blob { .. } => true,
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

/// A step is opened once, and then done once.
fn follows(tables: &Tables, before: &[Write], step: &Step) -> bool {
    let earlier = before.iter().rev().find_map(|write| match write {
        Write::Step(former) if former.id == step.id => Some(former),
        _ => None,
    });
    match earlier.or_else(|| tables.steps.get(&step.id)) {
        None => step.is_open(),
        Some(former) => former.is_open() && !step.is_open(),
    }
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
