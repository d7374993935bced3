//! Folders of manifests as people have them: with a Worker in it, very large, and brought from another server.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::{fmt::Write, fs};

use support::Up;

const WORKER: &str = "kind: Worker\nmetadata: {name: build-1}\nspec: {region: eu}\n";
const AGENT: &str = "kind: Agent\nmetadata: {name: a}\nspec: {model_ref: mock}\n";

#[test]
fn a_worker_in_a_folder_is_noted_and_the_rest_is_applied() {
    let up = Up::start();
    let folder = up.folder().join("project");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("agent.yaml"), AGENT).unwrap();
    fs::write(folder.join("worker.yaml"), WORKER).unwrap();
    up.ostler(["diff", "-f", "project"]).ended(1);
    let applied = up.ostler(["apply", "-f", "project"]);
    assert_eq!(applied.ok(), "agent/a created\n");
    for part in ["project/worker.yaml:1:7: kind: a worker is not declared", "worker/build-1 skipped"] {
        assert!(applied.stderr.contains(part), "no {part:?} in {}", applied.stderr);
    }
    assert_eq!(up.ostler(["diff", "-f", "project"]).ok(), "");
    assert_eq!(up.ostler(["delete", "-f", "project"]).ok(), "agent/a deleted\n");
}

/// More than a server takes in one request, in bytes.
fn many(count: usize, model: &str) -> String {
    let mut text = String::new();
    let prompt = "x".repeat(13_000);
    for number in 0..count {
        writeln!(text, "---\nkind: Agent\nmetadata: {{name: a{number}}}").unwrap();
        writeln!(text, "spec: {{model_ref: {model}, prompt: {prompt}}}").unwrap();
    }
    text
}

#[test]
fn a_folder_that_is_too_large_for_one_request_is_checked_and_applied() {
    let up = Up::start();
    let folder = up.folder().join("large");
    fs::create_dir(&folder).unwrap();
    for (name, first) in [("one.yaml", "a"), ("two.yaml", "b")] {
        fs::write(folder.join(name), many(200, "small").replace("{name: a", &format!("{{name: {first}")))
            .unwrap();
    }
    let system = "kind: AgentSystem\nmetadata: {name: s}\nspec: {agents: [a0, b199]}\n";
    fs::write(folder.join("system.yaml"), system).unwrap();
    up.ostler(["apply", "-f", "large"]).failed(
        1,
        &["400 mistakes in the manifests; nothing was applied", "there is no ModelEndpoint \"small\""],
    );
    assert_eq!(up.ostler(["get", "agents", "-o", "name"]).ok(), "");
    let model = "kind: ModelEndpoint\nmetadata: {name: small}\nspec: {provider: mock, default_model: m}\n";
    fs::write(folder.join("model.yaml"), model).unwrap();
    let checked = up.ostler(["apply", "-f", "large", "--dry-run"]);
    assert_eq!(checked.ok().lines().count(), 402);
    assert!(checked.ok().ends_with("agent-system/s created (dry run)\n"), "{}", checked.stdout);
    assert_eq!(up.ostler(["apply", "-f", "large"]).ok().lines().count(), 402);
    assert!(up.ostler(["apply", "-f", "large"]).ok().lines().all(|line| line.ends_with(" unchanged")));
}

#[test]
fn what_one_server_shows_another_takes() {
    let (here, there) = (Up::start(), Up::start());
    here.apply(AGENT).ok();
    here.apply(&AGENT.replace("mock}", "mock, prompt: Help.}")).ok();
    let shown = here.ostler(["get", "agents", "-o", "yaml"]);
    assert!(shown.ok().contains("resourceVersion"), "{shown:?}");
    assert_eq!(there.apply(shown.ok()).ok(), "agent/a created\n");
    assert_eq!(here.apply(shown.ok()).ok(), "agent/a unchanged\n");
    here.ostler(["delete", "agent", "a"]).ok();
    assert_eq!(here.apply(shown.ok()).ok(), "agent/a created\n");
}
