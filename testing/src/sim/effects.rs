//! What agents reach for: a model and tools that remember every call, outlive every crash, and play a part
//! that follows from what they are sent.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::stream;
use ostler_agent::{Departure, React, Runner, RunnerPort, Stopped};
use ostler_kernel::{
    Block, BlockerId, ErrorClass, Failure, Role, Runtime, Usage,
    run::{blocker::BlockerKind, end::Leave, journal::Progress},
};
use ostler_llm::secrets::{Asked, Resolver};
use ostler_llm::{Completion, Finish, Gateway, Identity, Message, ModelRequest, Part, Parts};
use ostler_tools::{ToolRequest, Toolbox};
use ostler_worker::KeptSecrets;

use super::{rng::Rng, world::World};

pub struct SimGateway {
    pub world: Arc<World>,
    pub runtime: Arc<dyn Runtime>,
}

impl Gateway for SimGateway {
    fn stream(&self, request: ModelRequest) -> Parts {
        self.world.effect_began("model", &request.request_id, true);
        let (delay, fate) = self.world.draw(|rng| (duration(rng), rng.below(30)));
        let (world, runtime) = (Arc::clone(&self.world), Arc::clone(&self.runtime));
        let call = async move {
            runtime.sleep(Duration::from_millis(delay)).await;
            world.stir();
            let script = Script::read(&request.messages);
            let part = match fate {
                _ if world.is_calm() => Ok(Part::Done(script.answer())),
                0 => Err(Failure::transient("model_overloaded", "simulated")),
                1 => Err(Failure::transient("model_stream_cut", "simulated")),
                // Longer than anybody holds a slot for: the run sleeps, and goes on with the same step.
                2 => Err(Failure::transient("model_rate_limited", "simulated")
                    .with_retry_after(Some(Duration::from_millis(10_500)))),
                _ => Ok(Part::Done(script.answer())),
            };
            match part {
                Ok(_) if script.fails => Err(Failure::permanent("model_bad_request", "simulated")),
                part => part,
            }
        };
        Box::pin(stream::once(call))
    }
}

/// How long a call takes, in milliseconds: now and then longer than a lease.
fn duration(rng: &mut Rng) -> u64 {
    if rng.one_in(6) { rng.between(500, 6000) } else { rng.between(1, 500) }
}

/// What a task's message asks the model to play: `task NAME turns=2 once sleep wait fails`.
struct Script {
    turns: usize,
    taken: usize,
    once: bool,
    fails: bool,
}

impl Script {
    fn read(messages: &[Message]) -> Self {
        let text = |block: &Block| match block {
            Block::Text { text } if text.starts_with("task ") => Some(text.clone()),
            _ => None,
        };
        let mut script = Self { turns: 0, taken: 0, once: false, fails: false };
        for message in messages {
            match message.role {
                Role::User => {
                    if let Some(text) = message.blocks.iter().rev().find_map(text) {
                        script = Self { taken: 0, ..Self::parse(&text) };
                    }
                }
                Role::Assistant => script.taken += 1,
                Role::Tool => {}
            }
        }
        script
    }

    fn parse(text: &str) -> Self {
        let turns = text.split_whitespace().find_map(|word| word.strip_prefix("turns="));
        Self {
            turns: turns.and_then(|turns| turns.parse().ok()).unwrap_or(0),
            taken: 0,
            once: text.contains(" once"),
            fails: text.contains(" fails"),
        }
    }

    fn answer(&self) -> Completion {
        let usage = Some(Usage { input_tokens: 10, output_tokens: 5, estimated: false, ..Usage::default() });
        if self.taken >= self.turns {
            let blocks = vec![Block::Text { text: "done".into() }];
            return Completion { blocks, finish: Finish::Stop, usage, identity: Identity::default() };
        }
        let name = if self.once { "once" } else { "idem" };
        let call = |index: usize| Block::ToolCall {
            id: format!("call_{}_{index}", self.taken),
            name: if index == 0 { name.into() } else { "idem".into() },
            // Two equal calls in one answer are made once.
            arguments: format!("{{\"turn\":{}}}", self.taken),
        };
        let blocks = (0..=self.taken % 2).map(call).collect();
        Completion { blocks, finish: Finish::ToolCalls, usage, identity: Identity::default() }
    }
}

pub struct SimToolbox {
    pub world: Arc<World>,
    pub runtime: Arc<dyn Runtime>,
    pub secrets: Arc<KeptSecrets>,
}

/// As the simulated clients declare it.
pub const SECRET: &str = "simulated-secret";

impl SimToolbox {
    /// Asks for the tool's secret until there is an answer; whoever lost the run is stopped meanwhile.
    async fn resolve(&self, request: &ToolRequest) {
        let Some(auth) = &request.tool.auth else { return };
        let asked = Asked { reference: &auth.secret_ref, step: &request.request_id };
        loop {
            match self.secrets.find(&asked).await {
                Ok(Some(secret)) if secret.expose() == SECRET => return,
                Ok(found) => self.world.violate(format!("{}: another secret: {found:?}", request.request_id)),
                Err(failure) if failure.is_retryable() => {}
                Err(failure) => self.world.violate(format!("{}: {failure}", request.request_id)),
            }
            self.runtime.sleep(Duration::from_millis(50)).await;
        }
    }
}

#[async_trait]
impl Toolbox for SimToolbox {
    async fn call(&self, request: ToolRequest) -> Result<String, Failure> {
        self.resolve(&request).await;
        self.world.effect_began("tool", &request.request_id, request.tool.idempotent);
        let (delay, fate) = self.world.draw(|rng| (duration(rng), rng.below(25)));
        self.runtime.sleep(Duration::from_millis(delay)).await;
        self.world.stir();
        match fate {
            0 if !request.tool.idempotent => {
                Err(Failure::new(ErrorClass::OutcomeUnknown, "outcome_unknown", "simulated"))
            }
            1 => Err(Failure::permanent("execution_failed", "simulated")),
            _ => Ok("fine".into()),
        }
    }
}

/// The ReAct loop, for agents that may also sleep first or wait for an input.
pub struct SimRunner;

#[async_trait]
impl Runner for SimRunner {
    async fn run(&self, port: &dyn RunnerPort) -> Result<(), Stopped> {
        let start = port.start();
        let message =
            start.context.iter().rev().find(|entry| entry.run == start.run.id && entry.role == Role::User);
        let text = message.map(|entry| entry.text()).unwrap_or_default();
        if text.contains(" sleep") && start.run.attempt == 1 {
            let until = port.runtime().now().after(Duration::from_secs(3));
            let leave = Leave::Sleep { until, delay_ms: Some(3_000), why: None };
            if port.leave(Progress::default(), leave).await? == Departure::Left {
                return Ok(());
            }
        }
        if text.contains(" wait") && start.consumed_input == 0 {
            let blocker = BlockerId::new(port.runtime());
            let kind = if text.contains(" approval") { BlockerKind::Approval } else { BlockerKind::Input };
            if kind == BlockerKind::Approval && start.run.attempt > 1 {
                return React::default().run(port).await;
            }
            let leave = Leave::Wait { blocker, kind, summary: "simulated".into() };
            if port.leave(Progress::default(), leave).await? == Departure::Left {
                return Ok(());
            }
        }
        React::default().run(port).await
    }
}
