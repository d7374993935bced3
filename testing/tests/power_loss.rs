//! The power-loss test in small counts; `make power-loss` runs the large one.

use ostler_store::sqlite::Synchronous;
use ostler_testing::power_loss::{during_faults, during_work};

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    let findings = during_work(Synchronous::Full, 250, 60, 1).unwrap();
    assert_eq!(findings.n_cuts, 60);
    assert_eq!((&*findings.lost, &*findings.unopened), (&[][..], &[][..]));
}

#[test]
fn a_store_that_does_not_sync_its_commits_is_found_out() {
    let findings = during_work(Synchronous::Normal, 250, 40, 1).unwrap();
    assert!(!findings.lost.is_empty(), "none of {} cuts lost anything", findings.n_cuts);
    assert_eq!(findings.unopened, [""; 0], "it forgets, but it opens");
}

#[test]
fn a_failing_disk_loses_nothing() {
    // A seed that comes to a commit which is there after all: one in three does in so few rounds.
    let (struck, findings) = during_faults(120, 60, 3).unwrap();
    for (kind, n_struck) in
        [("full", struck.full), ("sync", struck.sync), ("write", struck.write), ("killed", struck.killed)]
    {
        assert!(n_struck >= 5, "{kind} struck {n_struck} times");
    }
    assert!(struck.unanswered >= 20, "{struck:?}");
    assert!(struck.there_after_all >= 1, "{struck:?}");
    assert_eq!((&*findings.lost, &*findings.unopened), (&[][..], &[][..]));
}
