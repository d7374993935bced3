//! The life of a server: it stops in good order, starts again, is backed up and restored.

mod support;

use std::fs;

use rustix::process::Signal;
use support::{Up, ostler, run, slow_agent};

#[test]
fn work_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start_in(folder.path(), &[]);
    up.apply(&slow_agent()).ok();
    let name = up.ostler(["run", "-d", "slow", "hi"]);
    let name = name.ok().trim().to_owned();
    up.ostler(["ps"]).ok();
    up.signal(Signal::KILL);
    drop(up);

    let up = Up::start_in(folder.path(), &[]);
    let row = up.ostler(["ps"]);
    assert!(row.ok().contains(&name), "{row:?}");
    up.ostler(["cancel", &name]).ok();
    assert_eq!(up.stop().code(), Some(0));
    assert!(!folder.path().join(".ostler/server.json").exists(), "who stopped is not to be found");
}

#[test]
fn a_stop_waits_for_nobody_who_has_nothing_to_do() {
    let up = Up::with_hello();
    up.ostler(["run", "hello", "hi"]).ok();
    assert_eq!(up.stop().code(), Some(0));
}

#[test]
fn a_second_signal_stops_at_once() {
    let mut up = Up::start();
    up.apply(&slow_agent()).ok();
    let name = up.ostler(["run", "-d", "slow", "hi"]);
    let mut follow = ostler(up.folder());
    let mut follow =
        follow.args(["events", name.ok().trim(), "-f"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let events = support::lines_of(follow.stdout.take().unwrap());
    assert!(events.iter().any(|line| line.contains("attempt_started")));
    follow.kill().unwrap();
    follow.wait().unwrap();
    up.signal(Signal::INT);
    // The step under way is given ten seconds; twice means now.
    up.wait_for_line("stopping");
    up.signal(Signal::INT);
    assert_eq!(up.wait().code(), Some(130));
}

#[test]
fn a_backup_brings_everything_back() {
    let up = Up::with_hello();
    up.ostler(["run", "hello", "hi", "--name", "kept"]).ok();
    let written = up.ostler(["backup", "copy.db"]);
    assert_eq!(written.ok(), "", "it says what it did on stderr");
    assert!(written.stderr.starts_with("copy.db written, "), "{written:?}");
    up.ostler(["backup", "copy.db"]).failed(1, &["copy.db is there already", "--force"]);
    up.ostler(["backup", "--force", "copy.db"]).ok();
    let backup = up.folder().join("copy.db");
    let backup = backup.to_str().unwrap();

    let other = tempfile::tempdir().unwrap();
    let restored = Up::start_in(other.path(), &["--restore", backup]);
    assert_eq!(restored.ostler(["logs", "kept"]).ok(), up.ostler(["logs", "kept"]).ok());
    restored.ostler(["run", "hello", "again"]).ok();
    assert!(restored.stop().success());

    let arguments = ["up", "--listen", "127.0.0.1:0", "--restore", backup];
    run(ostler(other.path()).args(arguments)).failed(1, &["error: ", "--force"]);
    let forced = Up::start_in(other.path(), &["--restore", backup, "--force"]);
    assert_eq!(forced.ostler(["get", "tasks", "-o", "name"]).ok(), "task/kept\n");
    drop(forced);

    fs::write(other.path().join("nonsense"), "not a store").unwrap();
    let arguments = ["up", "--listen", "127.0.0.1:0", "--data", "new", "--restore", "nonsense"];
    run(ostler(other.path()).args(arguments)).failed(1, &["error: ", "nonsense"]);
}
