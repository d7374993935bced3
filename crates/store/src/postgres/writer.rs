//! Writes batches: judges the bundles behind the locks of the rows they name, writes those that hold, and answers
//! when the database has synced them.

use ostler_kernel::{
    Refusal, Write,
    bundle::{Clash, Reason, Verdict},
    resource::log_of,
};
use tokio::sync::oneshot;

use super::{
    Failed,
    along::{self, Along, Chosen},
    apply::{self, Row, apply, raise},
    claim::{self, Gift, Locked, claim_runs},
    connection::Connection,
    known::{self, Known},
    statement::Script,
};
use crate::{
    Claim, Claimed, Committed, Hint, StoreError,
    body::Prepared,
    planted::{Bug, Planted},
    turns::SharedTurns,
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
    let named = known::ALL.into_iter().chain(apply::statements()).chain(claim::NAMED).chain(along::NAMED);
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
        let is_made = matches!(write, Write::Resource(made) if known.has_no(&made.key));
        Row { write, text, seq, position, is_made }
    };
    writes.iter().zip(texts).map(place).collect()
}

/// How a batch ended that was committed.
pub struct Written {
    pub results: Results,
    pub hint: Hint,
    /// What the claims got that came along; nothing is said to those who have to ask by themselves.
    pub given: Vec<Option<Vec<Claimed>>>,
}

/// Writes one bundle. What a unique index keeps out is refused.
pub async fn write_alone(connection: &Connection, prepared: &Prepared) -> Result<Written, Failed> {
    match try_again(|| try_alone(connection, prepared)).await {
        Err(Failed::KeptOut(place) | Failed::Constraint(place)) => {
            let clash = prepared.bundle.writes.get(place).and_then(|write| match write {
                // Whoever made it first has told of it in the same log.
                Write::Resource(made) => Some(Clash::Event { task: log_of(&made.key, made.version) }),
                write => Clash::of(write),
            });
            let clash = clash.ok_or_else(|| Failed::Body("an index keeps out what it should not".into()))?;
            let refusal = Refusal { command: prepared.bundle.command, reason: Reason::Clash { clash } };
            Ok(Written { results: vec![Err(refusal)], hint: Hint::default(), given: Vec::new() })
        }
        written => written,
    }
}

/// Writes the bundles in one transaction, and gives what they make ready to the claims that came along. If a unique index
/// keeps a row out, nothing is written.
pub async fn write_together(
    connection: &Connection,
    bundles: &[&Prepared],
    along: Along<'_>,
) -> Result<Written, Failed> {
    try_again(|| try_together(connection, bundles, along)).await
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

/// Two messages: one locks and reads, one writes and commits; and one between them if claims are given what was there
/// before.
async fn try_together(
    connection: &Connection,
    bundles: &[&Prepared],
    along: Along<'_>,
) -> Result<Written, Failed> {
    let written = async {
        let judged = bundles.iter().map(|prepared| &prepared.bundle);
        let (mut known, position, asked) = Known::begin(connection, judged, along).await?;
        let mut counted = Counted::from(position);
        let passed_over = known.holds_queued();
        let (results, mut rows) = judge(connection.planted, &mut known, &mut counted, bundles);
        let chosen = along.choose(&rows, counted.hint.ready, &asked, connection.planted);
        let gifts = gifts(connection, &mut known, &mut counted, along, chosen).await?;
        let mut script = Script::on(connection);
        for (claim, gift) in along.claims.iter().zip(&gifts) {
            let Some(gift) = gift.as_ref().filter(|gift| !gift.runs.is_empty()) else { continue };
            rows.extend(place_events(&mut known, &gift.writes, &gift.texts, &mut counted));
            script.call(&claim::remember(&claim.lease))?;
        }
        counted.check()?;
        counted.hint.ready += u64::from(passed_over);
        apply::add_to(&mut script, &rows)?;
        // Where nothing is written, nobody has to wait for a disk.
        script.say(if rows.is_empty() { "ROLLBACK" } else { "COMMIT" });
        script.run().await.map_err(Failed::of_commit)?;
        let given = gifts.into_iter().map(|gift| gift.map(|gift| gift.runs)).collect();
        Ok(Written { results, hint: counted.hint, given })
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

/// What the claims were chosen for. Who comes too late for all of it is passed on.
async fn gifts(
    connection: &Connection,
    known: &mut Known,
    counted: &mut Counted,
    along: Along<'_>,
    chosen: Chosen,
) -> Result<Vec<Option<Gift>>, Failed> {
    let there = chosen.there();
    let Chosen { runs, fresh: mut ready } = chosen;
    let n_fresh = ready.len();
    if !there.is_empty() {
        let locked = Locked::if_ready(connection, &there).await?;
        known.add_logs(locked.known);
        ready.extend(locked.rows);
    }
    let mut gifts = Vec::with_capacity(runs.len());
    for (claim, runs) in along.claims.iter().zip(runs) {
        let Some(runs) = runs else {
            gifts.push(None);
            continue;
        };
        let given: Vec<Claimed> = runs.iter().filter_map(|run| ready.remove(run)).collect();
        let is_late = given.is_empty() && !runs.is_empty();
        gifts.push(if is_late { None } else { Some(Gift::of(given, claim)?) });
    }
    // Those that come fresh from the batch were not ready for anybody else.
    counted.hint.ready -= (n_fresh - ready.len()) as u64;
    Ok(gifts)
}

/// Row by row, so that the first that is kept out can be named.
async fn try_alone(connection: &Connection, prepared: &Prepared) -> Result<Written, Failed> {
    let written = async {
        let (mut known, position) = Known::begin_apart(connection, &prepared.bundle).await?;
        let mut counted = Counted::from(position);
        let passed_over = known.holds_queued();
        let (results, rows) = judge(connection.planted, &mut known, &mut counted, &[prepared]);
        counted.check()?;
        counted.hint.ready += u64::from(passed_over);
        apply(connection, &rows).await?;
        Ok(Written { results, hint: counted.hint, given: Vec::new() })
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

/// What is to be answered to a batch, and what is to be written of it.
fn judge<'a>(
    planted: Planted,
    known: &mut Known,
    counted: &mut Counted,
    bundles: &[&'a Prepared],
) -> (Results, Vec<Row<'a>>) {
    let (mut results, mut rows) = (Vec::new(), Vec::new());
    for prepared in bundles {
        let bundle = &prepared.bundle;
        let verdict = match planted.judge(bundle, known) {
            Ok(verdict) => verdict,
            Err(never) => match never {},
        };
        let result = match verdict {
            Verdict::Refuse(refusal) => {
                rows.extend(left_by_refused(planted, known, prepared, counted));
                Err(refusal)
            }
            Verdict::Duplicate => Ok(Committed { position: counted.position, duplicate: true }),
            Verdict::Apply => match known.clash(&bundle.writes) {
                Some(clash) => Err(Refusal { command: bundle.command, reason: Reason::Clash { clash } }),
                None => {
                    rows.extend(place_events(known, &bundle.writes, &prepared.texts, counted));
                    if !planted.is(Bug::JudgedAsBefore) {
                        known.follow(&bundle.writes);
                    }
                    Ok(Committed { position: counted.position, duplicate: false })
                }
            },
        };
        results.push(result);
    }
    (results, rows)
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

/// A claim in a transaction of its own, behind the commits that came with it.
pub async fn write_claim(
    connection: &Connection,
    request: &Claim,
    turns: &SharedTurns,
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
