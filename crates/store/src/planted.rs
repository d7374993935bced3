//! Bugs that can be planted in a store, so that the suite can prove that it finds them: one build, chosen at run time.
//! Without the feature `conformance` there is no way to plant one, and the questions after them fold away.

mod blind;

use ostler_kernel::{
    Bundle,
    bundle::{Rows, Verdict},
};

use self::blind::Blind;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// The log is read without the bound of what is settled: who follows it passes by what is committed late.
    LogWithoutBound,
    /// The leases of a lane are counted without its lock: two claims both see the last place.
    LaneWithoutLock,
    /// The limit of a lane is held by each claim for itself; what is leased already is not counted.
    LimitPerClaim,
    /// A claim chooses runs without locking them: two may get the same.
    ClaimWithoutLock,
    /// A claim waits for the runs that another one is at, in place of passing them over.
    ClaimsInLine,
    /// A claim of a worker's former incarnation is served.
    FormerIncarnation,
    /// A claim that a later one overtook is served.
    OvertakenClaim,
    /// A claim whose answer was lost is given other runs than the first time.
    LostClaimServedAnew,
    /// A bundle that a constraint refuses fails all that came with it.
    RefusedBreaksBatch,
    /// A bundle that a constraint refuses leaves the rows before that one.
    RefusedLeavesRows,
    /// A bundle that is refused takes numbers of its task's log all the same.
    RefusedTakesNumbers,
    /// The inputs that a step used are consumed apart from it: also when it is refused.
    InputsConsumedApart,
    /// The number of a run's last write is not known: one sent again after a lost answer is judged anew.
    WriteNumberForgotten,
    /// The epoch of a run is not compared: who lost it still writes.
    EpochIgnored,
    /// What a bundle expects is read without locks: it may be over when the bundle is written.
    JudgedWithoutLocks,
    /// All bundles of a batch are judged on the rows as they were before it.
    JudgedAsBefore,
    /// Nothing keeps a session to one live run.
    TwoLiveRuns,
    /// A reader goes on looking at the moment of its first question.
    ReaderStandsStill,
    /// What became ready is not told to those who watch.
    ReadyUntold,
    /// The other servers are not told of anything, and do not look by themselves.
    NoticesLost,
}

/// The bug that a store is opened with, if any.
#[derive(Debug, Clone, Copy, Default)]
pub struct Planted(Option<Bug>);

impl Planted {
    #[cfg(feature = "conformance")]
    pub fn with(bug: Bug) -> Self {
        Self(Some(bug))
    }

    pub(crate) fn is(self, bug: Bug) -> bool {
        cfg!(feature = "conformance") && self.0 == Some(bug)
    }

    /// The kernel's verdict, unless a planted bug keeps something from the judge.
    pub(crate) fn judge<R: Rows>(self, bundle: &Bundle, rows: &mut R) -> Result<Verdict, R::Error> {
        if self.is(Bug::EpochIgnored) || self.is(Bug::WriteNumberForgotten) {
            return bundle.judge(&mut Blind { rows, bundle, planted: self });
        }
        bundle.judge(rows)
    }
}
