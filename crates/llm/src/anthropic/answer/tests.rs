//! Answers from events as they stand on the wire.

use ostler_kernel::Block;

use super::*;
use crate::{Completion, Part, draft::put_together};

fn read(events: &[Value]) -> Result<(Vec<Part>, Completion), Failure> {
    put_together("anthropic", Answer::default(), &[], 1 << 20, events)
}

fn native(value: Value) -> Block {
    Block::Native { vendor: "anthropic".into(), value }
}

fn start() -> Value {
    let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30,
        "output_tokens": 1});
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
        "model": "m", "stop_reason": null, "usage": usage}})
}

fn begin(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn end(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 15}})
}

#[test]
fn a_stream_of_thinking_text_and_calls_is_put_together_in_order() {
    let events = [
        start(),
        json!({"type": "ping"}),
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Let me "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "see."})),
        delta(0, json!({"type": "signature_delta", "signature": "EqQB=="})),
        json!({"type": "content_block_stop", "index": 0}),
        begin(1, json!({"type": "redacted_thinking", "data": "abc"})),
        begin(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "I look."})),
        begin(3, json!({"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"q\":"})),
        delta(3, json!({"type": "input_json_delta", "partial_json": " 1}"})),
        json!({"type": "content_block_stop", "index": 3}),
        end("tool_use"),
        json!({"type": "message_stop"}),
    ];
    let (shown, completion) = read(&events).unwrap();
    let expected = [
        native(json!({"type": "thinking", "thinking": "Let me see.", "signature": "EqQB=="})),
        native(json!({"type": "redacted_thinking", "data": "abc"})),
        Block::Text { text: "I look.".into() },
        Block::ToolCall { id: "toolu_1".into(), name: "t".into(), arguments: "{\"q\": 1}".into() },
    ];
    assert_eq!((completion.blocks.as_slice(), completion.finish), (&expected[..], Finish::ToolCalls));
    let usage = Usage {
        input_tokens: 60,
        output_tokens: 15,
        cache_read_tokens: 30,
        cache_write_tokens: 20,
        ..Usage::default()
    };
    assert_eq!(completion.usage, Some(usage));
    let shown: Vec<String> = shown.iter().map(|part| format!("{part:?}")).collect();
    assert_eq!(shown, ["Thinking(\"Let me \")", "Thinking(\"see.\")", "Text(\"I look.\")"]);
}

#[test]
fn a_whole_answer_comes_to_the_same() {
    let whole = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"q": 1}},
    ], "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 4}});
    let (shown, completion) = read(&[whole]).unwrap();
    assert_eq!(completion.blocks.len(), 3);
    assert_eq!(shown, [Part::Thinking("Hm.".into()), Part::Text("Hello".into())]);
    assert_eq!(completion.usage.unwrap().total(), 7);
}

#[test]
fn every_reason_to_stop_has_its_meaning() {
    let reasons = [
        ("end_turn", Finish::Stop),
        ("stop_sequence", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("model_context_window_exceeded", Finish::Length),
        ("refusal", Finish::Refusal),
        ("pause_turn", Finish::Pause),
    ];
    for (reason, finish) in reasons {
        assert_eq!(read(&[start(), end(reason)]).unwrap().1.finish, finish, "{reason}");
    }
}

#[test]
fn an_error_in_the_stream_is_typed_and_nonsense_is_a_bad_answer() {
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "no"}});
    for (kind, code) in [("overloaded_error", "model_overloaded"), ("api_error", "model_server_error")] {
        assert_eq!(read(&[start(), error(kind)]).unwrap_err().code, code);
    }
    assert_eq!(read(&[json!({"type": "content_block_start"})]).unwrap_err().code, "model_bad_answer");
    assert_eq!(read(&[json!({})]).unwrap_err().code, "model_bad_answer");
}

#[test]
fn usage_that_makes_no_sense_is_none() {
    let mut start = start();
    start["message"]["usage"]["input_tokens"] = json!(-5);
    assert_eq!(read(&[start, end("end_turn")]).unwrap().1.usage, None);
}

#[test]
fn the_blocks_of_the_vendors_own_tools_are_kept() {
    let block = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let events = [
        start(),
        begin(0, block),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{\"query\":\"x\"}"})),
        json!({"type": "content_block_stop", "index": 0}),
        end("pause_turn"),
    ];
    let (_, completion) = read(&events).unwrap();
    let kept =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    assert_eq!(completion.blocks, [native(kept)]);
}
