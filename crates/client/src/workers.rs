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
    pub async fn workers(&self) -> Result<Vec<WorkerView>, ClientError> {
        let page: Page<WorkerView> = self.read(self.request(Method::GET, &["v1", "workers"])?).await?;
        Ok(page.items)
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
