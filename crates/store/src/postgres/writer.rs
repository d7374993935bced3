//! Writes batches: judges the bundles behind the locks of the rows they name, writes those that hold, and answers
//! when the database has synced them.

use ostler_kernel::{
    Refusal, Write,
    bundle::{Clash, Reason, Verdict},
};
use tokio::sync::oneshot;

use super::{
    Failed,
    apply::{self, Care, Row, apply, raise},
    claim::{self, claim_runs},
    connection::Connection,
    known::{self, Known},
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

const POSITION: &str = "SELECT (base + pg_current_xact_id()::text::bigint) << 16 FROM origin";

/// Makes a connection ready to write.
pub async fn prepare(connection: &Connection) -> Result<(), Failed> {
    let position = [POSITION];
    let (known, position, claim, apply) = tokio::join!(
        biased;
        known::prepare(connection),
        connection.prepare_all(&position),
        claim::prepare(connection),
        apply::prepare(connection),
    );
    known.and(position).and(claim).and(apply)
}

impl Counted {
    /// Every transaction has positions of its own, in the order in which transactions began to write.
    pub async fn begin(connection: &Connection) -> Result<Self, Failed> {
        let row = connection.one(POSITION, &[]).await?;
        row.as_ref().map_or(Ok(0), |row| super::row::number(row, 0)).map(Self::from)
    }

    fn from(position: u64) -> Self {
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
    match write_with(connection, &[prepared], Care::EachAlone).await {
        Err(Failed::KeptOut(place) | Failed::Constraint(place)) => {
            let clash = prepared.bundle.writes.get(place).and_then(Clash::of);
            let clash = clash.ok_or_else(|| Failed::Body("an index keeps out what it should not".into()))?;
            let refusal = Refusal { command: prepared.bundle.command, reason: Reason::Clash { clash } };
            Ok(Written { results: vec![Err(refusal)], hint: Hint::default() })
        }
        written => written,
    }
}

/// Writes the bundles in one transaction. Tried again as long as others are in the way: nothing was written then. If a
/// unique index keeps a row out, nothing is written either.
pub async fn write_together(connection: &Connection, bundles: &[&Prepared]) -> Result<Written, Failed> {
    write_with(connection, bundles, Care::Gathered).await
}

async fn write_with(connection: &Connection, bundles: &[&Prepared], care: Care) -> Result<Written, Failed> {
    loop {
        match try_transaction(connection, bundles, care).await {
            Err(Failed::InTheWay) => {}
            written => return written,
        }
    }
}

async fn try_transaction(
    connection: &Connection,
    bundles: &[&Prepared],
    care: Care,
) -> Result<Written, Failed> {
    match judge_and_apply(connection, bundles, care).await {
        Ok(written) => {
            connection.client.batch_execute("COMMIT").await.map_err(Failed::Commit)?;
            Ok(written)
        }
        Err(failed) => {
            let keeps = care == Care::EachAlone && connection.planted.is(Bug::RefusedLeavesRows);
            connection.client.batch_execute(if keeps { "COMMIT" } else { "ROLLBACK" }).await?;
            Err(failed)
        }
    }
}

async fn judge_and_apply(
    connection: &Connection,
    bundles: &[&Prepared],
    care: Care,
) -> Result<Written, Failed> {
    let (begun, loaded) = tokio::join!(
        biased;
        connection.client.batch_execute("BEGIN"),
        Known::load(connection, bundles.iter().map(|prepared| &prepared.bundle)),
    );
    begun?;
    let (mut known, position) = loaded?;
    let mut counted = Counted::from(position);
    let (mut results, mut rows) = (Vec::new(), Vec::new());
    for prepared in bundles {
        let bundle = &prepared.bundle;
        let verdict = match connection.planted.judge(bundle, &mut known) {
            Ok(verdict) => verdict,
            Err(never) => match never {},
        };
        let result = match verdict {
            Verdict::Refuse(refusal) => {
                rows.extend(left_by_refused(connection.planted, &mut known, prepared, &mut counted));
                Err(refusal)
            }
            Verdict::Duplicate => Ok(Committed { position: counted.position, duplicate: true }),
            Verdict::Apply => match known.clash(&bundle.writes) {
                Some(clash) => Err(Refusal { command: bundle.command, reason: Reason::Clash { clash } }),
                None => {
                    rows.extend(place_events(&mut known, &bundle.writes, &prepared.texts, &mut counted));
                    if !connection.planted.is(Bug::JudgedAsBefore) {
                        known.follow(&bundle.writes);
                    }
                    Ok(Committed { position: counted.position, duplicate: false })
                }
            },
        };
        results.push(result);
    }
    counted.check()?;
    apply(connection, &rows, care).await?;
    Ok(Written { results, hint: counted.hint })
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
            Ok(claimed) => {
                connection.client.batch_execute("COMMIT").await.map_err(Failed::Commit)?;
                return Ok(claimed);
            }
            Err(failed) => {
                connection.client.batch_execute("ROLLBACK").await?;
                if !matches!(failed, Failed::InTheWay) {
                    return Err(failed);
                }
            }
        }
    }
}
