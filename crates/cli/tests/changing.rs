//! What changes things: edit, diff, dry runs, and watches that see it, against a server that does as the test says.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio};

use serde_json::{Value, json};
use support::{
    fake::{Asked, Fake, agent, change, ok, problem, stream},
    lines_of, ostler, run,
};

/// An editor that does this to its file, which it finds in `$1`.
fn editor(fake: &Fake, script: &str) -> String {
    let path = fake.folder().join("editor");
    fs::write(&path, format!("#!/bin/sh\nset -e\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn edit(fake: &Fake, script: &str) -> support::Ran {
    let editor = editor(fake, script);
    let temporary = fake.folder().join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let mut command = ostler(fake.folder());
    run(command.args(["edit", "agent", "hello"]).env("EDITOR", editor).env("TMPDIR", temporary))
}

fn left(fake: &Fake) -> usize {
    fs::read_dir(fake.folder().join("tmp")).unwrap().count()
}

#[test]
fn an_edit_is_put_back_under_the_version_it_was_read_at() {
    let fake = Fake::start(|asked| match &asked.line {
        line if line.starts_with("GET") => ok(&agent("hello", 7, "Greet.")),
        _ => ok(&agent("hello", 8, "Greet kindly.")),
    });
    let edited = edit(&fake, "sed -i 's/Greet\\./Greet kindly./' \"$1\"");
    assert_eq!(edited.ok(), "agent/hello edited\n");
    let asked: Vec<Asked> = fake.asked.try_iter().collect();
    assert_eq!(asked[1].line, "PUT /v1/agents/hello?namespace=default");
    assert!(asked[1].head.to_lowercase().contains("if-match: \"7\""), "{}", asked[1].head);
    let sent = asked[1].json();
    assert_eq!((&sent["spec"]["prompt"], &sent["kind"]), (&json!("Greet kindly."), &json!("Agent")));
    assert_eq!(left(&fake), 0, "nothing is left behind");
}

#[test]
fn what_was_not_changed_is_not_sent() {
    let fake = Fake::start(|_| ok(&agent("hello", 7, "Greet.")));
    let edited = edit(&fake, "true");
    assert_eq!((edited.ok(), edited.stderr.as_str()), ("", "agent/hello unchanged\n"));
    assert!(edit(&fake, ": > \"$1\"").stderr.contains("unchanged"), "an empty text changes nothing");
    assert!(fake.lines().iter().all(|line| line.starts_with("GET")));
    edit(&fake, "exit 3").failed(1, &["the editor", "nothing was stored", "what you wrote is in"]);
    let nothing = ostler(fake.folder()).args(["edit", "task", "x"]).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
}

#[test]
fn a_mistake_opens_the_editor_again_with_what_is_wrong() {
    let fake = Fake::start(|asked| match &asked.line {
        line if line.starts_with("GET") => ok(&agent("hello", 7, "Greet.")),
        _ => ok(&agent("hello", 8, "Greet.")),
    });
    let script = r#"
n=$(cat "$0.n" 2>/dev/null || echo 0); n=$((n + 1)); echo $n > "$0.n"; cp "$1" "$0.seen.$n"
case $n in
  1) sed -i 's/model_ref/model_rf/' "$1" ;;
  2) sed -i 's/model_rf/model_ref/; s/Greet/Wave/' "$1" ;;
esac"#;
    assert_eq!(edit(&fake, script).ok(), "agent/hello edited\n");
    let seen = fs::read_to_string(fake.folder().join("editor.seen.2")).unwrap();
    assert!(seen.starts_with("#: this can't be stored:\n#:   /"), "{seen}");
    assert!(seen.contains("did you mean \"model_ref\"?") && seen.contains("model_rf: mock"), "{seen}");
    // The line it names is the line it is on.
    let told: usize = seen.split(".yaml:").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
    assert!(seen.lines().nth(told - 1).unwrap().contains("model_rf"), "{told}: {seen}");
    let sent: Vec<Asked> = fake.asked.try_iter().filter(|asked| asked.line.starts_with("PUT")).collect();
    assert_eq!(sent.len(), 1, "what is wrong is not sent");
    assert_eq!(sent[0].json()["spec"]["prompt"], "Wave.");
}

#[test]
fn who_leaves_a_mistake_as_it_is_is_told_and_loses_nothing() {
    let fake = Fake::start(|_| ok(&agent("hello", 7, "Greet.")));
    let edited = edit(&fake, "sed -i 's/model_ref/model_rf/' \"$1\"");
    edited.failed(1, &["nothing was stored", "did you mean \"model_ref\"?"]);
    assert_eq!(left(&fake), 1, "what was written is kept");
    let kept = edited.stderr.lines().find_map(|line| line.trim().strip_prefix("what you wrote is in "));
    let kept = kept.unwrap_or_else(|| panic!("{edited:?}"));
    let text = fs::read_to_string(kept).unwrap();
    let place = edited.stderr.split(&format!("{kept}:")).nth(1).unwrap_or_else(|| panic!("{edited:?}"));
    let line: usize = place.split(':').next().unwrap().parse().unwrap();
    assert!(text.lines().nth(line - 1).unwrap().contains("model_rf"), "{line}: {text}");
}

#[test]
fn an_edit_of_the_name_says_that_it_renames() {
    let fake = Fake::start(|asked| match &asked.line {
        line if line.starts_with("GET") => ok(&agent("hello", 7, "Greet.")),
        _ => ok(&agent("hello2", 8, "Greet.")),
    });
    let edited = edit(&fake, "sed -i 's/name: hello/name: hello2/' \"$1\"");
    assert_eq!(edited.ok(), "agent/hello renamed to hello2\n");
    assert!(edited.stderr.contains("what names it by its old name still does"), "{edited:?}");
}

#[test]
fn an_edit_that_leaves_something_amiss_says_so() {
    let fake = Fake::start(|asked| {
        let mut agent = agent("hello", 7, "Greet.");
        if !asked.line.starts_with("GET") {
            agent["status"] = json!({"phase": "Error", "lastError": "there is no ModelEndpoint \"nobody\""});
        }
        ok(&agent)
    });
    let edited = edit(&fake, "sed -i 's/Greet/Wave/' \"$1\"");
    assert_eq!(edited.ok(), "agent/hello edited\n");
    assert!(edited.stderr.contains("can't be used as it is: there is no ModelEndpoint"), "{edited:?}");
}

#[test]
fn an_edit_that_somebody_else_came_before_is_kept_where_it_says() {
    let fake = Fake::start(|asked| match asked.line.starts_with("GET") {
        true => ok(&agent("hello", 7, "Greet.")),
        false => problem(409, "conflict", "the Agent \"hello\" has changed"),
    });
    let edited = edit(&fake, "sed -i 's/Greet/Wave/' \"$1\"");
    edited.failed(1, &["nothing was stored", "somebody else has changed it", "what you wrote is in /"]);
    let kept = edited.stderr.lines().find_map(|line| line.trim().strip_prefix("what you wrote is in "));
    assert!(fs::read_to_string(kept.unwrap()).unwrap().contains("Wave."), "{edited:?}");
}

#[test]
fn somebody_elses_change_is_shown_and_not_overwritten_unseen() {
    let mut version = 7;
    let fake = Fake::start(move |asked| {
        if asked.line.starts_with("GET") {
            let prompt = if version == 7 { "Greet." } else { "Greet in Latin." };
            return ok(&agent("hello", version, prompt));
        }
        let is_current = asked.head.contains(&format!("\"{version}\""));
        if version == 7 {
            version = 8;
            return problem(409, "conflict", "the Agent \"hello\" has changed");
        }
        if is_current { ok(&agent("hello", 9, "Wave.")) } else { problem(409, "conflict", "again") }
    });
    let script = r#"
n=$(cat "$0.n" 2>/dev/null || echo 0); n=$((n + 1)); echo $n > "$0.n"; cp "$1" "$0.seen.$n"
[ $n = 1 ] && sed -i 's/Greet/Wave/' "$1" || echo >> "$1""#;
    assert_eq!(edit(&fake, script).ok(), "agent/hello edited\n");
    let seen = fs::read_to_string(fake.folder().join("editor.seen.2")).unwrap();
    for part in ["somebody else has changed it", "#:   +  prompt: Greet in Latin.", "\n  prompt: Wave."] {
        assert!(seen.contains(part), "no {part:?} in {seen}");
    }
}

const MANIFEST: &str = "kind: Agent\nmetadata: {name: hello}\nspec: {model_ref: mock, prompt: Wave.}\n";

#[test]
fn a_diff_shows_what_apply_would_change() {
    let fake = Fake::start(|asked| match &asked.line {
        line if line.starts_with("GET") => ok(&agent("hello", 7, "Greet.")),
        line if line.starts_with("POST /v1/check") => {
            let checked =
                json!({"kind": "Agent", "namespace": "default", "name": "hello", "outcome": "configured"});
            ok(&json!({ "items": [checked] }))
        }
        _ => ok(&agent("hello", 8, "Wave.")),
    });
    let differs = fake.ostler_with(MANIFEST, ["diff", "-f", "-"]);
    let expected = "--- agent/hello (stored)\n+++ agent/hello (manifest)\n@@ -5,4 +5,4 @@\n   namespace: default\n spec:\n   model_ref: mock\n-  prompt: Greet.\n+  prompt: Wave.\n";
    assert_eq!(differs.ended(1), expected);
    assert_eq!(fake.lines()[1], "POST /v1/agents?dry_run=true");
    let dry = fake.ostler_with(MANIFEST, ["apply", "--dry-run", "-f", "-"]);
    assert_eq!(dry.ok(), "agent/hello configured (dry run)\n");
    assert!(fake.lines().iter().any(|line| line == "POST /v1/check"), "{:?}", fake.lines());
}

#[test]
fn a_server_that_can_not_check_is_asked_one_by_one() {
    let old = Fake::start(|asked| match &asked.line {
        line if line.starts_with("POST /v1/check") => problem(404, "unknown_route", "there is no route"),
        line if line.starts_with("GET") => ok(&agent("hello", 7, "Greet.")),
        _ => ok(&agent("hello", 8, "Wave.")),
    });
    let applied = old.ostler_with(MANIFEST, ["apply", "-f", "-"]);
    assert_eq!(applied.ok(), "agent/hello configured\n");
}

#[test]
fn a_diff_tells_sameness_and_failure_apart() {
    let fake = Fake::start(|_| ok(&agent("hello", 7, "Wave.")));
    assert_eq!(fake.ostler_with(MANIFEST, ["diff", "-f", "-"]).ok(), "");
    fake.ostler_with("kind: Agnet\n", ["diff", "-f", "-"]).failed(2, &["mistakes", "nothing was compared"]);
    let refusing = Fake::start(|asked| match &asked.line {
        line if line.starts_with("GET") => problem(404, "not_found", "no"),
        _ => problem(400, "invalid_manifest", "not so"),
    });
    refusing.ostler_with(MANIFEST, ["diff", "-f", "-"]).failed(2, &["agent/hello", "not so"]);
    let closed = Fake::start(|_| problem(403, "forbidden", "role reader may not"));
    closed.ostler_with(MANIFEST, ["diff", "-f", "-"]).failed(7, &["role reader may not"]);
}

#[test]
fn a_watch_shows_each_change_once_over_connections_that_drop() {
    let mut n_watches = 0;
    let fake = Fake::start(move |asked| {
        if !asked.line.contains("/watch") {
            return ok(&json!({ "items": [agent("hello", 1, "x")] }));
        }
        n_watches += 1;
        let known = change(1, "added", &agent("hello", 1, "x"));
        match n_watches {
            1 => stream(&format!("{known}{}", change(2, "updated", &agent("hello", 2, "x")))),
            2 => stream(&format!(
                "{}{}{}",
                // A server that can't go on behind an id begins anew.
                change(3, "added", &agent("hello", 2, "x")),
                change(4, "added", &agent("other", 3, "x")),
                change(5, "deleted", &agent("hello", 2, "x")),
            )),
            _ => problem(403, "forbidden", "that is enough"),
        }
    });
    let mut command = ostler(fake.folder());
    let ran = run(command.args(["get", "agents", "-w", "-l", "team=a"]));
    assert_eq!(ran.code, 7, "{ran:?}");
    let names: Vec<&str> = ran.stdout.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["NAME", "hello", "hello", "other", "hello"], "{ran:?}");
    assert!(ran.stdout.trim_end().ends_with("(deleted)"), "{ran:?}");
    assert!(ran.stderr.contains("trying again in"), "{ran:?}");
    let asked: Vec<Asked> = fake.asked.try_iter().filter(|asked| asked.line.contains("watch")).collect();
    assert_eq!(asked[0].line, "GET /v1/agents/watch?namespace=default&labelSelector=team%3Da");
    let ids: Vec<Option<String>> = asked
        .iter()
        .map(|asked| {
            asked
                .head
                .to_lowercase()
                .lines()
                .find_map(|line| Some(line.strip_prefix("last-event-id: ")?.to_owned()))
        })
        .collect();
    assert_eq!(ids, [None, Some("2".into()), Some("5".into())]);
}

#[test]
fn a_watch_for_programs_is_one_object_per_line() {
    let mut is_first = true;
    let fake = Fake::start(move |_| match std::mem::take(&mut is_first) {
        true => stream(&change(1, "added", &agent("hello", 1, "x"))),
        false => problem(403, "forbidden", "enough"),
    });
    let ran = fake.ostler(["get", "agents", "hello", "-w", "-o", "json"]);
    let line: Value = serde_json::from_str(ran.ended(7).lines().next().unwrap()).unwrap();
    assert_eq!((&line["type"], &line["resource"]["metadata"]["name"]), (&json!("added"), &json!("hello")));
    assert_eq!(fake.lines()[0], "GET /v1/agents/watch?namespace=default&name=hello");
    fake.ostler(["get", "agent/a", "tool/b", "-w"]).failed(2, &["-w watches one"]);
}

#[test]
fn events_of_the_server_are_shown_as_they_come() {
    let mut is_first = true;
    let event = json!({"id": 4, "timestamp": "2026-01-02T03:04:05Z", "type": "task.succeeded", "kind": "Task",
        "name": "one", "namespace": "default", "message": "well done"});
    let data = format!("id: 4\nevent: event\ndata: {event}\n\n");
    let fake = Fake::start(move |_| match std::mem::take(&mut is_first) {
        true => stream(&data),
        false => problem(403, "forbidden", "enough"),
    });
    let mut command = ostler(fake.folder());
    let mut child =
        command.args(["events", "-w", "-A"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines: Vec<String> = lines_of(child.stdout.take().unwrap()).iter().collect();
    child.wait().unwrap();
    assert!(
        lines[0].starts_with("TIME ")
            && lines[0].contains(" NAMESPACE ")
            && lines[1].contains(" default ")
            && lines[1].contains(" task/one ")
            && lines[1].ends_with("well done")
    );
    assert_eq!(fake.lines()[0], "GET /v1/events/watch?namespace=*");
    fake.ostler(["events"]).failed(2, &["TASK"]);
}

fn task(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "ostler.dev/v1", "kind": "Task",
        "metadata": {"name": name, "namespace": "default", "uid": "task_1", "resourceVersion": "3",
            "createdAt": "2026-01-02T03:04:05Z"},
        "spec": spec,
        "status": {"phase": "Running", "state": "running", "startedAt": "2026-01-02T03:04:05Z", "lastEvent": 1},
    })
}

fn pipeline(asked: &Asked) -> String {
    let message = |from: &str, to: &str, phase: &str, error: &str| {
        json!({"from_agent": from, "to_agent": to, "phase": phase, "content": "the moon", "attempts": 2,
            "timestamp": "2026-01-02T03:04:05Z", "processed_at": "2026-01-02T03:04:07Z", "last_error": error})
    };
    let line = asked.line.split('?').next().unwrap();
    match line {
        "GET /v1/tasks/t" => ok(&task("t", &json!({"system": "report", "input": {"topic": "the moon"}}))),
        "GET /v1/tasks/task_1/messages" => ok(&json!({"messages": [
            message("system", "researcher", "Succeeded", ""),
            message("researcher", "writer", "RetryPending", "too slow"),
        ]})),
        "GET /v1/tasks/task_1/steps" => ok(&json!({"items": []})),
        "GET /v1/agent-systems/report" => ok(&json!({"apiVersion": "ostler.dev/v1", "kind": "AgentSystem",
            "metadata": {"name": "report", "namespace": "default"},
            "spec": {"agents": ["researcher", "writer", "editor"]}})),
        _ => problem(404, "not_found", "no such thing"),
    }
}

#[test]
fn the_graph_of_a_task_shows_what_each_agent_has_done() {
    let fake = Fake::start(pipeline);
    let drawn = fake.ostler(["graph", "task/t"]);
    assert_eq!(drawn.ok().lines().count(), 4, "{drawn:?}");
    for part in ["│ researcher  ├──▶│ writer", "│ done, 2.00s │", "│ tries again, 2.00s │", "│ not yet │"]
    {
        assert!(drawn.stdout.contains(part), "no {part:?} in {}", drawn.stdout);
    }
}

#[test]
fn the_graph_of_a_task_is_of_those_who_did_it_whatever_the_system_is_now() {
    let system = |agents: &Value| {
        ok(&json!({"apiVersion": "ostler.dev/v1", "kind": "AgentSystem",
            "metadata": {"name": "report", "namespace": "default"}, "spec": {"agents": agents}}))
    };
    let is_system = |asked: &Asked| asked.line.starts_with("GET /v1/agent-systems/report");
    let changed = Fake::start(move |asked| match is_system(asked) {
        true => system(&json!(["writer", "proofreader"])),
        false => pipeline(asked),
    });
    let gone = Fake::start(move |asked| match is_system(asked) {
        true => problem(404, "not_found", "there is no such system"),
        false => pipeline(asked),
    });
    for (fake, became) in [(changed, "has changed since"), (gone, "is gone")] {
        let drawn = fake.ostler(["graph", "task/t"]);
        for part in ["│ researcher  ├──▶│ writer", "│ done, 2.00s │", "│ tries again, 2.00s │"]
        {
            assert!(drawn.ok().contains(part), "no {part:?} in {}", drawn.stdout);
        }
        assert!(!drawn.stdout.contains("proofreader"), "{drawn:?}");
        assert!(drawn.stderr.contains(&format!("system/report {became}")), "{drawn:?}");
    }
}

#[test]
fn a_task_of_a_system_is_described_with_its_messages() {
    let fake = Fake::start(pipeline);
    let told = fake.ostler(["describe", "task", "t"]);
    for part in [
        "  for           system/report\n",
        "  system to researcher  Succeeded, 2 attempts\n",
        "  researcher to writer  RetryPending, 2 attempts\n",
        "                        too slow\n",
    ] {
        assert!(told.ok().contains(part), "no {part:?} in {}", told.stdout);
    }
}

#[test]
fn a_name_that_is_no_agents_may_be_a_systems() {
    let fake = Fake::start(|asked| match asked.line.starts_with("POST") {
        true if asked.body.contains("\"system\":\"report\"") => ok(&task("t", &json!({"system": "report"}))),
        true => problem(400, "bad_reference", "there is no agent \"report\""),
        false => pipeline(asked),
    });
    let ran = fake.ostler(["run", "-d", "report", "The moon.", "--label", "team=a", "--priority", "high"]);
    assert_eq!(ran.ok(), "t\n");
    let asked: Vec<Asked> = fake.asked.try_iter().collect();
    let lines: Vec<&str> = asked.iter().map(|asked| asked.line.split('?').next().unwrap()).collect();
    assert_eq!(lines, ["POST /v1/tasks", "GET /v1/agent-systems/report", "POST /v1/tasks"]);
    let sent = asked[2].json();
    assert_eq!(
        (&sent["spec"]["priority"], &sent["metadata"]["labels"]["team"]),
        (&json!("high"), &json!("a"))
    );
    assert_eq!(sent["spec"]["input"]["message"], "The moon.");
    fake.ostler(["run", "-d", "agent/report", "x"]).failed(1, &["there is no agent"]);
}

#[test]
fn a_retry_takes_other_input() {
    let fake = Fake::start(|_| ok(&task("t-2", &json!({"agent": "a"}))));
    assert_eq!(fake.ostler(["retry", "t", "--set", "quarter=Q4"]).ok(), "task/t-2 created\n");
    let asked = fake.asked.recv().unwrap();
    assert_eq!(asked.line, "POST /v1/tasks/t/retry?namespace=default");
    assert_eq!(asked.json(), json!({"overrides": {"input": {"quarter": "Q4"}}}));
    fake.ostler(["retry", "t", "--set", "x"]).failed(2, &["KEY=VALUE"]);
}

#[test]
fn namespaces_are_listed() {
    let fake = Fake::start(|_| ok(&json!({"namespaces": ["default", "team"]})));
    assert_eq!(fake.ostler(["get", "namespaces"]).ok(), "NAME\ndefault\nteam\n");
    assert_eq!(fake.ostler(["get", "ns", "-o", "name"]).ok(), "namespace/default\nnamespace/team\n");
    assert_eq!(fake.lines(), ["GET /v1/namespaces", "GET /v1/namespaces"]);
}

#[test]
fn of_many_only_those_that_change_are_shown() {
    let mut n_watches = 0;
    let made = |name: &str, version: u32, day: u32| {
        let mut agent = agent(name, version, "x");
        agent["metadata"]["createdAt"] = json!(format!("2026-01-{day:02}T00:00:00Z"));
        agent
    };
    let fake = Fake::start(move |asked| {
        if !asked.line.contains("/watch") {
            return ok(&json!({ "items": [made("listed", 1, 5)], "continue": "more" }));
        }
        n_watches += 1;
        match n_watches {
            1 => stream(&format!(
                "{}{}{}{}",
                change(1, "added", &made("old", 1, 2)),
                change(2, "added", &made("listed", 1, 5)),
                change(3, "added", &made("new", 1, 6)),
                change(4, "updated", &made("old", 2, 2)),
            )),
            _ => problem(403, "forbidden", "enough"),
        }
    });
    let ran = fake.ostler(["get", "agents", "-w", "--limit", "1"]);
    let names: Vec<&str> = ran.ended(7).lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["NAME", "listed", "new", "old"]);
}

#[test]
fn a_task_that_sleeps_says_on_what() {
    let sleeping = json!({
        "apiVersion": "ostler.dev/v1", "kind": "Task",
        "metadata": {"name": "t", "namespace": "default", "uid": "u1", "resourceVersion": "1",
            "createdAt": "2026-01-01T00:00:00.000Z"},
        "spec": {"agent": "a", "input": {"message": "hi"}},
        "status": {
            "phase": "Running", "state": "sleeping", "lastEvent": 3,
            "sleeping": {
                "until": "2100-01-01T00:00:00.000Z",
                "error": {"code": "model_rate_limited", "class": "transient", "message": "come back tomorrow"},
            },
        },
    });
    let fake = Fake::start(move |asked| match &asked.line {
        line if line.starts_with("GET /v1/tasks?") => ok(&json!({"items": [sleeping]})),
        line if line.contains("/messages") || line.contains("/steps") || line.contains("/events") => {
            ok(&json!({"items": [], "messages": []}))
        }
        _ => ok(&sleeping),
    });
    let listed = fake.ostler(["ps"]);
    assert!(listed.ok().contains("sleeping (model_rate_limited)"), "{listed:?}");
    let told = fake.ostler(["describe", "task", "t"]);
    for words in ["2100-01-01T00:00:00.000Z", "model_rate_limited: come back tomorrow"] {
        assert!(told.ok().contains(words), "no {words} in {told:?}");
    }
}
