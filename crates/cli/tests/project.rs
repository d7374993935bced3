//! A project from its first file on: init, validate, apply, describe, graph, wait, delete, doctor.

mod support;

use std::fs;

use support::{Up, ostler, run, run_with, slow_agent};

#[test]
fn a_new_project_is_valid_and_runs_at_once() {
    let up = Up::start();
    let made = up.ostler(["init", "first"]);
    assert_eq!(made.ok(), "first/README.md written\nfirst/agent.yaml written\nfirst/task.yaml written\n");
    let valid = up.ostler(["validate", "first"]);
    assert_eq!(
        valid.ok(),
        "first/agent.yaml: ok, model-endpoint/mock, agent/assistant\nfirst/task.yaml: ok, task/first-words\n"
    );
    assert_eq!(
        up.ostler(["apply", "-f", "first"]).ok(),
        "model-endpoint/mock created\nagent/assistant created\n"
    );
    assert!(up.ostler(["run", "assistant", "Hi."]).ok().starts_with("Hello!"));
    assert!(fs::read_to_string(up.folder().join("first/README.md")).unwrap().starts_with("# first\n"));

    fs::remove_file(up.folder().join("first/task.yaml")).unwrap();
    up.ostler(["init", "first"])
        .failed(1, &["nothing was written", "first/agent.yaml", "ostler init FOLDER"]);
    assert!(!up.folder().join("first/task.yaml").exists(), "it is all or nothing");
    for template in ["tool", "pipeline"] {
        up.ostler(["init", template, "-t", template]).ok();
        up.ostler(["validate", template]).ok();
    }
    up.ostler(["init", "x", "-t", "castle"]).failed(2, &["castle", "pipeline"]);
}

#[test]
fn every_mistake_of_every_file_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("a.yaml", "kind: Agent\nmetadata: {name: a}\nspec:\n  model_ref: m\n  prmpt: x\n");
    write(
        "deep/down/b.json",
        "{\"kind\": \"Tool\", \"metadata\": {\"name\": \"b\"}, \"spec\": {\"type\": \"htp\"}}",
    );
    write("good.yml", "kind: Agent\nmetadata: {name: c}\nspec: {model_ref: m}\n");
    let here = |arguments: &[&str]| run(ostler(folder.path()).args(arguments));
    let told = here(&["validate", "."]);
    told.failed(
        1,
        &[
            "mistakes in the manifests; 3 files read",
            "a.yaml:5:3: spec.prmpt",
            "did you mean \"prompt\"?",
            "b.json:1:",
        ],
    );
    assert_eq!(told.stdout, "./good.yml: ok, agent/c\n");
    let json = here(&["validate", "-f", "a.yaml", "-f", "good.yml", "-o", "json"]);
    let files: serde_json::Value = serde_json::from_str(json.ended(1)).unwrap();
    assert_eq!(files[0]["problems"][0]["line"], 5);
    assert_eq!((&files[1]["valid"], &files[1]["declares"][0]), (&true.into(), &"agent/c".into()));
    let piped = run_with(ostler(folder.path()).args(["validate", "-"]), "kind: Agnet\n");
    piped.failed(1, &["<stdin>:1:7", "did you mean \"Agent\"?"]);
    here(&["validate", "nowhere"]).failed(1, &["nowhere:1:1: can't be read"]);
    here(&["validate"]).failed(2, &["FILE"]);
}

const SYSTEM: &str = "kind: AgentSystem\nmetadata: {name: report}\nspec: {agents: [assistant, ghost]}\n";

#[test]
fn an_object_is_described_with_what_hangs_together_with_it() {
    let up = Up::start();
    up.ostler(["init", "."]).ok();
    up.ostler(["apply", "-f", "agent.yaml"]).ok();
    up.apply("kind: Agent\nmetadata: {name: ghost}\nspec: {model_ref: mock}\n").ok();
    up.apply(SYSTEM).ok();
    up.ostler(["delete", "agent", "ghost"]).ok();
    up.ostler(["run", "assistant", "Hi.", "--name", "one", "--label", "team=sales"]).ok();

    let agent = up.ostler(["describe", "agent", "assistant"]);
    for part in [
        "agent assistant\n",
        "labels        team=me\n",
        "  prompt        You are a friendly assistant.\n                Answer in one short sentence.\n",
        "\nneeds\n  model-endpoint/mock  mock mock-1\n",
        "\nsystems it is in\n  report\n",
        "\nlast tasks\n  one           succeeded, ",
    ] {
        assert!(agent.ok().contains(part), "no {part:?} in {}", agent.stdout);
    }
    let model = up.ostler(["describe", "model/mock"]);
    assert!(model.ok().contains("agents that ask it\n  assistant"), "{model:?}");
    let system = up.ostler(["describe", "system", "report"]);
    for part in ["agent/ghost      is not there; whoever needs it fails", "│ assistant ├──▶│ ghost │"]
    {
        assert!(system.ok().contains(part), "no {part:?} in {}", system.stdout);
    }
    let task = up.ostler(["describe", "task/one"]);
    for part in [
        "state         succeeded",
        "labels        team=sales",
        "\nrequest\n  for           assistant",
        "  message       Hi.",
        "\noutput\n  Hello! You asked",
        "\nsteps\n  step 0  model mock-1  ok",
    ] {
        assert!(task.ok().contains(part), "no {part:?} in {}", task.stdout);
    }
    up.apply("kind: Agent\nmetadata: {name: ghost}\nspec: {model_ref: mock}\n").ok();
    up.ostler(["run", "system/report", "Hi.", "--name", "two"]).ok();
    let task = up.ostler(["describe", "task/two"]);
    for agent in ["assistant", "ghost"] {
        let part = format!("  agent {agent}\n  step 0  model mock-1  ok");
        assert!(task.ok().contains(&part), "no {part:?} in {}", task.stdout);
    }
    up.ostler(["describe", "agent"]).failed(2, &["which agent?"]);
    up.ostler(["describe", "agent", "nobody"]).failed(1, &["there is no Agent \"nobody\""]);
    let both = up.ostler(["describe", "agent/assistant", "model/mock"]);
    assert!(both.ok().contains("\n\nmodel-endpoint mock\n"), "{both:?}");
}

#[test]
fn a_failed_task_is_described_with_a_way_out() {
    let up = Up::start();
    up.apply(&support::agent("broken", "provider: mock, default_model: m, options: {nonsense: \"1\"}")).ok();
    up.ostler(["run", "broken", "hi", "--name", "b"]).ended(3);
    let told = up.ostler(["describe", "task", "b"]);
    for part in ["state         failed", "\nerror\n  what ", "nonsense", "  remedy ", "ostler retry b"] {
        assert!(told.ok().contains(part), "no {part:?} in {}", told.stdout);
    }
}

#[test]
fn several_are_shown_by_name_and_what_is_missing_is_told() {
    let up = Up::start();
    up.ostler(["init", "."]).ok();
    up.ostler(["apply", "-f", "agent.yaml"]).ok();
    let both = up.ostler(["get", "agent/assistant", "model/mock"]);
    assert!(
        both.ok().starts_with("NAME              MODEL   TOOLS   AGE\nagent/assistant   mock"),
        "{both:?}"
    );
    assert!(both.stdout.contains("\n\nNAME                  PROVIDER   MODEL"), "{both:?}");
    assert_eq!(
        up.ostler(["get", "agent/assistant", "model/mock", "-o", "json"]).json().as_array().unwrap().len(),
        2
    );
    let some = up.ostler(["get", "agents", "assistant", "nobody", "-o", "name"]);
    assert_eq!(some.ended(1), "agent/assistant\n");
    assert!(some.stderr.contains("there is no Agent \"nobody\""), "{some:?}");
    assert_eq!(up.ostler(["get", "all", "-o", "name"]).ok(), "model-endpoint/mock\nagent/assistant\n");
    up.ostler(["get", "agent", "assistant", "-A"]).failed(2, &["a name stands for one"]);
    assert!(up.ostler(["get", "workers"]).ok().contains("Ready"));
    assert_eq!(up.ostler(["ps", "-o", "json"]).ok(), "[]\n");
    assert!(up.ostler(["workers", "-o", "name"]).ok().starts_with("worker/"));
}

#[test]
fn a_name_that_stands_in_the_wrong_place_is_told_where_it_belongs() {
    let up = Up::with_hello();
    assert!(up.ostler(["secret", "list"]).ok().is_empty(), "no head above nothing");
    assert!(up.ostler(["secret", "list"]).stderr.contains("no secrets in namespace default"));
    up.ostler(["run", "hello", "hi", "--name", "one", "--session", "room-12"]).ok();
    for verb in ["get", "describe"] {
        up.ostler([verb, "session", "room-12"]).failed(1, &["no Session", "ostler get sessions --live"]);
        up.ostler([verb, "hello"]).failed(2, &["there is no kind \"hello\"", "did you mean agent/hello?"]);
    }
    up.ostler(["describe", "agnets"]).failed(2, &["did you mean agents?"]);
    up.ostler(["logs", "hello"]).failed(1, &["there is no task \"hello\"", "`ostler logs agent/hello`"]);
    up.ostler(["logs", "-f", "hello"]).failed(1, &["`ostler logs agent/hello`"]);
    up.ostler(["graph", "one"]).failed(1, &["there is no AgentSystem \"one\"", "`ostler graph task/one`"]);
    up.ostler(["delete", "worker", "local"]).failed(2, &["`ostler cordon local`", "`ostler drain local`"]);
    for verb in ["apply", "diff"] {
        let without = up.ostler([verb]);
        assert!(
            without.stderr.contains("--file <FILE>|FILE") || without.stderr.contains("FILE|--file <FILE>")
        );
    }
}

#[test]
fn a_task_for_a_system_without_its_agent_is_told_who_names_it() {
    let up = Up::with_hello();
    up.apply("kind: AgentSystem\nmetadata: {name: report}\nspec: {agents: [hello]}\n").ok();
    up.ostler(["delete", "agent", "hello"]).ok();
    up.ostler(["run", "system/report", "hi"])
        .failed(1, &["system \"report\" names the Agent \"hello\", which doesn't exist; apply it first"]);
}

#[test]
fn a_project_is_deleted_as_it_was_applied() {
    let up = Up::start();
    up.ostler(["init", "p"]).ok();
    up.ostler(["apply", "-f", "p"]).ok();
    let dry = up.ostler(["delete", "-f", "p", "--dry-run"]);
    assert_eq!(dry.ok(), "agent/assistant deleted (dry run)\nmodel-endpoint/mock deleted (dry run)\n");
    let gone = up.ostler(["delete", "-f", "p"]);
    assert_eq!(gone.ok(), "agent/assistant deleted\nmodel-endpoint/mock deleted\n");
    assert!(gone.stderr.contains("task/first-words skipped"), "{gone:?}");
    up.ostler(["delete", "-f", "p"]).failed(1, &["there is no Agent"]);
    assert_eq!(up.ostler(["delete", "-f", "p", "--ignore-not-found"]).ok(), "");
    up.apply("kind: Tool\nmetadata: {name: a}\nspec: {endpoint: 'http://127.0.0.1'}\n---\nkind: Tool\nmetadata: {name: b}\nspec: {endpoint: 'http://127.0.0.1'}\n").ok();
    up.ostler(["delete", "tools"]).failed(2, &["which tools?", "--all"]);
    assert_eq!(up.ostler(["delete", "tools", "--all"]).ok(), "tool/a deleted\ntool/b deleted\n");
    assert_eq!(up.ostler(["delete", "tools", "--all"]).ok(), "");
    up.ostler(["delete"]).failed(2, &["KIND"]);
}

#[test]
fn waiting_ends_with_what_was_waited_for_or_says_why_not() {
    let up = Up::with_hello();
    up.ostler(["run", "-d", "hello", "hi", "--name", "one"]).ok();
    assert_eq!(up.ostler(["wait", "task/one", "--for=succeeded"]).ok(), "task/one succeeded\n");
    assert_eq!(
        up.ostler(["wait", "tasks", "one", "--for", "status.phase=Succeeded"]).ok(),
        "task/one status.phase=Succeeded\n"
    );
    up.apply(&slow_agent()).ok();
    up.ostler(["run", "-d", "slow", "hi", "--name", "two"]).ok();
    let late = up.ostler(["wait", "task/two", "--timeout", "300ms"]);
    late.failed(8, &["task/two is not ended after 300ms; it is ", "--timeout"]);
    up.ostler(["cancel", "two"]).ok();
    up.ostler(["wait", "task/two", "--for=succeeded"])
        .failed(5, &["task/two ended as cancelled", "ostler describe task/two"]);
    assert_eq!(up.ostler(["wait", "agent/nobody", "--for=deleted"]).ok(), "agent/nobody deleted\n");
    up.ostler(["wait", "agent/hello", "--for=succeeded"]).failed(2, &["neither succeed nor end"]);
    up.ostler(["wait", "task/onee"]).failed(1, &["there is no task \"onee\"", "did you mean one?"]);
    let never = up.ostler(["wait", "task/three", "--for=created", "--timeout", "300ms"]);
    never.failed(8, &["task/three is not created after 300ms; it is not there"]);
    assert_eq!(up.ostler(["wait", "task/one", "--for=created"]).ok(), "task/one created\n");
    up.ostler(["wait", "worker/nobody", "--for=ready", "--timeout", "300ms"]).failed(8, &["it is not there"]);
    up.ostler(["wait", "task/one", "--for=luck"]).failed(2, &["FIELD=VALUE"]);
}

#[test]
fn a_graph_needs_no_server_and_a_task_has_one_too() {
    let folder = tempfile::tempdir().unwrap();
    let here = |arguments: &[&str]| run(ostler(folder.path()).args(arguments));
    here(&["init", "p", "-t", "pipeline"]).ok();
    let drawn = here(&["graph", "-f", "p"]);
    assert_eq!(
        drawn.ok(),
        "agent-system/report\n┌────────────┐   ┌────────┐   ┌────────┐\n│ researcher ├──▶│ writer ├──▶│ editor │\n└────────────┘   └────────┘   └────────┘\n"
    );
    assert!(here(&["graph", "-f", "p", "-o", "mermaid"]).ok().starts_with("flowchart TD\n"));
    assert_eq!(here(&["graph", "-f", "p", "-o", "json"]).json()["edges"][0]["to"], "writer");
    here(&["graph", "-f", "p/task.yaml"]).failed(1, &["no AgentSystem"]);
    let up = Up::with_hello();
    up.ostler(["run", "hello", "hi", "--name", "one"]).ok();
    assert!(up.ostler(["graph", "task/one"]).ok().contains("│ succeeded, ~"));
    up.ostler(["graph", "agent/hello"]).failed(2, &["agents have no graph"]);
}

#[test]
fn the_doctor_finds_nothing_wrong_with_a_new_server_and_says_what_is_wrong_without_one() {
    let up = Up::with_hello();
    let well = up.ostler(["doctor", "-o", "json"]);
    let checks = well.json();
    let verdict = |name: &str| {
        let check = checks.as_array().unwrap().iter().find(|check| check["name"] == name);
        check.unwrap_or_else(|| panic!("no {name} in {checks:#}"))["verdict"].as_str().unwrap().to_owned()
    };
    for name in [
        "server",
        "version",
        "token",
        "store",
        "clock",
        "data folder",
        "model secrets",
        "workers",
        "queue",
        "quarantine",
        "resources",
    ] {
        assert_eq!(verdict(name), "ok", "{checks:#}");
    }
    up.apply("kind: ModelEndpoint\nmetadata: {name: real}\nspec: {provider: openai, default_model: m, auth: {secretRef: no-such-key}}\n").ok();
    let ill = up.ostler(["doctor"]);
    assert!(ill.ended(1).contains("fail  model secrets  not there: real: default/no-such-key"), "{ill:?}");
    let nowhere = tempfile::tempdir().unwrap();
    let told = run(ostler(nowhere.path()).args(["doctor"]));
    assert!(told.ended(1).contains("fail  server         no server found"), "{told:?}");
    assert!(told.stdout.contains("> start one with `ostler up`"), "{told:?}");
}

#[test]
fn shells_are_told_our_words() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(ostler(folder.path()).args(["completion", shell]));
        assert!(script.ok().contains("validate"), "{shell}");
        let knows_kinds = matches!(shell, "bash" | "zsh" | "fish");
        assert_eq!(script.stdout.contains("model-endpoints"), knows_kinds, "{shell}");
    }
    run(ostler(folder.path()).args(["completion", "tcsh"])).failed(2, &["tcsh"]);
}

#[test]
fn a_system_is_run_by_its_name_where_no_agent_has_it() {
    let up = Up::with_hello();
    up.ostler(["run", "agent/hello", "hi"]).ok();
    up.ostler(["run", "system/report", "hi"]).failed(1, &["error: "]);
    up.ostler(["run", "tool/x", "hi"]).failed(2, &["tools are not given tasks"]);
    up.ostler(["run", "hello", "hi", "--label", "x"]).failed(2, &["KEY=VALUE"]);
}
