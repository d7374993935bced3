//! The control plane in this process, over a store on disk: hands out runs as a worker would get them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use ostler_control::{Background, Control, ControlConfig, NewTask};
use ostler_kernel::{Runtime, worker::Offer};
use ostler_link::{
    Assignment, Caller, ClaimRequest, RegisterRequest, Registered, TokioRuntime, WorkerPort, WorkerPortExt,
};
use ostler_spec::Resource;
use ostler_store::SqliteStore;
use serde_json::{Value, json};

use crate::ground::manifest;

/// So long that nobody has to renew it.
const LEASE: Duration = Duration::from_secs(3600);

const WORKER: &str = "bench";
const AGENT: &str = "looks-up";

pub struct Office {
    pub port: Arc<dyn WorkerPort>,
    pub caller: Caller,
    pub runtime: Arc<dyn Runtime>,
    /// Held by the caller, not begun.
    pub assignments: Vec<Assignment>,
    _background: Background,
}

impl Office {
    /// Opens a new store in the folder and claims so many runs from it. To be called inside tokio.
    pub async fn open(folder: &Path, n_runs: usize) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let store = Arc::new(SqliteStore::open(&folder.join("store.db"))?);
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::new(tokio::runtime::Handle::current()));
        let control = Control::new(
            store,
            Arc::clone(&runtime),
            ControlConfig { lease: LEASE, ..ControlConfig::default() },
        );
        let background = control.start();
        for manifest in resources() {
            control.apply(read(&manifest)?).await?;
        }
        for number in 0..n_runs {
            control.create_task(task(number)?).await?;
        }
        let port: Arc<dyn WorkerPort> = control;
        let request =
            RegisterRequest { name: WORKER.to_owned(), instance: 1, former: 0, offer: Offer::default() };
        let Registered::As { incarnation, .. } = port.register(request).await? else {
            bail!("the store is not new");
        };
        let caller = Caller { worker: WORKER.to_owned(), incarnation };
        let claim = ClaimRequest { caller: caller.clone(), number: 1, slots: n_runs, wait_ms: 10_000 };
        let assignments = port.claim(claim).await?;
        ensure!(assignments.len() == n_runs, "{} of {n_runs} runs were given", assignments.len());
        Ok(Self { port, caller, runtime, assignments, _background: background })
    }
}

/// Nobody calls the tool or the model: the plan only names them.
fn resources() -> [Value; 2] {
    let tool = json!({
        "type": "http", "endpoint": "http://127.0.0.1:9/", "allowPrivate": true, "idempotent": true,
        "description": "Answers a question.",
        "input_schema": { "type": "object", "properties": { "q": { "type": "string" } } },
    });
    let agent = json!({ "model_ref": "mock", "prompt": "Look it up.", "tools": ["echo"] });
    [
        manifest("Tool", &json!({ "name": "echo" }), &tool),
        manifest("Agent", &json!({ "name": AGENT }), &agent),
    ]
}

fn task(number: usize) -> anyhow::Result<NewTask> {
    let spec = json!({ "agent": AGENT, "input": { "message": format!("question {number}") } });
    let resource = read(&manifest("Task", &json!({ "name": format!("task-{number}") }), &spec))?;
    NewTask::from_resource(resource).context("not a task")
}

/// A manifest of the bench.
pub fn read(manifest: &Value) -> anyhow::Result<Resource> {
    ostler_spec::from_json(manifest)
        .map_err(|problems| anyhow::anyhow!("a manifest of the bench is wrong: {problems:?}"))
}
