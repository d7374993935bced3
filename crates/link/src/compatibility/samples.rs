//! One of every message, with every field filled. No struct is completed from its default, and no match has a `_`: a
//! new field or a new variant does not compile until it stands here.

use std::collections::{BTreeMap, BTreeSet};

use ostler_kernel::{
    BlobId, Block, BlockerId, Entry, ErrorClass, Failure, InputId, Lease, Price, Role, Run, RunId, RunState,
    SessionId, Step, StepId, StepKind, StepOutcome, TaskId, Timestamp, TraceContext, Usage,
    bundle::WriteKey,
    conversation::{Image, ToolCallRef},
    plan::{
        AfterTool, AgentPlan, AuthForm, AuthPlan, Duplicates, Limits, ModelLimits, ModelPlan, OnViolation,
        Rules, ToolPlan,
    },
    queue::{Lane, Priority, Requirements},
    retry::{Jitter, RetryPolicy},
    run::{
        blocker::BlockerKind,
        end::Leave,
        journal::{Progress, StepDone},
    },
    step::{Fallback, Instead, StepState},
    task::input::Input,
    worker::Offer,
};
use serde_json::json;

use super::Message;
use crate::{
    Assignment, Caller, ClaimRequest, Delta, DeltasRequest, InputsRequest, JournalRequest, LeaveRequest,
    LinkError, RegisterRequest, Registered, RenewRequest, Renewed, Request, Response, SecretAnswer,
    SecretRequest, SecretValue, Signal, SignalKind, SignalsRequest,
};

/// Each under the name of its file.
pub fn all() -> Vec<(String, Message)> {
    let requests = requests().into_iter().map(|request| {
        let variant = variant_of_leave(&request);
        (format!("request-{}{variant}", name_of_request(&request)), Message::Request(request))
    });
    let responses = responses().into_iter().map(|(variant, response)| {
        let name = format!("response-{}{variant}", name_of_response(&response));
        (name, Message::Answer(Ok(response).into()))
    });
    let errors = errors()
        .into_iter()
        .map(|error| (format!("error-{}", name_of_error(&error)), Message::Answer(Err(error).into())));
    requests.chain(responses).chain(errors).collect()
}

fn name_of_request(request: &Request) -> &'static str {
    match request {
        Request::Register(_) => "register",
        Request::Claim(_) => "claim",
        Request::Journal(_) => "journal",
        Request::Leave(_) => "leave",
        Request::Renew(_) => "renew",
        Request::Signals(_) => "signals",
        Request::Inputs(_) => "inputs",
        Request::Deltas(_) => "deltas",
        Request::Secret(_) => "secret",
    }
}

fn variant_of_leave(request: &Request) -> &'static str {
    let Request::Leave(request) = request else { return "" };
    match request.leave {
        Leave::Ok { .. } => "-ok",
        Leave::Failed { .. } => "-failed",
        Leave::Wait { .. } => "-wait",
        Leave::Sleep { .. } => "-sleep",
        Leave::GiveBack => "-give-back",
    }
}

fn name_of_response(response: &Response) -> &'static str {
    match response {
        Response::Registered(_) => "registered",
        Response::Assigned(_) => "assigned",
        Response::Journaled(()) => "journaled",
        Response::Left(()) => "left",
        Response::Renewed(_) => "renewed",
        Response::Signals(_) => "signals",
        Response::Inputs(_) => "inputs",
        Response::Shown(()) => "shown",
        Response::Secret(_) => "secret",
    }
}

fn name_of_error(error: &LinkError) -> &'static str {
    match error {
        LinkError::Fenced { .. } => "fenced",
        LinkError::InputArrived => "input-arrived",
        LinkError::Superseded => "superseded",
        LinkError::Unavailable { .. } => "unavailable",
        LinkError::Rejected { .. } => "rejected",
    }
}

fn requests() -> Vec<Request> {
    let leaves = [
        Leave::Ok { output: "done".into() },
        Leave::Failed { failure: failure() },
        Leave::Wait {
            blocker: BlockerId::from_bytes([7; 16]),
            kind: BlockerKind::Input,
            summary: "which one?".into(),
        },
        Leave::Sleep { until: at(9_000), delay_ms: Some(3_000), why: Some(failure()) },
        Leave::GiveBack,
    ];
    let leaves = leaves.map(|leave| {
        Request::Leave(LeaveRequest { caller: caller(), key: key(), progress: progress(), leave })
    });
    let register = RegisterRequest { name: "worker-1".into(), instance: 77, former: 3, offer: offer() };
    let delta = Delta { task: task(), run: run_id(), step: 2, offset: 5, text: "hel".into(), thinking: true };
    let mut requests = vec![
        Request::Register(register),
        Request::Claim(ClaimRequest { caller: caller(), number: 5, slots: 8, wait_ms: 20_000 }),
        Request::Journal(JournalRequest { caller: caller(), key: key(), progress: progress() }),
        Request::Renew(RenewRequest {
            caller: caller(),
            counter: 12,
            claimed: 4,
            held: vec![(run_id(), 3)],
            lease_ms: Some(30_000),
        }),
        Request::Signals(SignalsRequest { caller: caller(), wait_ms: 20_000 }),
        Request::Inputs(InputsRequest { caller: caller(), run: run_id(), task: task(), after: 1 }),
        Request::Deltas(DeltasRequest { caller: caller(), deltas: vec![delta] }),
        Request::Secret(SecretRequest {
            caller: caller(),
            run: run_id(),
            reference: "default/openai-key".into(),
        }),
    ];
    requests.extend(leaves);
    requests
}

fn responses() -> Vec<(&'static str, Response)> {
    let signal = |kind| Signal { run: run_id(), epoch: 3, kind };
    let input = Input {
        id: InputId::from_bytes([6; 16]),
        task: task(),
        number: 1,
        text: "one more thing".into(),
        at: at(4_000),
        consumed_by: Some(run_id()),
    };
    vec![
        ("-as", Response::Registered(Registered::As { incarnation: 4, lease_ms: 30_000 })),
        ("-present", Response::Registered(Registered::Present { incarnation: 4 })),
        ("", Response::Assigned(vec![assignment()])),
        ("", Response::Journaled(())),
        ("", Response::Left(())),
        ("", Response::Renewed(Renewed { lost: vec![(run_id(), 3)], drain: true, lease_ms: Some(5_000) })),
        ("", Response::Signals(vec![signal(SignalKind::Stop), signal(SignalKind::Input)])),
        ("", Response::Inputs(vec![input])),
        ("", Response::Shown(())),
        ("-found", Response::Secret(SecretAnswer::Found { value: SecretValue::new("hush") })),
        ("-absent", Response::Secret(SecretAnswer::Absent)),
        ("-refused", Response::Secret(SecretAnswer::Refused { message: "it has no such key".into() })),
    ]
}

fn errors() -> Vec<LinkError> {
    vec![
        LinkError::Fenced { found: "another worker".into() },
        LinkError::InputArrived,
        LinkError::Superseded,
        LinkError::Unavailable { message: "no answer".into() },
        LinkError::Rejected { message: "not understood".into() },
    ]
}

fn offer() -> Offer {
    Offer {
        slots: 8,
        version: "0.1.0".into(),
        region: "eu".into(),
        labels: BTreeMap::from([("disk".into(), "ssd".into())]),
        capabilities: BTreeSet::from(["gpu".into()]),
        models: ["large".into()].into(),
        told_lease_ms: Some(30_000),
    }
}

fn assignment() -> Assignment {
    Assignment {
        run: run(),
        plan: plan(),
        context: entries(),
        open_steps: vec![step(2, StepState::Open)],
        consumed_input: 1,
        has_inputs: true,
        trace: TraceContext::read(
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            Some("vendor=1"),
        )
        .ok(),
    }
}

fn progress() -> Progress {
    let outcomes = [StepOutcome::Ok, StepOutcome::Failed { failure: failure() }, StepOutcome::Interrupted];
    let done = |(index, outcome)| {
        let state = StepState::Done { outcome, at: at(3_000), took_ms: 40, usage: usage() };
        StepDone {
            step: step(index, state),
            preview: "it rains".into(),
            contract_violation: Some("no forecast was called".into()),
        }
    };
    Progress {
        done: (0..).zip(outcomes).map(done).collect(),
        entries: entries(),
        open: vec![
            StepKind::Model { model: "m-2".into(), fallback: Some(fallback()) },
            tool_step(),
            StepKind::Tool {
                call: ToolCallRef { id: "call-2".into(), name: "lookup".into() },
                arguments: "{}".into(),
                idempotent: true,
                instead: Some(Instead::Refused { failure: failure() }),
            },
            StepKind::Wait,
        ],
        consumed: Some(1),
        worked_ms: 55,
    }
}

fn entries() -> Vec<Entry> {
    let blocks = vec![
        Block::Text { text: "let me see".into() },
        Block::ToolCall { id: "call-1".into(), name: "lookup".into(), arguments: "{\"q\":1}".into() },
        Block::ToolResult {
            call_id: "call-1".into(),
            name: "lookup".into(),
            content: "it rains".into(),
            is_error: true,
            images: vec![image()],
        },
        Block::Image(image()),
        Block::Native { vendor: "openai".into(), value: json!({ "signature": "abc" }) },
    ];
    let entry = |role| Entry { role, blocks: blocks.clone(), run: run_id(), step: Some(1) };
    vec![entry(Role::User), entry(Role::Assistant), entry(Role::Tool)]
}

fn image() -> Image {
    Image { media_type: "image/png".into(), data: "iVBORw==".into() }
}

fn step(index: u32, state: StepState) -> Step {
    Step { id: StepId { run: run_id(), index }, kind: tool_step(), state, attempt: 2, opened_at: at(2_000) }
}

fn tool_step() -> StepKind {
    let call = ToolCallRef { id: "call-1".into(), name: "lookup".into() };
    StepKind::Tool {
        call,
        arguments: "{\"q\":1}".into(),
        idempotent: true,
        instead: Some(Instead::Reuse { step: 1 }),
    }
}

fn run() -> Run {
    Run {
        id: run_id(),
        task: task(),
        session: SessionId::from_bytes([3; 16]),
        message: None,
        order: 1,
        agent: "helper".into(),
        plan: BlobId::from_bytes([4; 32]),
        model: "m-1".into(),
        lane: Lane {
            namespace: "default".into(),
            class: "helper".into(),
            limit: Some(5),
            requires: Requirements {
                region: Some("eu".into()),
                capabilities: ["gpu".into()].into(),
                model: Some("large".into()),
            },
            capped: true,
        },
        priority: Priority::High,
        retry: retry(),
        deadline: Some(at(90_000)),
        created_at: at(1_000),
        state: RunState::Running { lease: Lease { worker: "worker-1".into(), incarnation: 4, claim: 5 } },
        epoch: 3,
        attempt: 2,
        attempt_at: Some(at(2_000)),
        worker: Some("worker-1".into()),
        failures: 1,
        lost_in_row: 1,
        restarted_in_row: 3,
        slept_in_row: 2,
        journal: 6,
        last_write: Some((2, 6)),
        next_step: 3,
        next_entry: 4,
        model_calls: 2,
        tool_calls: 1,
        worked_ms: 500,
        usage: usage(),
        fallback: Some(fallback()),
    }
}

fn fallback() -> Fallback {
    Fallback { place: 1, endpoint: "spare".into(), may_pass: true }
}

fn plan() -> AgentPlan {
    let model = ModelPlan {
        namespace: "default".into(),
        endpoint: "main".into(),
        provider: "openai".into(),
        base_url: "http://127.0.0.1:1/v1".into(),
        model: "m-1".into(),
        options: BTreeMap::from([("temperature".into(), "0".into())]),
        secret_ref: Some("openai-key".into()),
        allow_private: true,
        limits: ModelLimits {
            concurrency: Some(8),
            requests_per_minute: Some(500),
            tokens_per_minute: Some(100_000),
            max_wait_ms: Some(5_000),
            breaker_failures: Some(5),
            breaker_cooldown_ms: Some(20_000),
        },
        price: Some(Price {
            input: 3_000_000,
            output: 15_000_000,
            cache_read: Some(300_000),
            cache_write: Some(3_750_000),
        }),
    };
    let tool = ToolPlan {
        name: "lookup".into(),
        way: "http".into(),
        endpoint: "http://127.0.0.1:1/tool".into(),
        description: "Looks it up.".into(),
        input_schema: Some(json!({ "type": "object" })),
        idempotent: true,
        timeout_ms: 30_000,
        retry: retry(),
        allow_private: true,
        auth: Some(AuthPlan {
            secret_ref: "default/lookup-key".into(),
            shown: AuthForm::Header { header: "x-api-key".into() },
        }),
    };
    let limits = Limits {
        max_steps: 10,
        timeout_ms: Some(60_000),
        token_budget: Some(10_000),
        max_tool_output: 65_536,
    };
    AgentPlan {
        namespace: "default".into(),
        agent: "helper".into(),
        description: String::new(),
        prompt: "Help.".into(),
        fallbacks: vec![ModelPlan { endpoint: "spare".into(), ..model.clone() }],
        model,
        tools: vec![tool],
        limits,
        rules: Rules {
            output_schema: Some(json!({ "type": "object" })),
            contract: vec!["lookup".into()],
            markers: vec!["DONE".into()],
            on_violation: OnViolation::Observe,
            duplicates: Duplicates::Deny,
            after_tool: AfterTool::Stop,
        },
    }
}

fn retry() -> RetryPolicy {
    RetryPolicy { max_attempts: 3, backoff_ms: 100, max_backoff_ms: 1_000, jitter: Jitter::Equal }
}

fn failure() -> Failure {
    Failure {
        code: "model_rate_limited".into(),
        class: ErrorClass::Transient,
        message: "too many requests".into(),
        retry_after_ms: Some(1_500),
        spent: None,
    }
}

fn usage() -> Usage {
    Usage {
        input_tokens: 10,
        output_tokens: 4,
        estimated: true,
        cache_read_tokens: 6,
        cache_write_tokens: 2,
        reasoning_tokens: 1,
        cost_micro_usd: Some(90),
        cost_incomplete: true,
    }
}

fn caller() -> Caller {
    Caller { worker: "worker-1".into(), incarnation: 4 }
}

fn key() -> WriteKey {
    WriteKey { run: run_id(), epoch: 3, number: 7 }
}

fn run_id() -> RunId {
    RunId::from_bytes([1; 16])
}

fn task() -> TaskId {
    TaskId::from_bytes([2; 16])
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis)
}
