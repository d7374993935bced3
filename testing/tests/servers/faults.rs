//! Each fault, streamed and in one piece, looks on the wire as its documentation says.

use std::time::Duration;

use ostler_testing::model_server::{Fault, ModelServer, Script, Turn};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::client::{Answer, PATIENCE, ask, completions, until, without_stream};

/// A text, and a call of the tool on offer: something for every fault to break.
fn turn() -> Turn {
    Turn::text("the answer is forty-two, as ever").and_call("lookup", &json!({ "q": "the question" }))
}

async fn with_fault(fault: Fault) -> ModelServer {
    ModelServer::start(Script::turns([turn().fault(fault)])).await.unwrap()
}

#[tokio::test]
async fn every_fault_looks_as_stated_in_a_stream() {
    for fault in Fault::ALL {
        let server = with_fault(fault).await;
        let call = completions(&server, &ask("hello"));
        if !is_silent(fault) {
            check_stream(fault, &call.send_raw().await);
        }
        assert_eq!(server.violations(), [], "{fault}");
    }
}

#[tokio::test]
async fn every_fault_looks_as_stated_in_one_piece() {
    for fault in Fault::ALL {
        let server = with_fault(fault).await;
        let call = completions(&server, &without_stream(ask("hello")));
        if !is_silent(fault) {
            check_whole(fault, &call.send_raw().await);
        }
        assert_eq!(server.violations(), [], "{fault}");
    }
}

#[test]
fn every_fault_has_a_name_that_reads_back() {
    for fault in Fault::ALL {
        assert_eq!(fault.to_string().parse(), Ok(fault));
    }
    assert_eq!("gremlin".parse::<Fault>().unwrap_err().to_string(), "unknown fault `gremlin`");
}

#[tokio::test]
async fn a_hanging_model_sends_nothing_and_knows_when_its_client_is_gone() {
    let server = with_fault(Fault::Hang).await;
    let mut stream = completions(&server, &ask("hello")).open().await;
    until(async || server.desk().all().inflight == 1).await;
    let mut byte = [0];
    let silence = timeout(Duration::from_millis(200), stream.read(&mut byte)).await;
    assert!(silence.is_err(), "it said something");
    drop(stream);
    until(async || server.desk().all().inflight == 0).await;
    assert_eq!(server.desk().all().answered, 0);
}

#[tokio::test]
async fn a_stalling_stream_begins_and_stays_open() {
    for request in [ask("hello"), without_stream(ask("hello"))] {
        let server = with_fault(Fault::Stall).await;
        let mut stream = completions(&server, &request).open().await;
        let mut begun = Vec::new();
        while !String::from_utf8_lossy(&begun).contains(r#""content":"the "#) {
            let read = timeout(PATIENCE, stream.read_buf(&mut begun)).await.expect("a beginning");
            assert_ne!(read.unwrap(), 0, "it closed");
        }
        let rest = timeout(Duration::from_millis(200), stream.read_to_end(&mut begun)).await;
        assert!(rest.is_err(), "it ended");
        assert!(!String::from_utf8_lossy(&begun).contains("finish_reason\":\""), "it was all there");
    }
}

#[tokio::test]
async fn slow_bytes_come_one_by_one() {
    let server = with_fault(Fault::Slow).await;
    let mut stream = completions(&server, &ask("hello")).open().await;
    let (mut bytes, mut n_reads) = (Vec::new(), 0);
    while stream.read_buf(&mut bytes).await.unwrap() > 0 {
        n_reads += 1;
    }
    // Each byte is a chunk of HTTP: its size, a line end, the byte, a line end.
    let text = String::from_utf8(bytes).unwrap();
    let n_bytes = text.matches("\r\n1\r\n").count();
    assert!(n_bytes > 1_000, "{n_bytes} bytes");
    // On a busy machine several arrive at once, but never all.
    assert!(n_reads > 50, "{n_reads} reads");
}

/// Those that never end an answer, each of which has a test of its own.
fn is_silent(fault: Fault) -> bool {
    matches!(fault, Fault::Hang | Fault::Stall)
}

fn check_stream(fault: Fault, answer: &Option<Answer>) {
    let Some(answer) = answer else {
        return assert_eq!(fault, Fault::Close);
    };
    if check_refusal(fault, answer) {
        return;
    }
    assert_eq!(answer.status, 200, "{fault}");
    assert_eq!(answer.headers["content-type"], "text/event-stream; charset=utf-8", "{fault}");
    match fault {
        Fault::CutText => check_cut(answer, r#""delta":{"content":""#),
        Fault::CutTool => check_cut(answer, r#""function":{"arguments":""#),
        Fault::ErrorEvent => {
            let events = answer.events();
            let (last, before) = events.split_last().unwrap();
            let error: Value = serde_json::from_str(last).unwrap();
            assert_eq!(error["error"]["type"], "server_error");
            assert!(before.len() > 2 && answer.complete, "something was said before");
        }
        Fault::BadChunk => {
            let events = answer.events();
            let bad: Vec<_> =
                events.iter().filter(|event| serde_json::from_str::<Value>(event).is_err()).collect();
            assert_eq!(bad.len(), 2, "one bad chunk, and the [DONE]: {bad:?}");
            assert_eq!(events.last(), Some(&"[DONE]"));
        }
        Fault::InvalidUtf8 => {
            assert!(answer.complete && std::str::from_utf8(&answer.body).is_err());
            let text = String::from_utf8_lossy(&answer.body);
            let bad = text.split("\n\n").find(|event| event.contains("\u{fffd}\u{fffd}")).unwrap();
            let chunk: Value = serde_json::from_str(bad.strip_prefix("data: ").unwrap()).unwrap();
            assert!(chunk["choices"][0]["delta"]["content"].as_str().unwrap().contains('\u{fffd}'));
            assert!(text.ends_with("data: [DONE]\n\n"));
        }
        _ => {
            assert!(answer.complete, "{fault}");
            let said = answer.assembled();
            let calls: Vec<_> = said
                .calls
                .iter()
                .map(|(id, name, arguments)| json!({ "id": id, "name": name, "arguments": arguments }))
                .collect();
            check_content(
                fault,
                &Content {
                    text: &said.text,
                    refusal: &said.refusal,
                    calls: &calls,
                    finish_reason: &said.finish_reason,
                    usage: &said.usage,
                },
            );
        }
    }
}

fn check_whole(fault: Fault, answer: &Option<Answer>) {
    let Some(answer) = answer else {
        return assert_eq!(fault, Fault::Close);
    };
    if check_refusal(fault, answer) {
        return;
    }
    assert_eq!(answer.status, 200, "{fault}");
    assert_eq!(answer.headers["content-type"], "application/json", "{fault}");
    let is_json = serde_json::from_slice::<Value>(&answer.body).is_ok();
    match fault {
        Fault::CutText | Fault::CutTool => assert!(!answer.complete && !is_json, "{fault}"),
        Fault::BadChunk => assert!(answer.complete && !is_json),
        Fault::InvalidUtf8 => assert!(answer.complete && std::str::from_utf8(&answer.body).is_err()),
        _ => {
            let body = answer.json();
            let message = &body["choices"][0]["message"];
            let flat = |call: &Value| json!({ "id": call["id"], "name": call["function"]["name"], "arguments": call["function"]["arguments"] });
            let calls: Vec<_> = message["tool_calls"].as_array().into_iter().flatten().map(flat).collect();
            check_content(
                fault,
                &Content {
                    text: message["content"].as_str().unwrap_or_default(),
                    refusal: message["refusal"].as_str().unwrap_or_default(),
                    calls: &calls,
                    finish_reason: body["choices"][0]["finish_reason"].as_str().unwrap(),
                    usage: &body["usage"],
                },
            );
        }
    }
}

/// Faults that answer with something else than a completion; true if this is one.
fn check_refusal(fault: Fault, answer: &Answer) -> bool {
    let retry_after = answer.headers.get("retry-after").map(String::as_str);
    let status = match fault {
        Fault::RateLimited => {
            assert_eq!(retry_after, Some("1"));
            429
        }
        Fault::RateLimitedDate => {
            let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(retry_after.unwrap());
            let ahead = date.unwrap().duration_since(jiff::Timestamp::now());
            assert!(ahead.as_secs() <= 2 && retry_after.unwrap().ends_with("GMT"), "{retry_after:?}");
            429
        }
        Fault::RateLimitedBare => {
            assert_eq!(retry_after, None);
            429
        }
        Fault::RateLimitedDay => {
            assert_eq!(retry_after, Some("86400"));
            429
        }
        Fault::RateLimitedMilliseconds => {
            assert_eq!((retry_after, &*answer.headers["retry-after-ms"]), (Some("1"), "250"));
            429
        }
        Fault::Quota => {
            assert_eq!(answer.json()["error"]["code"], "insufficient_quota");
            429
        }
        Fault::Blocked => {
            assert_eq!(answer.json()["error"]["code"], "invalid_prompt");
            400
        }
        Fault::Unavailable => 503,
        Fault::ErrorEvent if answer.headers["content-type"] == "application/json" => 500,
        Fault::ServerError => 500,
        Fault::Overloaded => 529,
        Fault::Unauthorized => 401,
        Fault::ContextLength => {
            assert_eq!(answer.json()["error"]["code"], "context_length_exceeded");
            400
        }
        Fault::Html => {
            assert!(answer.headers["content-type"].starts_with("text/html"));
            assert!(answer.text().starts_with("<!DOCTYPE html>"));
            assert_eq!(answer.status, 200);
            return true;
        }
        _ => return false,
    };
    assert_eq!(answer.status, status, "{fault}");
    assert!(answer.json()["error"]["message"].is_string(), "{fault}: the vendor's shape");
    true
}

fn check_cut(answer: &Answer, inside: &str) {
    assert!(!answer.complete, "it ended as HTTP asks");
    let text = answer.text();
    assert!(!text.contains("[DONE]"));
    let last = text.rsplit("\n\n").next().unwrap();
    let (_, behind) = last.split_once(inside).unwrap_or_else(|| panic!("cut elsewhere: {last}"));
    assert!(!behind.contains('"') || behind.ends_with('\\'), "cut behind the token: {last}");
    assert!(text.contains("data: "), "something came before");
}

struct Content<'c> {
    text: &'c str,
    refusal: &'c str,
    calls: &'c [Value],
    finish_reason: &'c str,
    usage: &'c Value,
}

fn check_content(fault: Fault, said: &Content<'_>) {
    let arguments = |index: usize| said.calls[index]["arguments"].as_str().unwrap();
    let parsed = |index: usize| serde_json::from_str::<Value>(arguments(index));
    match fault {
        Fault::BadArguments => assert!(parsed(0).is_err(), "{}", arguments(0)),
        Fault::ArrayArguments => assert!(parsed(0).unwrap().is_array()),
        Fault::Slow => assert_eq!(parsed(0).unwrap(), json!({ "q": "the question" })),
        Fault::Huge => assert_eq!(said.text.len(), 10_000_000),
        Fault::NoUsage => assert!(said.usage.is_null()),
        Fault::DuplicateIds => {
            assert_eq!(said.calls.len(), 2);
            assert_eq!(said.calls[0]["id"], said.calls[1]["id"]);
        }
        Fault::EmptyId => assert_eq!(said.calls[0]["id"], ""),
        Fault::UnknownTool => assert_eq!(said.calls[0]["name"], "no_such_tool"),
        Fault::Refusal => {
            assert_eq!((said.text, said.refusal), ("", "I can't help with that."));
            assert_eq!(said.finish_reason, "stop");
        }
        Fault::Empty => assert_eq!((said.text, said.calls.len(), said.finish_reason), ("", 0, "stop")),
        Fault::Length => {
            assert_eq!(said.finish_reason, "length");
            assert!(parsed(0).is_err(), "cut off in the middle of the arguments");
        }
        Fault::LengthBare => {
            assert_eq!((said.finish_reason, said.calls.len(), arguments(0)), ("length", 1, ""));
        }
        Fault::ContentFilter => {
            assert_eq!((said.text, said.finish_reason), ("the answer is fo", "content_filter"));
        }
        Fault::FilteredCall => {
            assert_eq!(parsed(0).unwrap(), json!({ "q": "the question" }));
            assert_eq!(said.finish_reason, "content_filter");
        }
        Fault::UsageHuge => assert_eq!(said.usage["prompt_tokens"], i64::MAX),
        Fault::UsageNegative => assert_eq!(said.usage["completion_tokens"], -1),
        other => panic!("{other} has no test"),
    }
}
