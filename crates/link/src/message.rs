//! The messages of the worker port.

use std::fmt;

use ostler_kernel::{
    Entry, Run, RunId, Step, TaskId, TraceContext,
    bundle::WriteKey,
    plan::AgentPlan,
    run::{end::Leave, journal::Progress},
    task::input::Input,
    worker::Offer,
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", content = "body", rename_all = "snake_case")]
pub enum Request {
    Register(RegisterRequest),
    Claim(ClaimRequest),
    Journal(JournalRequest),
    Leave(LeaveRequest),
    Renew(RenewRequest),
    Signals(SignalsRequest),
    Inputs(InputsRequest),
    Deltas(DeltasRequest),
    Secret(SecretRequest),
}

impl Request {
    /// Who asks.
    pub fn worker(&self) -> &str {
        match self {
            Request::Register(request) => &request.name,
            Request::Claim(ClaimRequest { caller, .. })
            | Request::Journal(JournalRequest { caller, .. })
            | Request::Leave(LeaveRequest { caller, .. })
            | Request::Renew(RenewRequest { caller, .. })
            | Request::Signals(SignalsRequest { caller, .. })
            | Request::Inputs(InputsRequest { caller, .. })
            | Request::Deltas(DeltasRequest { caller, .. })
            | Request::Secret(SecretRequest { caller, .. }) => &caller.worker,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "response", content = "body", rename_all = "snake_case")]
pub enum Response {
    Registered(Registered),
    Assigned(Vec<Assignment>),
    Journaled(()),
    Left(()),
    Renewed(Renewed),
    Signals(Vec<Signal>),
    Inputs(Vec<Input>),
    Shown(()),
    Secret(SecretAnswer),
}

/// Who asks: a worker, and which start of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Caller {
    pub worker: String,
    pub incarnation: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisterRequest {
    pub name: String,
    /// Drawn for this start of the worker: sent again, it is the same start.
    pub instance: u64,
    /// The incarnation it takes over from; 0 if it knows of none. A registration that is delivered late, when
    /// another has taken over since, changes nothing.
    pub former: u64,
    #[serde(default)]
    pub offer: Offer,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "registered", rename_all = "snake_case")]
pub enum Registered {
    As {
        incarnation: u64,
        /// Whoever doesn't renew for so long loses its runs.
        lease_ms: u64,
    },
    /// There is another incarnation than the one named; to take over from it, name it.
    Present { incarnation: u64 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimRequest {
    pub caller: Caller,
    /// 1, 2, 3: the next one only after this one was answered.
    pub number: u64,
    pub slots: usize,
    pub wait_ms: u64,
}

/// A run that the caller now holds, with all it needs to go on behind its last finished step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    pub run: Run,
    pub plan: AgentPlan,
    /// What the model sees of the session.
    pub context: Vec<Entry>,
    pub open_steps: Vec<Step>,
    /// The last input that a run of this task consumed.
    pub consumed_input: u64,
    /// There are inputs behind it.
    pub has_inputs: bool,
    /// Where in a caller's trace its task belongs, if the caller said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalRequest {
    pub caller: Caller,
    pub key: WriteKey,
    pub progress: Progress,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeaveRequest {
    pub caller: Caller,
    pub key: WriteKey,
    pub progress: Progress,
    pub leave: Leave,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RenewRequest {
    pub caller: Caller,
    pub counter: u64,
    /// The last claim that was answered: what it or an earlier one gave is held, or was never received.
    pub claimed: u64,
    /// The runs held, each with the epoch of its lease.
    pub held: Vec<(RunId, u64)>,
    /// The lease that the worker keeps to; without it, the one that it was told when it registered.
    #[serde(default)]
    pub lease_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Renewed {
    /// Of what it believes to hold, what it does not, each with the epoch of its former lease.
    pub lost: Vec<(RunId, u64)>,
    /// Give back what is held, once the steps under way are done.
    #[serde(default)]
    pub drain: bool,
    /// Whoever doesn't renew for so long loses its runs. Where it is longer than what the worker was told when it registered,
    /// that holds: other servers don't know of this one.
    #[serde(default)]
    pub lease_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignalsRequest {
    pub caller: Caller,
    pub wait_ms: u64,
}

/// A hint: losing it costs time, not truth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    pub run: RunId,
    /// The lease it is about: a later one is not meant.
    pub epoch: u64,
    pub kind: SignalKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// The run is no longer the worker's.
    Stop,
    /// There is an input for it.
    Input,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputsRequest {
    pub caller: Caller,
    pub run: RunId,
    pub task: TaskId,
    pub after: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeltasRequest {
    pub caller: Caller,
    pub deltas: Vec<Delta>,
}

/// Asks for a secret that the plan of a run names. Asked anew for each call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRequest {
    pub caller: Caller,
    pub run: RunId,
    /// As the plan has it.
    pub reference: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum SecretAnswer {
    Found {
        value: SecretValue,
    },
    /// The server keeps none of this name.
    Absent,
    /// There is one, or might be, and it is not given.
    Refused {
        message: String,
    },
}

/// A secret on its way to the worker that uses it. It is written into the message, and nowhere else.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    pub fn new(value: &str) -> Self {
        Self(Zeroizing::new(value.to_owned()))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretValue")
    }
}

/// A piece of text as it comes from the model: shown beside the log, never kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    pub task: TaskId,
    pub run: RunId,
    pub step: u32,
    /// Where in the step's text, or in its thinking, it belongs, in bytes.
    pub offset: u64,
    pub text: String,
    /// What the model thinks before it speaks, shown apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thinking: bool,
}
