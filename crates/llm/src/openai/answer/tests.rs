//! Answers from chunks: put together, repaired where the transcript needs it, bounded.

use serde_json::json;

use super::*;
use crate::ToolOffer;

fn peer() -> Peer {
    Peer { endpoint: "main".into(), secret: Some(ostler_secrets::SecretText::new("hush-hush")) }
}

fn read(chunks: &[Value], max: usize) -> Result<Completion, Failure> {
    let offer = ToolOffer { name: "a.b".into(), description: String::new(), schema: Value::Null };
    let mut answer = Answer::new(ToolNames::new(&[offer]), max);
    for chunk in chunks {
        answer.take_json(&peer(), chunk.to_string().as_bytes())?;
    }
    Ok(answer.complete())
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[track_caller]
fn check(chunks: &[Value], blocks: &[Block], finish: Finish) {
    let completion = read(chunks, 1000).unwrap();
    assert_eq!((completion.blocks.as_slice(), completion.finish), (blocks, finish));
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn piece(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    delta(json!({"tool_calls": [
        {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    ]}))
}

#[test]
fn text_is_put_together() {
    let chunks = [
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "Hel"})),
        delta(json!({"content": "lo", "tool_calls": null})),
        json!({"choices": [{"index": 1, "delta": {"content": "another choice"}}]}),
        end("stop"),
    ];
    check(&chunks, &[text("Hello")], Finish::Stop);
}

#[test]
fn calls_are_put_together_by_index() {
    let chunks = [
        delta(json!({"content": "Let me see."})),
        piece(0, "c1", "a_b", ""),
        piece(1, "c2", "search", "{\"q\""),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"x\":"}}]})),
        delta(json!({"tool_calls": [{"index": 1, "function": {"arguments": ":2}"}}]})),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]})),
        end("tool_calls"),
    ];
    let blocks = [text("Let me see."), call("c1", "a.b", "{\"x\":1}"), call("c2", "search", "{\"q\":2}")];
    check(&chunks, &blocks, Finish::ToolCalls);
}

#[test]
fn calls_without_a_good_index_are_told_apart() {
    let same_index = [piece(0, "c1", "x", "{}"), piece(0, "c2", "y", "{}"), end("stop")];
    check(&same_index, &[call("c1", "x", "{}"), call("c2", "y", "{}")], Finish::ToolCalls);
    let no_index = json!({"choices": [{"message": {"content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "x", "arguments": "{}"}},
        {"id": "c1", "type": "function", "function": {"name": "x", "arguments": "{}"}},
    ]}, "finish_reason": "tool_calls"}]});
    check(&[no_index], &[call("c1", "x", "{}"), call("c1_call_1", "x", "{}")], Finish::ToolCalls);
}

#[test]
fn ids_become_usable_and_different() {
    let long = "i".repeat(41);
    let ids = ["same", "same", "", "", "call_2", &long, "same_call_1"];
    let chunks: Vec<Value> = ids.iter().zip(0..).map(|(id, index)| piece(index, id, "t", "{}")).collect();
    let completion = read(&chunks, 1000).unwrap();
    let found: Vec<&str> = completion
        .blocks
        .iter()
        .map(|block| match block {
            Block::ToolCall { id, .. } => id.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected =
        ["same", "same_call_1", "call_2", "call_3", "call_2_call_4", "call_5", "same_call_1_call_6"];
    assert_eq!(found, expected);
}

#[test]
fn what_we_have_no_words_for_is_kept() {
    let chunks = [
        delta(json!({"reasoning_content": "Hm", "audio": null})),
        delta(json!({"reasoning_content": "m.", "annotations": [1]})),
        delta(json!({"content": "Yes", "annotations": [2]})),
        end("stop"),
    ];
    let value = json!({"reasoning_content": "Hmm.", "annotations": [1, 2]});
    check(&chunks, &[Block::Native { vendor: "openai".into(), value }, text("Yes")], Finish::Stop);
}

#[test]
fn a_refusal_is_told_and_kept() {
    let chunks = [delta(json!({"refusal": "I "})), delta(json!({"refusal": "can't"})), end("stop")];
    let completion = read(&chunks, 1000).unwrap();
    assert_eq!((completion.finish, completion.refusal()), (Finish::Refusal, Some("I can't")));
}

#[test]
fn the_end_is_what_really_ended_it() {
    let hi = delta(json!({"content": "hi"}));
    for (reason, finish) in [
        ("stop", Finish::Stop),
        ("eos", Finish::Stop),
        ("tool_calls", Finish::Stop),
        ("length", Finish::Length),
        ("content_filter", Finish::ContentFilter),
    ] {
        check(&[hi.clone(), end(reason)], &[text("hi")], finish);
    }
    check(&[piece(0, "c", "t", "{\"a"), end("length")], &[call("c", "t", "{\"a")], Finish::Length);
    check(&[end("stop")], &[], Finish::Stop);
}

#[test]
fn usage_that_makes_no_sense_was_not_reported() {
    let usage = |usage: Value| read(&[json!({"choices": [], "usage": usage})], 1000).unwrap().usage;
    let counted = Usage { input_tokens: 7, output_tokens: 3, estimated: false };
    assert_eq!(usage(json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})), Some(counted));
    let huge = i64::MAX as u64;
    let counted = usage(json!({"prompt_tokens": huge, "completion_tokens": huge})).unwrap();
    assert_eq!(counted.total(), 2 * huge);
    for odd in [json!(null), json!({}), json!({"prompt_tokens": -1, "completion_tokens": -1})] {
        assert_eq!(usage(odd.clone()), None, "{odd}");
    }
}

#[test]
fn errors_in_the_stream_are_typed_and_hide_the_key() {
    let cases = [
        (json!({"message": "slow down", "type": "rate_limit_error"}), "model_rate_limited"),
        (json!({"message": "busy", "code": 503}), "model_overloaded"),
        (json!({"message": "bad", "type": "invalid_request_error"}), "model_bad_request"),
        (json!({"message": "long", "code": "context_length_exceeded"}), "model_context_overflow"),
        (json!({"message": "key hush-hush is odd"}), "model_server_error"),
        (json!("just a text"), "model_server_error"),
    ];
    for (error, code) in cases {
        let failure = read(&[json!({ "error": error })], 1000).unwrap_err();
        assert_eq!(failure.code, code, "{failure}");
        assert!(!failure.message.contains("hush"), "{failure}");
    }
}

#[test]
fn an_answer_has_a_bound() {
    let text = delta(json!({"content": "0123456789"}));
    assert!(read(std::slice::from_ref(&text), 10).is_ok());
    assert_eq!(read(&[text.clone(), text], 10).unwrap_err().code, "model_answer_too_large");
    let calls: Vec<Value> = (0..300).map(|index| piece(index, "", "", "")).collect();
    assert_eq!(read(&calls, 1000).unwrap_err().code, "model_answer_too_large");
}

#[test]
fn broken_chunks_are_a_bad_answer() {
    let mut answer = Answer::new(ToolNames::default(), 1000);
    let broken: [&[u8]; 4] = [
        b"{\"choices\": [",
        b"hello",
        b"{\"choices\": 3}",
        b"{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}",
    ];
    for json in broken {
        let failure = answer.take_json(&peer(), json).unwrap_err();
        assert_eq!(failure.code, "model_bad_answer");
        assert!(failure.is_retryable());
    }
}
