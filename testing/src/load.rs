//! The load under which the crash test and chaos put the real programs, and how what came of it is judged.
//!
//! A feeder (`feeder`) creates tasks of five steps (`workload`) and sees them through, but for those that are cancelled
//! half-way or given something else to do (`meddler`); model and tool servers run in this process and so outlive whatever is done to the others. The log is read as it grows (`journal`), which tells
//! which steps had finished when, and by how many attempts. At the end every task is read back through the HTTP API
//! (`verdict`).

#![allow(clippy::disallowed_methods, reason = "real processes work in real time")]

mod attempts;
mod feeder;
mod journal;
mod meddler;
mod verdict;
pub mod workload;

pub use attempts::{Attempts, Life};
pub use feeder::{Feed, Feeder, Figures};
pub use journal::{Finished, Journal, Seen, Source};
pub use meddler::{Meddled, Meddler};
pub use verdict::{Verdict, judge};

use std::time::Duration;

use anyhow::Context as _;

use crate::model_server::{self, ModelServer, Script};
use crate::tool_server::ToolServer;

/// The servers that agents call.
pub struct Ground {
    pub model: ModelServer,
    pub tools: ToolServer,
    pace: Pace,
}

/// How long each call takes.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub model: Duration,
    pub tool: Duration,
}

impl Pace {
    /// How long a task takes that has not to wait.
    pub fn life(&self) -> Duration {
        3 * self.model + 2 * self.tool
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self { model: Duration::from_millis(200), tool: Duration::from_millis(50) }
    }
}

impl Ground {
    pub async fn start(pace: Pace) -> anyhow::Result<Self> {
        let settings =
            model_server::Settings { latency: pace.model, forget_bodies: true, ..Default::default() };
        let model = ModelServer::start_with(Script::Plan, settings).await.context("no model server")?;
        Ok(Self { model, tools: ToolServer::start().await.context("no tool server")?, pace })
    }

    /// How often a request id arrived, and how often it was answered, at either server.
    pub fn calls(&self, request_id: &str) -> (u64, u64) {
        let (model, tool) = (self.model.desk().of(request_id), self.tools.desk().of(request_id));
        (model.received + tool.received, model.answered + tool.answered)
    }
}
