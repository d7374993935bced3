//! Writes batches: judges the bundles behind the locks of the rows they name, writes those that hold, and answers
//! when the database has synced them.

use ostler_kernel::{
    Refusal, Write,
    bundle::{Clash, Reason, Verdict},
};
use tokio::sync::oneshot;

use super::{
    Failed,
    apply::{self, Row, apply, raise},
    claim::{self, claim_runs},
    connection::Connection,
    known::{self, Known},
    statement::Script,
};
use crate::{
    Claim, Claimed, Committed, Hint, StoreError,
    body::Prepared,
    planted::{Bug, Planted},
    turns::Turns,
};

/// What one caller wants, and where it waits for the answer.
pub enum Job {
    Commit(Vec<Prepared>, oneshot::Sender<Result<Results, StoreError>>),
    Claim(Claim, oneshot::Sender<Result<Vec<Claimed>, StoreError>>),
}

pub type Results = Vec<Result<Committed, Refusal>>;

/// What a transaction leaves for those who watch.
#[derive(Clone, Copy)]
pub struct Counted {
    /// The last position that was given, or the one before the first.
    position: u64,
    /// The first of the next transaction.
    end: u64,
    /// A task has an event already that stands behind these positions.
    overtaken: bool,
    pub hint: Hint,
}

/// Makes a connection ready to write.
pub async fn prepare(connection: &mut Connection) -> Result<(), Failed> {
    let named = known::ALL.into_iter().chain(apply::statements()).chain(claim::NAMED);
    connection.name_all(named).await?;
    claim::prepare(connection).await
}

impl Counted {
    /// Every transaction has positions of its own, in the order in which transactions began to write.
    pub fn from(position: u64) -> Self {
        Self { position, end: position + (1 << 16), overtaken: false, hint: Hint::default() }
    }

    /// Whether the positions that were given can stand. Those of another transaction can't. And one that began later
    /// may have been the first at a task: its event has the smaller number and the higher position, so this
    /// transaction begins anew, behind it.
    pub fn check(&self) -> Result<(), Failed> {
        if self.position >= self.end {
            return Err(Failed::TooMany);
        }
        if self.overtaken { Err(Failed::InTheWay) } else { Ok(()) }
    }

    fn next(&mut self) -> u64 {
        self.position += 1;
        self.hint.position = self.position;
        self.position
    }
}

/// The rows of the writes, with numbers and positions for events.
pub fn place_events<'a>(
    known: &mut Known,
    writes: &'a [Write],
    texts: &'a [String],
    counted: &mut Counted,
) -> Vec<Row<'a>> {
    let place = |(write, text): (&'a Write, &'a String)| {
        raise(&mut counted.hint, write);
        let (seq, position) = match write {
            Write::Event { task, .. } => {
                counted.overtaken |= known.last_position(*task) >= counted.position;
                (known.next_event(*task), counted.next())
            }
            _ => (0, 0),
        };
        Row { write, text, seq, position }
    };
    writes.iter().zip(texts).map(place).collect()
}

/// How a batch ended that was committed.
pub struct Written {
    pub results: Results,
    pub hint: Hint,
}

/// Writes one bundle. What a unique index keeps out is refused.
pub async fn write_alone(connection: &Connection, prepared: &Prepared) -> Result<Written, Failed> {
    match try_again(|| try_alone(connection, prepared)).await {
        Err(Failed::KeptOut(place) | Failed::Constraint(place)) => {
            let clash = prepared.bundle.writes.get(place).and_then(Clash::of);
            let clash = clash.ok_or_else(|| Failed::Body("an index keeps out what it should not".into()))?;
            let refusal = Refusal { command: prepared.bundle.command, reason: Reason::Clash { clash } };
            Ok(Written { results: vec![Err(refusal)], hint: Hint::default() })
        }
        written => written,
    }
}

/// Writes the bundles in one transaction. If a unique index keeps a row out, nothing is written.
pub async fn write_together(connection: &Connection, bundles: &[&Prepared]) -> Result<Written, Failed> {
    try_again(|| try_together(connection, bundles)).await
}

/// As long as others are in the way: nothing was written then.
async fn try_again<F>(mut write: impl FnMut() -> F) -> Result<Written, Failed>
where
    F: Future<Output = Result<Written, Failed>>,
{
    loop {
        match write().await {
            Err(Failed::InTheWay) => {}
            written => return written,
        }
    }
}

/// Two messages: one locks and reads, one writes and commits.
async fn try_together(connection: &Connection, bundles: &[&Prepared]) -> Result<Written, Failed> {
    let written = async {
        let (known, position) =
            Known::begin(connection, bundles.iter().map(|prepared| &prepared.bundle)).await?;
        let Judged { results, rows, hint } = judge(connection.planted, known, position, bundles)?;
        let mut script = Script::on(connection);
        apply::add_to(&mut script, &rows)?;
        script.say("COMMIT");
        script.run().await.map_err(Failed::of_commit)?;
        Ok(Written { results, hint })
    };
    match written.await {
        Ok(written) => Ok(written),
        // It may be there, and the connection is not asked any more.
        Err(failed @ Failed::Commit(_)) => Err(failed),
        Err(failed) => {
            connection.client.batch_execute("ROLLBACK").await?;
            Err(failed)
        }
    }
}

/// Row by row, so that the first that is kept out can be named.
async fn try_alone(connection: &Connection, prepared: &Prepared) -> Result<Written, Failed> {
    let written = async {
        let (known, position) = Known::begin_apart(connection, &prepared.bundle).await?;
        let Judged { results, rows, hint } = judge(connection.planted, known, position, &[prepared])?;
        apply(connection, &rows).await?;
        Ok(Written { results, hint })
    };
    match written.await {
        Ok(written) => {
            connection.client.batch_execute("COMMIT").await.map_err(Failed::Commit)?;
            Ok(written)
        }
        Err(failed) => {
            let keeps = connection.planted.is(Bug::RefusedLeavesRows);
            connection.client.batch_execute(if keeps { "COMMIT" } else { "ROLLBACK" }).await?;
            Err(failed)
        }
    }
}

/// What is to be written of a batch, and what is to be answered.
struct Judged<'a> {
    results: Results,
    rows: Vec<Row<'a>>,
    hint: Hint,
}

fn judge<'a>(
    planted: Planted,
    mut known: Known,
    position: u64,
    bundles: &[&'a Prepared],
) -> Result<Judged<'a>, Failed> {
    let mut counted = Counted::from(position);
    let (mut results, mut rows) = (Vec::new(), Vec::new());
    for prepared in bundles {
        let bundle = &prepared.bundle;
        let verdict = match planted.judge(bundle, &mut known) {
            Ok(verdict) => verdict,
            Err(never) => match never {},
        };
        let result = match verdict {
            Verdict::Refuse(refusal) => {
                rows.extend(left_by_refused(planted, &mut known, prepared, &mut counted));
                Err(refusal)
            }
            Verdict::Duplicate => Ok(Committed { position: counted.position, duplicate: true }),
            Verdict::Apply => match known.clash(&bundle.writes) {
                Some(clash) => Err(Refusal { command: bundle.command, reason: Reason::Clash { clash } }),
                None => {
                    rows.extend(place_events(&mut known, &bundle.writes, &prepared.texts, &mut counted));
                    if !planted.is(Bug::JudgedAsBefore) {
                        known.follow(&bundle.writes);
                    }
                    Ok(Committed { position: counted.position, duplicate: false })
                }
            },
        };
        results.push(result);
    }
    counted.check()?;
    Ok(Judged { results, rows, hint: counted.hint })
}

/// Nothing, unless a bug is planted.
fn left_by_refused<'a>(
    planted: Planted,
    known: &mut Known,
    Prepared { bundle, texts }: &'a Prepared,
    counted: &mut Counted,
) -> Vec<Row<'a>> {
    if !planted.is(Bug::RefusedTakesNumbers) && !planted.is(Bug::InputsConsumedApart) {
        return Vec::new();
    }
    let mut rows = place_events(known, &bundle.writes, texts, counted);
    rows.retain(|row| planted.is(Bug::InputsConsumedApart) && matches!(row.write, Write::Consume { .. }));
    rows
}

/// Claims in a transaction of their own, behind the commits that came with them.
pub async fn write_claim(
    connection: &Connection,
    request: &Claim,
    turns: &mut Turns,
) -> Result<(Vec<Claimed>, Hint), Failed> {
    loop {
        match claim_runs(connection, request, turns).await {
            Err(failed @ Failed::Commit(_)) => return Err(failed),
            Err(failed) => {
                connection.client.batch_execute("ROLLBACK").await?;
                if !matches!(failed, Failed::InTheWay) {
                    return Err(failed);
                }
            }
            claimed => return claimed,
        }
    }
}
