//! Address tricks against the shipped client: `make ssrf`. Two network namespaces with no way out of them: in one the
//! gateway, the toolbox and the client run; the other, the world, *is* every address there is, counts who comes, and
//! answers for names as scripted. What the tricks are and what each must come to is data (`testing/fixtures/ssrf`).
//!
//! Nobody's own judgement is asked whether an address is private: a trick says what it leads to, the hosts say who
//! came, and the kernel's count of connections says whether somebody came whom nobody saw.

mod attempt;
pub mod names;
mod place;
mod trick;
mod verdict;
mod world;

use anyhow::{Context as _, Result};

use attempt::{Attempt, Callers};
use place::Place;
use trick::Trick;

pub use place::{enter, is_inside};
pub use world::serve as serve_world;

/// What the whole came to.
#[derive(Debug, Default)]
pub struct Findings {
    pub n_tricks: usize,
    pub n_calls: usize,
    /// Connections that had to be, and were.
    pub n_allowed: usize,
    /// What was wrong, a line each.
    pub violations: Vec<String>,
    /// Connections of a client that checks nothing to places that must not be reached.
    pub n_unchecked: usize,
    /// Tricks that lead nowhere even without a check: they prove nothing.
    pub dead: Vec<String>,
}

/// Plays all tricks. Only inside a place that [`enter`] has made.
pub async fn play() -> Result<Findings> {
    let tricks = trick::all()?;
    let mut place = Place::make(&trick::ports(&tricks))?;
    let callers = Callers::new()?;
    let mut findings = Findings { n_tricks: tricks.len(), ..Findings::default() };
    for trick in &tricks {
        prove_alive(trick, &callers, &mut place, &mut findings).await?;
        for attempt in Attempt::all(trick) {
            let seen = make(trick, &attempt, &callers, &mut place).await?;
            findings.n_calls += trick.n_calls();
            findings.n_allowed += seen.came.len();
            let found = verdict::judge(trick, &attempt, &seen);
            findings.violations.extend(found.map(|found| format!("{trick}, {attempt}: {found}")));
        }
    }
    Ok(findings)
}

/// What happened during one attempt.
pub(crate) struct Seen {
    /// Where connections arrived, the redirector's own left out.
    pub(crate) came: Vec<std::net::SocketAddr>,
    /// Connections that were begun and arrived nowhere.
    pub(crate) n_unseen: u64,
}

async fn make(trick: &Trick, attempt: &Attempt, callers: &Callers, place: &mut Place) -> Result<Seen> {
    let name = place.new_name();
    let before = place.n_begun()?;
    for _ in 0..trick.n_calls() {
        callers.call(attempt, &trick.url(&name)).await;
    }
    let n_own = attempt.n_redirectors() * trick.n_calls();
    place.settle(before, n_own).await.with_context(|| format!("{trick}, {attempt}"))
}

/// The same trick with a client that checks nothing: it has to arrive where it must not, or it proves nothing.
async fn prove_alive(
    trick: &Trick,
    callers: &Callers,
    place: &mut Place,
    findings: &mut Findings,
) -> Result<()> {
    let seen = make(trick, &Attempt::unchecked(), callers, place).await?;
    let n_bad = seen.came.iter().filter(|address| !verdict::is_public(address.ip())).count();
    findings.n_unchecked += n_bad;
    if trick.kind.is_alive_without_a_check() && n_bad == 0 {
        findings.dead.push(trick.to_string());
    }
    Ok(())
}
