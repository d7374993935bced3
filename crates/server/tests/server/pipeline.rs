//! What is told of a task that three agents do, one behind the other: names, ids and keys are read by programs elsewhere, so
//! each of them is asserted to the letter.

use serde_json::{Value, json};

use super::{
    support::{Place, worker::Worker},
    systems::{desk, task},
};

const LINE: [&str; 3] = ["helper", "writer", "editor"];

async fn report(place: &Place) -> Value {
    let mut worker = Worker::new(place).await;
    assert_eq!(place.post("/v1/tasks", &task("report")).await.status, 201);
    for said in ["notes", "a draft", "a text"] {
        let held = worker.claim().await;
        worker.finish(held, said).await;
    }
    place.get("/v1/tasks/report").await.json()
}

#[tokio::test]
async fn its_messages_have_their_ids_and_say_who_told_whom_what() {
    let place = desk().await;
    let view = report(&place).await;
    let told = place.get("/v1/tasks/report/messages").await.json();
    let counts = (&told["name"], &told["namespace"], &told["total"], &told["filtered_from"]);
    assert_eq!(counts, (&json!("report"), &json!("default"), &json!(3), &json!(3)));
    let counts = json!({"queued": 0, "running": 0, "retrypending": 0, "succeeded": 3, "deadletter": 0});
    assert_eq!(told["lifecycle_counts"], counts);
    assert_eq!(told["messages"], view["status"]["messages"]);
    let mut messages = told["messages"].as_array().unwrap().clone();
    for message in &mut messages {
        let message = message.as_object_mut().unwrap();
        let (sent, done) = (message.remove("timestamp").unwrap(), message.remove("processed_at").unwrap());
        assert!(sent.as_str().unwrap() <= done.as_str().unwrap(), "{sent} {done}");
    }
    let expected = |hop: u32, from: &str, to: &str, kind: &str, content: &str, parent: Option<&str>| {
        let id = format!("default/report/a001/h{hop:03}/{from}/{to}");
        let mut message = json!({
            "message_id": id, "idempotency_key": id, "task_id": "default/report", "attempt": 1,
            "system": "desk", "from_agent": from, "to_agent": to, "branch_id": "b001", "type": kind,
            "content": content, "trace_id": "default/report/a001", "phase": "Succeeded", "attempts": 1,
            "max_attempts": 1, "worker": "scripted",
        });
        if let Some(parent) = parent {
            message["parent_id"] = json!(format!("default/report/a001/{parent}"));
            message["parent_branch_id"] = json!("b001");
        }
        message
    };
    let handed_on = "task_handoff";
    let all = [
        expected(1, "system", "helper", "task_start", "horses", None),
        expected(2, "helper", "writer", handed_on, "notes", Some("h001/system/helper")),
        expected(3, "writer", "editor", handed_on, "a draft", Some("h002/helper/writer")),
    ];
    assert_eq!(messages, all);
    let records = view["status"]["message_idempotency"].as_array().unwrap();
    for (record, message) in records.iter().zip(told["messages"].as_array().unwrap()) {
        let id = &message["message_id"];
        assert_eq!(
            record,
            &json!({
                "key": id, "message_id": id, "state": "completed", "updated_at": message["processed_at"],
                "expires_at": thirty_days_behind(&message["processed_at"]), "worker": "scripted",
            })
        );
    }
    assert_eq!((records.len(), &view["status"]["join_states"]), (3, &json!([])));
}

fn thirty_days_behind(moment: &Value) -> String {
    let ended: jiff::Timestamp = moment.as_str().unwrap().parse().unwrap();
    format!("{:.3}", ended + jiff::SignedDuration::from_hours(30 * 24))
}

#[tokio::test]
async fn its_history_says_when_it_began_and_with_whom() {
    let place = desk().await;
    let view = report(&place).await;
    let history = view["status"]["history"].as_array().unwrap();
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let items: Vec<(String, String)> =
        history.iter().map(|item| (text(item, "type"), text(item, "worker"))).collect();
    let mut expected = vec![("runtime_kickoff".to_owned(), String::new())];
    for end in ["handed_on", "handed_on", "succeeded"] {
        expected.extend(["claim", "running", end].map(|kind| (kind.to_owned(), "scripted".to_owned())));
    }
    assert_eq!(items, expected);
}

#[tokio::test]
async fn its_trace_is_in_the_words_that_are_read_elsewhere() {
    let place = desk().await;
    let view = report(&place).await;
    let told = place.get("/v1/tasks/report/trace").await.json();
    assert_eq!((&told["name"], &told["namespace"]), (&json!("report"), &json!("default")));
    assert_eq!(told["trace"], view["status"]["trace"]);
    let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
    let items: Vec<(String, String, String)> = told["trace"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (text(item, "step_id"), text(item, "type"), text(item, "agent")))
        .collect();
    let kinds = [
        ("task_start", "helper"),
        ("task_runtime_kickoff", "helper"),
        ("agent_start", "helper"),
        ("model_call", "helper"),
        ("agent_end", "helper"),
        ("agent_message", "writer"),
        ("agent_start", "writer"),
        ("model_call", "writer"),
        ("agent_end", "writer"),
        ("agent_message", "editor"),
        ("agent_start", "editor"),
        ("model_call", "editor"),
        ("task_summary", "editor"),
    ];
    let expected: Vec<(String, String, String)> = (1..)
        .zip(kinds)
        .map(|(place, (kind, agent))| (format!("a001.s{place:04}"), kind.to_owned(), agent.to_owned()))
        .collect();
    let (own, beside): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|(id, _, _)| id.matches('.').count() == 1);
    assert_eq!(own, expected, "one for each event");
    let of_helper: Vec<(&str, &str)> = beside
        .iter()
        .filter(|(_, _, agent)| agent == "helper")
        .map(|(id, kind, _)| (id.as_str(), kind.as_str()))
        .collect();
    assert_eq!(
        of_helper,
        [
            ("a001.s0003.received", "agent_message_received"),
            ("a001.s0003.worker", "agent_worker_start"),
            ("a001.s0004.output", "model_output"),
            ("a001.s0005.complete", "agent_worker_complete"),
            ("a001.s0005.processed", "agent_message_processed"),
        ]
    );
    for item in told["trace"].as_array().unwrap() {
        assert_eq!((&item["attempt"], &item["branch_id"]), (&json!(1), &json!("b001")));
    }
    let trace = told["trace"].as_array().unwrap();
    let call = trace.iter().find(|item| item["type"] == "model_call").unwrap();
    let counted = (&call["tokens"], &call["input_tokens"], &call["output_tokens"]);
    assert_eq!(counted, (&json!(7), &json!(3), &json!(4)));
    assert_eq!(
        (&call["step"], &call["token_usage_source"]),
        (&json!(1), &json!("provider")),
        "counted from 1 on"
    );
}

#[tokio::test]
async fn its_output_has_every_key_that_is_known() {
    let place = desk().await;
    let view = report(&place).await;
    let (status, metadata) = (&view["status"], &view["metadata"]);
    assert_eq!((&metadata["generation"], &status["observedGeneration"]), (&json!(1), &json!(1)));
    let mut expected = json!({
        "result": "executed", "system": "desk", "topic": "horses", "priority": "normal",
        "runtime.mode": "sequential", "runtime.entry_agent": "helper",
        "policies_matched": "0", "policies_enforced": "0",
        "execution_order": "helper -> writer -> editor", "agents_executed": "3", "tokens_used_total": "21",
        "last_agent": "editor", "last_event": "task succeeded 21 tokens", "last_output": "a text",
        "last_estimated_tokens": "1202", "tokens_estimated_total": "3606", "last_duration_ms": "0", "last_tool_calls": "0", "last_steps": "1", "last_tokens_used": "7",
        "last_token_usage_source": "provider",
    });
    for (number, agent) in (1..).zip(LINE) {
        let last = if agent == "editor" { "task succeeded 21 tokens" } else { "done, and handed on" };
        for (key, value) in [
            ("name", agent),
            ("model", "mock"),
            ("steps", "1"),
            ("tool_calls", "0"),
            ("memory_writes", "0"),
            ("duration_ms", "0"),
            ("tokens_used", "7"),
            ("estimated_tokens", "1202"),
            ("token_usage_source", "provider"),
            ("last_event", last),
        ] {
            expected[format!("agent.{number}.{key}")] = json!(value);
        }
    }
    for (number, to, content) in [(1, "writer", "notes"), (2, "editor", "a draft")] {
        expected[format!("agent.{number}.message_to")] = json!(to);
        expected[format!("agent.{number}.message_content")] = json!(content);
    }
    assert_eq!(status["output"], expected);
}

#[tokio::test]
async fn what_each_agent_cost_is_told_where_its_price_is_known() {
    let place = desk().await;
    let mut worker = Worker::new(&place).await;
    assert_eq!(place.post("/v1/tasks", &task("report")).await.status, 201);
    for (said, cost) in [("notes", Some(10)), ("a draft", None), ("a text", Some(30))] {
        worker.cost_micro_usd = cost;
        let held = worker.claim().await;
        worker.finish(held, said).await;
    }
    let view = place.get("/v1/tasks/report").await.json();
    let output = view["status"]["output"].as_object().unwrap();
    let told: Vec<(&str, &str)> = output
        .iter()
        .filter(|(key, _)| key.contains("cost"))
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap()))
        .collect();
    let expected = [
        ("agent.1.cost_micro_usd", "10"),
        ("agent.3.cost_micro_usd", "30"),
        ("cost_incomplete", "true"),
        ("cost_micro_usd_total", "40"),
        ("last_cost_micro_usd", "30"),
    ];
    assert_eq!(told, expected);
    let trace = view["status"]["trace"].as_array().unwrap().iter();
    let ends = trace.filter(|item| item["type"] == "agent_end").map(|item| &item["cost_micro_usd"]);
    assert_eq!(ends.collect::<Vec<_>>(), [&json!(10), &Value::Null, &json!(30)]);
}

/// A task of more events than are told.
#[tokio::test]
async fn a_long_task_is_told_like_a_short_one() {
    let place = desk().await;
    let mut worker = Worker::new(&place).await;
    assert_eq!(place.post("/v1/tasks", &task("report")).await.status, 201);
    let mut held = worker.claim().await;
    worker.calls(&mut held, 30).await;
    worker.finish(held, "notes").await;
    let held = worker.claim().await;
    worker.give_back(held).await;
    let mut held = worker.claim().await;
    for _ in 0..2 {
        worker.calls(&mut held, 300).await;
    }
    let trace = async || -> Vec<Value> {
        place.get("/v1/tasks/report/trace").await.json()["trace"].as_array().unwrap().clone()
    };
    let early = trace().await;
    for _ in 0..6 {
        worker.calls(&mut held, 300).await;
    }
    let late = trace().await;
    let is_own = |item: &&Value| item["step_id"].as_str().unwrap().matches('.').count() == 1;
    assert_eq!(late.iter().filter(is_own).count(), 2000, "one for each event that is looked at");
    let began = early.iter().position(|item| item["step_id"] == late[0]["step_id"]).unwrap();
    assert!(began > 100, "it is cut: {began}");
    assert_eq!(late[..early.len() - began], early[began..], "what was told once is told alike");
    assert!(late.iter().all(|item| item["attempt"] == 2), "of the second attempt");
    let status = place.get("/v1/tasks/report").await.json()["status"].clone();
    assert_eq!(status["trace"].as_array().unwrap(), &late[late.len() - 500..]);
    worker.finish(held, "a draft").await;
    let held = worker.claim().await;
    worker.finish(held, "a text").await;
    let status = place.get("/v1/tasks/report").await.json()["status"].clone();
    let messages = status["messages"].as_array().unwrap();
    let contents: Vec<&Value> = messages.iter().map(|message| &message["content"]).collect();
    assert_eq!(contents, ["horses", "notes", "a draft"]);
    assert!(messages.iter().all(|message| message["worker"] == "scripted"), "{messages:?}");
    assert_eq!(messages[0]["processed_at"], messages[1]["timestamp"]);
    assert_eq!(messages[1]["processed_at"], messages[2]["timestamp"]);
    assert_eq!((&messages[1]["attempts"], &messages[1]["phase"]), (&json!(2), &json!("Succeeded")));
    let output = &status["output"];
    let calls = (&output["agent.1.tool_calls"], &output["agent.2.tool_calls"], &output["last_tool_calls"]);
    assert_eq!(calls, (&json!("30"), &json!("2400"), &json!("0")));
}
