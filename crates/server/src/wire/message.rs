//! The messages of a task: what each of its agents was told, by whom, and what became of it. Derived from the task's runs
//! and their events in one place.

use std::{collections::BTreeMap, time::Duration};

use ostler_control::Telling;
use ostler_kernel::{
    Event, EventBody, Run, RunState, Task, Timestamp,
    message::{Message, MessageKind, trace_id},
    run::Ready,
};
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct MessageView {
    pub timestamp: String,
    pub message_id: String,
    pub idempotency_key: String,
    pub task_id: String,
    pub attempt: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system: String,
    pub from_agent: String,
    pub to_agent: String,
    pub branch_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_branch_id: Option<String>,
    pub r#type: &'static str,
    pub content: String,
    pub trace_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    pub phase: &'static str,
    pub attempts: u32,
    pub max_attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<String>,
    /// From when it was sent to when it was done with.
    #[serde(skip)]
    latency_ms: Option<u64>,
    #[serde(skip)]
    ended_at: Option<Timestamp>,
}

/// Every phase of a message, by the name that it is filtered by.
pub const PHASES: [&str; 6] =
    ["Queued", "Running", "RetryPending", "WaitingApproval", "Succeeded", "DeadLetter"];

/// One for each run, in the order of their acceptance. A task of one agent has one, from the system to the agent.
pub fn messages(task: &Task, telling: &Telling) -> Vec<MessageView> {
    let runs = &telling.runs;
    let neighbours =
        |place: usize| (place.checked_sub(1).and_then(|before| runs.get(before)), runs.get(place + 1));
    let each = runs.iter().enumerate();
    each.map(|(place, run)| message(task, run, neighbours(place), &telling.events)).collect()
}

fn message(
    task: &Task,
    run: &Run,
    (before, next): (Option<&Run>, Option<&Run>),
    events: &[Event],
) -> MessageView {
    let sent = sent(task, run, before);
    let (namespace, name) = (&task.namespace, &task.name);
    let message_id = sent.id(task);
    let ended_at = ended_at(task, run, next);
    MessageView {
        timestamp: run.created_at.to_string(),
        idempotency_key: message_id.clone(),
        message_id,
        task_id: format!("{namespace}/{name}"),
        attempt: 1,
        system: task.request.system.as_ref().map(|system| system.name.clone()).unwrap_or_default(),
        from_agent: sent.from,
        to_agent: sent.to,
        branch_id: sent.branch,
        parent_branch_id: sent.parent_branch,
        r#type: sent.kind.name(),
        content: sent.content,
        trace_id: trace_id(task),
        parent_id: sent.parent,
        phase: phase(run),
        attempts: run.attempt,
        max_attempts: task.most_attempts(run),
        last_error: last_error(run, events),
        worker: worker(run, events),
        processed_at: ended_at.map(|at| at.to_string()),
        next_attempt_at: next_attempt(run).map(|at| at.to_string()),
        latency_ms: ended_at
            .map(|at| u64::try_from(at.since(run.created_at).as_millis()).unwrap_or(u64::MAX)),
        ended_at,
    }
}

/// The message as it was sent. A run that has begun keeps only who sent it: what it said is what the run before it gave.
fn sent(task: &Task, run: &Run, before: Option<&Run>) -> Message {
    let mut message =
        run.message.clone().unwrap_or_else(|| Message::start(&run.agent, &task.request.message));
    if message.content.is_empty() {
        message.content = match (message.kind, before.map(|before| &before.state)) {
            (MessageKind::TaskStart, _) => task.request.message.clone(),
            (MessageKind::TaskHandoff, Some(RunState::Ok { output })) => output.clone(),
            (MessageKind::TaskHandoff, _) => String::new(),
        };
    }
    message
}

/// A run that hands on ends in the commit that makes the next one.
fn ended_at(task: &Task, run: &Run, next: Option<&Run>) -> Option<Timestamp> {
    match next {
        Some(next) => Some(next.created_at),
        None => task.ended_at.filter(|_| run.is_terminal()),
    }
}

fn phase(run: &Run) -> &'static str {
    match &run.state {
        RunState::Queued { ready: Ready::NotBefore { .. } } if run.failures > 0 => "RetryPending",
        RunState::Queued { .. } if run.attempt == 0 => "Queued",
        RunState::Queued { .. } | RunState::Running { .. } | RunState::Sleeping { .. } => "Running",
        RunState::Waiting { .. } => "WaitingApproval",
        RunState::Ok { .. } => "Succeeded",
        // A message ends well or not at all; how its task ended is the task's to say.
        RunState::Error { .. } | RunState::Timeout { .. } | RunState::Cancelled { .. } => "DeadLetter",
    }
}

fn last_error(run: &Run, events: &[Event]) -> Option<String> {
    match &run.state {
        RunState::Error { failure } | RunState::Timeout { failure } | RunState::Cancelled { failure } => {
            Some(failure.to_string())
        }
        RunState::Ok { .. } => None,
        RunState::Queued { .. }
        | RunState::Running { .. }
        | RunState::Waiting { .. }
        | RunState::Sleeping { .. } => events.iter().rev().find_map(|event| match &event.body {
            EventBody::RunRetrying { run: of, failure, .. } if *of == run.id => Some(failure.to_string()),
            _ => None,
        }),
    }
}

/// Who has it, or had it last. The log tells it of runs from before they said it themselves.
fn worker(run: &Run, events: &[Event]) -> Option<String> {
    let logged = || {
        events.iter().rev().find_map(|event| match &event.body {
            EventBody::AttemptStarted { run: of, worker, .. } if *of == run.id => Some(worker.clone()),
            _ => None,
        })
    };
    run.worker.clone().or_else(logged)
}

/// What was done with a message once, and will not be done again: one for each that was processed.
#[derive(Debug, Serialize)]
pub struct IdempotencyView {
    key: String,
    message_id: String,
    state: &'static str,
    updated_at: String,
    /// When it may be forgotten, by those who keep such records apart. Ours goes with its task.
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
}

/// How long a record is of use behind the end of its message.
const RECORD_LASTS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl MessageView {
    pub fn idempotency(&self) -> Option<IdempotencyView> {
        let ended_at = self.ended_at?;
        Some(IdempotencyView {
            key: self.idempotency_key.clone(),
            message_id: self.message_id.clone(),
            state: if self.phase == "Succeeded" { "completed" } else { "deadletter" },
            updated_at: ended_at.to_string(),
            expires_at: ended_at.after(RECORD_LASTS).to_string(),
            worker: self.worker.clone(),
        })
    }
}

fn next_attempt(run: &Run) -> Option<Timestamp> {
    match run.state {
        RunState::Queued { ready: Ready::NotBefore { at, .. } } => Some(at),
        _ => None,
    }
}

/// Which messages someone wants.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MessageFilter {
    #[serde(rename = "phase", skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The last so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

#[derive(Debug, Serialize)]
pub struct Messages<'a> {
    name: &'a str,
    namespace: &'a str,
    total: usize,
    /// How many there are but for the phase.
    filtered_from: usize,
    lifecycle_counts: Lifecycle,
    messages: Vec<MessageView>,
}

impl MessageFilter {
    fn is_empty(&self) -> bool {
        self.phases.is_empty()
            && [&self.from_agent, &self.to_agent, &self.branch_id, &self.trace_id]
                .iter()
                .all(|it| it.is_none())
            && self.limit.is_none()
    }

    fn is_of(&self, message: &MessageView) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.from_agent, &message.from_agent)
            && is(&self.to_agent, &message.to_agent)
            && is(&self.branch_id, &message.branch_id)
            && is(&self.trace_id, &message.trace_id)
    }

    fn is_in_phase(&self, message: &MessageView) -> bool {
        self.phases.is_empty() || self.phases.iter().any(|phase| phase.eq_ignore_ascii_case(message.phase))
    }
}

impl<'a> Messages<'a> {
    pub fn new(task: &'a Task, all: Vec<MessageView>, filter: &MessageFilter) -> Self {
        let base: Vec<MessageView> = all.into_iter().filter(|message| filter.is_of(message)).collect();
        let lifecycle_counts = Lifecycle::of(&base);
        let filtered_from = base.len();
        let mut messages: Vec<MessageView> =
            base.into_iter().filter(|message| filter.is_in_phase(message)).collect();
        let total = messages.len();
        let surplus = total.saturating_sub(filter.limit.unwrap_or(total));
        messages.drain(..surplus);
        Self {
            name: &task.name,
            namespace: &task.namespace,
            total,
            filtered_from,
            lifecycle_counts,
            messages,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct Metrics<'a> {
    name: &'a str,
    namespace: &'a str,
    generated_at: String,
    totals: Totals,
    per_agent: Vec<AgentTotals>,
    per_edge: Vec<EdgeTotals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filters: Option<&'a MessageFilter>,
}

/// How many messages are in each phase.
#[derive(Debug, Default, Serialize)]
struct Lifecycle {
    queued: usize,
    running: usize,
    retrypending: usize,
    /// Not counted everywhere, so it is told where there is one; with it they add up.
    #[serde(skip_serializing_if = "is_zero")]
    waitingapproval: usize,
    succeeded: usize,
    deadletter: usize,
}

impl Lifecycle {
    fn of<'m>(messages: impl IntoIterator<Item = &'m MessageView>) -> Self {
        let mut counts = Self::default();
        for message in messages {
            *counts.of_phase(message.phase) += 1;
        }
        counts
    }

    fn of_phase(&mut self, phase: &str) -> &mut usize {
        match phase {
            "Queued" => &mut self.queued,
            "Running" => &mut self.running,
            "RetryPending" => &mut self.retrypending,
            "WaitingApproval" => &mut self.waitingapproval,
            "Succeeded" => &mut self.succeeded,
            _ => &mut self.deadletter,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Debug, Default, Serialize)]
struct Totals {
    messages: usize,
    #[serde(flatten)]
    phases: Lifecycle,
    in_flight: usize,
    retry_count: u64,
    deadletters: usize,
    latency_ms_avg: u64,
    latency_ms_p95: u64,
    latency_sample_size: usize,
}

#[derive(Debug, Serialize)]
struct AgentTotals {
    agent: String,
    inbound: usize,
    outbound: usize,
    #[serde(flatten)]
    totals: Totals,
}

#[derive(Debug, Serialize)]
struct EdgeTotals {
    from_agent: String,
    to_agent: String,
    #[serde(flatten)]
    totals: Totals,
}

impl<'a> Metrics<'a> {
    pub fn new(task: &'a Task, all: &[MessageView], filter: &'a MessageFilter, now: Timestamp) -> Self {
        let chosen: Vec<&MessageView> =
            all.iter().filter(|message| filter.is_of(message) && filter.is_in_phase(message)).collect();
        let surplus = chosen.len().saturating_sub(filter.limit.unwrap_or(chosen.len()));
        let chosen = &chosen[surplus..];
        let mut agents: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let mut edges: BTreeMap<(&str, &str), Vec<&MessageView>> = BTreeMap::new();
        for message in chosen {
            agents.entry(&message.to_agent).or_default().0 += 1;
            agents.entry(&message.from_agent).or_default().1 += 1;
            edges.entry((&message.from_agent, &message.to_agent)).or_default().push(message);
        }
        let per_agent = agents.into_iter().map(|(agent, (inbound, outbound))| AgentTotals {
            agent: agent.to_owned(),
            inbound,
            outbound,
            totals: Totals::of(chosen.iter().copied().filter(|message| message.to_agent == agent)),
        });
        let per_edge = edges.into_iter().map(|((from, to), messages)| EdgeTotals {
            from_agent: from.to_owned(),
            to_agent: to.to_owned(),
            totals: Totals::of(messages.into_iter()),
        });
        Self {
            name: &task.name,
            namespace: &task.namespace,
            generated_at: now.to_string(),
            per_agent: per_agent.collect(),
            per_edge: per_edge.collect(),
            totals: Totals::of(chosen.iter().copied()),
            filters: (!filter.is_empty()).then_some(filter),
        }
    }
}

impl Totals {
    fn of<'m>(messages: impl Iterator<Item = &'m MessageView>) -> Self {
        let (mut totals, mut latencies) = (Self::default(), Vec::new());
        for message in messages {
            totals.messages += 1;
            *totals.phases.of_phase(message.phase) += 1;
            totals.retry_count += u64::from(message.attempts.saturating_sub(1));
            latencies.extend(message.latency_ms);
        }
        let Lifecycle { queued, running, retrypending, deadletter, .. } = totals.phases;
        totals.in_flight = queued + running + retrypending;
        totals.deadletters = deadletter;
        latencies.sort_unstable();
        totals.latency_sample_size = latencies.len();
        if let Some(last) = (latencies.len() * 95).div_ceil(100).checked_sub(1) {
            totals.latency_ms_p95 = latencies[last];
            totals.latency_ms_avg = latencies.iter().sum::<u64>() / latencies.len() as u64;
        }
        totals
    }
}
