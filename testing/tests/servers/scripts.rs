//! Well-behaved answers: scripts, the shape of chunks, usage, pace, and answers in one piece.

use std::time::Duration;

use ostler_testing::model_server::{ModelServer, Rule, Script, Turn};
use serde_json::json;
use tokio::io::AsyncReadExt;

use crate::client::{Call, ask, completions, go_on, without_stream};

#[tokio::test]
async fn the_turn_follows_from_the_transcript_so_a_repeated_call_gets_the_same_answer() {
    let turns = [Turn::call("lookup", &json!({ "q": "x" })), Turn::text("done")];
    let server = ModelServer::start(Script::turns(turns)).await.unwrap();
    let mut request = ask("hello");
    let first = completions(&server, &request).send().await;
    let again = completions(&server, &request).send().await;
    assert_eq!(first.body, again.body);
    go_on(&mut request, &first.assembled());
    assert_eq!(completions(&server, &request).send().await.assembled().text, "done");
    let again = completions(&server, &ask("hello")).send().await;
    assert_eq!(first.body, again.body, "even after later turns");
    assert_eq!(server.requests().len(), 4);
    assert_eq!(server.requests()[0].json(), ask("hello"));
}

#[tokio::test]
async fn a_transcript_longer_than_the_script_is_refused_and_recorded() {
    let server = ModelServer::start(Script::turns([Turn::text("only this")])).await.unwrap();
    let mut request = ask("hello");
    let said = completions(&server, &request).send().await.assembled();
    go_on(&mut request, &said);
    request["messages"].as_array_mut().unwrap().push(json!({ "role": "user", "content": "more" }));
    assert_eq!(completions(&server, &request).send().await.status, 400);
    let violations = server.violations();
    assert_eq!(violations[0].rule, Rule::ScriptEnded);
    assert_eq!(violations[0].message, "the script has 1 turns and the transcript asks for turn 2");
}

#[tokio::test]
async fn a_script_may_be_a_function_of_the_request() {
    let script = Script::function(|request| {
        let results = request.tool_results();
        if results.is_empty() { Turn::call("lookup", &json!({})) } else { Turn::text(results.concat()) }
    });
    let server = ModelServer::start(script).await.unwrap();
    let mut request = ask("hello");
    let said = completions(&server, &request).send().await.assembled();
    go_on(&mut request, &said);
    assert_eq!(completions(&server, &request).send().await.assembled().text, "found");
}

#[tokio::test]
async fn a_text_is_streamed_as_the_vendor_does() {
    let server = ModelServer::start(Script::turns([Turn::text("0123456789ab").usage(7, 3)])).await.unwrap();
    let answer = completions(&server, &ask("hello")).send().await;
    assert_eq!(answer.headers["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(answer.headers["transfer-encoding"], "chunked");
    let chunks = answer.chunks();
    let deltas: Vec<_> = chunks.iter().map(|chunk| chunk["choices"][0]["delta"].clone()).collect();
    assert_eq!(deltas[0], json!({ "role": "assistant", "content": "", "refusal": null }));
    assert_eq!(deltas[1], json!({ "content": "01234567" }));
    assert_eq!(deltas[2], json!({ "content": "89ab" }));
    assert_eq!((&deltas[3], &chunks[3]["choices"][0]["finish_reason"]), (&json!({}), &json!("stop")));
    assert_eq!(chunks[4]["choices"], json!([]), "the usage comes last, without a choice");
    assert_eq!(chunks[4]["usage"]["total_tokens"], 10);
    assert_eq!(chunks.len(), 5);
    for chunk in &chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["id"], chunks[0]["id"]);
        assert!(chunk.as_object().unwrap().contains_key("usage"), "null until the last");
    }
}

#[tokio::test]
async fn a_tool_call_is_streamed_as_the_vendor_does() {
    let turn = Turn::call("lookup", &json!({ "q": "0123456789" }));
    let server = ModelServer::start(Script::turns([turn])).await.unwrap();
    let chunks = completions(&server, &ask("hello")).send().await.chunks();
    let head = &chunks[0]["choices"][0]["delta"];
    assert_eq!((&head["role"], &head["content"]), (&json!("assistant"), &json!(null)));
    let call = &head["tool_calls"][0];
    assert_eq!((&call["index"], &call["type"]), (&json!(0), &json!("function")));
    assert_eq!(call["function"], json!({ "name": "lookup", "arguments": "" }));
    let piece = json!([{ "index": 0, "function": { "arguments": "{\"q\":\"01" } }]);
    assert_eq!(chunks[1]["choices"][0]["delta"]["tool_calls"], piece, "no id, no name any more");
    let finish = &chunks[chunks.len() - 2]["choices"][0];
    assert_eq!(finish["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn usage_is_only_streamed_when_asked_for() {
    let server = ModelServer::start(Script::turns([Turn::text("hi")])).await.unwrap();
    let mut request = ask("hello");
    request.as_object_mut().unwrap().remove("stream_options");
    let chunks = completions(&server, &request).send().await.chunks();
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none() && chunk["choices"].is_array()));
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn text_and_several_calls_come_in_one_piece_without_a_stream() {
    let turn = Turn::text("let me see").and_call("lookup", &json!({ "q": 1 })).and_call("add", &json!({}));
    let server = ModelServer::start(Script::turns([turn])).await.unwrap();
    let answer = completions(&server, &without_stream(ask("hello"))).send().await;
    assert_eq!(answer.headers["content-type"], "application/json");
    let body = answer.json();
    assert_eq!(body["object"], "chat.completion");
    let choice = &body["choices"][0];
    assert_eq!(choice["message"]["content"], "let me see");
    assert_eq!(choice["finish_reason"], "tool_calls");
    let calls = choice["message"]["tool_calls"].as_array().unwrap();
    assert_eq!(calls[0]["function"], json!({ "name": "lookup", "arguments": "{\"q\":1}" }));
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    let streamed = completions(&server, &ask("hello")).send().await.assembled();
    assert_eq!(streamed.text, "let me see");
    assert_eq!(streamed.calls.len(), 2);
}

#[tokio::test]
async fn a_paced_stream_arrives_bit_by_bit() {
    let turn = Turn::text("abcdefgh").chunk(1).pace(Duration::from_millis(200));
    let server = ModelServer::start(Script::turns([turn])).await.unwrap();
    let mut stream = completions(&server, &ask("hello")).open().await;
    let mut begun = Vec::new();
    while !String::from_utf8_lossy(&begun).contains(r#""content":"a""#) {
        assert_ne!(stream.read_buf(&mut begun).await.unwrap(), 0);
    }
    assert!(!String::from_utf8_lossy(&begun).contains("[DONE]"), "the first piece came with the last");
}

#[tokio::test]
async fn a_latency_holds_the_first_byte_back() {
    let latency = Duration::from_millis(150);
    let server = ModelServer::start(Script::turns([Turn::text("hi").latency(latency)])).await.unwrap();
    let before = jiff::Timestamp::now();
    completions(&server, &ask("hello")).send().await;
    assert!(jiff::Timestamp::now().duration_since(before).unsigned_abs() >= latency);
}

#[tokio::test]
async fn models_are_listed_and_other_routes_are_not_found() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    let models = Call::get(format!("{}/models", server.base_url())).send().await;
    assert_eq!(models.json()["data"][0]["object"], "model");
    let missing = Call::get(format!("{}/engines", server.base_url())).send().await;
    assert_eq!((missing.status, &missing.json()["error"]["code"]), (404, &json!("unknown_url")));
}
