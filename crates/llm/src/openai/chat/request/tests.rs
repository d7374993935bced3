//! Bodies as they go out.

use ostler_kernel::plan::ModelPlan;

use super::*;

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn result_of(call_id: &str, content: &str, is_error: bool) -> Block {
    Block::ToolResult {
        call_id: call_id.into(),
        name: "t".into(),
        content: content.into(),
        is_error,
        images: vec![],
    }
}

fn native(vendor: &str, value: Value) -> Block {
    Block::Native { vendor: vendor.into(), value }
}

fn request(messages: Vec<(Role, Vec<Block>)>, tools: Vec<ToolOffer>) -> ModelRequest {
    let endpoint = ModelPlan {
        endpoint: "main".into(),
        provider: "openai".into(),
        base_url: String::new(),
        model: "gpt-x".into(),
        options: BTreeMap::new(),
        secret_ref: None,
        allow_private: false,
        ..ModelPlan::default()
    };
    let messages = messages.into_iter().map(|(role, blocks)| Message { role, blocks }).collect();
    ModelRequest {
        endpoint,
        system: String::new(),
        messages,
        tools,
        output_schema: None,
        request_id: "r".into(),
    }
}

fn wire(request: &ModelRequest) -> Value {
    let names = ToolNames::new(&request.tools);
    let options = Options::read(&request.endpoint, &[super::super::OPTIONS]).unwrap();
    serde_json::from_slice(&body(request, ("gpt-x", "openai"), &names, options, false).unwrap()).unwrap()
}

#[track_caller]
fn check_messages(messages: Vec<(Role, Vec<Block>)>, expected: Value) {
    assert_eq!(wire(&request(messages, vec![]))["messages"], expected);
}

#[test]
fn a_plain_question_is_the_smallest_body() {
    let mut request = request(vec![(Role::User, vec![text("hi")])], vec![]);
    request.system = "Be kind.".into();
    let expected = json!({
        "model": "gpt-x",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(wire(&request), expected);
}

#[test]
fn calls_and_results_keep_their_places() {
    check_messages(
        vec![
            (Role::User, vec![text("one"), text("two")]),
            (
                Role::Assistant,
                vec![text("I "), text("look"), call("c1", "t", "{\"a\":1}"), call("c2", "t", "")],
            ),
            (Role::Tool, vec![result_of("c1", "yes", false), result_of("c2", "no such city", true)]),
            (Role::Assistant, vec![call("c3", "t", "{}")]),
            (Role::Tool, vec![result_of("c3", "Error: gone", true)]),
        ],
        json!([
            {"role": "user", "content": "one\n\ntwo"},
            {"role": "assistant", "content": "I look", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{\"a\":1}"}},
                {"id": "c2", "type": "function", "function": {"name": "t", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "yes"},
            {"role": "tool", "tool_call_id": "c2", "content": "error: no such city"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c3", "type": "function", "function": {"name": "t", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c3", "content": "Error: gone"},
        ]),
    );
}

#[test]
fn results_stand_before_what_people_said_since() {
    check_messages(
        vec![(Role::User, vec![text("and now?"), result_of("c1", "yes", false)])],
        json!([
            {"role": "tool", "tool_call_id": "c1", "content": "yes"},
            {"role": "user", "content": "and now?"},
        ]),
    );
}

#[test]
fn native_fields_go_back_to_their_vendor_alone() {
    check_messages(
        vec![
            (Role::Assistant, vec![native("openai", json!({"refusal": "no", "content": "x", "role": "y"}))]),
            (Role::Assistant, vec![native("other", json!({"signature": "s"})), text("well")]),
            (Role::Assistant, vec![native("openai", json!({"reasoning_content": "hm"})), text("yes")]),
        ],
        json!([
            {"role": "assistant", "content": null, "refusal": "no"},
            {"role": "assistant", "content": "well"},
            {"role": "assistant", "content": "yes", "reasoning_content": "hm"},
        ]),
    );
}

#[test]
fn a_silent_message_is_left_out() {
    check_messages(
        vec![
            (Role::Assistant, vec![]),
            (Role::Assistant, vec![text("")]),
            (Role::Assistant, vec![native("other", json!({"a": 1}))]),
            (Role::User, vec![text("hi")]),
        ],
        json!([{"role": "user", "content": "hi"}]),
    );
}

#[test]
fn tools_are_offered_as_functions() {
    let offer =
        |name: &str, description: String, schema: Value| ToolOffer { name: name.into(), description, schema };
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
    let mut request = request(
        vec![(Role::User, vec![text("hi")]), (Role::Assistant, vec![call("c", "memory.read", "{}")])],
        vec![
            offer("search", "Finds.".into(), schema.clone()),
            offer("memory.read", String::new(), Value::Null),
            offer("now", "é".repeat(1100), json!({"type": "object"})),
        ],
    );
    request.endpoint.options.insert("parallel_tool_calls".into(), "false".into());
    let body = wire(&request);
    let generic =
        json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]});
    assert_eq!(
        body["tools"][0],
        json!({
            "type": "function", "function": {"name": "search", "description": "Finds.", "parameters": schema},
        })
    );
    assert_eq!(
        body["tools"][1],
        json!({"type": "function", "function": {"name": "memory_read", "parameters": generic}})
    );
    assert_eq!(body["tools"][2]["function"]["parameters"], json!({"type": "object", "properties": {}}));
    let description = body["tools"][2]["function"]["description"].as_str().unwrap();
    assert_eq!((description.chars().count(), description.chars().last()), (1024, Some('…')));
    assert_eq!((&body["tool_choice"], &body["parallel_tool_calls"]), (&json!("auto"), &json!(false)));
    assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["name"], "memory_read");
}

#[test]
fn an_option_about_tools_is_left_out_without_any() {
    let mut request = request(vec![(Role::User, vec![text("hi")])], vec![]);
    request.endpoint.options.insert("parallel_tool_calls".into(), "false".into());
    request.endpoint.options.insert("temperature".into(), "0".into());
    let body = wire(&request);
    assert_eq!((&body["temperature"], body.get("parallel_tool_calls")), (&json!(0), None));
}

#[test]
fn images_are_shown_by_the_user_wherever_they_come_from() {
    let image = |data: &str| Image { media_type: "image/png".into(), data: data.into() };
    let mut of_tool = result_of("c1", "a map", false);
    if let Block::ToolResult { images, .. } = &mut of_tool {
        images.push(image("QQ=="));
    }
    let url = |data: &str| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}});
    check_messages(
        vec![
            (Role::User, vec![text("what is this?"), Block::Image(image("QUJD"))]),
            (Role::Assistant, vec![call("c1", "t", "{}")]),
            (Role::Tool, vec![of_tool]),
        ],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "what is this?"}, url("QUJD")]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "a map"},
            {"role": "user", "content": [url("QQ==")]},
        ]),
    );
}

#[test]
fn an_answer_may_have_a_schema() {
    let mut request = request(vec![(Role::User, vec![text("hi")])], vec![]);
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    request.output_schema = Some(schema.clone());
    let format = json!({"name": "answer", "schema": schema, "strict": false});
    assert_eq!(wire(&request)["response_format"], json!({"type": "json_schema", "json_schema": format}));
}
