//! The crash test with a few kills. `make crash KILLS=300` is the whole of it.

#![allow(clippy::unwrap_used, reason = "tests")]

use ostler_testing::{
    crash::{Settings, run},
    program::find_binary,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_done_twice_across_kills() {
    across_kills(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_done_twice_across_kills_on_postgres() {
    across_kills(true).await;
}

async fn across_kills(postgres: bool) {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        binary: find_binary().unwrap(),
        folder: folder.path().join("crash"),
        kills: 6,
        live: 40,
        seed: 7,
        postgres,
    };
    let outcome = run(&settings).await.unwrap();
    assert_eq!(outcome.failures(), Vec::<String>::new());
    assert!(outcome.classes.model > 0, "no kill met a model call: {outcome}");
    assert!(outcome.verdict.n_tasks >= 40, "{outcome}");
}
