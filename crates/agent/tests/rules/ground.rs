//! The real loop between a model and tools that are functions, and a journal in memory that the kernel's own rules keep.
//! The journal can die right before or right after any of its writes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use ostler_agent::{
    Departure, Hook, React, RunStart, Runner, RunnerPort, Stopped,
    llm::{Completion, Finish, Gateway, ModelRequest, Part, Parts, Shown},
    tools::{ToolRequest, Toolbox},
};
use ostler_kernel::{
    BlobId, Block, Entry, Failure, Lease, Price, Run, RunId, RunState, Runtime, SessionId, Step, StepId,
    StepKind, TaskId, Timestamp, Usage, Write,
    bundle::WriteKey,
    plan::{AgentPlan, Limits, ModelPlan, Rules, ToolPlan},
    queue::{Lane, Priority, Requirements},
    retry::RetryPolicy,
    run::{
        end::Leave,
        journal::{self, Progress},
    },
    task::input::Input,
};
use ostler_link::TokioRuntime;
use serde_json::json;

type Model = Arc<dyn Fn(&ModelRequest) -> Result<Completion, Failure> + Send + Sync>;
type Tool = Arc<dyn Fn(&ToolRequest) -> Result<String, Failure> + Send + Sync>;

/// An agent with its world.
#[derive(Clone)]
pub struct Scene {
    pub plan: AgentPlan,
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Times that the run has slept before.
    pub slept: u32,
    /// What the model says before it falls silent, in every call but the first.
    pub hangs_after: Option<&'static str>,
    model: Model,
    tool: Tool,
}

/// How it went.
#[derive(Debug, Clone)]
pub struct Story {
    pub left: Leave,
    pub entries: Vec<Entry>,
    pub steps: Vec<Step>,
    /// The endpoint and the request id of each model call.
    pub asked: Vec<(String, String)>,
    /// The request id, the tool and the arguments of each tool call.
    pub called: Vec<(String, String, String)>,
    pub violations: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Death {
    Never,
    Before(usize),
    After(usize),
}

impl Scene {
    pub fn new(model: impl Fn(&ModelRequest) -> Result<Completion, Failure> + Send + Sync + 'static) -> Self {
        let tool = |request: &ToolRequest| Ok(format!("{} of {}", request.tool.name, request.arguments));
        Self {
            plan: plan(),
            hooks: Vec::new(),
            slept: 0,
            hangs_after: None,
            model: Arc::new(model),
            tool: Arc::new(tool),
        }
    }

    pub fn rules(mut self, rules: Rules) -> Self {
        self.plan.rules = rules;
        self
    }

    pub fn tools(
        mut self,
        tool: impl Fn(&ToolRequest) -> Result<String, Failure> + Send + Sync + 'static,
    ) -> Self {
        self.tool = Arc::new(tool);
        self
    }

    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Plays it once without a crash; then with a crash at each write, before it and after it. It must come to the
    /// same end by the same entries, and nothing that was finished is done again.
    pub async fn play(&self) -> Story {
        let (told, n_writes) = self.once(Death::Never).await;
        for write in 1..=n_writes {
            for death in [Death::Before(write), Death::After(write)] {
                let (other, _) = self.once(death).await;
                let when = if death == Death::Before(write) { "before" } else { "after" };
                assert_eq!(timeless(&other.left), timeless(&told.left), "died {when} write {write}");
                assert_eq!(other.entries, told.entries, "died {when} write {write}");
                assert_eq!(outcomes(&other), outcomes(&told), "died {when} write {write}");
                let finished = |story: &Story| -> BTreeSet<String> {
                    story.called.iter().map(|(id, ..)| id.clone()).collect()
                };
                assert_eq!(finished(&other), finished(&told), "died {when} write {write}");
            }
        }
        told
    }

    async fn once(&self, death: Death) -> (Story, usize) {
        let world = Arc::new(World::new(self.clone(), death));
        for _ in 0..2 {
            let port = Port { start: world.begin(), world: Arc::clone(&world) };
            if React::with_hooks(self.hooks.clone()).run(&port).await.is_ok() {
                break;
            }
        }
        let state = world.state();
        let left = state.left.clone().expect("the run was left");
        let (entries, steps) = (state.entries.clone(), state.steps.values().cloned().collect());
        let (asked, called) = (state.asked.clone(), state.called.clone());
        let violations = state.violations.clone();
        (Story { left, entries, steps, asked, called, violations }, state.n_writes)
    }
}

/// How it was left, without when.
fn timeless(left: &Leave) -> Leave {
    match left {
        Leave::Sleep { delay_ms, why, .. } => {
            Leave::Sleep { until: at(), delay_ms: *delay_ms, why: why.clone() }
        }
        other => other.clone(),
    }
}

fn outcomes(story: &Story) -> Vec<(u32, StepKind, bool)> {
    story.steps.iter().map(|step| (step.id.index, step.kind.clone(), step.is_open())).collect()
}

struct State {
    run: Run,
    entries: Vec<Entry>,
    steps: BTreeMap<u32, Step>,
    n_writes: usize,
    left: Option<Leave>,
    asked: Vec<(String, String)>,
    called: Vec<(String, String, String)>,
    violations: Vec<String>,
}

struct World {
    scene: Scene,
    death: Death,
    runtime: TokioRuntime,
    state: Mutex<State>,
}

struct Port {
    start: RunStart,
    world: Arc<World>,
}

impl World {
    fn new(scene: Scene, death: Death) -> Self {
        let run = Run { slept_in_row: scene.slept, ..run() };
        let first = Step::open(StepId { run: run.id, index: 0 }, StepKind::model("first"), 1, at());
        let state = State {
            entries: vec![Entry::user(run.id, "go")],
            steps: BTreeMap::from([(0, first)]),
            run,
            n_writes: 0,
            left: None,
            asked: Vec::new(),
            called: Vec::new(),
            violations: Vec::new(),
        };
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        Self { scene, death, runtime, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another attempt takes the run.
    fn begin(&self) -> RunStart {
        let mut state = self.state();
        state.run.attempt += 1;
        let open_steps = state.steps.values().filter(|step| step.is_open()).cloned().collect();
        let (run, context) = (state.run.clone(), state.entries.clone());
        RunStart { run, plan: self.scene.plan.clone(), context, open_steps, consumed_input: 0 }
    }

    /// The next write, unless the worker dies before it; and whether it dies behind it.
    fn write(&self, progress: &Progress) -> Result<Result<(), Stopped>, Stopped> {
        let mut state = self.state();
        state.n_writes += 1;
        let dead = || Stopped("the worker died".to_owned());
        if self.death == Death::Before(state.n_writes) {
            return Err(dead());
        }
        let run = state.run.clone();
        let key = WriteKey { run: run.id, epoch: run.epoch, number: run.journal + 1 };
        state.violations.extend(progress.done.iter().filter_map(|done| done.contract_violation.clone()));
        for write in journal::journal(&run, key, progress, at()).writes {
            match write {
                Write::Entry { entry, .. } => state.entries.push(entry),
                Write::Step(step) => drop(state.steps.insert(step.id.index, step)),
                Write::RunProgress(run) => state.run = run,
                _ => {}
            }
        }
        Ok(if self.death == Death::After(state.n_writes) { Err(dead()) } else { Ok(()) })
    }
}

#[async_trait]
impl RunnerPort for Port {
    fn start(&self) -> &RunStart {
        &self.start
    }

    async fn journal(&self, progress: Progress) -> Result<(), Stopped> {
        self.world.write(&progress)?
    }

    async fn leave(&self, progress: Progress, leave: Leave) -> Result<Departure, Stopped> {
        let lives = self.world.write(&progress)?;
        self.world.state().left = Some(leave);
        // Whoever dies behind the last write is not needed any more.
        lives.map(|()| Departure::Left).or(Ok(Departure::Left))
    }

    async fn inputs(&self, _after: u64) -> Result<Vec<Input>, Stopped> {
        Ok(Vec::new())
    }

    fn emit(&self, _step: u32, _offset: u64, _shown: Shown<'_>) {}

    fn is_stopping(&self) -> bool {
        false
    }

    fn is_held(&self) -> bool {
        true
    }

    fn runtime(&self) -> &dyn Runtime {
        &self.world.runtime
    }

    fn gateway(&self) -> &dyn Gateway {
        &*self.world
    }

    fn toolbox(&self) -> &dyn Toolbox {
        &*self.world
    }
}

impl Gateway for World {
    fn stream(&self, request: ModelRequest) -> Parts {
        let asked = (request.endpoint.endpoint.clone(), request.request_id.clone());
        self.state().asked.push(asked);
        match self.scene.hangs_after {
            Some(said) if turn(&request) > 0 => {
                Box::pin(stream::iter([Ok(Part::Text(said.to_owned()))]).chain(stream::pending()))
            }
            _ => Box::pin(stream::iter([(self.scene.model)(&request).map(Part::Done)])),
        }
    }

    fn price(&self, _endpoint: &ModelPlan) -> Option<Price> {
        Some(Price { input: 1_000_000, output: 2_000_000, cache_read: None, cache_write: None })
    }
}

#[async_trait]
impl Toolbox for World {
    async fn call(&self, request: ToolRequest) -> Result<String, Failure> {
        let called = (request.request_id.clone(), request.tool.name.clone(), request.arguments.to_string());
        self.state().called.push(called);
        (self.scene.tool)(&request)
    }
}

pub fn says(text: &str) -> Result<Completion, Failure> {
    Ok(completion(vec![Block::Text { text: text.to_owned() }], Finish::Stop))
}

/// Calls these tools with these arguments, at once.
pub fn calls(calls: &[(&str, &str)]) -> Result<Completion, Failure> {
    let block = |(index, (name, arguments)): (usize, &(&str, &str))| Block::ToolCall {
        id: format!("call_{index}"),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Ok(completion(calls.iter().enumerate().map(block).collect(), Finish::ToolCalls))
}

/// The same, where the vendor's bound cut the answer off.
pub fn calls_cut_off(asked: &[(&str, &str)]) -> Result<Completion, Failure> {
    calls(asked).map(|completion| Completion { finish: Finish::Length, ..completion })
}

fn completion(blocks: Vec<Block>, finish: Finish) -> Completion {
    let usage = Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() };
    Completion { blocks, finish, usage: Some(usage), identity: Default::default() }
}

/// How often the model has spoken in what it is sent.
pub fn turn(request: &ModelRequest) -> usize {
    request.messages.iter().filter(|message| message.role == ostler_kernel::Role::Assistant).count()
}

/// All that it is sent, as text.
pub fn heard(request: &ModelRequest) -> String {
    format!("{:?}", request.messages)
}

fn plan() -> AgentPlan {
    let tool = |name: &str| ToolPlan {
        name: name.into(),
        way: "http".into(),
        endpoint: String::new(),
        description: String::new(),
        input_schema: Some(json!({"type": "object"})),
        idempotent: true,
        timeout_ms: 1_000,
        retry: RetryPolicy::default(),
        allow_private: false,
        auth: None,
    };
    AgentPlan {
        namespace: "default".into(),
        agent: "a".into(),
        description: String::new(),
        prompt: "Be kind.".into(),
        model: model("first"),
        fallbacks: Vec::new(),
        tools: ["search", "publish", "delete"].map(tool).into(),
        limits: Limits::default(),
        rules: Rules::default(),
    }
}

pub fn model(name: &str) -> ModelPlan {
    ModelPlan { endpoint: name.into(), provider: "mock".into(), model: name.into(), ..ModelPlan::default() }
}

fn at() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000)
}

fn run() -> Run {
    Run {
        id: RunId::from_bytes([1; 16]),
        task: TaskId::from_bytes([2; 16]),
        session: SessionId::from_bytes([3; 16]),
        message: None,
        order: 0,
        agent: "a".into(),
        plan: BlobId::from_bytes([4; 32]),
        model: "first".into(),
        lane: Lane {
            namespace: "default".into(),
            class: "a".into(),
            limit: None,
            requires: Requirements::default(),
            capped: false,
        },
        priority: Priority::Normal,
        retry: RetryPolicy::default(),
        deadline: None,
        created_at: at(),
        state: RunState::Running { lease: Lease { worker: "w".into(), incarnation: 1, claim: 1 } },
        epoch: 1,
        attempt: 0,
        attempt_at: None,
        worker: Some("w".into()),
        failures: 0,
        lost_in_row: 0,
        restarted_in_row: 0,
        slept_in_row: 0,
        journal: 0,
        last_write: None,
        next_step: 1,
        next_entry: 1,
        model_calls: 0,
        tool_calls: 0,
        worked_ms: 0,
        usage: Usage::default(),
        fallback: None,
    }
}
