//! Answers as the vendors' SDKs allow them: every field that may be empty is there, and null. Each is read as if it had been
//! left out.

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use ostler_kernel::Block;
use ostler_llm::{Finish, complete};
use ostler_testing::{
    loopback::{Handler, Hangup, Loopback, Reply},
    model_server::Turn,
};
use serde_json::{Value, json};

use crate::setup::{ALL, Ground, Vendor, offer, text, user};

/// Says one thing, whatever it is asked.
struct Fixed(Vec<u8>, &'static str);

impl Handler for Fixed {
    async fn handle(self: Arc<Self>, _: Request<Incoming>) -> Result<Response<Reply>, Hangup> {
        Ok(Reply::whole(self.0.clone()).into_response(StatusCode::OK, self.1))
    }
}

#[tokio::test]
async fn null_is_read_as_what_is_not_there() {
    for vendor in ALL {
        let lines = vendor.provider == "ollama";
        let kind = if lines { "application/x-ndjson" } else { "text/event-stream" };
        let event = |event: &Value| if lines { format!("{event}\n") } else { format!("data: {event}\n\n") };
        let mut body: String = answer(&vendor).iter().map(event).collect();
        if matches!(vendor.name, "openai chat" | "openai-compatible" | "azure chat") {
            body.push_str("data: [DONE]\n\n");
        }
        let server = Loopback::start(Arc::new(Fixed(body.into_bytes(), kind))).await.expect("a server");
        let ground = Ground::start(vendor, [Turn::text("never asked")]).await;
        let mut request = ground.request(vec![user("go")]);
        request.endpoint.base_url = format!("http://{}{}", server.address(), vendor.path);
        request.tools = vec![offer("look-up")];
        let completion = complete(&ground.registry, request, |_| {}).await;
        let completion = completion.unwrap_or_else(|failure| panic!("{}: {failure}", vendor.name));
        let said: Vec<&Block> =
            completion.blocks.iter().filter(|block| !matches!(block, Block::Native { .. })).collect();
        let [first, Block::ToolCall { name, arguments, .. }] = said[..] else {
            panic!("{}: {said:?}", vendor.name)
        };
        assert_eq!((first, name.as_str()), (&text("hi"), "look-up"), "{}", vendor.name);
        assert_eq!(serde_json::from_str::<Value>(arguments).ok(), Some(json!({"q": 1})), "{}", vendor.name);
        assert_eq!(completion.finish, Finish::ToolCalls, "{}", vendor.name);
        let usage = completion.usage.expect(vendor.name);
        assert_eq!((usage.input_tokens, usage.output_tokens), (7, 3), "{}", vendor.name);
    }
}

fn answer(vendor: &Vendor) -> Vec<Value> {
    match vendor.name {
        "openai responses" | "azure responses" => responses(),
        "anthropic" => anthropic(),
        "gemini" => gemini(),
        "ollama" => ollama(),
        _ => chat(),
    }
}

fn chat() -> Vec<Value> {
    let chunk = |choices: Value, usage: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices,
            "usage": usage, "service_tier": null, "system_fingerprint": null})
    };
    let choice = |delta: Value, reason: Value| {
        let mut whole = json!({"role": null, "content": null, "refusal": null, "function_call": null, "tool_calls": null});
        for (name, value) in delta.as_object().into_iter().flatten() {
            whole[name] = value.clone();
        }
        chunk(json!([{"index": 0, "delta": whole, "finish_reason": reason, "logprobs": null}]), Value::Null)
    };
    let call = |id: Value, function: Value| {
        choice(
            json!({"tool_calls": [{"index": 0, "id": id, "type": null, "function": function}]}),
            Value::Null,
        )
    };
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": null, "audio_tokens": null}, "completion_tokens_details": null});
    vec![
        choice(json!({"role": "assistant", "content": "hi"}), Value::Null),
        call("call_1".into(), json!({"name": "look-up", "arguments": null})),
        call(Value::Null, Value::Null),
        call(Value::Null, json!({"name": null, "arguments": "{\"q\":1}"})),
        choice(json!({}), "tool_calls".into()),
        chunk(json!([]), usage),
    ]
}

fn responses() -> Vec<Value> {
    let response = |status: &str, output: Value, usage: Value| {
        json!({"id": "r", "object": "response", "created_at": 1, "model": "m", "status": status, "output": output,
            "error": null, "incomplete_details": null, "instructions": null, "metadata": null, "usage": usage})
    };
    let part = json!({"type": "output_text", "text": "hi", "annotations": [], "logprobs": null});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [part], "phase": null});
    let call = |arguments: &str| {
        json!({"id": null, "type": "function_call", "call_id": "call_1", "name": "look-up", "arguments": arguments,
            "status": null, "caller": null, "namespace": null})
    };
    let item = |kind: &str, index: u64, item: &Value| json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item});
    let usage = json!({"input_tokens": 7, "output_tokens": 3, "total_tokens": 10, "input_tokens_details": null,
        "output_tokens_details": {"reasoning_tokens": null}});
    let (begun, whole) = (call(""), call("{\"q\":1}"));
    vec![
        json!({"type": "response.created", "response": response("in_progress", json!([]), Value::Null)}),
        item("added", 0, &message),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "hi", "logprobs": null}),
        item("done", 0, &message),
        item("added", 1, &begun),
        json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{\"q\":1}"}),
        item("done", 1, &whole),
        json!({"type": "response.completed", "response": response("completed", json!([message, whole]), usage)}),
    ]
}

fn anthropic() -> Vec<Value> {
    let usage = |input: Value, output: u64| {
        json!({"input_tokens": input, "output_tokens": output, "cache_creation": null,
            "cache_creation_input_tokens": null, "cache_read_input_tokens": null, "inference_geo": null,
            "output_tokens_details": null, "server_tool_use": null, "service_tier": null})
    };
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "container": null, "context_management": null, "stop_details": null, "stop_reason": null,
        "stop_sequence": null, "usage": usage(json!(7), 1)});
    let begin = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    vec![
        json!({"type": "message_start", "message": message}),
        begin(0, json!({"type": "text", "text": "", "citations": null})),
        delta(0, json!({"type": "text_delta", "text": "hi"})),
        json!({"type": "content_block_stop", "index": 0}),
        begin(
            1,
            json!({"type": "tool_use", "id": "toolu_1", "name": "look-up", "input": {}, "caller": null}),
        ),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"q\":1}"})),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "context_management": null, "usage": usage(Value::Null, 3),
            "delta": {"stop_reason": "tool_use", "stop_sequence": null, "stop_details": null, "container": null}}),
        json!({"type": "message_stop"}),
    ]
}

fn gemini() -> Vec<Value> {
    let chunk = |candidates: Value, usage: Value| {
        json!({"candidates": candidates, "usageMetadata": usage, "promptFeedback": null, "modelVersion": null,
            "responseId": null, "createTime": null})
    };
    let candidate = |content: Value, reason: Value| {
        let candidate = json!({"index": null, "content": content, "finishReason": reason, "finishMessage": null,
            "safetyRatings": null, "citationMetadata": null, "groundingMetadata": null, "tokenCount": null});
        chunk(json!([candidate]), Value::Null)
    };
    let part = |name: &str, value: Value| {
        let mut part = json!({"text": null, "thought": null, "thoughtSignature": null, "functionCall": null,
            "functionResponse": null, "inlineData": null, "fileData": null, "executableCode": null,
            "codeExecutionResult": null, "videoMetadata": null});
        part[name] = value;
        candidate(json!({"role": null, "parts": [part]}), Value::Null)
    };
    let call =
        json!({"id": null, "name": "look-up", "args": {"q": 1}, "partialArgs": null, "willContinue": null});
    let usage = json!({"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10,
        "cachedContentTokenCount": null, "thoughtsTokenCount": null, "toolUsePromptTokenCount": null,
        "promptTokensDetails": null, "trafficType": null});
    let mut last = candidate(Value::Null, "STOP".into());
    last["usageMetadata"] = usage;
    vec![
        chunk(Value::Null, Value::Null),
        candidate(Value::Null, Value::Null),
        candidate(json!({"role": null, "parts": null}), Value::Null),
        part("text", "hi".into()),
        part("functionCall", call),
        part("thought", Value::Null),
        last,
    ]
}

fn ollama() -> Vec<Value> {
    let line = |message: Value| {
        json!({"model": null, "created_at": null, "message": message, "done": null, "done_reason": null,
            "total_duration": null, "load_duration": null, "prompt_eval_count": null, "eval_count": null,
            "prompt_eval_duration": null, "eval_duration": null, "logprobs": null})
    };
    let said = |content: Value, calls: Value| {
        line(
            json!({"role": "assistant", "content": content, "thinking": null, "images": null, "tool_name": null,
            "tool_calls": calls}),
        )
    };
    let call = json!({"id": null, "function": {"index": null, "name": "look-up", "arguments": {"q": 1}}});
    let mut last = line(Value::Null);
    for (name, value) in [("done", json!(true)), ("prompt_eval_count", json!(7)), ("eval_count", json!(3))] {
        last[name] = value;
    }
    vec![line(Value::Null), said("hi".into(), Value::Null), said(Value::Null, json!([call])), last]
}
