//! A worker as production equips it, each of whose runs asks the model when it is told to. So what is measured is the gateway
//! with all that stands around it: its trace, its limits, its prices, a redactor that has something to hide, and the look-up
//! of a key through the worker port. Only the answer to that look-up is given at once, without a store.

use std::path::Path;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use ostler_agent::llm::{Message, ModelRequest, Shown, complete};
use ostler_agent::{Runner, RunnerPort, Stopped};
use ostler_control::{Background, Control, ControlConfig, NewTask};
use ostler_kernel::{Block, Role, Runtime, worker::Offer};
use ostler_link::{LinkError, Request, Response, SecretAnswer, SecretValue, TokioRuntime, WorkerPort};
use ostler_store::SqliteStore;
use ostler_worker::{Equipment, NetConfig, Prices, Redactor, WorkerConfig, WorkerHandle};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::ground::manifest;
use crate::office::read;

const AGENT: &str = "asks";

/// More than are ever asked at once.
const SLOTS: u32 = 1024;

const LEASE: Duration = Duration::from_secs(3600);

/// How long an answer took to its first words, and to its last.
pub type Took = anyhow::Result<(Duration, Duration)>;

/// Asks once, and says how long it took.
type Question = oneshot::Sender<Took>;

pub struct Equipped {
    control: Arc<Control>,
    desks: Mutex<mpsc::UnboundedReceiver<mpsc::Sender<Question>>>,
    n_desks: AtomicU64,
    _background: Background,
    _worker: WorkerHandle,
}

/// One run that asks when it is told to.
pub struct Desk(mpsc::Sender<Question>);

impl Equipped {
    /// To be called inside tokio.
    pub async fn start(folder: &Path, base_url: &str) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let store = Arc::new(SqliteStore::open(&folder.join("store.db"))?);
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::new(tokio::runtime::Handle::current()));
        let config = ControlConfig { lease: LEASE, ..ControlConfig::default() };
        let control = Control::new(store, Arc::clone(&runtime), config);
        let background = control.start();
        for manifest in resources(base_url) {
            control.apply(read(&manifest)?).await?;
        }
        let redactor = Redactor::default();
        redactor.hide("another-secret-of-this-worker");
        let port = Arc::new(WithKey(Arc::clone(&control)));
        let (opened, desks) = mpsc::unbounded_channel();
        let equipment = Equipment::standard(port, runtime, NetConfig::default(), redactor)?;
        let equipment =
            Equipment { runner: Arc::new(Asking(opened)), ..equipment.with_prices(Prices::standard()) };
        let worker = WorkerConfig { name: "bench".to_owned(), offer: Offer::of_slots(SLOTS) };
        let worker = ostler_worker::start(worker, equipment);
        let (desks, n_desks) = (Mutex::new(desks), AtomicU64::new(0));
        Ok(Self { control, desks, n_desks, _background: background, _worker: worker })
    }

    pub async fn desk(&self) -> anyhow::Result<Desk> {
        let spec = json!({ "agent": AGENT, "input": { "message": "What is it?" } });
        let name = format!("desk-{}", self.n_desks.fetch_add(1, Ordering::Relaxed));
        let task = read(&manifest("Task", &json!({ "name": name }), &spec))?;
        self.control.create_task(NewTask::from_resource(task).context("not a task")?).await?;
        self.desks.lock().await.recv().await.map(Desk).context("the worker is gone")
    }
}

impl Desk {
    pub async fn ask(&self) -> Took {
        let (answer, answered) = oneshot::channel();
        self.0.send(answer).await.ok().context("the run is gone")?;
        answered.await.context("the run is gone")?
    }
}

fn resources(base_url: &str) -> [Value; 2] {
    let endpoint = json!({
        "provider": "openai", "base_url": base_url, "default_model": "scripted", "allowPrivate": true,
        "auth": { "secretRef": "model-key" },
    });
    let agent = json!({ "model_ref": "scripted", "prompt": "Answer." });
    [
        manifest("ModelEndpoint", &json!({ "name": "scripted" }), &endpoint),
        manifest("Agent", &json!({ "name": AGENT }), &agent),
    ]
}

/// The control plane, and a key for whoever asks for one.
struct WithKey(Arc<Control>);

#[async_trait]
impl WorkerPort for WithKey {
    async fn call(&self, request: Request) -> Result<Response, LinkError> {
        match request {
            Request::Secret(_) => {
                let value = SecretValue::new("sk-bench-0123456789abcdef");
                Ok(Response::Secret(SecretAnswer::Found { value }))
            }
            other => self.0.call(other).await,
        }
    }
}

/// Instead of the loop: asks the same, as often as it is told to, and journals nothing.
struct Asking(mpsc::UnboundedSender<mpsc::Sender<Question>>);

#[async_trait]
impl Runner for Asking {
    async fn run(&self, port: &dyn RunnerPort) -> Result<(), Stopped> {
        let (desk, mut questions) = mpsc::channel::<Question>(1);
        if self.0.send(desk).is_err() {
            return Ok(());
        }
        let request = request(port);
        while let Some(question) = questions.recv().await {
            // Whoever asked may be gone.
            drop(question.send(ask(port, request.clone()).await));
        }
        Ok(())
    }
}

fn request(port: &dyn RunnerPort) -> ModelRequest {
    let start = port.start();
    let question = Block::Text { text: "What is it?".to_owned() };
    ModelRequest {
        endpoint: start.plan.model.clone(),
        system: start.plan.prompt.clone(),
        messages: vec![Message { role: Role::User, blocks: vec![question] }],
        tools: Vec::new(),
        output_schema: None,
        request_id: format!("{}.0", start.run.id),
    }
}

async fn ask(port: &dyn RunnerPort, request: ModelRequest) -> Took {
    let (began, mut first) = (Instant::now(), None);
    let note = |_: Shown<'_>| {
        first.get_or_insert_with(|| began.elapsed());
    };
    let answer = complete(port.gateway(), request, note).await;
    answer.map_err(|failure| anyhow!("asked in vain: {failure}"))?;
    Ok((first.context("an empty answer")?, began.elapsed()))
}
