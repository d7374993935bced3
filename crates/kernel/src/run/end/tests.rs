use std::collections::BTreeMap;

use super::*;
use crate::{
    BlobId, ContextId, RunId, Session, SessionId, TaskId, TaskState,
    conversation::Context,
    queue::{Lane, Priority, Requirements},
    retry::{Jitter, RetryPolicy},
    run::claim::claim,
    task::{
        TaskRequest,
        accept::{Acceptance, accept},
    },
    worker::Lease,
};

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// A run in a worker's hands that may be tried three times, of a task that names these.
fn held(non_retryable: &[&str]) -> RunView {
    let session = SessionId::from_bytes([3; 16]);
    let context = Context::whole(ContextId::from_bytes([4; 16]));
    let acceptance = Acceptance {
        task: TaskId::from_bytes([1; 16]),
        run: RunId::from_bytes([2; 16]),
        namespace: "default".to_owned(),
        name: "t".to_owned(),
        request: request(non_retryable),
        model: "m".to_owned(),
        lane: Lane::new("default", "a"),
        session: Session::new(session, "default", "a", None, context),
    };
    let (task, bundle) = accept(acceptance, NOW);
    let written = |write: &Write| match write {
        Write::NewRun(run) => Some(run.clone()),
        _ => None,
    };
    let run = bundle.writes.iter().find_map(written).unwrap();
    let session = Session::new(session, "default", "a", None, Context::whole(ContextId::from_bytes([4; 16])));
    let lease = Lease { worker: "w".to_owned(), incarnation: 1, claim: 1 };
    let (run, _) = claim(&task, &run, &session, lease, NOW);
    let (open_steps, blocker, next) = (Vec::new(), None, None);
    RunView { task, run, session, open_steps, blocker, next, last_input: 0, consumed_input: 0 }
}

fn request(non_retryable: &[&str]) -> TaskRequest {
    let (max_attempts, backoff_ms, jitter) = (3, 100, Jitter::None);
    TaskRequest {
        api_version: None,
        agent: "a".to_owned(),
        system: None,
        plan: BlobId::of(b"plan"),
        message: "hi".to_owned(),
        input: BTreeMap::new(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        priority: Priority::Normal,
        requires: Requirements::default(),
        retry: RetryPolicy { max_attempts, backoff_ms, jitter, ..RetryPolicy::default() },
        whole_retry: None,
        non_retryable: non_retryable.iter().map(|part| (*part).to_owned()).collect(),
        max_turns: 0,
        session_key: None,
        idempotency_key: None,
        deadline: None,
        trace: None,
    }
}

/// What the run and its task are behind it.
fn left(view: &RunView, how: Leave) -> (RunState, TaskState) {
    let key = WriteKey { run: view.run.id, epoch: view.run.epoch, number: 1 };
    let bundle = leave(view, key, &Progress::default(), how, NOW, 0);
    let run = bundle.writes.iter().rev().find_map(|write| match write {
        Write::Run(run) => Some(run.state.clone()),
        _ => None,
    });
    let task = bundle.writes.iter().rev().find_map(|write| match write {
        Write::Task(task) => Some(task.state.clone()),
        _ => None,
    });
    (run.unwrap(), task.unwrap())
}

#[test]
fn what_the_task_names_is_not_tried_again() {
    let failure = || Failure::transient("tool_unavailable", "502: the Archive is CLOSED until Monday");
    for (named, is_retried) in [
        (&[][..], true),
        (&["archive is open"], true),
        (&["quota", "archive is closed"], false),
        (&["TOOL_UNAVAILABLE"], false),
        (&["", " "], true),
    ] {
        let (run, task) = left(&held(named), Leave::Failed { failure: failure() });
        match is_retried {
            true => assert!(matches!(run, RunState::Queued { .. }), "{named:?}: {run:?}"),
            false => {
                let RunState::Error { failure: kept } = run else { panic!("{named:?}: {run:?}") };
                assert_eq!(kept, Failure { class: ErrorClass::Permanent, ..failure() });
                assert_eq!(task, TaskState::Failed, "it used up no retries, so it is no dead letter");
            }
        }
    }
}

#[test]
fn what_the_task_names_is_not_slept_on() {
    let sleep = || {
        let why = Some(Failure::transient("model_rate_limited", "429: insufficient_quota"));
        Leave::Sleep { until: NOW, delay_ms: Some(60_000), why }
    };
    assert!(matches!(left(&held(&["overloaded"]), sleep()).0, RunState::Sleeping { .. }));
    assert!(matches!(left(&held(&["Insufficient_Quota"]), sleep()).0, RunState::Error { .. }));
    let plain = Leave::Sleep { until: NOW, delay_ms: None, why: None };
    assert!(matches!(left(&held(&["quota"]), plain).0, RunState::Sleeping { .. }));
}

#[test]
fn a_request_of_an_older_server_names_nothing() {
    let mut written = serde_json::to_value(request(&["quota"])).unwrap();
    assert_eq!(written["non_retryable"], serde_json::json!(["quota"]));
    written.as_object_mut().unwrap().remove("non_retryable");
    assert_eq!(serde_json::from_value::<TaskRequest>(written).unwrap(), request(&[]));
    let plain = serde_json::to_value(request(&[])).unwrap();
    assert!(plain.get("non_retryable").is_none(), "and an older server reads what names nothing: {plain}");
}
