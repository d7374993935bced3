//! A row that is new in a batch, and changed in it again, is written once: as it ends. So a run that is accepted and given
//! to a worker in one transaction leaves no dead rows.

use std::collections::BTreeMap;

use ostler_kernel::{RunId, SessionId, TaskId, Write};

use super::Row;

/// What is to be written at a place.
#[derive(Clone, Copy)]
pub struct Put<'a> {
    pub row: &'a Row<'a>,
    /// Where it was in the batch.
    pub place: usize,
    /// Not in its table yet.
    pub is_new: bool,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Task(TaskId),
    Run(RunId),
    Session(SessionId),
}

/// As they are.
pub fn each<'a>(rows: &'a [Row<'a>]) -> Vec<Put<'a>> {
    let put = |(place, row): (usize, &'a Row<'a>)| Put { row, place, is_new: key(row.write).1 };
    rows.iter().enumerate().map(put).collect()
}

/// Those that are new, as they are in the end, each at its first place; the others as they are.
pub fn fold<'a>(rows: &'a [Row<'a>]) -> Vec<Put<'a>> {
    let (mut puts, mut new) = (Vec::with_capacity(rows.len()), BTreeMap::new());
    for (place, row) in rows.iter().enumerate() {
        let (key, is_new) = key(row.write);
        match key.as_ref().and_then(|key| new.get(key)) {
            Some(&first) => {
                let first: &mut Put<'a> = &mut puts[first];
                first.row = row;
            }
            None => {
                if is_new && let Some(key) = key {
                    new.insert(key, puts.len());
                }
                puts.push(Put { row, place, is_new });
            }
        }
    }
    puts
}

/// Whose row it is, if it can change, and whether it begins with this write.
fn key(write: &Write) -> (Option<Key>, bool) {
    match write {
        Write::NewTask(task) => (Some(Key::Task(task.id)), true),
        Write::Task(task) => (Some(Key::Task(task.id)), false),
        Write::NewRun(run) => (Some(Key::Run(run.id)), true),
        Write::Run(run) | Write::RunProgress(run) => (Some(Key::Run(run.id)), false),
        Write::Session(session) => (Some(Key::Session(session.id)), session.version <= 1),
        _ => (None, false),
    }
}
