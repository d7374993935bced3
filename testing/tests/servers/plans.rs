//! Plans in the user's message: the grammar, and which turn is played when.

use std::time::Duration;

use ostler_testing::model_server::{Fault, ModelServer, Rule, Script, Turn, plan};
use serde_json::{Value, json};

use crate::client::{Assembled, ask, completions, go_on};

async fn play(server: &ModelServer, request: &Value) -> Assembled {
    let answer = completions(server, request).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.assembled()
}

#[tokio::test]
async fn a_plan_is_played_turn_by_turn_and_then_the_model_echoes() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    let mut request =
        ask("task 7, please.\nplan: tool lookup {\"q\":\"a, b\"}, tool + tool add {\"x\":1}, text=done");
    let first = play(&server, &request).await;
    assert_eq!(first.finish_reason, "tool_calls");
    assert_eq!(first.calls[0].1, "lookup");
    assert_eq!(first.calls[0].2, r#"{"q":"a, b"}"#);
    go_on(&mut request, &first);
    let second = play(&server, &request).await;
    let called: Vec<_> = second.calls.iter().map(|call| (&*call.1, &*call.2)).collect();
    assert_eq!(called, [("lookup", "{}"), ("add", r#"{"x":1}"#)], "a nameless tool is the first on offer");
    go_on(&mut request, &second);
    let third = play(&server, &request).await;
    assert_eq!((&*third.text, &*third.finish_reason), ("done", "stop"));
    go_on(&mut request, &third);
    request["messages"].as_array_mut().unwrap().push(json!({ "role": "user", "content": "and now?" }));
    assert_eq!(play(&server, &request).await.text, "you said: and now?");
    assert_eq!(server.violations(), []);
}

#[tokio::test]
async fn a_later_plan_takes_over_and_a_word_in_between_does_not() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    let mut request = ask("plan: tool, text=one");
    let first = play(&server, &request).await;
    go_on(&mut request, &first);
    let say = |request: &mut Value, text: &str| {
        request["messages"].as_array_mut().unwrap().push(json!({ "role": "user", "content": text }));
    };
    say(&mut request, "hurry up");
    let second = play(&server, &request).await;
    assert_eq!(second.text, "one");
    go_on(&mut request, &second);
    say(&mut request, "plan: text=two");
    assert_eq!(play(&server, &request).await.text, "two");
    // As who was cancelled before an answer and who comes next in the same session are sent.
    let request = ask("plan: tool, text=three\n\nplan: text=four");
    assert_eq!(play(&server, &request).await.text, "four");
}

#[tokio::test]
async fn a_fault_with_a_count_strikes_each_conversation_that_often() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    for task in ["first", "second"] {
        let request = ask(&format!("{task} plan: text=done fault=500:2"));
        for expected in [500, 500, 200, 200] {
            assert_eq!(completions(&server, &request).send().await.status, expected);
        }
    }
}

#[tokio::test]
async fn without_a_plan_the_model_echoes() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    assert_eq!(play(&server, &ask("good morning")).await.text, "you said: good morning");
}

#[test]
fn the_grammar_has_every_part_and_option() {
    let turns = plan::read(
        r#" text="one, \"two\" + three" + tool a {"k":[1,{"x":"},"}]}  latency=5 chunk=3 pace=7 usage=10/4 ,
        not of the plan any more"#,
    );
    assert_eq!(turns.unwrap_err().to_string(), "turn 2 says nothing");
    let turns = plan::read(
        r#" text="one, \"two\" + three" + tool a {"k":[1,{"x":"},"}]} latency=5 chunk=3 pace=7 usage=10/4,refusal=no fault=cut-text"#,
    );
    let first = Turn::text("one, \"two\" + three")
        .and_call("a", &json!({ "k": [1, { "x": "}," }] }))
        .latency(Duration::from_millis(5))
        .chunk(3)
        .pace(Duration::from_millis(7))
        .usage(10, 4);
    assert_eq!(turns.unwrap(), [first, Turn::refusal("no").fault(Fault::CutText)]);
}

#[test]
fn a_plan_that_cannot_be_read_says_why() {
    let why = |text: &str| plan::read(text).unwrap_err().to_string();
    assert_eq!(why("tol lookup"), "`tol` is neither a part nor an option of a turn");
    assert_eq!(why("text=a, latency=5"), "turn 2 says nothing");
    assert_eq!(why("tool a {\"x\":"), "not JSON: `{\"x\":`");
    assert_eq!(why("text=a latency=soon"), "not a number: `soon`");
    assert_eq!(why("text=a fault=gremlin:1"), "unknown fault `gremlin`");
    assert_eq!(why("text=a {}"), "`{}` is neither a part nor an option of a turn");
}

#[tokio::test]
async fn a_request_with_an_unreadable_plan_is_refused() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    let answer = completions(&server, &ask("plan: tool a {")).send().await;
    assert_eq!(answer.status, 400);
    assert_eq!(server.violations()[0].rule, Rule::Plan);
}
