//! Counts what this server commits: tasks that ended, steps, tokens, retries. Taken from the events of each bundle, so
//! that what is counted is what the log says, and nothing is counted twice.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ostler_kernel::{
    Bundle, EventBody, Run, RunId, StepKind, Task, TaskState, Usage, Write, event::StepFinished,
    step::StepOutcome,
};
use ostler_store::StoreExt;
use ostler_telemetry::metric::{FINE_BOUNDS, Histogram, labelled};

use crate::{Control, ControlError};

/// As the conventions for generative AI advise.
const WORKFLOW_BOUNDS: &[f64] = &[1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0];

/// All that was counted. Keys are the values of labels, in the order that the field's text says.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Namespace, system, state.
    pub tasks: BTreeMap<[String; 3], Histogram>,
    /// System, error.
    pub workflows: BTreeMap<[String; 2], Histogram>,
    /// Namespace.
    pub accepted: BTreeMap<[String; 1], u64>,
    /// Agent, kind of step.
    pub steps: BTreeMap<[String; 2], Histogram>,
    /// Tool, outcome.
    pub tools: BTreeMap<[String; 2], Histogram>,
    /// Agent, model, `input` or `output`.
    pub tokens: BTreeMap<[String; 3], u64>,
    /// Agent, model. In millionths of a US dollar; what has no known price is not in it.
    pub cost: BTreeMap<[String; 2], u64>,
    /// Phase, agent.
    pub messages: BTreeMap<[String; 2], u64>,
    pub retries: u64,
    pub dead_letters: u64,
    pub lost_attempts: u64,
    pub resources_changed: u64,
    /// Namespace: from when a run was made until a worker first had it.
    pub assigned: BTreeMap<[String; 1], Histogram>,
    pub commits: Histogram,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            tasks: BTreeMap::new(),
            workflows: BTreeMap::new(),
            accepted: BTreeMap::new(),
            steps: BTreeMap::new(),
            tools: BTreeMap::new(),
            tokens: BTreeMap::new(),
            cost: BTreeMap::new(),
            messages: BTreeMap::new(),
            retries: 0,
            dead_letters: 0,
            lost_attempts: 0,
            resources_changed: 0,
            assigned: BTreeMap::new(),
            commits: Histogram::new(FINE_BOUNDS),
        }
    }
}

#[derive(Default)]
pub struct Meter(Mutex<Figures>);

/// What a bundle will have done once it counts.
pub struct Happened(Vec<One>);

enum One {
    Accepted {
        namespace: String,
        agent: String,
    },
    Ended {
        namespace: String,
        system: String,
        agent: String,
        state: TaskState,
        /// The code of what it failed with.
        error: String,
        seconds: f64,
    },
    /// A message has come to this phase.
    Message {
        phase: &'static str,
        agent: String,
    },
    Step {
        agent: String,
        what: What,
        seconds: f64,
    },
    Retry {
        agent: String,
    },
    Lost,
    Resource,
}

/// Of a step, what is counted.
enum What {
    Model { model: String, usage: Usage },
    Tool { name: String, outcome: &'static str },
    Wait,
}

impl Meter {
    pub fn figures(&self) -> Figures {
        self.lock().clone()
    }

    pub(crate) fn about(&self, bundle: &Bundle) -> Happened {
        let agent = |id: RunId| {
            let name = bundle.writes.iter().find_map(|write| match write {
                Write::NewRun(run) | Write::Run(run) | Write::RunProgress(run) if run.id == id => {
                    Some(run.agent.clone())
                }
                _ => None,
            });
            name.unwrap_or_default()
        };
        let task = || {
            bundle.writes.iter().find_map(|write| match write {
                Write::NewTask(task) | Write::Task(task) => Some(task),
                _ => None,
            })
        };
        let one = |body: &EventBody| match body {
            EventBody::TaskAccepted { run, .. } => {
                task().map(|task| One::Accepted { namespace: task.namespace.clone(), agent: agent(*run) })
            }
            EventBody::TaskEnded { .. } => task().map(|task| ended(agent(task.run), task)),
            EventBody::RunEnded { run, .. } => Some(One::Message { phase: "succeeded", agent: agent(*run) }),
            // The first one of a task is told with its acceptance.
            EventBody::MessageSent { run, message } if message.hop > 1 => {
                Some(One::Message { phase: "queued", agent: agent(*run) })
            }
            EventBody::RunWaiting { run, .. } => {
                Some(One::Message { phase: "waitingapproval", agent: agent(*run) })
            }
            EventBody::StepFinished(step) => Some(finished(agent(step.run), step)),
            EventBody::RunRetrying { run, .. } => Some(One::Retry { agent: agent(*run) }),
            EventBody::AttemptEnded { end: ostler_kernel::run::AttemptEnd::Lost, .. } => Some(One::Lost),
            EventBody::ResourceChanged(_) => Some(One::Resource),
            EventBody::AttemptStarted { .. }
            | EventBody::AttemptEnded { .. }
            | EventBody::RunSleeping { .. }
            | EventBody::RunReady { .. }
            | EventBody::InputAccepted { .. }
            | EventBody::MessageSent { .. }
            | EventBody::Unknown(_) => None,
        };
        let events = bundle.writes.iter().filter_map(|write| match write {
            Write::Event { body, .. } => one(body),
            _ => None,
        });
        Happened(events.collect())
    }

    pub(crate) fn count(&self, Happened(all): Happened) {
        if all.is_empty() {
            return;
        }
        let mut figures = self.lock();
        all.into_iter().for_each(|one| figures.count(one));
    }

    /// The store took so long to say what became of a bundle.
    pub(crate) fn committed(&self, took: Duration) {
        self.lock().commits.add(took.as_secs_f64());
    }

    /// A worker has the run, which this server has not heard of before. How long it waited is counted of its first
    /// attempt.
    pub(crate) fn assigned(&self, run: &Run) {
        let mut figures = self.lock();
        figures.message("running", run.agent.clone());
        if let (1, 0, Some(at)) = (run.attempt, run.journal, run.attempt_at) {
            let waited = at.since(run.created_at).as_secs_f64();
            of(&mut figures.assigned, [run.lane.namespace.clone()]).add(waited);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Figures {
    fn count(&mut self, one: One) {
        match one {
            One::Accepted { namespace, agent } => {
                *of(&mut self.accepted, [namespace]) += 1;
                self.message("queued", agent);
            }
            One::Ended { namespace, system, agent, state, error, seconds } => {
                if !system.is_empty() {
                    let workflow = labelled(&mut self.workflows, [system.clone(), error], || {
                        Histogram::new(WORKFLOW_BOUNDS)
                    });
                    workflow.add(seconds);
                }
                of(&mut self.tasks, [namespace, system, state.name().to_owned()]).add(seconds);
                self.dead_letters += u64::from(state == TaskState::DeadLetter);
                self.message(phase(&state), agent);
            }
            One::Message { phase, agent } => self.message(phase, agent),
            One::Step { agent, what, seconds } => self.step(agent, what, seconds),
            One::Retry { agent } => {
                self.retries += 1;
                self.message("retrypending", agent);
            }
            One::Lost => self.lost_attempts += 1,
            One::Resource => self.resources_changed += 1,
        }
    }

    fn message(&mut self, phase: &str, agent: String) {
        *of(&mut self.messages, [phase.to_owned(), agent]) += 1;
    }

    fn step(&mut self, agent: String, what: What, seconds: f64) {
        let kind = match what {
            What::Model { model, usage } => {
                self.tokens(&agent, &model, &usage);
                "model"
            }
            What::Tool { name, outcome } => {
                of(&mut self.tools, [name, outcome.to_owned()]).add(seconds);
                "tool"
            }
            What::Wait => "wait",
        };
        of(&mut self.steps, [agent, kind.to_owned()]).add(seconds);
    }

    fn tokens(&mut self, agent: &str, model: &str, usage: &Usage) {
        for (kind, tokens) in [("input", usage.input_tokens), ("output", usage.output_tokens)] {
            let key = [agent.to_owned(), model.to_owned(), kind.to_owned()];
            let total = of(&mut self.tokens, key);
            *total = total.saturating_add(tokens);
        }
        if let Some(cost) = usage.cost_micro_usd {
            let total = of(&mut self.cost, [agent.to_owned(), model.to_owned()]);
            *total = total.saturating_add(cost);
        }
    }
}

fn ended(agent: String, task: &Task) -> One {
    let took = task.ended_at.unwrap_or(task.created_at).since(task.created_at);
    One::Ended {
        namespace: task.namespace.clone(),
        // A task of one agent belongs to no system.
        system: task.request.system.as_ref().map(|system| system.name.clone()).unwrap_or_default(),
        agent,
        state: task.state.clone(),
        error: task.failure.as_ref().map(|failure| failure.code.clone()).unwrap_or_default(),
        seconds: took.as_secs_f64(),
    }
}

/// What the message of a task's last run has come to, in the words of dashboards. Only one whose retries are used up is
/// a dead letter.
fn phase(state: &TaskState) -> &'static str {
    match state {
        TaskState::Queued => "queued",
        TaskState::Running | TaskState::Sleeping { .. } => "running",
        TaskState::Waiting { .. } => "waitingapproval",
        TaskState::Succeeded => "succeeded",
        TaskState::Failed => "failed",
        TaskState::DeadLetter => "deadletter",
        TaskState::Cancelled => "cancelled",
        TaskState::Dropped { .. } => "dropped",
    }
}

fn finished(agent: String, step: &StepFinished) -> One {
    let what = match &step.kind {
        StepKind::Model { model, .. } => What::Model { model: model.clone(), usage: step.usage },
        StepKind::Tool { call, .. } => {
            let outcome = match &step.outcome {
                StepOutcome::Ok => "ok",
                StepOutcome::Failed { .. } => "failed",
                StepOutcome::Interrupted => "interrupted",
            };
            What::Tool { name: call.name.clone(), outcome }
        }
        StepKind::Wait => What::Wait,
    };
    One::Step { agent, what, seconds: Duration::from_millis(step.took_ms).as_secs_f64() }
}

fn of<const N: usize, T: Default>(figures: &mut BTreeMap<[String; N], T>, key: [String; N]) -> &mut T {
    labelled(figures, key, T::default)
}

/// What is read from the store when someone asks.
#[derive(Debug, Clone, Default)]
pub struct Gauges {
    /// Of each worker: its name, its phase, its slots, and how many runs it holds.
    pub workers: Vec<(String, &'static str, u32, usize)>,
    /// Of each namespace: runs that wait for a worker.
    pub ready: Vec<(String, usize)>,
    /// The position of the last event.
    pub position: u64,
}

/// Past so many, it is enough to know that there are many.
const MOST_READY: usize = 10_000;
const MOST_NAMESPACES: usize = 100;

impl Control {
    /// Bounded, whatever the store holds.
    pub async fn gauges(&self) -> Result<Gauges, ControlError> {
        let workers = self.workers().await?;
        let mut ready = Vec::new();
        for namespace in self.namespaces().await?.into_iter().take(MOST_NAMESPACES) {
            let count = self.store.ready(namespace.clone(), None, MOST_READY).await?;
            ready.push((namespace, count));
        }
        Ok(Gauges {
            workers: workers
                .into_iter()
                .map(|view| (view.worker.name, view.phase.name(), view.worker.offer.slots, view.runs))
                .collect(),
            ready,
            position: self.store.watch().borrow().position,
        })
    }
}
