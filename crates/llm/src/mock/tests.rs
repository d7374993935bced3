//! What the mock says, and that it always says the same.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use ostler_kernel::{
    ErrorClass, Timestamp,
    runtime::{BoxFuture, Spawned},
};

use super::*;

/// Time stands still, and a sleep is over when it has been noted.
#[derive(Default)]
struct NotedSleep(std::sync::Mutex<Vec<Duration>>);

impl Runtime for NotedSleep {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn random(&self) -> u64 {
        0
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        self.0.lock().unwrap().push(delay);
        Box::pin(std::future::ready(()))
    }

    fn spawn(&self, _: &'static str, _: BoxFuture<'static, ()>) -> Spawned {
        panic!("the mock spawns nothing")
    }
}

fn request(messages: Vec<Message>, tools: Vec<ToolOffer>) -> ModelRequest {
    let endpoint = ModelPlan {
        endpoint: "main".into(),
        provider: "mock".into(),
        base_url: String::new(),
        model: "mock".into(),
        options: BTreeMap::new(),
        secret_ref: None,
        allow_private: false,
        ..ModelPlan::default()
    };
    ModelRequest {
        endpoint,
        system: "Be kind.".into(),
        messages,
        tools,
        output_schema: None,
        request_id: "r".into(),
    }
}

fn user(text: &str) -> Message {
    Message { role: Role::User, blocks: vec![Block::Text { text: text.into() }] }
}

fn offer(name: &str, schema: Value) -> ToolOffer {
    ToolOffer { name: name.into(), description: String::new(), schema }
}

/// The texts and the whole answer.
fn run(request: ModelRequest) -> Result<(Vec<String>, Completion), Failure> {
    let parts = Mock::new(Arc::new(NotedSleep::default())).stream(request);
    let parts: Vec<_> = parts.collect().now_or_never().unwrap();
    let mut texts = Vec::new();
    for part in parts {
        match part? {
            Part::Text(text) | Part::Thinking(text) => texts.push(text),
            Part::Done(completion) => return Ok((texts, completion)),
        }
    }
    panic!("the answer has no end")
}

#[test]
fn it_repeats_what_it_was_asked_in_several_parts() {
    let (texts, completion) = run(request(vec![user("Count\n  to three")], vec![])).unwrap();
    assert!(texts.len() > 3, "{texts:?}");
    let text = texts.concat();
    assert!(text.contains("\"Count to three\""), "{text}");
    assert_eq!(completion.blocks, [Block::Text { text }]);
    assert_eq!(completion.finish, Finish::Stop);
    let usage = completion.usage.unwrap();
    assert!(usage.estimated && usage.input_tokens > 5 && usage.output_tokens > 10, "{usage:?}");
    assert_eq!(run(request(vec![user("Count to three")], vec![])).unwrap().0, texts);
}

#[test]
fn it_calls_the_first_tool_and_then_tells_what_it_said() {
    let tools = vec![offer("search", Value::Null), offer("clock", Value::Null)];
    let mut messages = vec![user("What is Ostler?")];
    let (texts, completion) = run(request(messages.clone(), tools.clone())).unwrap();
    assert!(texts.is_empty());
    assert_eq!(completion.finish, Finish::ToolCalls);
    let [Block::ToolCall { id, name, arguments }] = &completion.blocks[..] else { panic!("{completion:?}") };
    assert_eq!((name.as_str(), arguments.as_str()), ("search", r#"{"input":"What is Ostler?"}"#));
    let (call_id, name) = (id.clone(), name.clone());
    messages.push(Message { role: Role::Assistant, blocks: completion.blocks });
    let result =
        Block::ToolResult { call_id, name, content: "A runtime.\n".into(), is_error: false, images: vec![] };
    messages.push(Message { role: Role::Tool, blocks: vec![result] });
    let (texts, completion) = run(request(messages, tools)).unwrap();
    assert_eq!(texts.concat(), "The tool search answered: A runtime.");
    assert_eq!(completion.finish, Finish::Stop);
}

#[test]
fn it_calls_the_tool_that_the_user_names() {
    let tools = vec![offer("search", Value::Null), offer("clock", Value::Null)];
    let (_, completion) = run(request(vec![user("Ask the CLOCK")], tools)).unwrap();
    assert!(matches!(&completion.blocks[..], [Block::ToolCall { name, .. }] if name == "clock"));
}

#[test]
fn arguments_fit_the_schema() {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "minimum": 5},
            "order": {"enum": ["new", "old"]},
            "exact": {"type": "boolean"},
            "place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "free": {"type": "object"},
            "note": {"type": "string"}
        },
        "required": ["query", "limit", "order", "exact", "place"]
    });
    let expected = json!({"query": "hi", "limit": 5, "order": "new", "exact": true, "place": {"city": "hi"}});
    assert_eq!(arguments(&schema, "hi"), expected);
    assert_eq!(arguments(&json!({"type": "object"}), "hi"), json!({}));
}

#[test]
fn it_takes_the_time_it_is_told_to() {
    let runtime = Arc::new(NotedSleep::default());
    let mut slow = request(vec![user("hi")], vec![]);
    slow.endpoint.options.insert(LATENCY.into(), "250".into());
    let parts: Vec<_> = Mock::new(runtime.clone()).stream(slow).collect().now_or_never().unwrap();
    assert!(parts.len() > 1);
    assert_eq!(*runtime.0.lock().unwrap(), [Duration::from_millis(250)]);
}

#[test]
fn an_option_it_does_not_know_is_refused() {
    for (name, text, code) in
        [("latency", "1", "model_option_unknown"), (LATENCY, "soon", "model_option_invalid")]
    {
        let mut odd = request(vec![user("hi")], vec![]);
        odd.endpoint.options.insert(name.into(), text.into());
        let failure = run(odd).unwrap_err();
        assert_eq!((failure.class, failure.code.as_str()), (ErrorClass::Permanent, code));
    }
}

#[test]
fn an_address_or_a_key_is_meant_for_another() {
    let mut with_address = request(vec![user("hi")], vec![]);
    with_address.endpoint.base_url = "https://models.example".into();
    let mut with_key = request(vec![user("hi")], vec![]);
    with_key.endpoint.secret_ref = Some("model-key".into());
    for (request, field) in [(with_address, "`base_url`"), (with_key, "`auth`")] {
        let failure = run(request).unwrap_err();
        assert_eq!((failure.class, failure.code.as_str()), (ErrorClass::Permanent, "model_bad_endpoint"));
        assert!(failure.message.contains(field) && failure.message.contains("`mock`"), "{failure}");
    }
}
