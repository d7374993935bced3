//! What was never used in this process, and is hidden all the same.

use std::sync::Mutex;

use ostler_agent::{
    llm::{Completion, Finish, Part, Redacting as RedactingGateway, secrets::Redactor},
    tools::Redacting as RedactingToolbox,
};
use ostler_kernel::{RunId, StepId};
use ostler_link::{
    Caller, LinkError, Request, Response, SecretAnswer, SecretValue, TokioRuntime, WorkerPort,
};
use serde_json::json;
use tokio::runtime::Handle;

use super::*;
use crate::{held::Held, secrets::KeptSecrets};

/// Keeps some secrets, and remembers what it was asked for.
struct Server {
    kept: &'static [(&'static str, &'static str)],
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl WorkerPort for Server {
    async fn call(&self, request: Request) -> Result<Response, LinkError> {
        let Request::Secret(request) = request else { panic!("{request:?}") };
        let found = self.kept.iter().find(|(reference, _)| *reference == request.reference);
        self.asked.lock().unwrap().push(request.reference);
        let value = |value: &str| SecretAnswer::Found { value: SecretValue::new(value) };
        Ok(Response::Secret(found.map_or(SecretAnswer::Absent, |(_, kept)| value(kept))))
    }
}

/// A tool and a model that say what they should not know.
#[derive(Clone, Copy)]
struct Says(&'static str);

#[async_trait]
impl Toolbox for Says {
    async fn call(&self, _: ToolRequest) -> Result<String, Failure> {
        Ok(self.0.to_owned())
    }
}

impl Gateway for Says {
    fn stream(&self, _: ModelRequest) -> Parts {
        let done =
            Completion { blocks: vec![], finish: Finish::Stop, usage: None, identity: Default::default() };
        stream::iter([Ok(Part::Text(self.0.to_owned())), Ok(Part::Done(done))]).boxed()
    }
}

/// One attempt, that begins with nothing known.
struct Attempt {
    server: Arc<Server>,
    runtime: Arc<dyn Runtime>,
    secrets: Secrets,
    redactor: Redactor,
    plan: AgentPlan,
    holder: Holder,
    step: String,
}

impl Attempt {
    fn new(kept: &'static [(&'static str, &'static str)], tools: &[(&str, Option<&str>)]) -> Self {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::new(Handle::current()));
        let server = Arc::new(Server { kept, asked: Mutex::default() });
        let redactor = Redactor::default();
        let port = KeptSecrets::new(Arc::clone(&server) as _, Arc::clone(&runtime));
        let secrets = Secrets::of(vec![port], redactor.clone());
        let plan = plan(tools);
        let holder = Holder {
            caller: Caller { worker: "one".into(), incarnation: 1 },
            held: Arc::new(Held::new(runtime.monotonic(), Duration::from_secs(60))),
            named: Arc::new(Named::by(&plan)),
        };
        let step = StepId { run: RunId::new(&*runtime), index: 2 }.to_string();
        Self { server, runtime, secrets, redactor, plan, holder, step }
    }

    async fn call_tool(&self, name: &str, says: &'static str) -> String {
        let ahead = Ahead::new(Says(says), self.secrets.clone(), Arc::clone(&self.runtime));
        let toolbox = RedactingToolbox::new(ahead, self.redactor.clone());
        let request = ToolRequest {
            tool: self.plan.tool(name).unwrap().clone(),
            request_id: self.step.clone(),
            namespace: "default".into(),
            agent: "a".into(),
            task: "t".into(),
            arguments: json!({}),
        };
        self.holder.clone().scope(toolbox.call(request)).await.unwrap()
    }

    async fn ask_model(&self, says: &'static str) -> String {
        let ahead = Ahead::new(Says(says), self.secrets.clone(), Arc::clone(&self.runtime));
        let gateway = RedactingGateway::new(ahead, self.redactor.clone());
        let request = ModelRequest {
            endpoint: self.plan.model.clone(),
            system: String::new(),
            messages: vec![],
            tools: vec![],
            output_schema: None,
            request_id: self.step.clone(),
        };
        let asking = async { gateway.stream(request).collect::<Vec<_>>().await };
        let parts = self.holder.clone().scope(asking).await;
        assert!(matches!(parts.last(), Some(Ok(Part::Done(_)))), "{parts:?}");
        let text = |part: &Result<Part, Failure>| match part {
            Ok(Part::Text(text)) => Some(text.clone()),
            _ => None,
        };
        parts.iter().filter_map(text).collect()
    }

    fn asked(&self) -> Vec<String> {
        let mut asked = self.server.asked.lock().unwrap().clone();
        asked.sort();
        asked
    }
}

/// A model with the secret `model`, and tools with these.
fn plan(tools: &[(&str, Option<&str>)]) -> AgentPlan {
    let tool = |(name, secret): &(&str, Option<&str>)| {
        let auth = secret.map(|secret| json!({"secret_ref": secret, "shown": {"as": "basic"}}));
        json!({
            "name": name, "way": "http", "endpoint": "http://x/", "description": "", "input_schema": null,
            "idempotent": false, "timeout_ms": 1000, "allow_private": false, "auth": auth,
            "retry": {"max_attempts": 1, "backoff_ms": 1, "max_backoff_ms": 1, "jitter": "none"},
        })
    };
    let model = json!({
        "endpoint": "main", "provider": "x", "base_url": "", "model": "m", "options": {},
        "secret_ref": "model", "allow_private": false,
    });
    let limits = json!({"max_steps": 1, "timeout_ms": null, "token_budget": null, "max_tool_output": 1000});
    let tools: Vec<_> = tools.iter().map(tool).collect();
    let plan = json!({
        "namespace": "default", "agent": "a", "prompt": "", "model": model, "tools": tools, "limits": limits,
    });
    serde_json::from_value(plan).unwrap()
}

const KEPT: &[(&str, &str)] = &[("model", "key-of-model"), ("pair", "user:pass-of-tool")];

#[tokio::test]
async fn a_tool_that_repeats_what_an_attempt_before_showed_is_hidden() {
    let attempt = Attempt::new(KEPT, &[("open", None)]);
    assert_eq!(attempt.call_tool("open", "I was shown key-of-model").await, "I was shown [REDACTED]");
    attempt.call_tool("open", "again").await;
    assert_eq!(attempt.asked(), ["model"], "once in an attempt");
}

#[tokio::test]
async fn what_is_another_tools_is_hidden_before_that_was_called() {
    let attempt = Attempt::new(KEPT, &[("open", None), ("closed", Some("pair"))]);
    let said = "user:pass-of-tool, or pass-of-tool";
    assert_eq!(attempt.call_tool("open", said).await, "[REDACTED], or [REDACTED]");
    let attempt = Attempt::new(KEPT, &[("open", None), ("closed", Some("pair"))]);
    assert_eq!(attempt.ask_model("it is pass-of-tool").await, "it is [REDACTED]");
    assert_eq!(attempt.asked(), ["model", "pair"]);
}

#[tokio::test]
async fn calls_side_by_side_ask_once() {
    let attempt = Attempt::new(KEPT, &[("one", None), ("two", None)]);
    let said = join(attempt.call_tool("one", "key-of-model"), attempt.call_tool("two", "key-of-model")).await;
    assert_eq!(said, ("[REDACTED]".to_owned(), "[REDACTED]".to_owned()));
    assert_eq!(attempt.asked(), ["model"]);
}

#[tokio::test]
async fn one_that_is_not_there_fails_nobody_who_does_not_use_it() {
    let attempt = Attempt::new(&[("model", "key-of-model")], &[("open", None), ("closed", Some("gone"))]);
    assert_eq!(attempt.call_tool("open", "key-of-model").await, "[REDACTED]");
    assert_eq!(attempt.asked(), ["gone", "model"]);
}

#[tokio::test]
async fn a_call_that_looks_up_the_only_one_itself_asks_for_nothing_more() {
    let attempt = Attempt::new(KEPT, &[("open", None)]);
    assert_eq!(attempt.ask_model("hello").await, "hello");
    assert_eq!(attempt.asked(), [""; 0]);
}
