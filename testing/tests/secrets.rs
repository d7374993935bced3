//! Secrets from the store to the call that uses them: asked for anew each time, by who holds the run, for what its plan names.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod stack;

use std::{sync::Arc, time::Duration};

use ostler_control::{Feed, NewTask};
use ostler_kernel::EventBody;
use ostler_link::{Caller, LinkError, SecretAnswer, SecretRequest, WorkerPortExt};
use ostler_testing::model_server::{ModelServer, Script, Turn};
use serde_json::json;
use stack::Stack;

const LEASE: Duration = Duration::from_secs(10);

async fn with_model(stack: &Stack, script: Script) -> ModelServer {
    let model = ModelServer::start(script).await.unwrap();
    let endpoint = json!({
        "provider": "openai-compatible", "base_url": model.base_url(), "default_model": "m", "allowPrivate": true,
        "auth": {"secretRef": "openai"},
    });
    stack.apply("ModelEndpoint", "main", endpoint).await;
    stack.apply("Agent", "helper", json!({"model_ref": "main", "prompt": "Help."})).await;
    model
}

async fn keep(stack: &Stack, value: &str) {
    stack.apply("Secret", "openai", json!({"stringData": {"value": value}})).await;
}

fn shown(model: &ModelServer) -> Vec<String> {
    let header = |request: &ostler_testing::model_server::CapturedRequest| {
        request.headers["authorization"].to_str().unwrap().to_owned()
    };
    model.requests().iter().map(header).collect()
}

#[tokio::test]
async fn a_changed_secret_takes_effect_at_the_next_call() {
    let stack = Stack::start(LEASE);
    let model = with_model(&stack, Script::function(|_| Turn::text("done"))).await;
    let _worker = stack.worker("one", 4, Arc::clone(&stack.control) as _);
    for value in ["first-secret", "second-secret"] {
        keep(&stack, value).await;
        let task = stack.create(value, json!({"agent": "helper", "input": {"message": "hi"}})).await;
        stack.watch(task.id).await;
    }
    assert_eq!(shown(&model), ["Bearer first-secret", "Bearer second-secret"]);
}

#[tokio::test]
async fn what_a_model_repeats_is_hidden_in_the_log_and_in_deltas() {
    let stack = Stack::start(LEASE);
    let said = Turn::text("your key is geheim-wort-123, is it not?").chunk(4);
    let _model = with_model(&stack, Script::turns([said])).await;
    keep(&stack, "geheim-wort-123").await;
    let _worker = stack.worker("one", 4, Arc::clone(&stack.control) as _);
    let task = stack.create("leaky", json!({"agent": "helper", "input": {"message": "hi"}})).await;
    let watched = stack.watch(task.id).await;
    let pieces: String = watched.deltas.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(pieces, "your key is [REDACTED], is it not?");
    let all = format!("{:?} {:?} {:?}", watched.task, watched.events, watched.deltas);
    assert!(all.contains("[REDACTED]") && !all.contains("geheim"), "{all}");
}

#[tokio::test]
async fn only_who_holds_the_run_is_given_what_its_plan_names() {
    let stack = Stack::start(LEASE);
    let _model =
        with_model(&stack, Script::function(|_| Turn::text("done").latency(Duration::from_secs(600)))).await;
    keep(&stack, "first-secret").await;
    stack.apply("Secret", "other", json!({"stringData": {"value": "others-secret"}})).await;
    let _worker = stack.worker("one", 4, Arc::clone(&stack.control) as _);
    let task = stack.create("held", json!({"agent": "helper", "input": {"message": "hi"}})).await;
    let mut follower = stack.control.follow(task.id, 0);
    let run = loop {
        if let Feed::Event(event) = follower.next().await.unwrap()
            && let EventBody::AttemptStarted { run, .. } = &event.body
        {
            break *run;
        }
    };
    let ask = async |worker: &str, reference: &str| {
        let caller = Caller { worker: worker.to_owned(), incarnation: 1 };
        stack.control.secret(SecretRequest { caller, run, reference: reference.to_owned() }).await
    };
    assert!(matches!(ask("one", "default/openai").await, Ok(SecretAnswer::Found { .. })));
    for reference in ["default/other", "other", "openai", "default/openai:value", "team/openai", ""] {
        let answer = ask("one", reference).await;
        assert!(matches!(answer, Ok(SecretAnswer::Refused { .. })), "{reference}: {answer:?}");
    }
    assert!(matches!(ask("two", "default/openai").await, Err(LinkError::Fenced { .. })));
    let printed = format!("{:?}", ask("one", "default/openai").await);
    assert!(!printed.contains("first-secret"), "{printed}");
}

#[tokio::test]
async fn a_secret_of_another_namespace_is_not_used_whatever_the_reference_says() {
    let stack = Stack::start(LEASE);
    let _model = with_model(&stack, Script::function(|_| Turn::text("done"))).await;
    let borrowed = json!({
        "provider": "openai", "default_model": "m", "auth": {"secretRef": "team/openai"},
    });
    stack.apply("ModelEndpoint", "main", borrowed).await;
    let task = json!({"kind": "Task", "metadata": {"name": "t"}, "spec": {"agent": "helper", "input": {"message": "x"}}});
    let new = NewTask::from_resource(ostler_spec::from_json(&task).unwrap()).unwrap();
    let refused = stack.control.create_task(new).await.unwrap_err();
    assert_eq!(refused.code(), "bad_reference");
    assert!(refused.to_string().contains("\"team/openai\" of another"), "{refused}");
}
