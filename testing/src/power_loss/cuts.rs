//! Cuts the power at many points of a recording, and opens what is left each time.

use std::{collections::BTreeMap, path::Path};

use ostler_store::{
    SqliteStore, Store,
    conformance::dice::Dice,
    sqlite::{OpenError, Options},
};
use rusqlite::Connection;

use super::{
    disk::Op,
    history::{Fact, History, Rows},
    platter::Platter,
    witness::{Recording, scratch},
};

/// What was found after all cuts. Each line names the cut.
#[derive(Debug, Default)]
pub struct Findings {
    pub n_cuts: usize,
    /// Something that was acknowledged isn't there.
    pub lost: Vec<String>,
    /// The store doesn't open, or SQLite finds it broken, or a commit is there in part.
    pub unopened: Vec<String>,
}

enum Trouble {
    Lost(String),
    Unopened(String),
}

/// Cuts `n_cuts` times, on two threads.
pub fn cut(recording: &Recording, n_cuts: usize, seed: u64) -> anyhow::Result<Findings> {
    let points = points(recording, n_cuts, &mut Dice::new(seed));
    std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            let mine = points.iter().copied().skip(half).step_by(2);
            scope.spawn(move || cut_each(recording, mine, seed))
        });
        let mut all = Findings::default();
        for half in halves {
            let findings = half.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
            all.n_cuts += findings.n_cuts;
            all.lost.extend(findings.lost);
            all.unopened.extend(findings.unopened);
        }
        Ok(all)
    })
}

/// After how many operations the power goes, in order: a third anywhere, a third right after an answer, and a
/// third where something else happens than appending to the log.
fn points(recording: &Recording, n_cuts: usize, dice: &mut Dice) -> Vec<usize> {
    let Recording { ops, history } = recording;
    let answers: Vec<usize> = history.moments.iter().map(|moment| moment.n_ops).collect();
    let turns = turns(ops);
    let point = |place: usize| match place % 3 {
        0 => dice.pick(&answers),
        1 => dice.pick(&turns),
        _ => Some(dice.below(ops.len() as u64 + 1) as usize),
    };
    let mut points: Vec<usize> = (0..n_cuts).filter_map(point).collect();
    points.sort_unstable();
    points
}

/// Where files are made, deleted, cut short or begun anew, and where a log is copied into its database.
fn turns(ops: &[Op]) -> Vec<usize> {
    let log = |name: &str| name.ends_with("-wal");
    let mut logs = Vec::new();
    let mut turns = Vec::new();
    for (place, op) in ops.iter().enumerate() {
        match op {
            Op::Create { name, file } if log(name) => logs.push(*file),
            Op::Write { file, offset, .. } if logs.contains(file) && *offset > 0 => continue,
            Op::Sync { file } if logs.contains(file) => continue,
            _ => {}
        }
        turns.push(place);
    }
    turns
}

fn cut_each(
    recording: &Recording,
    points: impl Iterator<Item = usize>,
    seed: u64,
) -> anyhow::Result<Findings> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut platter = Platter::new(seed);
    let mut carried_out = 0;
    let mut findings = Findings::default();
    for point in points {
        recording.ops[carried_out..point].iter().for_each(|op| platter.advance(op));
        carried_out = point;
        findings.n_cuts += 1;
        let mut dice = Dice::new(seed ^ (findings.n_cuts as u64) << 32 ^ point as u64);
        let files = platter.cut(&mut dice);
        match runtime.block_on(look(&files, &recording.history, point, &mut dice))? {
            Ok(()) => {}
            Err(Trouble::Lost(what)) => findings.lost.push(format!("after operation {point}: {what}")),
            Err(Trouble::Unopened(why)) => findings.unopened.push(format!("after operation {point}: {why}")),
        }
    }
    Ok(findings)
}

/// Opens what is left, and looks for everything that was acknowledged. The outer error is one of the test itself.
async fn look(
    files: &BTreeMap<String, Vec<u8>>,
    history: &History,
    point: usize,
    dice: &mut Dice,
) -> anyhow::Result<Result<(), Trouble>> {
    let folder = scratch()?;
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content)?;
    }
    let path = folder.path().join("store.db");
    let store = match open(&path) {
        Ok(store) => store,
        Err(error) => {
            return Ok(Err(Trouble::Unopened(format!("{:#}", anyhow::Error::from(error)))));
        }
    };
    let told = history.told(point);
    Ok(match look_at_rows(&path, history, told)? {
        Ok(()) => look_for_facts(&store, history, told, dice).await,
        trouble => trouble,
    })
}

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open_with(Options { inline: true, reserve_log: false, ..Options::at(path) })
}

/// All the rows are those of one moment, and of none before the last that was told.
fn look_at_rows(path: &Path, history: &History, told: usize) -> anyhow::Result<Result<(), Trouble>> {
    let connection = Connection::open(path)?;
    let verdict: Result<String, _> = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0));
    if !matches!(verdict.as_deref(), Ok("ok")) {
        return Ok(Err(Trouble::Unopened(format!("the integrity check says {verdict:?}"))));
    }
    let rows = Rows::of(&connection)?;
    let last = &history.moments[told];
    Ok(match history.find(&rows) {
        None => {
            let differences = rows.differences(&last.rows);
            Err(Trouble::Unopened(format!("rows of no moment; unlike the last told in {differences:?}")))
        }
        Some(found) if found < told => {
            let n_lost = told - found;
            Err(Trouble::Lost(format!("{n_lost} acknowledged commits, the last of them {}", last.what)))
        }
        Some(_) => Ok(()),
    })
}

/// What the last callers were told, and some of what earlier ones were, asked of the store as a caller would.
async fn look_for_facts(
    store: &dyn Store,
    history: &History,
    told: usize,
    dice: &mut Dice,
) -> Result<(), Trouble> {
    for (place, moment) in history.moments[..=told].iter().enumerate() {
        if place + 8 > told || dice.one_in(20) {
            for fact in &moment.facts {
                look_for(store, fact).await?;
            }
        }
    }
    Ok(())
}

async fn look_for(store: &dyn Store, fact: &Fact) -> Result<(), Trouble> {
    match fact.holds(store).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Trouble::Lost(format!("{fact:?}"))),
        Err(error) => Err(Trouble::Unopened(format!("can't be asked for {fact:?}: {error}"))),
    }
}
