//! Every wire, seen from the outside: each fault looks in that vendor's own way, and each rule that is broken is
//! refused in that vendor's own shape.

use ostler_testing::model_server::{Fault, ModelServer, Rule, Script, Turn, Wire};
use serde_json::{Value, json};

use crate::anthropic::Case;
use crate::client::{Answer, Call, PATIENCE};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// A sound request of one user message with one tool on offer.
fn ask(wire: Wire, message: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "q": { "type": "string" } } });
    let function = json!({ "name": "lookup", "description": "looks things up", "parameters": schema });
    let messages = json!([{ "role": "user", "content": message }]);
    match wire {
        Wire::Chat | Wire::Azure => {
            json!({ "model": "m", "messages": messages, "tools": [{ "type": "function", "function": function }] })
        }
        Wire::Ollama => json!({
            "model": "m", "messages": messages, "tools": [{ "type": "function", "function": function }], "stream": false,
        }),
        Wire::Responses => json!({
            "model": "m", "input": messages,
            "tools": [{ "type": "function", "name": "lookup", "parameters": schema, "strict": false }],
        }),
        Wire::Anthropic => crate::anthropic::ask(message),
        Wire::Gemini => json!({
            "contents": [{ "role": "user", "parts": [{ "text": message }] }],
            "tools": [{ "functionDeclarations": [function] }],
        }),
    }
}

fn post(server: &ModelServer, wire: Wire, request: &Value, streams: bool) -> Call {
    let path = match (wire, streams) {
        (Wire::Chat, _) => "/v1/chat/completions",
        (Wire::Responses, _) => "/v1/responses",
        (Wire::Anthropic, _) => "/v1/messages",
        (Wire::Azure, _) => "/openai/deployments/m/chat/completions?api-version=2024-10-21",
        (Wire::Ollama, _) => "/api/chat",
        (Wire::Gemini, false) => "/v1beta/models/gemini-3-pro:generateContent",
        (Wire::Gemini, true) => "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
    };
    let mut request = request.clone();
    if streams && wire != Wire::Gemini {
        request["stream"] = json!(true);
    }
    Call::post(format!("{}{path}", server.root_url()), request.to_string())
        .header("x-api-key", "key")
        .header("api-key", "key")
        .header("x-goog-api-key", "key")
        .header("anthropic-version", "2023-06-01")
}

/// The status of a fault that is an error; none if it is something else.
fn status(wire: Wire, fault: Fault) -> Option<u16> {
    Some(match (fault, wire) {
        (
            Fault::RateLimited
            | Fault::RateLimitedDate
            | Fault::RateLimitedMilliseconds
            | Fault::RateLimitedDay
            | Fault::RateLimitedBare,
            _,
        ) => 429,
        (Fault::Quota, Wire::Anthropic | Wire::Ollama) => 402,
        (Fault::Quota, _) => 429,
        (Fault::ServerError, _) => 500,
        (Fault::Unavailable, _) => 503,
        (Fault::Overloaded, Wire::Chat | Wire::Responses | Wire::Anthropic) => 529,
        (Fault::Overloaded, _) => 503,
        (Fault::Unauthorized, Wire::Gemini) => 400,
        (Fault::Unauthorized, _) => 401,
        (Fault::ContextLength, _) => 400,
        (Fault::Blocked, Wire::Gemini) => return None,
        (Fault::Blocked, _) => 400,
        (Fault::BadArguments, Wire::Ollama) => 500,
        _ => return None,
    })
}

/// Whether an error is in the shape of its vendor.
fn is_shaped(wire: Wire, body: &Value) -> bool {
    match wire {
        Wire::Chat | Wire::Responses | Wire::Azure => body["error"]["message"].is_string(),
        Wire::Anthropic => body["type"] == "error" && body["error"]["type"].is_string(),
        Wire::Ollama => body["error"].is_string(),
        Wire::Gemini => body["error"]["status"].is_string() && body["error"]["code"].is_u64(),
    }
}

#[tokio::test]
async fn every_fault_looks_as_its_vendor_would_have_it() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    for wire in Wire::ALL {
        for fault in Fault::ALL {
            for streams in [false, true] {
                let plan = format!(
                    "{wire:?} {streams} plan: text=\"the answer is forty-two\" + tool lookup {{\"q\":\"x\"}} fault={fault}"
                );
                let call = post(&server, wire, &ask(wire, &plan), streams);
                check(wire, fault, streams, &call).await;
            }
        }
    }
    assert_eq!(server.violations(), []);
}

async fn check(wire: Wire, fault: Fault, streams: bool, call: &Call) {
    let what = format!("{wire:?} {fault} {streams}");
    if matches!(fault, Fault::Hang | Fault::Stall) {
        return check_open(fault, call, &what).await;
    }
    let Some(answer) = call.send_raw().await else {
        return assert_eq!(fault, Fault::Close, "{what}");
    };
    if let Some(status) = status(wire, fault).or((fault == Fault::ErrorEvent && !streams).then_some(500)) {
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        assert!(is_shaped(wire, &answer.json()), "{what}: {}", answer.text());
        return check_hint(wire, fault, &answer);
    }
    assert_eq!(answer.status, 200, "{what}");
    let is_utf8 = std::str::from_utf8(&answer.body).is_ok();
    assert_eq!(is_utf8, fault != Fault::InvalidUtf8, "{what}");
    let is_cut = matches!(fault, Fault::CutText | Fault::CutTool);
    assert_eq!(answer.complete, !is_cut, "{what}");
    if streams && fault == Fault::ErrorEvent {
        assert!(answer.text().contains("error") && !answer.text().contains("forty-two"), "{what}");
    }
    if fault == Fault::Huge {
        assert!(answer.body.len() > 10_000_000, "{what}");
    }
    if fault == Fault::UnknownTool {
        assert!(answer.text().contains("no_such_tool"), "{what}");
    }
    if !streams && !is_cut && !matches!(fault, Fault::BadChunk | Fault::InvalidUtf8 | Fault::Html) {
        assert!(serde_json::from_slice::<Value>(&answer.body).is_ok(), "{what}");
    }
}

/// A hint stands where the vendor puts it: in headers, or in the body.
fn check_hint(wire: Wire, fault: Fault, answer: &Answer) {
    let wanted = match fault {
        Fault::RateLimited => Some(("1", "1s")),
        Fault::RateLimitedMilliseconds => Some(("1", "0.250s")),
        Fault::RateLimitedDay => Some(("86400", "86400s")),
        Fault::RateLimitedBare => None,
        _ => return,
    };
    if wire == Wire::Gemini {
        assert_eq!(answer.headers.get("retry-after"), None);
        let body = answer.json();
        let details = body["error"]["details"].as_array().unwrap();
        let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str());
        assert_eq!(delay, wanted.map(|hint| hint.1));
    } else {
        assert_eq!(
            answer.headers.get("retry-after").map(String::as_str),
            wanted.map(|hint| hint.0),
            "{wire:?}"
        );
    }
}

async fn check_open(fault: Fault, call: &Call, what: &str) {
    let mut stream = call.open().await;
    let mut bytes = Vec::new();
    while fault == Fault::Stall && !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        timeout(PATIENCE, stream.read_buf(&mut bytes)).await.expect("a beginning").unwrap();
    }
    let end = timeout(std::time::Duration::from_millis(30), stream.read_to_end(&mut bytes)).await;
    assert!(end.is_err(), "{what}: it ended");
}

#[tokio::test]
async fn each_violation_is_refused_in_the_shape_of_its_vendor() {
    let wires = [
        (Wire::Gemini, gemini_cases()),
        (Wire::Responses, responses_cases()),
        (Wire::Ollama, ollama_cases()),
    ];
    for (wire, cases) in wires {
        for (rule, case, break_it) in cases {
            let server = ModelServer::start(Script::function(|_| Turn::text("fine"))).await.unwrap();
            let mut request = conversation(wire);
            let sound = post(&server, wire, &request, false).send().await;
            assert_eq!(sound.status, 200, "{wire:?}: {}", sound.text());
            break_it(&mut request);
            let answer = post(&server, wire, &request, false).send().await;
            let violations = server.violations();
            assert!(violations.iter().any(|one| one.rule == rule), "{wire:?} {case}: {violations:?}");
            assert_eq!(answer.status, 400, "{wire:?} {case}");
            assert!(is_shaped(wire, &answer.json()), "{wire:?} {case}");
        }
    }
}

#[tokio::test]
async fn who_shows_no_key_is_refused_by_those_who_want_one() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    for (wire, status) in [(Wire::Anthropic, 401), (Wire::Azure, 401), (Wire::Gemini, 403)] {
        let mut call = post(&server, wire, &ask(wire, "hello"), false);
        call.headers.retain(|header| !header.0.contains("key"));
        let answer = call.send().await;
        assert_eq!(answer.status, status, "{wire:?}");
        assert!(is_shaped(wire, &answer.json()));
    }
    let mut call = post(&server, Wire::Azure, &ask(Wire::Azure, "hello"), false);
    call.url = call.url.replace("?api-version=2024-10-21", "");
    assert_eq!(call.send().await.status, 404, "Azure wants a version");
}

/// A call and its result.
fn conversation(wire: Wire) -> Value {
    let mut request = ask(wire, "hello");
    match wire {
        Wire::Gemini => {
            let call = json!({ "functionCall": { "name": "lookup", "args": {} }, "thoughtSignature": "skip_thought_signature_validator" });
            let result =
                json!({ "functionResponse": { "name": "lookup", "response": { "result": "found" } } });
            let more =
                [json!({ "role": "model", "parts": [call] }), json!({ "role": "user", "parts": [result] })];
            request["contents"].as_array_mut().unwrap().extend(more);
        }
        Wire::Responses => {
            let call =
                json!({ "type": "function_call", "call_id": "call_1", "name": "lookup", "arguments": "{}" });
            let result = json!({ "type": "function_call_output", "call_id": "call_1", "output": "found" });
            request["input"].as_array_mut().unwrap().extend([call, result]);
        }
        _ => {
            let call = json!({ "function": { "name": "lookup", "arguments": {} } });
            let said = json!({ "role": "assistant", "content": "", "tool_calls": [call] });
            let result = json!({ "role": "tool", "tool_name": "lookup", "content": "found" });
            request["messages"].as_array_mut().unwrap().extend([said, result]);
        }
    }
    request
}

fn gemini_cases() -> Vec<Case> {
    vec![
        (Rule::Shape, "an unknown field", |request| request["generationConfig"] = json!({ "max_tokens": 1 })),
        (Rule::Shape, "a role of another vendor", |request| {
            request["contents"][1]["role"] = json!("assistant")
        }),
        (Rule::Range, "too hot", |request| request["generationConfig"] = json!({ "temperature": 3 })),
        (Rule::NoMessages, "nothing said", |request| request["contents"] = json!([])),
        (Rule::EmptyMessage, "no parts", |request| request["contents"][0]["parts"] = json!([])),
        (Rule::Unanswered, "no response", |request| {
            request["contents"][2]["parts"] = json!([{ "text": "so" }])
        }),
        (Rule::ResultWithoutCall, "of another function", |request| {
            request["contents"][2]["parts"][0]["functionResponse"]["name"] = json!("other");
        }),
        (Rule::Order, "the model last", |request| {
            request["contents"].as_array_mut().unwrap().pop();
        }),
        (Rule::Thinking, "no signature", |request| {
            request["contents"][1]["parts"][0].as_object_mut().unwrap().remove("thoughtSignature");
        }),
        (Rule::Thinking, "a made-up one", |request| {
            request["contents"][1]["parts"][0]["thoughtSignature"] = json!("bWFkZSB1cA==");
        }),
        (Rule::Name, "a space", |request| {
            request["tools"][0]["functionDeclarations"][0]["name"] = json!("look up");
        }),
        (Rule::Parameters, "a keyword of JSON Schema", |request| {
            request["tools"][0]["functionDeclarations"][0]["parameters"]["additionalProperties"] =
                json!(false);
        }),
        (Rule::DuplicateTool, "twice", |request| {
            let functions = request["tools"][0]["functionDeclarations"].as_array_mut().unwrap();
            functions.push(functions[0].clone());
        }),
        (Rule::ToolChoice, "not declared", |request| {
            let chosen = json!({ "mode": "ANY", "allowedFunctionNames": ["other"] });
            request["toolConfig"] = json!({ "functionCallingConfig": chosen });
        }),
        (Rule::Media, "no image", |request| {
            let image = json!({ "inlineData": { "mimeType": "image/png", "data": "bm8=" } });
            request["contents"][0]["parts"].as_array_mut().unwrap().push(image);
        }),
        (Rule::Conflict, "a level that the model doesn't have", |request| {
            request["generationConfig"] = json!({ "thinkingConfig": { "thinkingLevel": "MEDIUM" } });
        }),
        (Rule::Conflict, "a schema for plain text", |request| {
            request["generationConfig"] = json!({ "responseSchema": { "type": "OBJECT" } });
        }),
    ]
}

fn responses_cases() -> Vec<Case> {
    vec![
        (Rule::Shape, "an unknown field", |request| request["messages"] = json!([])),
        (Rule::Shape, "an unknown item", |request| request["input"][0]["type"] = json!("msg")),
        (Rule::NoMessages, "nothing said", |request| request["input"] = json!([])),
        (Rule::Unanswered, "no output", |request| {
            request["input"].as_array_mut().unwrap().pop();
        }),
        (Rule::ResultWithoutCall, "of another call", |request| {
            request["input"][2]["call_id"] = json!("call_2")
        }),
        (Rule::ResultRepeated, "twice", |request| {
            let output = request["input"][2].clone();
            request["input"].as_array_mut().unwrap().push(output);
        }),
        (Rule::CallId, "of another item", |request| request["input"][1]["id"] = json!("call_1")),
        (Rule::DuplicateCallId, "twice", |request| {
            let call = request["input"][1].clone();
            request["input"].as_array_mut().unwrap().insert(1, call);
        }),
        (Rule::Arguments, "no JSON", |request| request["input"][1]["arguments"] = json!("{")),
        (Rule::Name, "a dot", |request| request["tools"][0]["name"] = json!("a.b")),
        (Rule::FieldForRole, "what the model says", |request| {
            request["input"][0]["content"] = json!([{ "type": "output_text", "text": "x" }]);
        }),
        (Rule::Thinking, "reasoning alone", |request| {
            let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [] });
            request["input"].as_array_mut().unwrap().push(reasoning);
        }),
        (Rule::Thinking, "a made-up encryption", |request| {
            let reasoning =
                json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "made up" });
            request["input"].as_array_mut().unwrap().insert(1, reasoning);
        }),
        (Rule::OutputSchema, "an open object", |request| {
            let schema = json!({ "type": "object", "properties": {} });
            request["text"] =
                json!({ "format": { "type": "json_schema", "name": "x", "schema": schema, "strict": true } });
        }),
        (Rule::Cache, "a mark for an older model", |request| {
            request["model"] = json!("gpt-5.5");
            let mark = json!({ "mode": "explicit" });
            let part = json!({ "type": "input_text", "text": "x", "prompt_cache_breakpoint": mark });
            request["input"][0]["content"] = json!([part]);
        }),
        (Rule::OutputSchema, "a keyword that is not followed to the letter", |request| {
            let schema = json!({ "type": "object", "properties": { "a": { "type": "string", "minLength": 1 } },
                "required": ["a"], "additionalProperties": false });
            request["text"] =
                json!({ "format": { "type": "json_schema", "name": "x", "schema": schema, "strict": true } });
        }),
        (Rule::Media, "no image", |request| {
            let image = json!({ "type": "input_image", "image_url": "data:image/png;base64,bm8=" });
            request["input"][0]["content"] = json!([image]);
        }),
        (Rule::Conflict, "nothing is stored", |request| request["previous_response_id"] = json!("resp_1")),
        (Rule::ToolChoice, "not on offer", |request| {
            request["tool_choice"] = json!({ "type": "function", "name": "other" });
        }),
    ]
}

fn ollama_cases() -> Vec<Case> {
    vec![
        (Rule::Shape, "an unknown option", |request| request["options"] = json!({ "max_tokens": 1 })),
        (Rule::Shape, "arguments as a text", |request| {
            request["messages"][1]["tool_calls"][0]["function"]["arguments"] = json!("{}");
        }),
        (Rule::Shape, "a role of another vendor", |request| {
            request["messages"][0]["role"] = json!("developer")
        }),
        (Rule::NoMessages, "nothing said", |request| request["messages"] = json!([])),
        (Rule::Unanswered, "no result", |request| {
            request["messages"].as_array_mut().unwrap().pop();
        }),
        (Rule::ResultWithoutCall, "one too many", |request| {
            let result = request["messages"][2].clone();
            request["messages"].as_array_mut().unwrap().push(result);
        }),
        (Rule::EmptyMessage, "silence", |request| request["messages"][0]["content"] = json!("")),
        (Rule::Media, "no image", |request| request["messages"][0]["images"] = json!(["bm8="])),
        (Rule::OutputSchema, "an unknown format", |request| request["format"] = json!("yaml")),
        (Rule::Range, "an unknown level", |request| request["think"] = json!("a lot")),
    ]
}
