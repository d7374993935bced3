//! The main job through the real binary: declare, run, look, stop, ask again.

mod support;

use serde_json::Value;
use support::{Up, agent, example, slow_agent};

#[test]
fn an_agent_is_declared_run_and_looked_at() {
    let up = Up::start();

    let applied = up.ostler(["apply", "-f", &example("hello/agent.yaml")]);
    assert_eq!(applied.ok(), "model-endpoint/mock created\nagent/hello created\n");

    let ran = up.ostler(["run", "hello", "Say", "hello.", "--name", "first"]);
    assert!(ran.ok().starts_with("Hello! You asked: \"Say hello.\""), "{ran:?}");
    assert_eq!(ran.stdout.lines().count(), 1, "only the answer goes to stdout");
    for words in ["accepted for agent hello", "step 0  model mock-1  ok", "task first succeeded after"] {
        assert!(ran.stderr.contains(words), "no {words:?} in {}", ran.stderr);
    }

    let task = up.ostler(["get", "task", "first", "-o", "json"]).json();
    assert_eq!(task["status"]["state"], "succeeded");
    assert_eq!(task["status"]["output"]["last_output"].as_str(), Some(ran.stdout.trim_end()));

    let logs = up.ostler(["logs", "first"]);
    assert_eq!(
        logs.ok(),
        up.ostler(["logs", "-f", "first"]).ok(),
        "a log reads the same live and afterwards"
    );
    assert!(logs.stdout.lines().all(|line| line.starts_with("20") && line.contains('Z')), "{logs:?}");

    let of_agent = up.ostler(["logs", "agent/hello"]);
    assert!(of_agent.ok().lines().all(|line| line.contains(" first: ")), "{of_agent:?}");
    assert!(of_agent.stdout.contains("task accepted for agent hello"), "{of_agent:?}");
    assert_eq!(up.ostler(["logs", "task/first"]).stdout, logs.stdout);
    up.ostler(["logs", "agent/hallo"]).failed(1, &["hallo", "did you mean hello?"]);
    up.ostler(["logs", "-f", "agent/hello"]).failed(2, &["not followed"]);
    up.ostler(["logs", "tool/x"]).failed(2, &["tools have no log"]);

    let trace = up.ostler(["trace", "first"]);
    assert!(trace.ok().contains("STEP") && trace.stdout.contains("model mock-1"), "{trace:?}");
    assert!(trace.stdout.contains('█') || trace.stdout.contains('▏'), "{trace:?}");
}

#[test]
fn what_up_says_to_try_works_in_any_folder() {
    let elsewhere = tempfile::tempdir().unwrap();
    let data = elsewhere.path().join("it's here");
    for (arguments, from) in
        [(vec![], None), (vec!["--data", data.to_str().unwrap()], Some(elsewhere.path()))]
    {
        let folder = tempfile::tempdir().unwrap();
        let up = Up::start_in(folder.path(), &arguments);
        let said = up.wait_for_line("run assistant").join("\n");
        let commands = said.split_once("try it").unwrap().1;
        let ran = support::run(&mut support::shell(from.unwrap_or(folder.path()), commands));
        assert!(ran.ok().contains("model-endpoint/mock created\nagent/assistant created\n"), "{ran:?}");
        assert!(ran.stdout.contains("Say hello to the world."), "{ran:?}");
    }
}

#[test]
fn applying_again_says_what_changed() {
    let up = Up::with_hello();
    let hello = example("hello/agent.yaml");
    assert_eq!(
        up.ostler(["apply", "-f", &hello]).ok(),
        "model-endpoint/mock unchanged\nagent/hello unchanged\n"
    );
    let other = std::fs::read_to_string(&hello).unwrap().replace("max_steps: 3", "max_steps: 4");
    assert_eq!(up.apply(&other).ok(), "model-endpoint/mock unchanged\nagent/hello configured\n");

    let yaml = up.ostler(["get", "agents", "-o", "yaml"]);
    assert_eq!(up.apply(yaml.ok()).ok(), "agent/hello unchanged\n", "what get prints, apply takes");
}

#[test]
fn a_folder_is_applied_in_an_order_that_works() {
    let up = Up::start();
    let folder = example("hello");
    let applied = up.ostler(["apply", "-f", &folder]);
    assert_eq!(applied.ok(), "model-endpoint/mock created\nagent/hello created\n");
    assert!(applied.stderr.contains("task/hello-world skipped: --run"), "{applied:?}");
    assert_eq!(
        up.ostler(["apply", "--run", "-f", &folder]).ok(),
        "model-endpoint/mock unchanged\nagent/hello unchanged\ntask/hello-world created\n"
    );
    up.wait_for_state("hello-world", "succeeded");
    let again = example("hello/task.yaml");
    assert_eq!(up.ostler(["apply", "-f", &again]).ok(), "task/hello-world unchanged\n");
}

#[test]
fn lists_come_in_every_form() {
    let up = Up::with_hello();
    let table = up.ostler(["get", "agents"]);
    assert!(table.ok().starts_with("NAME    MODEL   TOOLS   AGE\nhello   mock    -       "), "{table:?}");
    assert!(up.ostler(["get", "agents", "-o", "wide"]).ok().contains("MAX STEPS"));
    assert_eq!(up.ostler(["get", "agents", "-o", "name"]).ok(), "agent/hello\n");
    assert_eq!(up.ostler(["get", "agent/hello", "-o", "name"]).ok(), "agent/hello\n");
    assert_eq!(up.ostler(["get", "Agent", "-o", "json"]).json()[0]["metadata"]["name"], "hello");
    assert!(up.ostler(["get", "mep", "-A"]).ok().starts_with("NAMESPACE   NAME   PROVIDER"));
    let none = up.ostler(["get", "tools"]);
    assert_eq!((none.ok(), none.stderr.as_str()), ("", "no tools in namespace default\n"));

    assert_eq!(up.ostler(["delete", "agent", "hello"]).ok(), "agent/hello deleted\n");
    up.ostler(["delete", "agent/hello"]).failed(1, &["error: there is no Agent \"hello\""]);
    up.ostler(["delete", "task", "x"]).failed(1, &["error: there is no task \"x\""]);
}

#[test]
fn namespaces_keep_things_apart() {
    let up = Up::start();
    let hello = example("hello/agent.yaml");
    up.ostler(["apply", "-n", "team", "-f", &hello]).ok();
    assert_eq!(up.ostler(["get", "agents", "-o", "name"]).ok(), "");
    assert_eq!(up.ostler(["-n", "team", "get", "agents", "-o", "name"]).ok(), "agent/hello\n");
    up.ostler(["run", "-n", "team", "hello", "hi", "--name", "one"]).ok();
    up.ostler(["logs", "one"]).failed(1, &["there is no task \"one\""]);
    up.ostler(["logs", "one", "-n", "team"]).ok();
    let all = up.ostler(["ps", "-a", "-A"]);
    assert!(all.ok().lines().nth(1).unwrap().starts_with("team        one"), "{all:?}");
}

#[test]
fn a_task_under_way_is_listed_and_cancelled() {
    let up = Up::start();
    up.apply(&slow_agent()).ok();
    let name = up.ostler(["run", "-d", "slow", "hurry"]);
    let name = name.ok().trim();
    // The first attempt has begun once its event is there.
    let mut follow = support::ostler(up.folder());
    follow.args(["events", name, "-f", "-o", "json"]).stdout(std::process::Stdio::piped());
    let mut follow = follow.spawn().unwrap();
    let events = support::lines_of(follow.stdout.take().unwrap());
    assert!(events.iter().any(|line| line.contains("attempt_started")));

    let listed = up.ostler(["ps"]);
    assert!(listed.ok().starts_with("NAME "), "{listed:?}");
    let row: Vec<&str> = listed.stdout.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..4], [name, "slow", "running", "0"]);
    let trace = up.ostler(["trace", name]);
    assert!(trace.ok().contains('░'), "a step under way is drawn: {trace:?}");

    let cancelled = up.ostler(["cancel", name, "--reason", "no longer needed"]);
    assert_eq!(cancelled.ok(), format!("task/{name} cancelled\n"));
    assert!(events.iter().any(|line| line.contains("task_ended")), "who follows sees it end");
    assert!(follow.wait().unwrap().success());
    assert!(up.ostler(["logs", name]).ok().contains("no longer needed"));
    assert_eq!(
        up.ostler(["cancel", name]).ok(),
        format!("task/{name} cancelled\n"),
        "as often as it is said"
    );
    assert_eq!(up.ostler(["ps"]).ok(), "");
    assert!(up.ostler(["ps", "-a"]).ok().contains("cancelled"));
}

#[test]
fn a_task_is_asked_for_again_and_put_away() {
    let up = Up::with_hello();
    up.ostler(["run", "hello", "Hi", "--name", "one"]).ok();
    let again = up.ostler(["retry", "one", "--follow"]);
    assert!(again.ok().starts_with("Hello! You asked: \"Hi\""), "{again:?}");
    let created = up.ostler(["retry", "one"]);
    let name = created.ok().strip_prefix("task/").and_then(|line| line.strip_suffix(" created\n")).unwrap();
    up.wait_for_state(name, "succeeded");

    assert_eq!(up.ostler(["archive", "one"]).ok(), "task/one archived\n");
    assert!(!up.ostler(["get", "tasks", "-o", "name"]).ok().contains("task/one\n"));
    up.ostler(["get", "task", "one"]).ok();
}

#[test]
fn events_go_on_behind_the_last_one() {
    let up = Up::with_hello();
    up.ostler(["run", "hello", "Hi", "--name", "one"]).ok();
    let whole = up.ostler(["events", "one", "-o", "json"]);
    let seqs: Vec<u64> = whole
        .ok()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    for after in 0..=seqs.len() {
        let arguments = ["events", "one", "-o", "json", "--after", &after.to_string()];
        let rest: Vec<&str> = whole.stdout.lines().skip(after).collect();
        assert_eq!(up.ostler(arguments).ok().lines().collect::<Vec<_>>(), rest);
        let followed = up.ostler(arguments.into_iter().chain(["-f"]));
        assert_eq!(followed.ok().lines().collect::<Vec<_>>(), rest);
    }
    assert!(up.ostler(["events", "one"]).ok().starts_with("SEQ    TIME"));
}

#[test]
fn a_run_takes_its_message_from_words_from_stdin_or_from_input() {
    let up = Up::with_hello();
    let piped = up.ostler_with("from a pipe", ["run", "hello", "-"]);
    assert!(piped.ok().contains("\"from a pipe\""), "{piped:?}");
    let input = up.ostler(["run", "hello", "--input", "topic=sales", "--input", "quarter=Q3", "-o", "json"]);
    let task = input.json();
    assert_eq!(task["spec"]["input"], serde_json::json!({ "topic": "sales", "quarter": "Q3" }));
    let arguments =
        ["run", "hello", "hi", "--session", "s", "--priority", "high", "--deadline", "5m", "-o", "json"];
    let task = up.ostler(arguments).json();
    assert_eq!((&task["spec"]["session"], &task["spec"]["priority"]), (&"s".into(), &"high".into()));
    up.ostler(["run", "hello"]).failed(2, &["MESSAGE"]);
    up.ostler(["run", "hello", "--input", "nothing"]).failed(2, &["KEY=VALUE"]);
    up.ostler(["run", "hello", "hi", "--deadline", "soon"]).failed(2, &["30s"]);
}

#[test]
fn how_a_task_ended_is_told_by_the_exit_code() {
    let up = Up::start();
    up.apply(&agent("broken", "provider: mock, default_model: m, options: {nonsense: \"1\"}")).ok();
    let failed = up.ostler(["run", "broken", "hi", "--name", "b"]);
    failed.failed(3, &["task b failed after", "error: ", "nonsense", "hint: `ostler trace b`"]);
    assert_eq!(failed.stdout, "");
    assert!(up.ostler(["trace", "b"]).ok().contains("nonsense"));

    // Nothing listens there: that may pass, so it counts as a dead letter once the retries are used up.
    let nowhere =
        "provider: openai, base_url: \"http://127.0.0.1:9/v1\", default_model: m, allowPrivate: true";
    up.apply(&agent("nowhere", nowhere)).ok();
    up.ostler(["run", "nowhere", "hi"]).failed(4, &["used up its retries", "error: "]);

    up.apply(&slow_agent()).ok();
    let mut run = support::ostler(up.folder());
    run.args(["run", "slow", "hi", "--name", "s"]).stderr(std::process::Stdio::piped());
    let mut run = run.spawn().unwrap();
    let progress = support::lines_of(run.stderr.take().unwrap());
    assert!(progress.iter().any(|line| line.contains("attempt 1 started")));
    up.ostler(["cancel", "s"]).ok();
    assert_eq!(run.wait().unwrap().code(), Some(5));
}

/// Who says that a task belongs in the default region need not say anything of the worker.
#[test]
fn a_task_of_the_default_region_runs_where_nobody_spoke_of_regions() {
    let up = Up::with_hello();
    let task = "kind: Task\nmetadata: {name: placed}\nspec:\n  agent: hello\n  input: {message: hi}\n  \
                requirements: {region: default}\n";
    assert_eq!(up.apply(task).ok(), "task/placed created\n");
    up.ostler(["wait", "task/placed", "--for=succeeded", "--timeout", "60s"]).ok();
    let workers = up.ostler(["workers", "-o", "json"]).json();
    assert_eq!(workers[0]["spec"]["region"], "default");
}
