//! Bodies as they go out.

use std::collections::BTreeMap;

use ostler_kernel::plan::ModelPlan;

use super::*;

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn call(id: &str) -> Block {
    Block::ToolCall { id: id.into(), name: "a.b".into(), arguments: "{\"q\":1}".into() }
}

fn result_of(call_id: &str, is_error: bool) -> Block {
    let (call_id, name, content) = (call_id.into(), "a.b".into(), "it rains".into());
    Block::ToolResult { call_id, name, content, is_error, images: vec![] }
}

fn native(vendor: &str, value: Value) -> Block {
    Block::Native { vendor: vendor.into(), value }
}

fn wire(messages: Vec<(Role, Vec<Block>)>, tools: usize, options: &[(&str, &str)]) -> Result<Value, Failure> {
    wire_of("claude", messages, tools, options)
}

fn wire_of(
    model: &str,
    messages: Vec<(Role, Vec<Block>)>,
    tools: usize,
    options: &[(&str, &str)],
) -> Result<Value, Failure> {
    let endpoint = ModelPlan {
        endpoint: "main".into(),
        provider: "anthropic".into(),
        base_url: String::new(),
        model: model.into(),
        options: options
            .iter()
            .map(|(name, text)| (name.to_string(), text.to_string()))
            .collect::<BTreeMap<_, _>>(),
        secret_ref: None,
        allow_private: false,
        ..ModelPlan::default()
    };
    let offer = |_| ToolOffer { name: "a.b".into(), description: "Looks.".into(), schema: json!({}) };
    let request = ModelRequest {
        endpoint,
        system: "Be kind.".into(),
        messages: messages.into_iter().map(|(role, blocks)| Message { role, blocks }).collect(),
        tools: (0..tools).map(offer).collect(),
        output_schema: None,
        request_id: "r".into(),
    };
    let options = Options::read(&request.endpoint, &[super::super::OPTIONS])?;
    let body = body(&request, &ToolNames::new(&request.tools), options)?;
    Ok(serde_json::from_slice(&body).unwrap())
}

#[test]
fn a_round_of_tools_is_one_message_each_and_the_prefix_is_marked() {
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let messages = vec![
        (Role::User, vec![text("hi")]),
        (
            Role::Assistant,
            vec![native("anthropic", thought.clone()), text(" "), call("toolu_1"), call("toolu_2")],
        ),
        (Role::Tool, vec![result_of("toolu_1", false), result_of("toolu_2", true)]),
        (Role::User, vec![text("and?")]),
    ];
    let body = wire(messages, 1, &[]).unwrap();
    let cache = json!({"type": "ephemeral"});
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "a_b", "input": {"q": 1}});
    let said = json!([{"type": "text", "text": "it rains"}]);
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": cache}]},
        {"role": "assistant", "content": [thought, used("toolu_1"), used("toolu_2")]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": said},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": said, "is_error": true},
            {"type": "text", "text": "and?", "cache_control": cache},
        ]},
    ]);
    assert_eq!(body["messages"], expected);
    assert_eq!(body["system"], json!([{"type": "text", "text": "Be kind.", "cache_control": cache}]));
    assert_eq!((&body["max_tokens"], &body["stream"]), (&json!(16_384), &json!(true)));
    assert_eq!(body["tools"][0]["name"], "a_b");
}

#[test]
fn another_vendors_blocks_stay_behind_and_neighbours_are_joined() {
    let messages = vec![
        (Role::User, vec![text("one")]),
        (Role::Assistant, vec![native("openai", json!({"reasoning_content": "x"}))]),
        (Role::User, vec![text("two")]),
    ];
    let body = wire(messages, 0, &[("cache", "off")]).unwrap();
    let expected = json!([{"role": "user", "content":
        [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]);
    assert_eq!(body["messages"], expected);
    assert!(!body.to_string().contains("cache_control"));
}

#[test]
fn options_get_the_vendors_names() {
    let hi = || vec![(Role::User, vec![text("hi")])];
    let options = [("stop", "END"), ("thinking_budget", "2000"), ("reasoning_effort", "low"), ("top_k", "5")];
    let body = wire(hi(), 0, &options).unwrap();
    assert_eq!(body["stop_sequences"], json!(["END"]));
    assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 2000}));
    assert_eq!((&body["max_tokens"], &body["top_k"]), (&json!(18_384), &json!(5)));
    assert_eq!(body["output_config"], json!({"effort": "low"}));
    let failure = wire(hi(), 0, &[("thinking_budget", "2000"), ("max_tokens", "2000")]).unwrap_err();
    assert_eq!(failure.code, "model_option_invalid");
    let adaptive = wire(hi(), 0, &[("thinking", "adaptive"), ("thinking_display", "summarized")]).unwrap();
    assert_eq!(adaptive["thinking"], json!({"type": "adaptive", "display": "summarized"}));
}

#[test]
fn an_effort_is_told_to_each_model_in_the_way_that_it_knows() {
    let hi = |model: &str, options: &[(&str, &str)]| {
        wire_of(model, vec![(Role::User, vec![text("hi")])], 0, options)
    };
    let newer = hi("claude-opus-4-7", &[("reasoning_effort", "high")]).unwrap();
    assert_eq!(newer["output_config"], json!({"effort": "high"}));
    assert_eq!(newer["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    let older = hi("claude-haiku-4-5", &[("reasoning_effort", "medium"), ("max_tokens", "4000")]).unwrap();
    assert_eq!(older["thinking"], json!({"type": "enabled", "budget_tokens": 2048}));
    assert_eq!((older.get("output_config"), &older["max_tokens"]), (None, &json!(4000)));
    let still = hi("claude-haiku-4-5", &[("reasoning_effort", "none")]).unwrap();
    assert_eq!((still.get("output_config"), still.get("thinking")), (None, None));
    for (model, options) in [
        ("claude-haiku-4-5", &[("reasoning_effort", "a lot")][..]),
        ("claude-haiku-4-5", &[("reasoning_effort", "low"), ("thinking_budget", "2000")][..]),
        ("claude-3-5-haiku-latest", &[("reasoning_effort", "low")][..]),
    ] {
        let failure = hi(model, options).unwrap_err();
        assert_eq!(failure.code, "model_option_invalid");
        assert!(failure.message.contains("`reasoning_effort`"), "{failure}");
    }
}

#[test]
fn thinking_does_not_begin_amid_the_calls_of_another_vendor() {
    let foreign = vec![
        (Role::User, vec![text("hi")]),
        (Role::Assistant, vec![call("call_1")]),
        (Role::Tool, vec![result_of("call_1", false)]),
    ];
    let body = wire(foreign, 1, &[("thinking_budget", "2000")]).unwrap();
    assert_eq!(body.get("thinking"), None);
}

#[test]
fn images_stand_where_they_were_shown() {
    let image = Image { media_type: "image/png".into(), data: "QUJD".into() };
    let mut result = result_of("toolu_1", false);
    if let Block::ToolResult { images, .. } = &mut result {
        images.push(image.clone());
    }
    let messages = vec![
        (Role::User, vec![text("this?"), Block::Image(image)]),
        (Role::Assistant, vec![call("toolu_1")]),
        (Role::Tool, vec![result]),
    ];
    let body = wire(messages, 1, &[("cache", "off")]).unwrap();
    let picture =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}});
    assert_eq!(body["messages"][0]["content"][1], picture);
    assert_eq!(body["messages"][2]["content"][0]["content"][1], picture);
}

#[test]
fn what_would_mean_nothing_is_refused() {
    let refused = |options: &[(&str, &str)]| {
        let failure = wire(vec![(Role::User, vec![text("hi")])], 0, options).unwrap_err();
        assert_eq!(failure.code, "model_option_invalid");
        failure.message
    };
    for (name, value) in [("max_tokens", "-1"), ("max_tokens", "0"), ("thinking_budget", "-5")] {
        let message = refused(&[(name, value)]);
        assert!(message.contains(&format!("`{name}`")) && message.contains("above 0"), "{message}");
    }
    let message = refused(&[("thinking_display", "summarized")]);
    assert!(message.contains("`thinking_display`") && message.contains("`thinking_budget`"), "{message}");
}
