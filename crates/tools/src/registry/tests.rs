//! When a call is made again, and what one of unknown outcome comes to.

use std::sync::Mutex;

use ostler_kernel::{
    Timestamp,
    retry::{Jitter, RetryPolicy},
    runtime::{BoxFuture, Spawned},
};
use serde_json::json;

use super::*;

/// Time stands still, and a sleep is over when it has been noted.
#[derive(Default)]
struct NotedSleep(Mutex<Vec<u64>>);

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
        self.0.lock().unwrap().push(delay.as_millis() as u64);
        Box::pin(std::future::ready(()))
    }

    fn spawn(&self, _: &'static str, _: BoxFuture<'static, ()>) -> Spawned {
        panic!("nothing is spawned")
    }
}

/// Answers each attempt with the next of its results.
struct Scripted {
    results: Mutex<Vec<Result<String, CallError>>>,
    request_ids: Mutex<Vec<String>>,
}

#[async_trait]
impl Way for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn call(&self, request: &ToolRequest, limit: Duration) -> Result<String, CallError> {
        assert_eq!(limit, Duration::from_millis(700));
        self.request_ids.lock().unwrap().push(request.request_id.clone());
        self.results.lock().unwrap().remove(0)
    }
}

fn transient(outcome: Outcome) -> Result<String, CallError> {
    Err(CallError { failure: ToolCode::ExecutionFailed.failure(true, "boom"), outcome })
}

fn permanent() -> Result<String, CallError> {
    Err(CallError { failure: ToolCode::AuthInvalid.failure(false, "no"), outcome: Outcome::Known })
}

fn asking_for(delay: Duration) -> Result<String, CallError> {
    let failure = ToolCode::ExecutionFailed.failure(true, "busy").with_retry_after(Some(delay));
    Err(CallError { failure, outcome: Outcome::Known })
}

fn request(way: &str, idempotent: bool) -> ToolRequest {
    let retry = RetryPolicy { max_attempts: 3, backoff_ms: 100, max_backoff_ms: 150, jitter: Jitter::None };
    let tool = ToolPlan {
        name: "t".into(),
        way: way.into(),
        endpoint: String::new(),
        description: String::new(),
        input_schema: None,
        idempotent,
        timeout_ms: 700,
        retry,
        allow_private: false,
        auth: None,
    };
    ToolRequest {
        tool,
        request_id: "step_1".into(),
        namespace: "default".into(),
        agent: "a".into(),
        task: "t".into(),
        arguments: json!({}),
    }
}

/// The result, how many attempts there were, and the milliseconds between them.
async fn run(
    idempotent: bool,
    results: Vec<Result<String, CallError>>,
) -> (Result<String, Failure>, usize, Vec<u64>) {
    let runtime = Arc::new(NotedSleep::default());
    let way = Arc::new(Scripted { results: Mutex::new(results), request_ids: Mutex::default() });
    let mut registry = Registry::new(runtime.clone());
    registry.register(way.clone()).unwrap();
    let result = registry.call(request("scripted", idempotent)).await;
    let request_ids = way.request_ids.lock().unwrap().clone();
    assert!(request_ids.iter().all(|id| id == "step_1"), "{request_ids:?}");
    let slept = runtime.0.lock().unwrap().clone();
    (result, request_ids.len(), slept)
}

#[tokio::test]
async fn an_idempotent_tool_is_tried_again_as_its_policy_says() {
    let results = vec![transient(Outcome::Unknown), transient(Outcome::Known), Ok("done".into())];
    assert_eq!(run(true, results).await, (Ok("done".into()), 3, vec![100, 150]));
    let results = (0..3).map(|_| transient(Outcome::Unknown)).collect();
    let (result, attempts, _) = run(true, results).await;
    assert_eq!((result.unwrap_err().code.as_str(), attempts), ("execution_failed", 3));
}

#[tokio::test]
async fn a_failure_that_will_stay_is_not_tried_again() {
    let (result, attempts, slept) = run(true, vec![permanent()]).await;
    assert_eq!((result.unwrap_err().code.as_str(), attempts, slept), ("auth_invalid", 1, vec![]));
}

#[tokio::test]
async fn any_other_tool_is_called_once() {
    let (result, attempts, _) = run(false, vec![transient(Outcome::Known)]).await;
    let failure = result.unwrap_err();
    assert_eq!((failure.class, attempts), (ErrorClass::Transient, 1));
    let (result, attempts, _) = run(false, vec![transient(Outcome::Unknown)]).await;
    let failure = result.unwrap_err();
    assert_eq!((failure.class, failure.code.as_str()), (ErrorClass::OutcomeUnknown, "outcome_unknown"));
    assert!(failure.message.ends_with(": boom") && attempts == 1, "{failure}");
}

#[tokio::test]
async fn a_tool_may_ask_for_patience_within_its_policy() {
    let results = vec![asking_for(Duration::from_millis(140)), Ok("done".into())];
    assert_eq!(run(true, results).await, (Ok("done".into()), 2, vec![140]));
    let (result, attempts, slept) = run(true, vec![asking_for(Duration::from_secs(3600))]).await;
    assert_eq!((result.unwrap_err().retry_after_ms, attempts, slept), (Some(3_600_000), 1, vec![]));
}

#[tokio::test]
async fn an_unknown_way_is_told_the_known_ones() {
    let mut registry = Registry::new(Arc::new(NotedSleep::default()));
    let way = || Arc::new(Scripted { results: Mutex::default(), request_ids: Mutex::default() });
    registry.register(way()).unwrap();
    let failure = registry.call(request("grpc", true)).await.unwrap_err();
    assert_eq!((failure.class, failure.code.as_str()), (ErrorClass::Permanent, "unsupported_tool"));
    assert!(failure.message.ends_with("known are scripted"), "{failure}");
    assert_eq!(registry.register(way()), Err(NameTaken { name: "scripted" }));
}
