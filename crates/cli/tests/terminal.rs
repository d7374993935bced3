//! What a person sees: the binary on a terminal of a given size.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::Read,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    process::{Command, Stdio},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use support::{Up, ostler, run};

/// Runs the command on a terminal and gives everything it wrote there.
fn on_terminal(command: &mut Command, columns: u16) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let path = ptsname(&ours, Vec::new()).unwrap();
    let theirs: OwnedFd =
        OpenOptions::new().read(true).write(true).open(OsStr::from_bytes(path.as_bytes())).unwrap().into();
    tcsetwinsize(&theirs, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let reader = std::thread::spawn(move || {
        let mut written = Vec::new();
        // The last one to close the other side ends it with an error.
        let _ = File::from(ours).read_to_end(&mut written);
        String::from_utf8(written).unwrap()
    });
    let stdio = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
    let mut child =
        command.stdin(stdio(&theirs)).stdout(stdio(&theirs)).stderr(stdio(&theirs)).spawn().unwrap();
    // The command keeps copies of its own, which would keep the terminal open.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    drop(theirs);
    child.wait().unwrap();
    reader.join().unwrap()
}

/// What is left once colours are taken away.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut pieces = text.split("\u{1b}[");
    plain.push_str(pieces.next().unwrap());
    for piece in pieces {
        plain.push_str(piece.trim_start_matches(|c: char| c.is_ascii_digit()).get(1..).unwrap());
    }
    plain
}

#[test]
fn a_run_shows_its_steps_and_then_the_answer() {
    let up = Up::with_hello();
    let seen = on_terminal(ostler(up.folder()).args(["run", "hello", "hi", "--name", "one"]), 80);
    assert!(seen.contains("\u{1b}[32m✓\u{1b}[0m step 0  model mock-1  ok"), "{seen:?}");
    let end = seen.split("task one succeeded after").nth(1).unwrap();
    let answer = plain(end.split_once("\r\n").unwrap().1);
    assert!(answer.trim().starts_with("Hello! You asked: \"hi\"."), "{seen:?}");

    let seen = on_terminal(ostler(up.folder()).args(["run", "hello", "hi"]).env("NO_COLOR", "1"), 80);
    assert!(seen.contains("✓ step 0  model mock-1  ok") && !seen.contains("[32m"), "{seen:?}");
}

#[test]
fn the_answer_alone_goes_into_a_pipe_while_a_person_watches() {
    let up = Up::with_hello();
    let bin = env!("CARGO_BIN_EXE_ostler");
    let mut shell = Command::new("sh");
    shell.current_dir(up.folder()).env("LANG", "C.UTF-8").env_remove("NO_COLOR");
    shell.args(["-c", &format!("'{bin}' run hello hi > answer")]);
    let seen = on_terminal(&mut shell, 80);
    assert!(seen.contains("step 0  model mock-1") && !seen.contains("Hello!"), "{seen:?}");
    let answer = std::fs::read_to_string(up.folder().join("answer")).unwrap();
    assert!(answer.starts_with("Hello!") && !answer.contains('\u{1b}'), "{answer:?}");
}

#[test]
fn a_waterfall_is_as_wide_as_its_terminal() {
    let up = Up::with_hello();
    up.ostler(["run", "hello", "hi", "--name", "one"]).ok();
    for columns in [60, 80, 200] {
        let seen = plain(&on_terminal(ostler(up.folder()).args(["trace", "one"]), columns));
        let widest = seen.lines().map(|line| line.chars().count()).max().unwrap();
        let columns = usize::from(columns);
        assert!(widest <= columns && widest > columns - 10, "{widest} of {columns}: {seen}");
    }
    let piped = run(ostler(up.folder()).args(["trace", "one"]).env("COLUMNS", "120"));
    assert_eq!(piped.ok().lines().map(|line| line.chars().count()).max(), Some(119));
    let ascii = run(ostler(up.folder()).args(["trace", "one"]).env("LANG", "C"));
    assert!(ascii.ok().is_ascii(), "{ascii:?}");
}

#[test]
fn tables_fit_their_terminal_and_pipes_get_everything() {
    let up = Up::with_hello();
    let description = "Looks up ".repeat(30);
    up.apply(&format!(
        "kind: Tool\nmetadata: {{name: lookup}}\nspec: {{endpoint: 'http://127.0.0.1/x', description: {description}}}\n"
    ))
    .ok();
    for columns in [80, 200] {
        let seen = plain(&on_terminal(ostler(up.folder()).args(["get", "tools", "-o", "wide"]), columns));
        let widest = seen.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(columns) && seen.contains('…'), "{columns}: {seen}");
    }
    up.ostler(["run", "hello", "hi", "--name", "one", "--session", "s", "--label", "team=sales"]).ok();
    for arguments in [&["get", "tasks", "-A", "-o", "wide"][..], &["ps", "-a", "-A", "-o", "wide"]] {
        let seen = plain(&on_terminal(ostler(up.folder()).args(arguments), 80));
        let widest = seen.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 80 && seen.contains("no room for") && seen.contains("succeeded"), "{seen}");
        assert!(run(ostler(up.folder()).args(arguments)).ok().contains("task_"), "a pipe gets the uid too");
    }
    let piped = run(ostler(up.folder()).args(["get", "tools", "-o", "wide"]).env("COLUMNS", "80"));
    assert!(piped.ok().contains(description.trim()), "{piped:?}");
}

#[test]
fn colours_are_for_terminals_unless_somebody_says_otherwise() {
    let up = Up::with_hello();
    let colour = |seen: &str| seen.contains("\u{1b}[");
    assert!(colour(&on_terminal(ostler(up.folder()).args(["get", "workers"]), 80)));
    assert!(!colour(&on_terminal(ostler(up.folder()).args(["get", "workers"]).env("NO_COLOR", "1"), 80)));
    assert!(!colour(&on_terminal(ostler(up.folder()).args(["get", "workers", "--color", "never"]), 80)));
    let always = ostler(up.folder()).args(["get", "workers", "--color", "always"]).output().unwrap();
    assert!(colour(&String::from_utf8(always.stdout).unwrap()));
}

#[test]
fn a_page_and_a_graph_fit_their_terminal() {
    let up = Up::with_hello();
    let agents: Vec<String> = (0..8).map(|number| format!("an-agent-{number}")).collect();
    for agent in &agents {
        up.apply(&format!("kind: Agent\nmetadata: {{name: {agent}}}\nspec: {{model_ref: mock}}\n")).ok();
    }
    let system =
        format!("kind: AgentSystem\nmetadata: {{name: s}}\nspec: {{agents: [{}]}}\n", agents.join(", "));
    up.apply(&system).ok();
    for columns in [60, 80, 200] {
        for arguments in [["graph", "s"].as_slice(), &["describe", "system", "s"], &["doctor"]] {
            let seen = plain(&on_terminal(ostler(up.folder()).args(arguments), columns));
            let widest = seen.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= usize::from(columns), "{widest} of {columns}: {seen}");
        }
    }
}

#[test]
fn what_happens_on_the_server_fits_its_terminal() {
    let up = Up::with_hello();
    let name = "a-task-with-a-name-that-is-too-long-for-eighty-columns-beside-all-the-rest";
    up.ostler(["run", "hello", "hi", "--name", name]).ok();
    let bin = env!("CARGO_BIN_EXE_ostler");
    for (flags, columns) in [("", 80), ("-A", 80), ("-A", 60)] {
        let mut shell = Command::new("sh");
        shell.current_dir(up.folder()).env("LANG", "C.UTF-8").env("TERM", "xterm");
        shell.args(["-c", &format!("timeout 2 '{bin}' events -w {flags} --after 1")]);
        let seen = plain(&on_terminal(&mut shell, columns));
        assert!(seen.contains("task/a-t") && !seen.contains(".default"), "{seen}");
        assert_eq!(seen.contains("NAMESPACE"), flags == "-A", "{seen}");
        let widest = seen.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(columns), "{widest} of {columns}: {seen}");
    }
}

#[test]
fn a_terminal_whose_cursor_does_not_move_gets_plain_lines() {
    let up = Up::with_hello();
    let seen = on_terminal(ostler(up.folder()).args(["run", "hello", "hi"]).env("TERM", "dumb"), 80);
    assert!(seen.contains("step 0  model mock-1  ok") && !seen.contains('\u{1b}'), "{seen:?}");
    let top = on_terminal(ostler(up.folder()).arg("top").env("TERM", "dumb"), 80);
    assert!(top.contains("--once") && !top.contains('\u{1b}'), "{top:?}");
}

#[test]
fn of_a_long_path_both_ends_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a-folder-with-a-long-name/and-another-one-with-a-long-name");
    std::fs::create_dir_all(deep.join(".ostler")).unwrap();
    std::fs::write(deep.join(".ostler/server.json"), r#"{"url":"http://127.0.0.1:9","pid":1}"#).unwrap();
    std::fs::write(deep.join(".ostler/token"), "x").unwrap();
    let seen = plain(&on_terminal(ostler(&deep).args(["config", "show"]), 80));
    let line = seen.lines().find(|line| line.starts_with("client.server")).unwrap();
    assert!(line.ends_with("server.json") && line.contains('…') && line.contains(" /"), "{seen}");
    assert!(seen.lines().all(|line| line.chars().count() <= 80), "{seen}");
}
