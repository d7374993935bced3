//! What is kept beside tasks and conversations: templates and declared sessions are listed, run and deleted by the same
//! commands, and a namespace that was written stays.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::process::Stdio;

use serde_json::{Value, json};
use support::{Up, agent, example, lines_of, ostler, run, slow_agent};

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[test]
fn a_template_is_listed_run_and_deleted() {
    let up = Up::start();
    let manifest = example("template/digest.yaml");
    up.ostler(["apply", "-f", &manifest]).ok();
    assert_eq!(up.ostler(["get", "tasks", "-o", "name"]).ok(), "", "it is no task");
    let listed = up.ostler(["get", "tasks", "--templates"]);
    let lines: Vec<&str> = listed.ok().lines().collect();
    assert!(lines[0].starts_with("NAME           SUBJECT   STATE"), "{listed:?}");
    assert!(lines[1].starts_with("daily-digest   digest    template"), "{listed:?}");
    assert_eq!(up.ostler(["get", "tasks", "--templates", "-l", "team=none", "-o", "name"]).ok(), "");
    assert!(up.ostler(["get", "all", "-o", "name"]).ok().contains("task/daily-digest\n"));
    assert!(up.ostler(["describe", "task/daily-digest"]).ok().contains("What happened yesterday."));
    let mut edit = ostler(up.folder());
    let edited = run(edit.args(["edit", "task/daily-digest"]).env("EDITOR", "sed -i s/low/high/"));
    assert_eq!(edited.ok(), "task/daily-digest edited\n");
    assert_eq!(up.ostler(["get", "task", "daily-digest", "-o", "json"]).json()["spec"]["priority"], "high");

    let ran = up.ostler(["run", "task/daily-digest"]);
    assert!(ran.ok().contains("What happened yesterday."), "{ran:?}");
    assert!(ran.stderr.contains("task daily-digest-run-1 succeeded after"), "{ran:?}");
    assert_eq!(up.ostler(["run", "-d", "task/daily-digest"]).ok(), "daily-digest-run-2\n");
    up.wait_for_state("daily-digest-run-2", "succeeded");
    up.ostler(["edit", "task/daily-digest-run-1"]).failed(2, &["never changes", "ostler retry"]);
    let made = up.ostler(["get", "tasks", "-l", "ostler.dev/source-task=daily-digest", "-o", "json"]).json();
    assert_eq!(names(&made), ["daily-digest-run-2", "daily-digest-run-1"]);

    let ended = up.ostler(["delete", "task", "daily-digest-run-1"]);
    assert_eq!(ended.ok(), "task/daily-digest-run-1 deleted\n");
    up.apply(&slow_agent()).ok();
    up.ostler(["run", "-d", "slow", "hi", "--name", "going-on"]).ok();
    for dry in [&["--dry-run"][..], &[]] {
        let under_way = up.ostler([&["delete", "task/going-on"][..], dry].concat());
        under_way.failed(2, &["task/going-on has not ended", "ostler cancel"]);
    }
    up.ostler(["cancel", "going-on"]).ok();
    assert_eq!(up.ostler(["delete", "task/going-on"]).ok(), "task/going-on deleted\n");
    let deleted = up.ostler(["delete", "task/daily-digest", "--dry-run"]);
    assert_eq!(deleted.ok(), "task/daily-digest deleted (dry run)\n");
    let all = up.ostler(["delete", "-f", &manifest]);
    assert_eq!(all.ok(), "task/daily-digest deleted\nagent/digest deleted\nmodel-endpoint/mock deleted\n");
    assert_eq!(names(&up.ostler(["get", "tasks", "-o", "json"]).json()).len(), 1, "what it made stays");
}

#[test]
fn an_ended_task_is_run_again_under_the_next_number() {
    let up = Up::with_hello();
    up.ostler(["run", "hello", "Say", "hello.", "--name", "first"]).ok();
    assert_eq!(up.ostler(["run", "-d", "task/first"]).ok(), "first-run-1\n");
    up.wait_for_state("first-run-1", "succeeded");
    let again = up.ostler(["run", "task/first", "-o", "json"]).json();
    assert_eq!(again["metadata"]["name"], "first-run-2");
    assert_eq!(again["spec"]["input"]["message"], "Say hello.");
}

#[test]
fn what_is_run_again_may_be_otherwise() {
    let up = Up::with_hello();
    up.ostler(["apply", "-f", &example("template/digest.yaml")]).ok();
    let words = ["run", "task/daily-digest", "Other", "words.", "--input", "day=Monday", "-l", "why=test"];
    let run = up.ostler(words.into_iter().chain(["--priority", "high", "-o", "json"])).json();
    assert_eq!(run["metadata"]["name"], "daily-digest-run-1");
    let input = &run["spec"]["input"];
    assert_eq!((&input["message"], &input["day"]), (&json!("Other words."), &json!("Monday")));
    assert!(input["topic"].is_string(), "what nobody spoke of is as it was: {run}");
    assert_eq!(
        (&run["spec"]["priority"], &run["metadata"]["labels"]["why"]),
        (&json!("high"), &json!("test"))
    );
}

#[test]
fn what_does_not_go_together_is_refused_with_a_way_out() {
    let up = Up::with_hello();
    up.ostler(["apply", "-f", &example("template/digest.yaml")]).ok();
    up.ostler(["run", "task/daily-digest", "--name", "x"])
        .failed(2, &["no place for --name", "daily-digest-run-1"]);
    up.ostler(["run", "task/daily-digst"]).failed(1, &["daily-digst", "did you mean daily-digest?"]);
    up.ostler(["retry", "daily-digest"]).failed(1, &["it is a template", "ostler run task/daily-digest"]);
    up.ostler(["run", "tool/x", "hi"]).failed(2, &["tools are not given tasks", "task/NAME"]);
    up.ostler(["run", "hello"]).failed(2, &["there is no MESSAGE"]);
    up.ostler(["get", "agents", "--templates"]).failed(2, &["--templates goes with `tasks`"]);
    up.ostler(["get", "tasks", "--live"]).failed(2, &["--live goes with `sessions`"]);
    up.ostler(["delete", "tasks", "--all"]).failed(2, &["only templates", "--templates"]);
    up.ostler(["delete", "agents", "--all", "--templates"]).failed(2, &["--templates goes with `tasks`"]);
    let all = up.ostler(["delete", "tasks", "--all", "--templates"]);
    assert_eq!(all.ok(), "task/daily-digest deleted\n");
}

const SESSIONS: &str = "kind: Session\nmetadata: {name: room-1, labels: {floor: one}}\nspec: {system: front}\n---\n\
    kind: Session\nmetadata: {name: room-2}\nspec: {system: front}\n";

#[test]
fn declared_sessions_are_listed_shown_and_deleted_and_conversations_are_live() {
    let up = Up::with_hello();
    up.apply("kind: AgentSystem\nmetadata: {name: front}\nspec: {agents: [hello]}\n").ok();
    up.apply(SESSIONS).ok();
    up.ostler(["run", "hello", "hi", "--session", "monday"]).ok();

    assert_eq!(up.ostler(["get", "sessions", "-o", "name"]).ok(), "session/room-1\nsession/room-2\n");
    assert_eq!(up.ostler(["get", "sessions", "-l", "floor=one", "-o", "name"]).ok(), "session/room-1\n");
    assert_eq!(up.ostler(["get", "session", "room-2", "-o", "json"]).json()["spec"]["system"], "front");
    let live = up.ostler(["get", "sessions", "--live"]);
    let lines: Vec<&str> = live.ok().lines().collect();
    assert!(lines[0].starts_with("NAME     SUBJECT   PHASE   RUNS"), "{live:?}");
    assert!(lines[1].starts_with("monday   hello     Idle    1"), "{live:?}");
    assert_eq!(up.ostler(["get", "sessions", "--live", "-o", "json"]).json()[0]["kind"], "Session");
    up.ostler(["get", "sessions", "--live", "-l", "a=b"]).failed(2, &["have no labels"]);

    let labelled = up.ostler(["delete", "sessions", "-l", "floor=one"]);
    assert_eq!(labelled.ok(), "session/room-1 deleted\n");
    assert_eq!(up.ostler(["delete", "sessions", "--all"]).ok(), "session/room-2 deleted\n");
    let none = up.ostler(["get", "sessions"]);
    assert_eq!(none.ok(), "");
    assert_eq!(none.stderr, "no sessions in namespace default; --live lists conversations\n");
    assert!(up.ostler(["get", "sessions", "--live"]).ok().contains("monday"), "conversations stay");
}

#[test]
fn a_namespace_that_was_written_stays() {
    let up = Up::start();
    let endpoint = "provider: mock, default_model: mock-1";
    let written = agent("keeper", endpoint).replace("{name: keeper}", "{name: keeper, namespace: default}");
    for command in [["apply", "-f", "-"], ["diff", "-f", "-"], ["delete", "-f", "-"]] {
        let refused = up.ostler_with(&written, ["-n", "team"].into_iter().chain(command));
        let code = if command[0] == "diff" { 2 } else { 1 };
        refused.failed(code, &["model-endpoint/keeper declares the namespace \"default\", not \"team\""]);
    }
    up.ostler(["profile", "set", "work", "--server", &up.url(), "--namespace", "team"]).ok();
    let token = std::fs::read_to_string(up.folder().join(".ostler/token")).unwrap();
    let as_work = |stdin: &str, arguments: &[&str]| {
        let mut command = support::ostler(up.folder());
        command.args(["--profile", "work"]).args(arguments).env("OSTLER_TOKEN", token.trim());
        support::run_with(&mut command, stdin)
    };
    let mixed = format!("{written}---\n{}", agent("guest", endpoint));
    as_work(&mixed, &["apply", "-f", "-"]).ok();
    assert_eq!(up.ostler(["get", "agents", "-o", "name"]).ok(), "agent/keeper\n");
    assert_eq!(up.ostler(["-n", "team", "get", "agents", "-o", "name"]).ok(), "agent/guest\n");
    assert_eq!(as_work(&mixed, &["diff", "-f", "-"]).ok(), "", "it looks where it was put");
    as_work(&mixed, &["delete", "-f", "-"]).ok();
    assert_eq!(up.ostler(["get", "agents", "-A", "-o", "name"]).ok(), "", "both are gone");
}

#[test]
fn a_trace_is_told_to_programs_too() {
    let up = Up::with_hello();
    up.ostler(["run", "hello", "hi", "--name", "first"]).ok();
    let trace = up.ostler(["trace", "first", "-o", "json"]).json();
    let task = up.ostler(["get", "task", "first", "-o", "json"]).json();
    assert_eq!(
        (&trace["name"], &trace["subject"], &trace["state"]),
        (&json!("first"), &json!("hello"), &json!("succeeded"))
    );
    assert_eq!(trace["uid"], task["metadata"]["uid"]);
    let attempt = &trace["attempts"][0];
    assert_eq!((&attempt["attempt"], &attempt["agent"]), (&json!(1), &json!("hello")));
    let step = &attempt["steps"][0];
    assert_eq!((&step["step"], &step["kind"], &step["outcome"]), (&json!(0), &json!("model"), &json!("ok")));
    let usage = &task["status"]["usage"];
    let total = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    assert_eq!(step["tokens"].as_u64(), Some(total));
    assert!(trace["took_ms"].as_i64() >= step["took_ms"].as_i64(), "{trace}");
    let yaml = up.ostler(["trace", "first", "-o", "yaml"]);
    assert!(yaml.ok().contains("\nattempts:\n") && yaml.stdout.contains("outcome: ok"), "{yaml:?}");
}

#[test]
fn the_same_words_under_the_same_name_begin_nothing_new_and_say_so() {
    let up = Up::with_hello();
    let run = ["run", "hello", "hi", "--name", "once"];
    let first = up.ostler(run);
    assert!(first.ok().starts_with("Hello!") && !first.stderr.contains("before"), "{first:?}");
    let second = up.ostler(run);
    assert_eq!(second.ok(), first.stdout);
    assert!(
        second.stderr.contains("task once was asked for before")
            && second.stderr.contains("it succeeded; `ostler run task/once` runs it once more"),
        "{second:?}"
    );
    assert_eq!(up.ostler(["get", "tasks", "-o", "name"]).ok(), "task/once\n");
}

#[test]
fn tasks_under_way_are_watched_from_their_beginning_to_their_end() {
    let up = Up::with_hello();
    up.ostler(["run", "hello", "hi", "--name", "over"]).ok();
    up.ostler(["apply", "-f", &example("template/digest.yaml")]).ok();
    up.apply(&slow_agent()).ok();
    up.ostler(["run", "-d", "slow", "Take your time.", "--name", "long"]).ok();
    up.ostler(["wait", "task/long", "--for", "status.state=running"]).ok();
    let mut command = support::ostler(up.folder());
    let mut child = command.args(["ps", "-w"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = lines_of(child.stdout.take().unwrap());
    let (head, first) = (lines.recv().unwrap(), lines.recv().unwrap());
    assert!(head.starts_with("NAME ") && first.starts_with("long "), "{head}\n{first}");
    assert_eq!(head.find("SUBJECT"), first.find("slow"), "{head}\n{first}");
    assert_eq!(head.find("STATE"), first.find("running"), "{head}\n{first}");
    // It is told of once the watch has begun.
    up.ostler(["run", "-d", "slow", "Me too.", "--name", "next"]).ok();
    let next = lines.recv().unwrap();
    assert!(next.starts_with("next ") && next.find("slow") == head.find("SUBJECT"), "{head}\n{next}");
    up.ostler(["run", "hello", "hi", "--name", "short"]).ok();
    up.ostler(["cancel", "long"]).ok();
    let mut seen = Vec::new();
    for line in &lines {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let is_last = words[0] == "long" && words[2] == "cancelled";
        seen.push(format!("{} {}", words[0], words[2]));
        if is_last {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(seen.iter().any(|row| row == "short succeeded"), "{seen:?}");
    assert!(!seen.iter().any(|row| row.starts_with("over") || row.starts_with("daily")), "{seen:?}");
}
