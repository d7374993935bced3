//! The wire of Anthropic's messages: each rule is broken once, thinking and caching behave as the vendor's.

use ostler_testing::model_server::{ModelServer, Rule, Script, Turn};
use serde_json::{Value, json};

use crate::client::{Answer, Call};

/// A rule, and what breaks it in a sound conversation.
pub type Case = (Rule, &'static str, fn(&mut Value));

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub fn post(server: &ModelServer, request: &Value) -> Call {
    Call::post(format!("{}/v1/messages", server.root_url()), request.to_string())
        .header("x-api-key", "key")
        .header("anthropic-version", "2023-06-01")
}

pub fn ask(message: &str) -> Value {
    json!({
        "model": "claude", "max_tokens": 2048, "system": "be brief",
        "messages": [{ "role": "user", "content": message }],
        "tools": [{ "name": "lookup", "input_schema": { "type": "object", "properties": {} } }],
    })
}

async fn plan_server() -> ModelServer {
    ModelServer::start(Script::Plan).await.unwrap()
}

/// The named events of a stream, each with its data.
fn events(answer: &Answer) -> Vec<Value> {
    let event = |event: &str| {
        let (name, data) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], name);
        data
    };
    answer.text().trim_end().split("\n\n").map(event).collect()
}

#[tokio::test]
async fn a_stream_says_what_the_whole_says() {
    let server = plan_server().await;
    let mut request =
        ask("plan: text=\"some words\" + tool lookup {\"q\":1} think=\"let me see\" usage=100/9/40/20/3");
    let whole = post(&server, &request).send().await.json();
    request["stream"] = json!(true);
    let events = events(&post(&server, &request).send().await);
    let mut message = events[0]["message"].clone();
    for event in &events[1..] {
        let block = event["index"].as_u64().unwrap_or_default() as usize;
        let delta = &event["delta"];
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                message["content"].as_array_mut().unwrap().push(event["content_block"].clone())
            }
            "content_block_delta" => {
                let field = match delta["type"].as_str().unwrap() {
                    "text_delta" => "text",
                    "thinking_delta" => "thinking",
                    "signature_delta" => "signature",
                    _ => "partial_json",
                };
                let block = &mut message["content"][block];
                let begun = block[field].as_str().unwrap_or_default().to_owned();
                block[field] = json!(begun + delta[field].as_str().unwrap());
            }
            "message_delta" => {
                message["stop_reason"] = delta["stop_reason"].clone();
                message["stop_details"] = delta["stop_details"].clone();
                message["usage"]["output_tokens"] = event["usage"]["output_tokens"].clone();
                message["usage"]["output_tokens_details"] = event["usage"]["output_tokens_details"].clone();
            }
            _ => {}
        }
    }
    let call = &mut message["content"][2];
    call["input"] = serde_json::from_str(call["partial_json"].as_str().unwrap()).unwrap();
    call.as_object_mut().unwrap().remove("partial_json");
    assert_eq!(message, whole);
    assert_eq!(whole["usage"]["input_tokens"], 40);
    assert_eq!(whole["stop_reason"], "tool_use");
}

#[tokio::test]
async fn thinking_must_come_back_as_it_was_given() {
    let server = plan_server().await;
    let mut request = ask("plan: tool lookup think=hmm, text=done");
    request["thinking"] = json!({ "type": "enabled", "budget_tokens": 1024 });
    let said = post(&server, &request).send().await.json();
    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(json!({ "role": "assistant", "content": said["content"] }));
    let id = &said["content"][1]["id"];
    messages.push(
        json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": "x" }] }),
    );
    assert_eq!(post(&server, &request).send().await.json()["content"][0]["text"], "done");

    let mut changed = request.clone();
    changed["messages"][1]["content"][0]["thinking"] = json!("hmm!");
    let mut forgotten = request.clone();
    forgotten["messages"][1]["content"].as_array_mut().unwrap().remove(0);
    for refused in [changed, forgotten] {
        let answer = post(&server, &refused).send().await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
    }
    let rules: Vec<_> = server.violations().iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, [Rule::Thinking, Rule::Thinking]);
}

#[tokio::test]
async fn what_was_marked_is_written_once_and_then_read() {
    let server = plan_server().await;
    let mut request = ask("hello");
    let long = "a long prompt ".repeat(40);
    request["system"] = json!([{ "type": "text", "text": long, "cache_control": { "type": "ephemeral" } }]);
    let usage = async |request: &Value| post(&server, request).send().await.json()["usage"].clone();
    let first = usage(&request).await;
    let written = first["cache_creation_input_tokens"].as_i64().unwrap();
    assert!(written > 100 && first["cache_read_input_tokens"] == 0, "{first}");
    request["messages"][0]["content"] = json!("another question");
    let second = usage(&request).await;
    assert_eq!(
        (&second["cache_read_input_tokens"], &second["cache_creation_input_tokens"]),
        (&json!(written), &json!(0))
    );
    request["system"][0]["text"] = json!("another prompt");
    assert_eq!(usage(&request).await["cache_read_input_tokens"], 0, "another beginning was never cached");
}

#[tokio::test]
async fn each_violation_is_refused_in_the_vendors_shape() {
    for (rule, case, break_it) in cases() {
        let server = ModelServer::start(Script::function(|_| Turn::text("fine"))).await.unwrap();
        let mut request = conversation();
        let sound = post(&server, &request).send().await;
        assert_eq!(sound.status, 200, "{}", sound.text());
        break_it(&mut request);
        let answer = post(&server, &request).send().await;
        let violations = server.violations();
        assert!(violations.iter().any(|violation| violation.rule == rule), "{case}: {violations:?}");
        let body = answer.json();
        assert_eq!((answer.status, &body["type"]), (400, &json!("error")), "{case}");
        assert_eq!(body["error"]["type"], "invalid_request_error");
    }
}

#[tokio::test]
async fn headers_and_versions_are_checked() {
    let server = plan_server().await;
    let mut request = ask("hello");
    let no_key =
        Call { headers: vec![("content-type", "application/json".to_owned())], ..post(&server, &request) };
    let answer = no_key.header("anthropic-version", "2023-06-01").send().await;
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (401, &json!("authentication_error")));
    assert_eq!(post(&server, &request).header("anthropic-version", "2024-01-01").send().await.status, 400);
    request["temperature"] = json!(0.5);
    assert_eq!(post(&server, &request).send().await.status, 200);
    let newer = post(&server, &request).header("anthropic-version", "2026-10-21").send().await;
    assert_eq!(newer.json()["error"]["message"], "temperature: Extra inputs are not permitted");
}

/// User with an image, a tool in use, its result.
fn conversation() -> Value {
    let mut request = ask("hello");
    let source = json!({ "type": "base64", "media_type": "image/png", "data": PIXEL });
    request["messages"] = json!([
        { "role": "user", "content": [{ "type": "text", "text": "look" }, { "type": "image", "source": source }] },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "toolu_1", "name": "lookup", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "toolu_1", "content": "found" }] },
    ]);
    request
}

pub fn cases() -> Vec<Case> {
    vec![
        (Rule::Shape, "no max_tokens", |request| {
            request.as_object_mut().unwrap().remove("max_tokens");
        }),
        (Rule::Shape, "an unknown field", |request| request["messages"][0]["name"] = json!("ann")),
        (Rule::Shape, "an unknown block", |request| {
            request["messages"][0]["content"][0]["type"] = json!("txt")
        }),
        (Rule::Shape, "a role of another vendor", |request| request["messages"][0]["role"] = json!("tool")),
        (Rule::Range, "no tokens at all", |request| request["max_tokens"] = json!(0)),
        (Rule::NoMessages, "no messages", |request| request["messages"] = json!([])),
        (Rule::UserFirst, "the model begins", |request| {
            request["messages"].as_array_mut().unwrap().remove(0);
        }),
        (Rule::Order, "words in the model's mouth", |request| {
            request["messages"]
                .as_array_mut()
                .unwrap()
                .push(json!({ "role": "assistant", "content": "Well" }));
        }),
        (Rule::Order, "text before the result", |request| {
            request["messages"][2]["content"]
                .as_array_mut()
                .unwrap()
                .insert(0, json!({ "type": "text", "text": "so" }));
        }),
        (Rule::EmptyMessage, "a blank", |request| request["messages"][0]["content"][0]["text"] = json!(" ")),
        (Rule::Unanswered, "no result", |request| request["messages"][2]["content"] = json!("never mind")),
        (Rule::ResultWithoutCall, "of another call", |request| {
            request["messages"][2]["content"][0]["tool_use_id"] = json!("toolu_2");
        }),
        (Rule::ResultRepeated, "twice", |request| {
            let result = request["messages"][2]["content"][0].clone();
            request["messages"][2]["content"].as_array_mut().unwrap().push(result);
        }),
        (Rule::CallId, "of another vendor", |request| {
            request["messages"][1]["content"][0]["id"] = json!("a.b")
        }),
        (Rule::DuplicateCallId, "twice", |request| {
            let call = request["messages"][1]["content"][0].clone();
            request["messages"][1]["content"].as_array_mut().unwrap().push(call);
        }),
        (Rule::Name, "a dot", |request| request["tools"][0]["name"] = json!("a.b")),
        (Rule::DuplicateTool, "twice", |request| {
            let tool = request["tools"][0].clone();
            request["tools"].as_array_mut().unwrap().push(tool);
        }),
        (Rule::Parameters, "no object", |request| {
            request["tools"][0]["input_schema"] = json!({ "type": "string" })
        }),
        (Rule::ToolChoice, "not on offer", |request| {
            request["tool_choice"] = json!({ "type": "tool", "name": "other" });
        }),
        (Rule::Conflict, "a budget without room", |request| {
            request["thinking"] = json!({ "type": "enabled", "budget_tokens": 4096 });
        }),
        (Rule::Conflict, "an effort for an older model", |request| {
            request["model"] = json!("claude-haiku-4-5");
            request["output_config"] = json!({ "effort": "low" });
        }),
        (Rule::Conflict, "thinking that an older model knows nothing of", |request| {
            request["model"] = json!("claude-sonnet-4-5");
            request["thinking"] = json!({ "type": "adaptive" });
        }),
        (Rule::Conflict, "a budget for a newer model", |request| {
            request["model"] = json!("claude-opus-4-7");
            request["thinking"] = json!({ "type": "enabled", "budget_tokens": 1024 });
        }),
        (Rule::Conflict, "thoughts of a model without any", |request| {
            request["model"] = json!("claude-3-5-haiku-latest");
            request["thinking"] = json!({ "type": "enabled", "budget_tokens": 1024 });
        }),
        (Rule::Thinking, "a made-up signature", |request| {
            let thinking = json!({ "type": "thinking", "thinking": "hm", "signature": "made up" });
            request["messages"][1]["content"].as_array_mut().unwrap().insert(0, thinking);
        }),
        (Rule::FieldForRole, "the model shows an image", |request| {
            let image = request["messages"][0]["content"][1].clone();
            request["messages"][1]["content"].as_array_mut().unwrap().insert(0, image);
        }),
        (Rule::Media, "no base64", |request| {
            request["messages"][0]["content"][1]["source"]["data"] = json!("no!")
        }),
        (Rule::Media, "another type", |request| {
            request["messages"][0]["content"][1]["source"]["media_type"] = json!("image/jpeg");
        }),
        (Rule::OutputSchema, "an open object", |request| {
            let schema = json!({ "type": "object", "properties": {} });
            request["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema } });
        }),
        (Rule::OutputSchema, "a bound", |request| {
            let schema = json!({ "type": "integer", "minimum": 1 });
            request["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema } });
        }),
        (Rule::OutputSchema, "one of several", |request| {
            let schema = json!({ "oneOf": [{ "type": "integer" }, { "type": "string" }] });
            request["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema } });
        }),
        (Rule::OutputSchema, "two items at least", |request| {
            let schema = json!({ "type": "array", "items": { "type": "string" }, "minItems": 2 });
            request["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema } });
        }),
        (Rule::Cache, "five breakpoints", |request| {
            let block = json!({ "type": "text", "text": "x", "cache_control": { "type": "ephemeral" } });
            request["system"] = json!(vec![block; 5]);
        }),
    ]
}
