//! What a task and an agent tell of themselves: messages, figures, trace, logs; and what is not there yet.

use ostler_kernel::{Failure, Timestamp, run::end::Leave};
use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, agent, worker::Worker},
};

async fn done(place: &Place) -> String {
    let name = place.task().await;
    let mut worker = Worker::new(place).await;
    let mut held = worker.claim().await;
    worker.step(&mut held).await;
    worker.finish(held, "hello").await;
    name
}

#[tokio::test]
async fn a_task_of_one_agent_has_one_message() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let path = format!("/v1/tasks/{name}/messages");
    let queued = place.get(&path).await.json();
    let counts = json!({"queued": 1, "running": 0, "retrypending": 0, "succeeded": 0, "deadletter": 0});
    assert_eq!(queued["lifecycle_counts"], counts, "all of them, always");
    let message = &queued["messages"][0];
    assert_eq!((&message["from_agent"], &message["to_agent"]), (&json!("system"), &json!("helper")));
    assert_eq!((&message["content"], &message["type"]), (&json!("hi"), &json!("task_start")));
    assert_eq!(message["task_id"], format!("default/{name}"));
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    worker.finish(held, "done").await;
    let done = place.get(&path).await.json();
    let message = &done["messages"][0];
    assert_eq!((&message["phase"], &message["worker"]), (&json!("Succeeded"), &json!("scripted")));
    assert!(message["processed_at"].is_string());
    let list = async |query: &str| place.get(&format!("{path}?{query}")).await.json();
    assert_eq!(list("phase=succeeded").await["total"], 1);
    let none = list("lifecycle=queued,running").await;
    assert_eq!(
        (&none["total"], &none["filtered_from"], &none["messages"]),
        (&json!(0), &json!(1), &json!([]))
    );
    assert_eq!(list("from_agent=helper").await["filtered_from"], 0);
    assert_eq!(list("branch_id=b001&to_agent=helper&limit=1").await["total"], 1);
    assert_eq!(list("max_results=1").await["total"], 1);
    check(&place.get(&format!("{path}?limit=0")).await, 400, "bad_parameter", "limit");
    check(&place.get(&format!("{path}?max_results=0")).await, 400, "bad_parameter", "max_results: expected");
    check(&place.get(&format!("{path}?max_results=1&limit=1")).await, 400, "bad_parameter", "two names");
    check(&place.get(&format!("{path}?phase=a&lifecycle=b")).await, 400, "bad_parameter", "two names");
    check(&place.get("/v1/tasks/none/messages").await, 404, "not_found", "none");
    for query in ["phase=bogus", "lifecycle=queued,bogus"] {
        for view in ["messages", "metrics"] {
            let refused = place.get(&format!("/v1/tasks/{name}/{view}?{query}")).await;
            let known =
                "\"bogus\"; there are Queued, Running, RetryPending, WaitingApproval, Succeeded, DeadLetter";
            check(&refused, 400, "bad_parameter", known);
        }
    }
}

#[tokio::test]
async fn its_figures_add_up() {
    let place = Place::with_agent().await;
    let name = done(&place).await;
    let figures = place.get(&format!("/v1/tasks/{name}/metrics")).await.json();
    let totals = &figures["totals"];
    assert_eq!(
        (&totals["messages"], &totals["succeeded"], &totals["in_flight"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert_eq!((&totals["latency_sample_size"], &totals["retry_count"]), (&json!(1), &json!(0)));
    assert!(totals["latency_ms_avg"].is_u64(), "{totals}");
    let agents: Vec<(&Value, &Value, &Value)> = figures["per_agent"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["agent"], &it["inbound"], &it["outbound"]))
        .collect();
    let (one, none) = (json!(1), json!(0));
    assert_eq!(agents, [(&json!("helper"), &one, &none), (&json!("system"), &none, &one)]);
    assert_eq!(figures["per_edge"][0]["from_agent"], "system");
    assert_eq!(figures.get("filters"), None);
    let filtered = place.get(&format!("/v1/tasks/{name}/metrics?phase=queued")).await.json();
    assert_eq!(
        (&filtered["totals"]["messages"], &filtered["filters"]["phase"]),
        (&json!(0), &json!(["queued"]))
    );
}

#[tokio::test]
async fn a_task_shows_its_trace_and_its_history() {
    let place = Place::with_agent().await;
    let name = done(&place).await;
    let status = place.get(&format!("/v1/tasks/{name}")).await.json()["status"].clone();
    let types = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        types(&status["trace"]),
        [
            "task_start",
            "agent_message_received",
            "agent_start",
            "agent_worker_start",
            "model_call",
            "model_output",
            "model_call",
            "model_output",
            "agent_worker_complete",
            "agent_end",
            "task_summary",
            "agent_message_processed",
        ]
    );
    let call = &status["trace"][4];
    assert_eq!(
        (&call["step_id"], &call["tokens"], &call["latency_ms"]),
        (&json!("a001.s0003"), &json!(7), &json!(5))
    );
    assert_eq!((&call["agent"], &call["token_usage_source"]), (&json!("helper"), &json!("provider")));
    let output = &status["trace"][5];
    assert_eq!((&output["step_id"], &output["step"]), (&json!("a001.s0003.output"), &json!(1)));
    assert_eq!(types(&status["history"]), ["claim", "running", "succeeded"]);
    let history = status["history"].as_array().unwrap();
    assert!(history.iter().all(|item| item["worker"] == "scripted"), "{history:?}");
    assert_eq!((&status["attempts"], &status["messages"][0]["phase"]), (&json!(1), &json!("Succeeded")));
    let output = &status["output"];
    assert_eq!((&output["agent.1.name"], &output["agent.1.steps"]), (&json!("helper"), &json!("2")));
    assert_eq!((&output["tokens_used_total"], &output["result"]), (&json!("14"), &json!("executed")));
    assert!(output.as_object().unwrap().values().all(Value::is_string), "{output}");
    let trace = place.get(&format!("/v1/tasks/{name}/trace")).await.json();
    assert_eq!(trace["trace"], status["trace"]);
    let alone = place.get(&format!("/v1/tasks/{name}/status")).await.json();
    assert_eq!((&alone["status"], alone.get("spec")), (&status, None));
    let listed = place.get("/v1/tasks").await.json();
    assert_eq!(listed["items"][0]["status"].get("trace"), None, "lists stay lean");
}

#[tokio::test]
async fn a_held_task_names_its_worker() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    let status = async || place.get(&format!("/v1/tasks/{name}")).await.json()["status"].clone();
    let working = status().await;
    assert_eq!((&working["claimedBy"], &working["assignedWorker"]), (&json!("scripted"), &json!("scripted")));
    let [heard, until] =
        ["lastHeartbeat", "leaseUntil"].map(|field| working[field].as_str().unwrap().to_owned());
    assert!(heard < until, "{heard} {until}");
    assert_eq!((&working["message_idempotency"], &working["join_states"]), (&json!([]), &json!([])));
    worker.finish(held, "done").await;
    let done = status().await;
    assert_eq!((done.get("lastHeartbeat"), done.get("leaseUntil")), (None, None));
}

#[tokio::test]
async fn a_task_tells_its_budget_and_what_was_estimated() {
    let place = Place::with_agent().await;
    let mut frugal = agent("helper");
    frugal["spec"]["limits"] = json!({"token_budget": 100, "max_steps": 2});
    assert_eq!(place.post("/v1/agents", &frugal).await.status, 201);
    let mut worker = Worker::new(&place).await;
    let mut finish = async |is_estimated: bool| {
        let name = place.task().await;
        worker.is_estimating = is_estimated;
        let held = worker.claim().await;
        worker.finish(held, "done").await;
        place.get(&format!("/v1/tasks/{name}")).await.json()["status"]["output"].clone()
    };
    let counted = finish(false).await;
    assert_eq!((&counted["token_budget"], &counted["token_budget_remaining"]), (&json!("100"), &json!("93")));
    let estimated = finish(true).await;
    for (output, source) in [(counted, "provider"), (estimated, "estimated")] {
        for name in ["tokens_estimated_total", "agent.1.estimated_tokens", "last_estimated_tokens"] {
            assert_eq!(output[name], "242", "1, a fourth of the prompt and 120 for each step: {output}");
        }
        assert_eq!(
            (&output["last_tokens_used"], &output["last_token_usage_source"]),
            (&json!("7"), &json!(source))
        );
    }
}

#[tokio::test]
async fn a_trace_names_the_secret_of_a_call_and_never_shows_it() {
    let place = Place::with_agent().await;
    let secret = json!({"kind": "Secret", "metadata": {"name": "key"}, "spec": {"stringData": {"value": "hidden-3141"}}});
    assert_eq!(place.post("/v1/secrets", &secret).await.status, 201);
    let tool = json!({
        "kind": "Tool", "metadata": {"name": "lookup"},
        "spec": {"type": "http", "endpoint": "https://example.com", "auth": {"profile": "bearer", "secretRef": "key"}},
    });
    assert_eq!(place.post("/v1/tools", &tool).await.status, 201);
    let mut caller = agent("helper");
    caller["spec"]["tools"] = json!(["lookup"]);
    assert_eq!(place.post("/v1/agents", &caller).await.status, 201);
    let name = place.task().await;
    let mut worker = Worker::new(&place).await;
    let mut held = worker.claim().await;
    worker.calls(&mut held, 1).await;
    let reply = place.get(&format!("/v1/tasks/{name}/trace")).await;
    let trace = reply.json()["trace"].clone();
    let call = trace.as_array().unwrap().iter().find(|item| item["type"] == "tool_call").unwrap();
    assert_eq!((&call["tool"], &call["tool_auth_profile"]), (&json!("lookup"), &json!("bearer")));
    assert_eq!(call["tool_auth_secret_ref"], "default/key");
    assert!(!String::from_utf8(reply.body).unwrap().contains("hidden-3141"));
}

#[tokio::test]
async fn an_agent_has_a_log_over_its_tasks() {
    let place = Place::with_agent().await;
    let name = done(&place).await;
    let logs = place.get("/v1/agents/helper/logs").await.json();
    let lines = logs["logs"].as_array().unwrap();
    assert_eq!((&logs["name"], lines.len()), (&json!("helper"), 5));
    assert!(lines[0].as_str().unwrap().contains(&format!(" {name}: task accepted")), "{logs}");
    check(&place.get("/v1/agents/nobody/logs").await, 404, "not_found", "nobody");
}

#[tokio::test]
async fn what_is_not_there_yet_says_so_by_name() {
    let place = Place::new().await;
    let memory = json!({"kind": "Memory", "metadata": {"name": "m"}, "spec": {}});
    let approval =
        json!({"kind": "ToolApproval", "metadata": {"name": "ta"}, "spec": {"task_ref": "t", "tool": "x"}});
    assert_eq!(place.post("/v1/memories", &memory).await.status, 201);
    assert_eq!(place.post("/v1/tool-approvals", &approval).await.status, 201);
    check(&place.get("/v1/memories/m/entries?q=x&limit=5").await, 422, "not_available", "memory/m");
    check(&place.get("/v1/memories/none/entries").await, 404, "not_found", "none");
    for verb in ["approve", "deny"] {
        let reply = place.post(&format!("/v1/tool-approvals/ta/{verb}"), &json!({"decidedBy": "me"})).await;
        check(&reply, 422, "not_available", "tool-approval/ta");
    }
    let run =
        json!({"kind": "EvalRun", "metadata": {"name": "er"}, "spec": {"dataset_ref": "d", "system": "s"}});
    let made = place.post("/v1/eval-runs", &run).await;
    assert_eq!(made.status, 201, "{made:?}");
    place.apply_agent().await;
    let system = json!({"kind": "AgentSystem", "metadata": {"name": "desk"}, "spec": {"agents": ["helper"]}});
    assert_eq!(place.post("/v1/agent-systems", &system).await.status, 201);
    for (method, path, what) in [
        ("GET", "/v1/eval-runs/compare?runs=er,other", "comparing"),
        ("GET", "/v1/eval-runs/compare", "comparing"),
        ("POST", "/v1/eval-runs/er/results", "eval-run/er"),
        ("PUT", "/v1/eval-runs/er/results/first", "eval-run/er"),
        ("POST", "/v1/agents/helper/a2a", "agent/helper"),
        ("POST", "/v1/agent-systems/desk/a2a", "agent-system/desk"),
        ("GET", "/v1/agents/helper/.well-known/agent-card.json", "agent/helper"),
        ("GET", "/v1/agent-systems/desk/.well-known/agent-card.json", "agent-system/desk"),
        ("GET", "/.well-known/agent.json", "A2A"),
        ("GET", "/v1/sessions/chat/checkpoints", "session/chat"),
        ("POST", "/v1/eval-runs/er/start", "eval-run/er"),
        ("GET", "/v1/eval-runs/er/compare", "eval-run/er"),
        ("POST", "/v1/sessions/chat/turns", "session/chat"),
        ("GET", "/v1/sessions/chat/stream", "session/chat"),
        ("POST", "/v1/chat/completions", "OpenAI"),
        ("POST", "/a2a", "A2A"),
        ("GET", "/.well-known/agent-card.json", "A2A"),
        ("GET", "/v1/sealing-key/public", "public key"),
    ] {
        check(&place.send(method, path, "", b"").await, 422, "not_available", what);
    }
    for path in ["/v1/eval-runs/compare?runs=none", "/v1/agents/none/.well-known/agent-card.json"] {
        check(&place.get(path).await, 404, "not_found", "none");
    }
    let status = place.get("/v1/eval-runs/er/status").await.json();
    assert_eq!((&status["metadata"]["name"], &status["status"]["phase"]), (&json!("er"), &json!("Error")));
    let changed = place.put("/v1/tool-approvals/ta", "if-match: *\r\n", &approval).await;
    check(&changed, 405, "method_not_allowed", "does not take PUT");
    let worker = Worker::new(&place).await;
    let path = format!("/v1/workers/{}/status", worker.caller().worker);
    assert_eq!(place.get(&path).await.json()["status"]["standing"], "open");
    check(&place.put(&path, "if-match: 1\r\n", &json!({"status": {}})).await, 422, "not_available", "worker");
}

#[tokio::test]
async fn a_task_that_sleeps_says_until_when_and_on_what() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    let failure = Failure::transient("model_rate_limited", "come back in a day");
    let until = Timestamp::from_millis(4_102_444_800_000);
    worker.leave(held, Leave::Sleep { until, delay_ms: None, why: Some(failure) }).await;
    let told = json!({
        "until": "2100-01-01T00:00:00.000Z",
        "error": {"code": "model_rate_limited", "class": "transient", "message": "come back in a day"},
    });
    let task = place.get(&format!("/v1/tasks/{name}")).await.json();
    assert_eq!((&task["status"]["state"], &task["status"]["sleeping"]), (&json!("sleeping"), &told));
    let listed = place.get("/v1/tasks").await.json();
    assert_eq!(listed["items"][0]["status"]["sleeping"], told, "in lists too");
    let log = place.get(&format!("/v1/tasks/{name}/logs")).await.json();
    let expected = "sleeping until 2100-01-01T00:00:00.000Z: model_rate_limited: come back in a day";
    assert!(log.to_string().contains(expected), "{log}");
    place.post(&format!("/v1/tasks/{name}/cancel"), &json!({})).await;
    let task = place.get(&format!("/v1/tasks/{name}")).await.json();
    assert_eq!(task["status"]["sleeping"], Value::Null, "{task}");
}

#[tokio::test]
async fn sleeps_in_a_row_are_counted_until_a_step_is_finished() {
    let place = Place::with_agent().await;
    place.task().await;
    let mut worker = Worker::new(&place).await;
    let sleep = |why: bool| {
        let why = why.then(|| Failure::transient("model_rate_limited", "later"));
        Leave::Sleep { until: Timestamp::from_millis(0), delay_ms: None, why }
    };
    let mut held = worker.claim().await;
    for slept in 1..=3 {
        worker.leave(held, sleep(true)).await;
        held = worker.claim().await;
        assert_eq!((held.run().slept_in_row, held.run().failures), (slept, 0), "it uses no retry");
    }
    worker.step(&mut held).await;
    worker.leave(held, sleep(false)).await;
    let held = worker.claim().await;
    assert_eq!(held.run().slept_in_row, 0);
}
