//! What goes wrong, as a person meets it: exit codes, words, remedies.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::{
    fs,
    net::TcpListener,
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use support::{
    Up, example,
    fake::{Fake, problem},
    lines_of, ostler, run, run_with, slow_agent,
};

#[test]
fn without_a_server_every_command_says_how_to_get_one() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in
        [&["ps"][..], &["get", "agents"], &["run", "hello", "hi"], &["logs", "x"], &["backup", "f"]]
    {
        let ran = run(ostler(folder.path()).args(arguments));
        ran.failed(6, &["error: no server found", "ostler up", "--server"]);
        assert_eq!(ran.stdout, "");
    }
    // One that was killed leaves its address behind.
    fs::create_dir(folder.path().join(".ostler")).unwrap();
    fs::write(folder.path().join(".ostler/server.json"), r#"{"url":"http://127.0.0.1:9","pid":1}"#).unwrap();
    fs::write(folder.path().join(".ostler/token"), "ostler_x").unwrap();
    run(ostler(folder.path()).arg("ps"))
        .failed(6, &["error: nothing answers at http://127.0.0.1:9", "ostler up"]);
    let version = run(ostler(folder.path()).arg("version"));
    assert!(version.ok().starts_with("ostler "), "its own version needs no server");
}

#[test]
fn a_wrong_token_is_told_apart() {
    let up = Up::start();
    let url = up.url();
    run(ostler(up.folder()).args(["ps"]).env("OSTLER_TOKEN", "wrong"))
        .failed(7, &["error: ", "OSTLER_TOKEN"]);
    let elsewhere = tempfile::tempdir().unwrap();
    run(ostler(elsewhere.path()).args(["ps", "--server", &url])).failed(7, &["no token", "OSTLER_TOKEN"]);

    let token = fs::read_to_string(up.folder().join(".ostler/token")).unwrap();
    run(ostler(elsewhere.path()).args(["ps", "--server", &url]).env("OSTLER_TOKEN", token.trim())).ok();
    run(ostler(elsewhere.path()).arg("ps").env("OSTLER_DATA", up.folder().join(".ostler"))).ok();
}

#[test]
fn a_bad_manifest_is_refused_with_every_mistake_and_nothing_is_applied() {
    let up = Up::start();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "a.yaml",
        "apiVersion: ostler.dev/v1\nkind: Agent\nmetadata: {name: a}\nspec:\n  model_ref: m\n  prmpt: x\n",
    );
    write("b.yaml", "kind: Tool\nmetadata: {name: b}\nspec: {type: htp, endpoint: 'http://127.0.0.1'}\n");
    fs::copy(example("hello/agent.yaml"), folder.path().join("c.yaml")).unwrap();
    let ran = run(ostler(up.folder()).args(["apply", "-f"]).arg(folder.path()));
    ran.failed(
        1,
        &["nothing was applied", "a.yaml:6:3: spec.prmpt", "did you mean \"prompt\"?", "b.yaml:3:"],
    );
    assert_eq!(ran.stdout, "");
    assert_eq!(up.ostler(["get", "agents", "-o", "name"]).ok(), "");

    up.ostler(["apply", "-f", "missing.yaml"]).failed(1, &["missing.yaml:1:1: can't be read"]);
    up.ostler(["apply", "-f", "."]).failed(1, &["there is no manifest"]);
    fs::write(up.folder().join("bad.yaml"), [0x6b, 0xff, 0xfe]).unwrap();
    up.ostler(["apply", "-f", "bad.yaml"]).failed(1, &["bad.yaml", "UTF-8"]);
    up.apply("kind: Workflow\n").failed(1, &["<stdin>:1:7", "unknown kind"]);
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let up = Up::with_hello();
    up.ostler(["get", "agnets"]).failed(2, &["there is no kind \"agnets\"", "did you mean agents?"]);
    up.ostler(["run", "helo", "hi"]).failed(1, &["helo", "did you mean hello?"]);
    for command in ["logs", "events", "trace", "cancel", "retry", "archive"] {
        up.ostler([command, "nobody"]).failed(1, &["error: there is no task \"nobody\""]);
    }
    up.ostler(["get", "agent", "nobody"])
        .failed(1, &["error: there is no Agent \"nobody\"", "ostler get agents"]);
    for command in ["get", "describe", "edit", "delete"] {
        up.ostler([command, "agent", "helo"])
            .failed(1, &["there is no Agent \"helo\"", "did you mean hello?"]);
        up.ostler([command, "tool", "x"]).failed(1, &["there are no tools in namespace default"]);
    }
    // Elsewhere, or under another name.
    up.ostler(["get", "agent", "hello", "-n", "shop"]).failed(1, &["it is in namespace default: -n default"]);
    up.ostler(["run", "hello", "hi", "-n", "shop"]).failed(1, &["it is in namespace default"]);
    let none = up.ostler(["get", "agents", "-n", "defualt"]);
    assert!(none.ok().is_empty() && none.stderr.contains("did you mean -n default?"), "{none:?}");
    up.ostler(["run", "-d", "hello", "hi", "--name", "first-letter"]).ok();
    for command in ["logs", "events", "trace", "cancel", "retry", "archive", "release", "describe task"] {
        let words = command.split(' ').chain(["first-leter"]);
        up.ostler(words).failed(1, &["there is no task \"first-leter\"", "did you mean first-letter?"]);
    }
    up.ostler(["logs", "-f", "first-leter"]).failed(1, &["did you mean first-letter?"]);
    up.ostler(["cordon", "locla"]).failed(1, &["did you mean local?"]);
    up.ostler(["run", "hello", " "]).failed(2, &["the message is empty", "--input"]);
    up.ostler(["get", "agent", ".."]).failed(1, &["error: "]);
    up.ostler(["get", "agent", "../../healthz"]).failed(2, &["there is no kind \"..\""]);
    up.ostler(["frobnicate"]).failed(2, &["frobnicate"]);
}

#[test]
fn help_is_given_to_those_who_ask_for_it_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let ask = |words: &[&str]| run(ostler(folder.path()).args(words));
    assert_eq!(ask(&["help"]).ok(), ask(&["--help"]).ok());
    assert_eq!(ask(&["help", "token", "create"]).ok(), ask(&["token", "create", "--help"]).ok());
    ask(&["help", "rum"]).failed(2, &["there is no command \"ostler rum\"", "did you mean run?"]);
    ask(&["help", "token", "creat"]).failed(2, &["did you mean create?"]);
    let overview = ask(&["-h"]);
    assert!(overview.ok().lines().all(|line| line.chars().count() <= 100), "{overview:?}");
    for group in ["Begin:\n  up ", "Declare:\n  validate ", "Run:\n  run ", "Options:\n"] {
        assert!(overview.stdout.contains(group), "{group:?}: {overview:?}");
    }
}

#[test]
fn an_address_that_is_none_is_told_before_its_token() {
    let folder = tempfile::tempdir().unwrap();
    run(ostler(folder.path()).args(["ps", "--server", "127.0.0.1:7070"]))
        .failed(2, &["not the address of a server (from --server)", "http://127.0.0.1:7070"]);
    run(ostler(folder.path()).arg("ps").env("OSTLER_SERVER", "htp:/box"))
        .failed(2, &["OSTLER_SERVER", "http://HOST:PORT"]);
    for none in ["http://exa mple", "ftp://x", "http://", "https://x:port"] {
        run(ostler(folder.path()).args(["ps", "--server", none]))
            .failed(2, &["is not the address of a server (from --server)", "http://HOST:PORT"]);
    }
}

#[test]
fn a_server_that_speaks_no_tls_is_told_from_one_that_is_not_there() {
    let up = Up::start();
    let plain = up.url();
    let ran = up.ostler(["ps", "--server", &plain.replacen("http", "https", 1)]);
    ran.failed(6, &["does not speak TLS", &format!("write {plain} if")]);
    assert!(!ran.stderr.contains("InvalidContentType") && !ran.stderr.contains("is it running"), "{ran:?}");
}

#[test]
fn a_reader_that_goes_away_ends_us_quietly() {
    let up = Up::with_hello();
    up.ostler(["run", "hello", "hi", "--name", "one"]).ok();
    let mut command = ostler(up.folder());
    let mut closed =
        command.args(["get", "agents"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(closed.stdout.take());
    let errors = lines_of(closed.stderr.take().unwrap());
    assert_eq!(closed.wait().unwrap().code(), Some(0));
    assert_eq!(errors.iter().collect::<Vec<_>>(), Vec::<String>::new());
}

/// The read end is gone before the first word is written.
fn unread(command: &mut Command) -> i32 {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    child.wait().unwrap().code().unwrap()
}

#[test]
fn work_is_finished_whether_anybody_reads_of_it_or_not() {
    let up = Up::with_hello();
    let tools: String = ["a", "b", "c"]
        .map(|name| {
            format!("kind: Tool\nmetadata: {{name: {name}}}\nspec: {{endpoint: 'http://127.0.0.1'}}\n---\n")
        })
        .concat();
    fs::write(up.folder().join("tools.yaml"), tools).unwrap();
    assert_eq!(unread(ostler(up.folder()).args(["apply", "-f", "tools.yaml"])), 0);
    assert_eq!(up.ostler(["get", "tools", "-o", "name"]).ok(), "tool/a\ntool/b\ntool/c\n");
    assert_eq!(unread(ostler(up.folder()).args(["delete", "tools", "a", "b", "c"])), 0);
    assert_eq!(up.ostler(["get", "tools", "-o", "name"]).ok(), "");

    for name in ["one", "two"] {
        up.ostler(["run", "hello", "hi", "--name", name]).ok();
    }
    assert_eq!(unread(ostler(up.folder()).args(["archive", "one", "two"])), 0);
    assert_eq!(up.ostler(["get", "tasks", "-o", "name"]).ok(), "");
    for name in ["x", "y"] {
        up.ostler(["token", "create", name]).ok();
    }
    assert_eq!(unread(ostler(up.folder()).args(["token", "delete", "x", "y"])), 0);
    assert_eq!(up.ostler(["token", "list", "-o", "name"]).ok(), "");
}

#[test]
fn an_empty_flag_is_refused_and_an_empty_variable_is_none() {
    let up = Up::start();
    for flag in ["--namespace", "--server", "--profile", "--data"] {
        up.ostler(["ps", flag, ""]).failed(2, &[flag]);
    }
    let mut command = ostler(up.folder());
    for name in ["SERVER", "NAMESPACE", "PROFILE", "DATA", "TOKEN"] {
        command.env(format!("OSTLER_{name}"), "");
    }
    run(command.arg("ps")).ok();
}

#[test]
fn a_task_is_taken_as_lists_print_it() {
    let up = Up::with_hello();
    up.apply(&slow_agent()).ok();
    up.ostler(["run", "hello", "hi", "--name", "one"]).ok();
    up.ostler(["run", "-d", "slow", "hi", "--name", "two"]).ok();
    for command in ["trace", "events"] {
        up.ostler([command, "task/one"]).ok();
    }
    let again = up.ostler(["retry", "task/one"]);
    up.wait_for_state(again.ok().strip_suffix(" created\n").unwrap(), "task_ended");
    let names = up.ostler(["get", "tasks", "-o", "name"]);
    let names: Vec<&str> = names.ok().lines().collect();
    assert_eq!(names.len(), 3, "{names:?}");
    up.ostler([&["archive"], &names[..]].concat()).failed(1, &["task \"two\" is", "has to end first"]);
    up.ostler([&["archive", "--ended"], &names[..]].concat()).ok();
    assert_eq!(up.ostler(["get", "tasks", "-o", "name"]).ok(), "task/two\n");
    assert_eq!(up.ostler(["cancel", "task/two"]).ok(), "task/two cancelled\n");
    up.ostler(["release", "task/one"]).failed(1, &["one"]);
    for command in ["trace", "events", "retry", "cancel", "archive", "release"] {
        up.ostler([command, "agent/hello"]).failed(2, &["\"agent/hello\" is no task", "task/NAME"]);
    }
}

#[test]
fn flags_are_told_by_their_names() {
    let up = Up::with_hello();
    for (arguments, words) in [
        (&["run", "hello", "hi", "--name", "a b"][..], ["--name", "white space"]),
        (&["run", "hello", "hi", "--deadline", "0s"], ["--deadline", "longer than 0s"]),
        (&["ps", "-l", "a=b=c"], ["--selector", "a=b=c"]),
        (&["get", "agents", "-l", "=x"], ["--selector", "names no label"]),
        (&["ps", "-n", "Bad NS"], ["--namespace", "white space"]),
        (&["run", "hello", "hi", "--session", &"x".repeat(2000)], ["--session: ", "expected"]),
        (&["get", "all", "-w"], ["\"all\"", "-w"]),
        (&["get", "namespaces", "-w"], ["\"namespaces\"", "-w"]),
    ] {
        up.ostler(arguments).failed(2, &words);
    }
}

#[test]
fn one_that_is_missing_among_several_is_told_as_if_it_were_alone() {
    let up = Up::with_hello();
    let told = up.ostler(["get", "agent", "hello", "helo", "-o", "name"]);
    told.failed(1, &["error: there is no Agent \"helo\"", "did you mean hello?"]);
    assert_eq!(told.stdout, "agent/hello\n");
    let both = up.ostler(["get", "agent", "hello", "model/mock", "-o", "name"]);
    assert_eq!(both.ok(), "agent/hello\nmodel-endpoint/mock\n");
}

#[test]
fn a_page_that_is_no_stream_ends_a_watch() {
    let page =
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>Sign in</html>\n\n";
    let fake = Fake::start(move |_| page.to_owned());
    for arguments in [["events", "-w"], ["ps", "-w"], ["get", "agents"]] {
        fake.ostler(arguments).failed(1, &["is that address really an Ostler server?"]);
    }
}

#[test]
fn a_token_that_can_not_be_sent_is_told_with_where_it_came_from() {
    let up = Up::start();
    run(ostler(up.folder()).arg("ps").env("OSTLER_TOKEN", "a\nb"))
        .failed(7, &["the token from OSTLER_TOKEN is malformed", "a line break"]);
}

#[test]
fn a_version_is_told_whatever_the_server_does() {
    let refusing = Fake::start(|_| problem(401, "unauthorized", "no"));
    let told = refusing.ostler(["version"]);
    assert!(told.ok().contains("\nserver at http://127.0.0.1:"), "{told:?}");
    let told = refusing.ostler(["version", "-o", "json"]);
    assert_eq!(told.json()["server"]["version"], serde_json::Value::Null, "{told:?}");
    assert!(told.json()["server"]["url"].is_string(), "{told:?}");

    // One that takes the call and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let told = run(ostler(folder.path()).args(["version", "--server", &url]).env("OSTLER_TOKEN", "t"));
    assert!(told.ok().starts_with("ostler ") && told.stderr.contains("did not answer within 5"), "{told:?}");
}

#[test]
fn a_file_that_can_not_be_read_hides_no_mistake_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(example("hello/agent.yaml"), folder.path().join("good.yaml")).unwrap();
    fs::write(folder.path().join("bad.yaml"), "kind: Agnet\nmetadata: {name: x}\n").unwrap();
    let files = ["validate", "good.yaml", "none.yaml", "bad.yaml"];
    let told = run(ostler(folder.path()).args(files));
    told.failed(1, &["2 mistakes", "none.yaml:1:1: can't be read", "bad.yaml:1:7"]);
    let told = run(ostler(folder.path()).args(files).args(["-o", "json"]));
    let told: serde_json::Value = serde_json::from_str(told.ended(1)).unwrap();
    assert_eq!((&told[1]["file"], &told[1]["valid"]), (&"none.yaml".into(), &false.into()), "{told:#}");
}

#[test]
fn ctrl_c_leaves_the_task_running_and_says_how_to_come_back() {
    let up = Up::start();
    up.apply(&slow_agent()).ok();
    let mut command = ostler(up.folder());
    let mut child =
        command.args(["run", "slow", "hi", "--name", "s"]).stderr(Stdio::piped()).spawn().unwrap();
    let progress = lines_of(child.stderr.take().unwrap());
    assert!(progress.iter().any(|line| line.contains("attempt 1 started")));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let words = progress.iter().collect::<Vec<_>>().join("\n");
    for word in ["left task s", "ostler logs -f s", "ostler cancel s"] {
        assert!(words.contains(word), "{words}");
    }
    assert!(up.ostler(["ps"]).ok().contains("running"));
}

#[test]
fn up_says_what_keeps_it_from_starting() {
    let up = Up::start();
    let address = up.url().strip_prefix("http://").unwrap().to_owned();
    let elsewhere = tempfile::tempdir().unwrap();
    run(ostler(elsewhere.path()).args(["up", "--listen", &address])).failed(1, &["error: ", &address]);
    run(ostler(up.folder()).args(["up", "--listen", "127.0.0.1:0"]))
        .failed(1, &["error: ", "is up already at"]);
    run(ostler(elsewhere.path()).args(["up", "--listen", "0.0.0.0:0"])).failed(2, &["error: ", "loopback"]);
    run(ostler(elsewhere.path()).args(["up", "--listen", "nowhere"])).failed(2, &["--listen"]);
    run(ostler(elsewhere.path()).args(["up", "--slots", "0"])).failed(2, &["--slots"]);
    run(ostler(elsewhere.path()).args(["up", "--lease", "1ms"])).failed(2, &["--lease"]);
    run(ostler(elsewhere.path()).args(["up"]).env("OSTLER_LOG", "a=b=c")).failed(2, &["OSTLER_LOG"]);
    run_with(ostler(up.folder()).args(["get", "agents"]), "").ok();
}
