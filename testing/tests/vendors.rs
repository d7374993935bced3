//! What every model provider promises, run for each of them against the scripted server on its own wire: one table of
//! vendors, one suite. What is sent must pass the server's validation, which is as strict as the vendor's.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "vendors/faults.rs"]
mod faults;
#[path = "vendors/nulls.rs"]
mod nulls;
#[path = "vendors/pairs.rs"]
mod pairs;
#[path = "vendors/prices.rs"]
mod prices;
#[path = "vendors/sessions.rs"]
mod sessions;
#[path = "vendors/setup.rs"]
mod setup;
mod stack;

use futures_util::StreamExt;
use ostler_kernel::{Block, Role, conversation::Image};
use ostler_llm::{Finish, Gateway, Identity, Message, Part, Shown, complete};
use ostler_testing::model_server::{self as server, Fault, ModelServer, Script, Turn, Usage};
use serde_json::{Value, json};
use setup::{
    ALL, ANTHROPIC, AZURE, CHAT, COMPATIBLE, GEMINI, Ground, OLLAMA, PNG, RESPONSES, Vendor, answered, offer,
    result_of, text, user,
};

#[tokio::test]
async fn a_text_is_streamed_and_put_together() {
    for vendor in ALL {
        let said = "Grüße, \u{1f600} and \"quotes\"\nover lines";
        let ground = Ground::start(vendor, [Turn::text(said).chunk(3)]).await;
        let mut shown = Vec::new();
        let watch = |part: Shown<'_>| shown.push(format!("{part:?}"));
        let completion = complete(&ground.registry, ground.request(vec![user("hi")]), watch).await.unwrap();
        assert_eq!(completion.blocks, [text(said)], "{}", vendor.name);
        assert_eq!(completion.finish, Finish::Stop, "{}", vendor.name);
        let Identity { id, model } = &completion.identity;
        assert_eq!(model.as_deref(), Some(vendor.model), "{}", vendor.name);
        // One of them has no names for its answers.
        assert_eq!(id.is_some(), vendor.provider != "ollama", "{}: {id:?}", vendor.name);
        assert!(shown.len() > 1, "{}: {shown:?}", vendor.name);
        ground.check();
    }
}

#[tokio::test]
async fn calls_one_or_several_go_round_with_their_results() {
    for vendor in ALL {
        let calls =
            Turn::text("I look.").and_call("mem_read", &json!({"q": "a\"b"})).and_call("look-up", &json!({}));
        let script = [calls, Turn::call("look-up", &json!({"x": [1]})), Turn::text("done")];
        let ground = Ground::start(vendor, script).await;
        let mut request = ground.request(vec![user("go")]);
        request.tools = vec![offer("mem.read"), offer("look-up")];
        let mut n_calls = Vec::new();
        loop {
            let completion = ground.complete(&request).await;
            let results: Vec<Block> = completion.blocks.iter().filter_map(result_of).collect();
            n_calls.push(results.len());
            request.messages.push(Message { role: Role::Assistant, blocks: completion.blocks.clone() });
            if results.is_empty() {
                assert_eq!(completion.finish, Finish::Stop, "{}", vendor.name);
                break;
            }
            assert_eq!(completion.finish, Finish::ToolCalls, "{}", vendor.name);
            request.messages.push(Message { role: Role::Tool, blocks: results });
        }
        assert_eq!(n_calls, [2, 1, 0], "{}", vendor.name);
        let first = &request.messages[1].blocks;
        let names: Vec<&str> = first
            .iter()
            .filter_map(|block| match block {
                Block::ToolCall { name, arguments, .. } => {
                    assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object());
                    Some(name.as_str())
                }
                _ => None,
            })
            .collect();
        assert_eq!(names, ["mem.read", "look-up"], "{}: names come back as ours", vendor.name);
        assert!(first.iter().any(|block| *block == text("I look.")), "{}: {first:?}", vendor.name);
        ground.check();
    }
}

#[tokio::test]
async fn thinking_is_shown_apart_kept_and_sent_back() {
    for vendor in ALL.into_iter().filter(|vendor| vendor.thinks) {
        let thought = "first this, then that";
        let script = [Turn::call("look-up", &json!({})).thinking(thought).chunk(4), Turn::text("done")];
        let ground = Ground::start(vendor, script).await;
        let mut request = ground.thinking_request(vec![user("go")]);
        request.tools = vec![offer("look-up")];
        let mut shown = String::new();
        let watch = |part: Shown<'_>| match part {
            Shown::Thinking(text) => shown.push_str(text),
            Shown::Text(text) => panic!("{}: {text} is no answer", vendor.name),
        };
        let completion = complete(&ground.registry, request.clone(), watch).await.unwrap();
        assert_eq!(shown, thought, "{}", vendor.name);
        assert!(
            completion.blocks.iter().any(|block| matches!(block, Block::Native { .. })),
            "{}",
            vendor.name
        );
        request.messages.extend(answered(&completion));
        ground.complete(&request).await;
        ground.check();
    }
}

#[tokio::test]
async fn images_are_shown_by_users_and_by_tools() {
    for vendor in ALL {
        let ground = Ground::start(vendor, [Turn::call("look-up", &json!({})), Turn::text("a cat")]).await;
        let image = Image { media_type: "image/png".into(), data: PNG.into() };
        let asked =
            Message { role: Role::User, blocks: vec![text("what is this?"), Block::Image(image.clone())] };
        let mut request = ground.request(vec![asked]);
        request.tools = vec![offer("look-up")];
        let completion = ground.complete(&request).await;
        assert_eq!(ground.last_body().matches(PNG).count(), 1, "{}", vendor.name);
        request.messages.extend(answered(&completion));
        if let Some(Block::ToolResult { images, .. }) = request.messages[2].blocks.first_mut() {
            images.push(image);
        }
        ground.complete(&request).await;
        assert_eq!(ground.last_body().matches(PNG).count(), 2, "{}", vendor.name);
        ground.check();
    }
}

#[tokio::test]
async fn an_answer_follows_a_schema_in_the_vendors_own_way() {
    for vendor in ALL {
        let ground = Ground::start(vendor, [Turn::text("{\"colour\":\"red\"}")]).await;
        let mut request = ground.request(vec![user("which?")]);
        request.output_schema = Some(json!({
            "type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"],
            "additionalProperties": false,
        }));
        assert_eq!(ground.complete(&request).await.blocks, [text("{\"colour\":\"red\"}")], "{}", vendor.name);
        assert!(ground.last_body().contains("colour"), "{}", vendor.name);
        ground.check();
    }
}

#[tokio::test]
async fn a_schema_beside_tools_is_told_to_every_vendor() {
    let older = Vendor { name: "an older gemini", model: "gemini-2.5-flash", ..GEMINI };
    for vendor in ALL.into_iter().chain([older]) {
        let ground = Ground::start(vendor, [Turn::text("{\"colour\":\"red\"}")]).await;
        let mut request = ground.request(vec![user("which?")]);
        request.tools = vec![offer("look")];
        request.output_schema = Some(json!({
            "type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"],
            "additionalProperties": false,
        }));
        ground.complete(&request).await;
        assert!(ground.last_body().contains("colour"), "{}: {}", vendor.name, ground.last_body());
        ground.check();
    }
}

/// What people write into schemas, each beside an object that is as vendors want it.
fn ordinary_schemas() -> Vec<Value> {
    let inner = [
        json!({"type": "integer", "minimum": 0, "maximum": 9, "multipleOf": 3}),
        json!({"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^r", "format": "uri"}),
        json!({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 3, "uniqueItems": true}),
        json!({"oneOf": [{"type": "string"}, {"type": "null"}], "not": {"const": "blue"}}),
        json!({"if": {"const": "red"}, "then": {"type": "string"}}),
        json!({"allOf": [{"type": "string"}]}),
        json!({"type": "object"}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "properties": {"red": {"type": "string"}}, "additionalProperties": true}),
        json!({}),
    ];
    let outer = |inner| json!({"type": "object", "properties": {"colour": inner}, "required": ["colour"], "additionalProperties": false});
    inner.into_iter().map(outer).chain([json!({"type": "object"}), json!({"type": "array"})]).collect()
}

#[tokio::test]
async fn a_schema_of_ordinary_keywords_is_told_to_every_vendor_in_a_way_that_it_takes() {
    for vendor in ALL {
        for schema in ordinary_schemas() {
            let ground = Ground::start(vendor, [Turn::text("{\"colour\":\"red\"}")]).await;
            let mut request = ground.request(vec![user("which?")]);
            request.output_schema = Some(schema.clone());
            ground.complete(&request).await;
            ground.check();
            // No bound is lost: it stands in the schema, or in words.
            let body = ground.last_body();
            let named = ["multipleOf", "maxLength", "uniqueItems", "const", "then", "allOf", "colour"];
            for word in named.into_iter().filter(|word| schema.to_string().contains(word)) {
                assert!(body.contains(word), "{}: {word} of {schema} is not in {body}", vendor.name);
            }
        }
    }
}

/// Models of each way to be told how much to think.
const EFFORTS: [(Vendor, &[&str]); 7] = [
    (ANTHROPIC, &["claude-haiku-4-5", "claude-sonnet-4-5-20250929", "claude-opus-4-1", "claude-opus-4-5"]),
    (
        ANTHROPIC,
        &["claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-7", "claude-sonnet-5", "claude-opus-5"],
    ),
    (GEMINI, &["gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite"]),
    (GEMINI, &["gemini-3-pro-preview", "gemini-3-flash-preview", "gemini-3.1-pro-preview"]),
    (CHAT, &["o3", "gpt-5", "gpt-5.6"]),
    (RESPONSES, &["o3", "gpt-5", "gpt-5.6"]),
    (OLLAMA, &["gpt-oss"]),
];

#[tokio::test]
async fn an_effort_is_known_to_every_model_that_thinks() {
    for (vendor, models) in EFFORTS {
        for (model, effort) in
            models.iter().flat_map(|model| ["low", "medium", "high"].map(|it| (*model, it)))
        {
            let vendor = Vendor { model, ..vendor };
            let ground = Ground::start(vendor, [Turn::text("hi")]).await;
            let mut request = ground.request(vec![user("hi")]);
            request.endpoint.options.insert("reasoning_effort".into(), effort.into());
            let completion = complete(&ground.registry, request, |_| {}).await;
            assert!(completion.is_ok(), "{model} {effort}: {completion:?}");
            assert_eq!(ground.server.violations(), [], "{model} {effort}");
        }
    }
}

#[tokio::test]
async fn an_effort_is_refused_where_a_model_does_not_think_before_it_is_asked() {
    for (vendor, model) in [(ANTHROPIC, "claude-3-5-haiku-latest"), (GEMINI, "gemini-2.0-flash")] {
        let ground = Ground::start(Vendor { model, ..vendor }, [Turn::text("hi")]).await;
        let mut request = ground.request(vec![user("hi")]);
        request.endpoint.options.insert("reasoning_effort".into(), "low".into());
        let failure = complete(&ground.registry, request, |_| {}).await.unwrap_err();
        assert_eq!((failure.code.as_str(), ground.server.requests().len()), ("model_option_invalid", 0));
        assert!(failure.message.contains(model), "{failure}");
    }
}

#[tokio::test]
async fn usage_counts_the_cache_and_the_thinking_as_parts_of_the_whole() {
    let usage =
        Usage { prompt_tokens: 100, completion_tokens: 40, cache_read: 60, cache_write: 20, reasoning: 10 };
    for vendor in ALL {
        let turn = Turn::text("hi").whole_usage(usage);
        let ground = Ground::start(vendor, [turn]).await;
        let used = ground.complete(&ground.request(vec![user("hi")])).await.usage.expect(vendor.name);
        assert_eq!(
            (used.input_tokens, used.output_tokens, used.estimated),
            (100, 40, false),
            "{}",
            vendor.name
        );
        let counts = [used.cache_read_tokens, used.cache_write_tokens, used.reasoning_tokens];
        assert_eq!(counts, vendor.counts, "{}", vendor.name);
    }
}

#[tokio::test]
async fn a_conversation_is_read_from_the_vendors_cache_the_next_time() {
    for vendor in ALL.into_iter().filter(|vendor| vendor.provider == "anthropic") {
        let ground = Ground::start(vendor, [Turn::text("one"), Turn::text("two")]).await;
        let mut request = ground.request(vec![user(&"a long question ".repeat(400))]);
        request.system = "Be kind. ".repeat(400);
        let first = ground.complete(&request).await;
        let written = first.usage.unwrap().cache_write_tokens;
        assert!(written > 1000, "{:?}", first.usage);
        request.messages.push(Message { role: Role::Assistant, blocks: first.blocks });
        request.messages.push(user("go on"));
        let read = ground.complete(&request).await.usage.unwrap().cache_read_tokens;
        assert!(read >= written, "{read} of {written} tokens came from the cache");
        ground.check();
    }
}

#[tokio::test]
async fn a_prompt_is_marked_for_the_cache_of_who_knows_the_marks() {
    let marked = |vendor: Vendor, model| (Vendor { model, ..vendor }, true);
    let plain = |vendor: Vendor, model| (Vendor { model, ..vendor }, false);
    for (vendor, is_marked) in [
        marked(CHAT, "gpt-5.6"),
        marked(RESPONSES, "gpt-5.6-terra"),
        plain(CHAT, "gpt-5.5"),
        plain(RESPONSES, "gpt-5"),
        plain(COMPATIBLE, "gpt-5.6"),
        plain(AZURE, "gpt-5.6"),
    ] {
        let name = format!("{} {}", vendor.name, vendor.model);
        let ground = Ground::start(
            vendor,
            [Turn::call("look-up", &json!({})), Turn::text("two"), Turn::text("three")],
        )
        .await;
        let mut request = ground.request(vec![user("one")]);
        request.tools = vec![offer("look-up")];
        let image = Image { media_type: "image/png".into(), data: PNG.into() };
        let shows = Message { role: Role::User, blocks: vec![text("and this?"), Block::Image(image)] };
        for more in [user("go on"), shows] {
            let completion = ground.complete(&request).await;
            request.messages.extend(answered(&completion));
            request.messages.push(more);
        }
        ground.complete(&request).await;
        let body = ground.last_body();
        let marks = body.matches("prompt_cache_breakpoint").count();
        assert_eq!(marks, if is_marked { 3 } else { 0 }, "{name}: {body}");
        // The system's words are said once, and before all else.
        let at = |text: &str| body.find(text).unwrap_or_else(|| panic!("{name}: no {text} in {body}"));
        assert_eq!(body.matches("Be kind.").count(), 1, "{name}: {body}");
        assert!(!is_marked || at("Be kind.") < at("prompt_cache_breakpoint"), "{name}: {body}");
        ground.check();
    }
}

#[tokio::test]
async fn how_a_prompt_is_cached_may_be_chosen() {
    for vendor in [CHAT, RESPONSES] {
        let ground = Ground::start(Vendor { model: "gpt-5.6", ..vendor }, [Turn::text("hi")]).await;
        let mut request = ground.request(vec![user("hi")]);
        let chosen = "{\"mode\":\"explicit\",\"ttl\":\"30m\"}";
        request.endpoint.options.insert("prompt_cache_options".into(), chosen.into());
        ground.complete(&request).await;
        assert!(ground.last_body().contains(chosen), "{}", vendor.name);
        ground.check();
    }
}

#[tokio::test]
async fn every_reason_to_stop_is_told() {
    let reasons = [
        (Turn::text("so"), Finish::Stop),
        (Turn::text("so").finish(server::Finish::Length), Finish::Length),
        (Turn::text("so").finish(server::Finish::ContentFilter), Finish::ContentFilter),
        (Turn::refusal("I can't"), Finish::Refusal),
    ];
    for vendor in ALL {
        for (turn, finish) in reasons.clone() {
            let ground = Ground::start(vendor, [turn]).await;
            let completion = ground.complete(&ground.request(vec![user("hi")])).await;
            assert_eq!(completion.finish, vendor.finish(finish), "{} {finish:?}", vendor.name);
        }
    }
}

#[tokio::test]
async fn dropping_an_answer_in_its_middle_closes_the_connection() {
    for vendor in ALL {
        let ground = Ground::start(vendor, [Turn::text("a few words").chunk(2).fault(Fault::Stall)]).await;
        let mut parts = ground.registry.stream(ground.request(vec![user("hi")]));
        let first = parts.next().await.expect("a part").expect(vendor.name);
        assert!(matches!(first, Part::Text(_)), "{}: {first:?}", vendor.name);
        assert_eq!(ground.server.desk().all().inflight, 1, "{}", vendor.name);
        drop(parts);
        ground.until(|server: &ModelServer| server.desk().all().inflight == 0).await;
        assert_eq!(ground.server.desk().all().answered, 0, "{}", vendor.name);
    }
}

#[tokio::test]
async fn an_option_that_is_not_known_is_refused_with_the_nearest() {
    for vendor in ALL {
        let ground = Ground::start(vendor, [Turn::text("hi")]).await;
        let mut request = ground.request(vec![user("hi")]);
        request.endpoint.options.insert("temperatur".into(), "1".into());
        let failure = complete(&ground.registry, request, |_| {}).await.unwrap_err();
        assert_eq!(failure.code, "model_option_unknown", "{}", vendor.name);
        assert!(failure.message.contains("did you mean `temperature`?"), "{failure}");
        assert_eq!(ground.server.desk().all().received, 0, "{}: it was not sent", vendor.name);
    }
}

#[tokio::test]
async fn sampling_options_reach_every_vendor_under_its_own_name() {
    for vendor in ALL {
        let ground = Ground::start(vendor, [Turn::text("hi")]).await;
        let mut request = ground.request(vec![user("hi")]);
        let options = [("temperature", "0.25"), ("max_tokens", "77"), ("headers", "{\"x-team\":\"red\"}")];
        for (name, value) in options {
            request.endpoint.options.insert(name.into(), value.into());
        }
        ground.complete(&request).await;
        let body = ground.last_body();
        assert!(body.contains("0.25") && body.contains(":77"), "{}: {body}", vendor.name);
        let sent = ground.server.requests();
        assert_eq!(sent.last().unwrap().headers["x-team"], "red", "{}", vendor.name);
        ground.check();
    }
}

#[tokio::test]
async fn a_script_by_plan_serves_every_wire_alike() {
    for vendor in ALL {
        let ground = Ground::with(vendor, Script::Plan).await;
        let asked = user("plan: text=\"as planned\" usage=7/3");
        let completion = ground.complete(&ground.request(vec![asked])).await;
        assert_eq!(completion.blocks, [text("as planned")], "{}", vendor.name);
    }
}
