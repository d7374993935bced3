//! What to do now, as it is told where something can't be done.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;

use support::{Up, ostler, run, slow_agent};

const SYSTEM: &str = "kind: AgentSystem\nmetadata: {name: newsroom}\nspec: {agents: [hello]}\n";

#[test]
fn a_hint_names_what_can_be_typed() {
    let up = Up::with_hello();
    up.apply(SYSTEM).ok();
    up.ostler(["run", "-d", "hello", "hi", "--name", "live"]).ok();
    let told = |words: &[&str], code, hints: &[&str]| up.ostler(words).failed(code, hints);
    told(&["run", "newsrom", "hi"], 1, &["did you mean system/newsroom?", "`ostler get systems` lists them"]);
    told(&["run", "nobody", "hi"], 1, &["`ostler get agents` and `ostler get systems` list them"]);
    told(&["delete", "hello"], 2, &["did you mean agent/hello?"]);
    told(&["wait", "live"], 2, &["did you mean task/live?"]);
    told(&["logs", "hello"], 1, &["there is an agent of that name"]);
    let help = up.ostler(["help", "nope"]);
    help.failed(2, &["there is no command"]);
    assert!(!help.stderr.contains("did you mean"), "{help:?}");
    for command in ["get", "describe", "delete"] {
        told(
            &[command, "namespaces", "shop"],
            2,
            &["namespaces are not declared", "`ostler get namespaces`"],
        );
    }
    told(&["user", "set", "ada"], 2, &["--role", "--namespaces"]);
    told(&["secret", "check", "shop/k9"], 1, &["`ostler secret set k9 -n shop`"]);
    told(&["secret", "check", "k9:token"], 1, &["`ostler secret set k9 --key token`"]);
    told(&["secret", "delete", "nope"], 1, &["`ostler secret list` lists them"]);
    up.ostler_with("correct horse", ["secret", "set", "k", "--from-stdin"]).ok();
    told(&["secret", "delete", "nope"], 1, &["`ostler secret list` lists them"]);
    told(&["run", "hello", "something else", "--name", "live"], 1, &["choose another --name"]);
    up.ostler(["token", "create", "ci"]).ok();
    told(&["token", "create", "ci"], 1, &["`ostler token delete ci`"]);
    told(&["backup", "-"], 2, &["written to a file"]);
    told(&["backup", "nope/b.db"], 1, &["the folder has to be there"]);
    let removed = run(ostler(up.folder()).args(["edit", "agent", "hello"]).env("EDITOR", "rm"));
    removed.failed(1, &["the editor has removed the file; nothing was stored"]);
    assert!(!removed.stderr.contains("what you wrote is in"), "{removed:?}");
    let empty = up.ostler_with(" ", ["secret", "set", "empty", "--from-stdin"]);
    empty.failed(2, &["error: the value is empty"]);
}

#[test]
fn a_list_that_is_cut_off_says_how_to_see_the_rest() {
    let up = Up::with_hello();
    for number in 0..13 {
        up.ostler(["run", "-d", "hello", "hi", "--name", &format!("task-{number}")]).ok();
    }
    for words in [["ps", "-a", "--limit", "1"], ["get", "tasks", "--limit", "1"]] {
        let cut = up.ostler(words);
        assert_eq!(cut.ok().lines().count(), 2, "{cut:?}");
        assert!(
            cut.stderr.contains("there are more than these 1; --limit 10 shows up to that many"),
            "{cut:?}"
        );
    }
    assert_eq!(up.ostler(["ps", "-a", "--limit", "20"]).ok().lines().count(), 14);
}

#[test]
fn over_a_quota_it_is_told_when_to_come_back() {
    let up = Up::with_hello();
    up.apply("kind: Quota\nmetadata: {name: default}\nspec: {tasks_per_minute: 1}\n").ok();
    up.ostler(["run", "-d", "hello", "hi"]).ok();
    let over = up.ostler(["run", "-d", "hello", "hi"]);
    over.failed(1, &["tasks a minute", " s; a Quota sets the limit"]);
    let (_, after) = over.stderr.split_once("hint: send it again in ").unwrap_or_else(|| panic!("{over:?}"));
    let seconds: u64 = after.split(' ').next().unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{over:?}");
}

#[test]
fn a_token_that_has_expired_is_told_as_that() {
    let up = Up::with_hello();
    let token = up.ostler(["token", "create", "short", "--expires", "500ms"]).ok().trim().to_owned();
    let row = loop {
        let listed = up.ostler(["token", "list"]);
        let row = listed.ok().lines().find(|line| line.starts_with("short")).unwrap().to_owned();
        if row.contains("expired ") {
            break row;
        }
    };
    assert!(row.contains("s ago"), "{row}");
    run(ostler(up.folder()).arg("ps").env("OSTLER_TOKEN", &token)).failed(7, &["have expired"]);
}

#[test]
fn what_was_cancelled_says_so_once() {
    let up = Up::start();
    up.apply(&slow_agent()).ok();
    for (name, reason, shown) in [
        ("one", &[][..], "cancelled  by request"),
        ("two", &["--reason", "wrong customer"], "cancelled  wrong customer"),
    ] {
        up.ostler(["run", "-d", "slow", "hi", "--name", name]).ok();
        up.ostler(["cancel", name].iter().chain(reason)).ok();
        up.wait_for_state(name, "cancelled");
        let logs = up.ostler(["logs", name]);
        assert!(logs.ok().trim_end().ends_with(shown), "{logs:?}");
        let page = up.ostler(["describe", "task", name]);
        assert!(
            !page.ok().contains("put right") && page.stdout.contains(&format!("ostler retry {name}")),
            "{page:?}"
        );
    }
}

#[test]
fn a_server_that_is_up_already_is_told_with_its_address() {
    let up = Up::start();
    let url = up.url();
    let address = url.trim_start_matches("http://");
    for listen in [address, "127.0.0.1:0"] {
        up.ostler(["up", "--listen", listen])
            .failed(1, &[&format!("this folder's server is up already at {url}")]);
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let taken = run(ostler(elsewhere.path()).args(["up", "--listen", address]));
    taken.failed(1, &["in use by another program", "--listen 127.0.0.1:0 takes any free port"]);
    assert!(!taken.stderr.contains("ostler version"), "{taken:?}");
}

#[test]
fn what_the_system_refuses_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("afile"), "").unwrap();
    fs::write(folder.path().join("agent.yaml"), "").unwrap();
    fs::create_dir(folder.path().join("bad")).unwrap();
    fs::write(folder.path().join("bad/store.db"), "no store, no store, no store").unwrap();
    let told =
        |words: &[&str], code, hints: &[&str]| run(ostler(folder.path()).args(words)).failed(code, hints);
    told(&["validate", "agnet.yaml"], 1, &["did you mean agent.yaml?"]);
    told(&["validate", "-f", "nofile"], 1, &["name a manifest, a folder of them, or - for stdin"]);
    told(&["init", "afile"], 1, &["afile is a file", "ostler init FOLDER"]);
    told(&["--data", "afile", "ps"], 2, &["afile is a file, and no data folder"]);
    let up = |more: &[&'static str]| [&["up", "--listen", "127.0.0.1:0"], more].concat();
    told(&up(&["--data", "bad"]), 1, &["the file is damaged", "--restore FILE"]);
    told(&up(&["--data", "new", "--restore", "nofile"]), 1, &["there is none of that name"]);
    let database = up(&["--data", "new", "--store", "postgres://127.0.0.1:1/x"]);
    told(&database, 1, &["is the database running, and can it be reached"]);
}

#[test]
fn the_steps_of_a_project_can_be_typed_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let made = run(ostler(folder.path()).args(["init", "--", "-dash"]));
    made.ok();
    assert!(made.stderr.contains("  ostler validate ./-dash\n"), "{made:?}");
    run(ostler(folder.path()).args(["validate", "./-dash"])).ok();
}
