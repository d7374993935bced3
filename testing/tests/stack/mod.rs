//! The real stack in one process: control over SQLite, workers with everything of production, on real time.

#![allow(dead_code, reason = "each test uses its own part of this")]
#![allow(clippy::expect_used, clippy::panic, reason = "test support: it fails by panicking")]

use std::{sync::Arc, time::Duration};

use ostler_control::{Background, Control, ControlConfig, Feed, NewTask};
use ostler_kernel::{Event, Runtime, Task, TaskId, runtime::timeout};
use ostler_link::{TokioRuntime, WorkerPort};
use ostler_store::{SqliteStore, Store, TaskRow};
use ostler_worker::{Equipment, NetConfig, Offer, Redactor, WorkerConfig, WorkerHandle};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Nothing here takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Stack {
    pub control: Arc<Control>,
    pub runtime: Arc<dyn Runtime>,
    _background: Background,
    _folder: Option<TempDir>,
}

/// What one who watched a task saw.
pub struct Watched {
    pub task: TaskRow,
    pub events: Vec<Event>,
    /// Where in its step's text each piece belongs, and the piece.
    pub deltas: Vec<(u64, String)>,
}

impl Stack {
    pub fn start(lease: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("store.db")).expect("a store");
        Self { _folder: Some(folder), ..Self::on(Arc::new(store), lease) }
    }

    pub fn on(store: Arc<dyn Store>, lease: Duration) -> Self {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::new(tokio::runtime::Handle::current()));
        let keys = ostler_control::secrets::KeyRing::parse(&"07".repeat(32)).ok();
        let config = ControlConfig { lease, keys, ..ControlConfig::default() };
        let control = Control::new(store, Arc::clone(&runtime), config);
        let background = control.start();
        Self { control, runtime, _background: background, _folder: None }
    }

    pub fn worker(&self, name: &str, slots: u32, port: Arc<dyn WorkerPort>) -> WorkerHandle {
        Self::worker_with(name, slots, self.equipment(port))
    }

    pub fn equipment(&self, port: Arc<dyn WorkerPort>) -> Equipment {
        let (network, redactor) = (NetConfig::default(), Redactor::default());
        Equipment::standard(port, Arc::clone(&self.runtime), network, redactor).expect("equipment")
    }

    pub fn worker_with(name: &str, slots: u32, equipment: Equipment) -> WorkerHandle {
        ostler_worker::start(WorkerConfig { name: name.to_owned(), offer: Offer::of_slots(slots) }, equipment)
    }

    pub async fn apply(&self, kind: &str, name: &str, spec: Value) {
        let applied = self.control.apply(resource(kind, name, spec)).await;
        applied.unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
    }

    pub async fn create(&self, name: &str, spec: Value) -> Task {
        let new = NewTask::from_resource(resource("Task", name, spec)).expect("a task");
        let created = self.control.create_task(new).await;
        created.unwrap_or_else(|error| panic!("{name}: {error}")).task
    }

    /// Watches the task until it ends.
    pub async fn watch(&self, task: TaskId) -> Watched {
        let watching = timeout(&*self.runtime, PATIENCE, self.follow(task)).await;
        let (events, deltas) = watching.unwrap_or_else(|_| panic!("{task} did not end"));
        Watched { task: self.row(task).await, events, deltas }
    }

    pub async fn row(&self, task: TaskId) -> TaskRow {
        self.control.task("default", &task.to_string()).await.expect("the task")
    }

    async fn follow(&self, task: TaskId) -> (Vec<Event>, Vec<(u64, String)>) {
        let (mut events, mut deltas) = (Vec::new(), Vec::new());
        let mut follower = self.control.follow(task, 0);
        loop {
            match follower.next().await.expect("the log") {
                Feed::Delta(delta) => deltas.push((delta.offset, delta.text)),
                Feed::Event(event) => {
                    events.push((*event).clone());
                    if event.body.is_last() {
                        return (events, deltas);
                    }
                }
            }
        }
    }
}

fn resource(kind: &str, name: &str, spec: Value) -> ostler_spec::Resource {
    let document =
        json!({ "apiVersion": "ostler.dev/v1", "kind": kind, "metadata": { "name": name }, "spec": spec });
    ostler_spec::from_json(&document).unwrap_or_else(|problems| panic!("{kind} {name}: {problems:?}"))
}
