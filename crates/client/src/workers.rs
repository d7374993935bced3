//! Workers, and what is decided about them.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::{Client, ClientError, Page};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerView {
    pub metadata: WorkerMetadata,
    pub spec: WorkerSpec,
    pub status: WorkerStatus,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerMetadata {
    pub name: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSpec {
    #[serde(default)]
    pub region: String,
    pub capabilities: WorkerCapabilities,
    pub max_concurrent_tasks: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerCapabilities {
    pub gpu: bool,
    pub supported_models: BTreeSet<String>,
    pub others: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStatus {
    /// `Pending`, `Ready` or `NotReady`.
    pub phase: String,
    /// `open`, `cordoned` or `draining`.
    pub standing: String,
    #[serde(default)]
    pub last_heartbeat: Option<String>,
    pub current_tasks: usize,
    #[serde(default)]
    pub version: String,
    pub incarnation: u64,
    /// What it works on, the first of them; only told of one worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<HeldTask>,
}

/// A task whose run a worker holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldTask {
    pub namespace: String,
    pub name: String,
}

/// What may be decided about a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerDecision {
    /// No new runs.
    Cordon,
    /// No new runs, and those it has are given back as their steps end.
    Drain,
    Uncordon,
}

impl WorkerDecision {
    fn verb(self) -> &'static str {
        match self {
            WorkerDecision::Cordon => "cordon",
            WorkerDecision::Drain => "drain",
            WorkerDecision::Uncordon => "uncordon",
        }
    }
}

impl Client {
    /// All of them, page by page.
    pub async fn workers(&self) -> Result<Vec<WorkerView>, ClientError> {
        const AT_ONCE: &str = "1000";
        let mut workers = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let mut query = vec![("limit", AT_ONCE)];
            query.extend(after.as_deref().map(|after| ("after", after)));
            let request = self.request_with(Method::GET, &["v1", "workers"], &query)?;
            let page: Page<WorkerView> = self.read(request).await?;
            workers.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(workers);
            }
        }
    }

    pub async fn worker(&self, name: &str) -> Result<WorkerView, ClientError> {
        self.read(self.request(Method::GET, &["v1", "workers", name])?).await
    }

    pub async fn decide(&self, name: &str, decision: WorkerDecision) -> Result<WorkerView, ClientError> {
        self.read(self.request(Method::POST, &["v1", "workers", name, decision.verb()])?).await
    }

    /// Lets a quarantined task go on.
    pub async fn release(&self, task: &str) -> Result<crate::TaskView, ClientError> {
        self.read(self.request_in_namespace(Method::POST, &["v1", "tasks", task, "release"], &[])?).await
    }
}
