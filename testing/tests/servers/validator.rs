//! The validator: each rule is broken once by a request that is sound but for that, and sound ones pass.

use std::collections::BTreeSet;

use ostler_testing::model_server::{ModelServer, Rule, Script, Turn};
use serde_json::{Value, json};

use crate::client::{Call, ask, completions};

/// A rule, a case of it, and what breaks it.
type Case = (Rule, &'static str, fn(&mut Value));

/// What spoils a request beside its body.
type Spoil = fn(Call) -> Call;

#[tokio::test]
async fn each_violation_is_refused_and_recorded() {
    for (rule, case, break_it) in cases() {
        let server = talkative().await;
        let mut request = conversation();
        break_it(&mut request);
        let answer = completions(&server, &request).send().await;
        let violations = server.violations();
        let rules: Vec<_> = violations.iter().map(|violation| violation.rule).collect();
        assert_eq!(rules, [rule], "{case}: {violations:?}");
        let error = &answer.json()["error"];
        assert_eq!(answer.status, 400, "{case}");
        assert_eq!((&error["code"], &error["type"]), (&json!(rule.name()), &json!("invalid_request_error")));
        assert_eq!(error["param"], violations[0].param);
        assert!(error["message"].is_string());
    }
}

#[tokio::test]
async fn violations_outside_the_body_are_refused_and_recorded() {
    let sound = conversation();
    let spoilt: [(Rule, Spoil); 7] = [
        (Rule::Json, |call| Call { body: b"{\"model\":".to_vec(), ..call }),
        (Rule::Json, |call| Call { body: b"{\"model\":\"\xff\"}".to_vec(), ..call }),
        (Rule::ContentType, |call| call.header("content-type", "text/plain")),
        (Rule::Authorization, |call| call.header("authorization", "sk-123")),
        (Rule::Authorization, |call| call.header("authorization", "Bearer ")),
        (Rule::Authorization, |call| call.header("authorization", "Bearer two words")),
        (Rule::Authorization, |call| call.header("authorization", "Basic c2stMTIz")),
    ];
    for (rule, spoil) in spoilt {
        let server = talkative().await;
        let answer = spoil(completions(&server, &sound)).send().await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(rule.name())));
        let rules: Vec<_> = server.violations().iter().map(|violation| violation.rule).collect();
        assert_eq!(rules, [rule]);
    }
}

#[test]
fn every_rule_has_a_case() {
    let elsewhere =
        [Rule::Json, Rule::ContentType, Rule::Authorization, Rule::Version, Rule::Plan, Rule::ScriptEnded];
    let of_vendors = crate::anthropic::cases().into_iter().map(|case| case.0);
    let tested: BTreeSet<_> =
        cases().into_iter().map(|case| case.0).chain(elsewhere).chain(of_vendors).collect();
    assert_eq!(tested, BTreeSet::from(Rule::ALL));
}

#[tokio::test]
async fn sound_requests_pass() {
    let sound: [fn(&mut Value); 9] = [
        |_| {},
        |request| request["messages"][1]["content"] = json!([{ "type": "text", "text": "in parts" }]),
        |request| request["messages"][2]["content"] = json!("let me look"),
        |request| request["messages"][3]["content"] = json!(""),
        |request| request["messages"].as_array_mut().unwrap().truncate(2),
        |request| {
            request["messages"][2] = json!({ "role": "assistant", "content": null, "refusal": "no" });
            request["messages"].as_array_mut().unwrap().drain(3..5);
        },
        |request| request["messages"].as_array_mut().unwrap().swap(3, 4),
        |request| {
            let options = json!({
                "temperature": 0.2, "top_p": 1, "max_completion_tokens": 100, "stop": ["a", "b"], "seed": 7,
                "tool_choice": { "type": "function", "function": { "name": "lookup" } },
                "parallel_tool_calls": false, "metadata": { "run": "1" }, "user": "u",
                "reasoning_effort": "low", "response_format": { "type": "json_object" },
            });
            request.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        },
        |request| {
            let message = json!({ "role": "user", "name": "ann", "content": "and so on" });
            request["messages"].as_array_mut().unwrap().push(message);
        },
    ];
    for (index, change) in sound.into_iter().enumerate() {
        let server = talkative().await;
        let mut request = conversation();
        change(&mut request);
        let call = completions(&server, &request).header("authorization", "Bearer sk-proj_1.2~3+/4==");
        let answer = call.header("content-type", "application/json; charset=utf-8").send().await;
        assert_eq!((answer.status, server.violations()), (200, vec![]), "sound request {index}");
    }
}

async fn talkative() -> ModelServer {
    ModelServer::start(Script::function(|_| Turn::text("fine"))).await.unwrap()
}

/// System, user, two calls, two results.
fn conversation() -> Value {
    let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "lookup", "arguments": "{\"q\":\"x\"}" } });
    let mut request = ask("hello");
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "found" });
    let more = [
        json!({ "role": "assistant", "content": null, "tool_calls": [call("call_1"), call("call_2")] }),
        result("call_1"),
        result("call_2"),
    ];
    request["messages"].as_array_mut().unwrap().extend(more);
    request
}

fn messages(request: &mut Value) -> &mut Vec<Value> {
    request["messages"].as_array_mut().unwrap()
}

fn function(request: &mut Value) -> &mut Value {
    &mut request["tools"][0]["function"]
}

fn first_call(request: &mut Value) -> &mut Value {
    &mut request["messages"][2]["tool_calls"][0]
}

fn cases() -> Vec<Case> {
    [shape_cases(), option_cases(), transcript_cases(), call_cases(), tool_cases()].concat()
}

fn shape_cases() -> Vec<Case> {
    vec![
        (Rule::Shape, "no model", |request| {
            request.as_object_mut().unwrap().remove("model");
        }),
        (Rule::Shape, "no messages", |request| {
            request.as_object_mut().unwrap().remove("messages");
        }),
        (Rule::Shape, "unknown field", |request| request["max_steps"] = json!(3)),
        (Rule::Shape, "deprecated field", |request| request["functions"] = json!([])),
        (Rule::Shape, "wrong type", |request| request["stream"] = json!("yes")),
        (Rule::Shape, "number as text", |request| request["temperature"] = json!("0.5")),
        (Rule::Shape, "not an object", |request| *request = json!([1])),
        (Rule::Shape, "unknown role", |request| request["messages"][1]["role"] = json!("robot")),
        (Rule::Shape, "no role", |request| {
            request["messages"][1].as_object_mut().unwrap().remove("role");
        }),
        (Rule::Shape, "unknown message field", |request| request["messages"][1]["id"] = json!("m1")),
        (Rule::Shape, "content of a wrong type", |request| request["messages"][1]["content"] = json!(5)),
        (Rule::Shape, "unknown part", |request| {
            request["messages"][1]["content"] = json!([{ "type": "tool_result" }]);
        }),
        (Rule::Shape, "arguments as an object", |request| {
            first_call(request)["function"]["arguments"] = json!({});
        }),
        (Rule::Shape, "an index left in a call", |request| first_call(request)["index"] = json!(0)),
        (Rule::Shape, "no type in a call", |request| {
            first_call(request).as_object_mut().unwrap().remove("type");
        }),
        (Rule::Shape, "unknown stream option", |request| request["stream_options"]["x"] = json!(1)),
        (Rule::Shape, "tool without a function", |request| {
            request["tools"][0] = json!({ "type": "function" })
        }),
    ]
}

fn option_cases() -> Vec<Case> {
    vec![
        (Rule::Range, "temperature", |request| request["temperature"] = json!(2.5)),
        (Rule::Range, "empty model", |request| request["model"] = json!("")),
        (Rule::Range, "no tokens", |request| request["max_completion_tokens"] = json!(0)),
        (Rule::Range, "two choices", |request| request["n"] = json!(2)),
        (Rule::Range, "five stops", |request| request["stop"] = json!(["1", "2", "3", "4", "5"])),
        (Rule::Range, "unknown effort", |request| request["reasoning_effort"] = json!("heroic")),
        (Rule::Range, "long description", |request| {
            function(request)["description"] = json!("x".repeat(1025))
        }),
        (Rule::Conflict, "stream options without a stream", |request| request["stream"] = json!(false)),
        (Rule::Conflict, "choice without tools", |request| {
            request.as_object_mut().unwrap().remove("tools");
            request["tool_choice"] = json!("auto");
        }),
        (Rule::Conflict, "parallel without tools", |request| {
            request.as_object_mut().unwrap().remove("tools");
            request["parallel_tool_calls"] = json!(true);
        }),
        (Rule::Conflict, "two limits", |request| {
            request["max_tokens"] = json!(5);
            request["max_completion_tokens"] = json!(5);
        }),
    ]
}

fn transcript_cases() -> Vec<Case> {
    vec![
        (Rule::NoMessages, "none", |request| messages(request).clear()),
        (Rule::SystemFirst, "system at the end", |request| {
            messages(request).push(json!({ "role": "system", "content": "late" }));
        }),
        (Rule::UserFirst, "only the system", |request| messages(request).truncate(1)),
        (Rule::UserFirst, "the assistant begins", |request| {
            messages(request).insert(1, json!({ "role": "assistant", "content": "hello" }));
        }),
        (Rule::EmptyMessage, "empty text", |request| request["messages"][1]["content"] = json!("")),
        (Rule::EmptyMessage, "null", |request| request["messages"][1]["content"] = json!(null)),
        (Rule::EmptyMessage, "no parts", |request| request["messages"][1]["content"] = json!([])),
        (Rule::EmptyMessage, "an empty part", |request| {
            request["messages"][1]["content"] = json!([{ "type": "text", "text": "" }]);
        }),
        (Rule::EmptyMessage, "a silent assistant", |request| {
            messages(request).push(json!({ "role": "assistant", "content": null }));
        }),
        (Rule::EmptyMessage, "a result of null", |request| request["messages"][3]["content"] = json!(null)),
        (Rule::FieldForRole, "a user with a call id", |request| {
            request["messages"][1]["tool_call_id"] = json!("call_1");
        }),
        (Rule::FieldForRole, "a result without its call id", |request| {
            let result = json!({ "role": "tool", "content": "found" });
            messages(request).push(result);
        }),
        (Rule::FieldForRole, "a refusing user", |request| request["messages"][1]["refusal"] = json!("no")),
        (Rule::FieldForRole, "an image from the system", |request| {
            request["messages"][0]["content"] = json!([{ "type": "image_url", "image_url": { "url": "x" } }]);
        }),
        (Rule::Name, "a name with a space", |request| request["messages"][1]["name"] = json!("ann lee")),
    ]
}

fn call_cases() -> Vec<Case> {
    vec![
        (Rule::EmptyToolCalls, "an empty list", |request| {
            messages(request).push(json!({ "role": "assistant", "content": "hm", "tool_calls": [] }));
        }),
        (Rule::CallId, "an empty id", |request| {
            first_call(request)["id"] = json!("");
            request["messages"][3]["tool_call_id"] = json!("");
        }),
        (Rule::CallId, "a long id", |request| {
            first_call(request)["id"] = json!("x".repeat(41));
            request["messages"][3]["tool_call_id"] = json!("x".repeat(41));
        }),
        (Rule::DuplicateCallId, "an id twice", |request| {
            first_call(request)["id"] = json!("call_2");
            request["messages"][3]["tool_call_id"] = json!("call_2");
        }),
        (Rule::Name, "a dotted function", |request| {
            first_call(request)["function"]["name"] = json!("memory.write");
        }),
        (Rule::Arguments, "half an object", |request| {
            first_call(request)["function"]["arguments"] = json!("{\"q\":");
        }),
        (Rule::Arguments, "nothing", |request| first_call(request)["function"]["arguments"] = json!("")),
        (Rule::Unanswered, "at the end", |request| {
            messages(request).truncate(4);
        }),
        (Rule::Unanswered, "before the user speaks", |request| {
            messages(request)[4] = json!({ "role": "user", "content": "well?" });
        }),
        (Rule::ResultWithoutCall, "no such call", |request| {
            messages(request).push(json!({ "role": "tool", "tool_call_id": "call_3", "content": "found" }));
        }),
        (Rule::ResultWithoutCall, "a call of an earlier turn", |request| {
            messages(request).push(json!({ "role": "assistant", "content": "hm" }));
            messages(request).push(json!({ "role": "tool", "tool_call_id": "call_1", "content": "found" }));
        }),
        (Rule::ResultRepeated, "twice", |request| {
            messages(request).push(json!({ "role": "tool", "tool_call_id": "call_1", "content": "found" }));
        }),
    ]
}

fn tool_cases() -> Vec<Case> {
    vec![
        (Rule::ToolCount, "an empty list", |request| request["tools"] = json!([])),
        (Rule::DuplicateTool, "a tool twice", |request| {
            let tool = request["tools"][0].clone();
            request["tools"].as_array_mut().unwrap().push(tool);
        }),
        (Rule::Name, "a slash", |request| function(request)["name"] = json!("mcp/lookup")),
        (Rule::Name, "no name", |request| function(request)["name"] = json!("")),
        (Rule::Name, "65 letters", |request| function(request)["name"] = json!("x".repeat(65))),
        (Rule::Parameters, "not an object", |request| function(request)["parameters"] = json!("none")),
        (Rule::Parameters, "no type", |request| {
            function(request)["parameters"] = json!({ "properties": {} })
        }),
        (Rule::Parameters, "the schema of a text", |request| {
            function(request)["parameters"] = json!({ "type": "string" });
        }),
        (Rule::Parameters, "no properties", |request| {
            function(request)["parameters"] = json!({ "type": "object" });
        }),
        (Rule::Parameters, "properties as a list", |request| {
            function(request)["parameters"] = json!({ "type": "object", "properties": ["q"] });
        }),
        (Rule::Parameters, "a property that is no schema", |request| {
            function(request)["parameters"]["properties"]["q"] = json!("string");
        }),
        (Rule::Parameters, "an unknown requirement", |request| {
            function(request)["parameters"]["required"] = json!(["z"]);
        }),
        (Rule::Parameters, "strict but open", |request| function(request)["strict"] = json!(true)),
        (Rule::ToolChoice, "a tool not on offer", |request| {
            request["tool_choice"] = json!({ "type": "function", "function": { "name": "other" } });
        }),
        (Rule::ToolChoice, "an unknown mode", |request| request["tool_choice"] = json!("maybe")),
    ]
}
