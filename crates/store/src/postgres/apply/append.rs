//! Rows that are appended: many of them in one statement, each column as an array.

use ostler_kernel::{Step, Write};

use super::{Row, fold::Put};
use crate::postgres::{
    row::{Id, signed},
    statement::Call,
};

/// Which table grows, and how; in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Appended {
    OpenedSteps,
    ClosedSteps,
    Entries,
    Events,
}

const OPEN_STEPS: &str = "INSERT INTO steps (run, step, open, body) \
    SELECT run, step, true, body FROM unnest($1::uuid[], $2::bigint[], $3::text[]) AS new (run, step, body) \
    ON CONFLICT DO NOTHING";
const CLOSE_STEPS: &str = "UPDATE steps SET open = false, body = new.body \
    FROM unnest($1::uuid[], $2::bigint[], $3::text[]) AS new (run, step, body) \
    WHERE steps.run = new.run AND steps.step = new.step AND steps.open";
const ENTRIES: &str = "INSERT INTO entries (session, seq, body) \
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[]) ON CONFLICT DO NOTHING";
const EVENTS: &str = "INSERT INTO events (task, seq, body, position, at) \
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[])";

impl Appended {
    pub fn of(write: &Write) -> Option<Self> {
        match write {
            Write::Step(step) if step.is_open() => Some(Self::OpenedSteps),
            Write::Step(_) => Some(Self::ClosedSteps),
            Write::Entry { .. } => Some(Self::Entries),
            Write::Event { .. } => Some(Self::Events),
            _ => None,
        }
    }
}

pub const ALL: [&str; 4] = [OPEN_STEPS, CLOSE_STEPS, ENTRIES, EVENTS];

/// Writes all of them.
pub fn call<'a>(kind: Appended, puts: &[Put<'a>]) -> Call<'a> {
    let mut columns = Columns::default();
    puts.iter().for_each(|put| columns.add(put.row));
    let Columns { owners, numbers, texts, positions, times } = columns;
    let sql = match kind {
        Appended::OpenedSteps => OPEN_STEPS,
        Appended::ClosedSteps => CLOSE_STEPS,
        Appended::Entries => ENTRIES,
        Appended::Events => {
            let values = [owners.into(), numbers.into(), texts.into(), positions.into(), times.into()];
            return Call::new(EVENTS, values);
        }
    };
    Call::new(sql, [owners.into(), numbers.into(), texts.into()])
}

/// Whose they are, their numbers, what they say; and of events, where and when.
#[derive(Default)]
struct Columns<'a> {
    owners: Vec<Id>,
    numbers: Vec<i64>,
    texts: Vec<&'a str>,
    positions: Vec<i64>,
    times: Vec<i64>,
}

impl<'a> Columns<'a> {
    fn add(&mut self, row: &Row<'a>) {
        let (owner, number) = match row.write {
            Write::Step(Step { id, .. }) => (Id::from(&id.run), i64::from(id.index)),
            Write::Entry { session, seq, .. } => (Id::from(session), signed(*seq)),
            Write::Event { task, at, .. } => {
                self.positions.push(signed(row.position));
                self.times.push(at.as_millis());
                (Id::from(task), signed(row.seq))
            }
            _ => return,
        };
        self.owners.push(owner);
        self.numbers.push(number);
        self.texts.push(row.text);
    }
}
