//! A worker as the API shows it.

use std::collections::{BTreeMap, BTreeSet};

use ostler_control::WorkerView as Seen;
use ostler_kernel::{Task, resource::API_VERSION};
use serde::Serialize;

const GPU: &str = "gpu";

#[derive(Debug, Serialize)]
pub struct WorkerView {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    created_at: String,
}

#[derive(Debug, Serialize)]
struct Spec {
    #[serde(skip_serializing_if = "String::is_empty")]
    region: String,
    capabilities: Capabilities,
    max_concurrent_tasks: u32,
}

#[derive(Debug, Serialize)]
struct Capabilities {
    gpu: bool,
    supported_models: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    others: BTreeSet<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    phase: &'static str,
    /// `open`, `cordoned` or `draining`.
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_heartbeat: Option<String>,
    current_tasks: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    /// How often it was started.
    incarnation: u64,
    /// What it works on, the first of them; in a list nobody looks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<HeldTask>,
}

#[derive(Debug, Serialize)]
struct HeldTask {
    namespace: String,
    name: String,
}

impl WorkerView {
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The same with what it works on.
    pub fn with_tasks(self, tasks: Vec<Task>) -> Self {
        let held = |task: Task| HeldTask { namespace: task.namespace, name: task.name };
        let tasks = tasks.into_iter().map(held).collect();
        Self { status: Status { tasks, ..self.status }, ..self }
    }

    /// What is known of it, without what it offers.
    pub fn status_alone(&self) -> impl Serialize {
        #[derive(Serialize)]
        struct Alone<'a> {
            metadata: &'a Metadata,
            status: &'a Status,
        }
        Alone { metadata: &self.metadata, status: &self.status }
    }
}

impl From<&Seen> for WorkerView {
    fn from(seen: &Seen) -> Self {
        let Seen { worker, phase, last_seen, runs } = seen;
        let offer = &worker.offer;
        Self {
            api_version: API_VERSION,
            kind: "Worker",
            metadata: Metadata {
                name: worker.name.clone(),
                labels: offer.labels.clone(),
                created_at: worker.registered_at.to_string(),
            },
            spec: Spec {
                region: offer.region.clone(),
                capabilities: Capabilities {
                    gpu: offer.capabilities.contains(GPU),
                    supported_models: offer.models.clone(),
                    others: offer.capabilities.iter().filter(|name| *name != GPU).cloned().collect(),
                },
                max_concurrent_tasks: offer.slots,
            },
            status: Status {
                phase: phase.name(),
                standing: worker.standing.name(),
                last_heartbeat: last_seen.map(|at| at.to_string()),
                current_tasks: *runs,
                version: offer.version.clone(),
                incarnation: worker.incarnation,
                tasks: Vec::new(),
            },
        }
    }
}
