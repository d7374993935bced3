//! The ways to call a tool, by name. A [`Way`] makes one attempt; how long it may take, whether there is
//! another, and what a call is worth whose outcome nobody knows, is decided here for all of them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use ostler_kernel::{ErrorClass, Failure, Runtime, plan::ToolPlan};
use ostler_net::Client;
use ostler_secrets::Secrets;

use crate::{
    ToolRequest, Toolbox,
    http::Http,
    taxonomy::{OUTCOME_UNKNOWN, ToolCode},
};

/// One way to call tools.
#[async_trait]
pub trait Way: Send + Sync {
    /// What a tool's plan calls it.
    fn name(&self) -> &'static str;

    /// Makes one attempt, which must end within `limit`; only the way itself knows what a call that ran out
    /// of time may have done. Dropping the future interrupts the attempt.
    async fn call(&self, request: &ToolRequest, limit: Duration) -> Result<String, CallError>;
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct CallError {
    pub failure: Failure,
    pub outcome: Outcome,
}

/// What is known of what the tool did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was never reached, or said itself that it failed.
    Known,
    /// It may have done all of it, a part, or nothing.
    Unknown,
}

pub struct Registry {
    ways: BTreeMap<&'static str, Arc<dyn Way>>,
    runtime: Arc<dyn Runtime>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two ways to call tools are named `{name}`")]
pub struct NameTaken {
    pub name: &'static str,
}

impl Registry {
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self { ways: BTreeMap::new(), runtime }
    }

    /// All the ways we know.
    pub fn standard(client: Client, runtime: Arc<dyn Runtime>, secrets: Secrets) -> Result<Self, NameTaken> {
        let mut registry = Self::new(runtime);
        registry.register(Arc::new(Http::new(client, secrets)))?;
        Ok(registry)
    }

    pub fn register(&mut self, way: Arc<dyn Way>) -> Result<(), NameTaken> {
        let name = way.name();
        if self.ways.contains_key(name) {
            return Err(NameTaken { name });
        }
        self.ways.insert(name, way);
        Ok(())
    }

    fn way(&self, tool: &ToolPlan) -> Result<&dyn Way, Failure> {
        self.ways.get(tool.way.as_str()).map(|way| &**way).ok_or_else(|| {
            let known = self.ways.keys().copied().collect::<Vec<_>>().join(", ");
            let message = format!("tool `{}` is of type `{}`; known are {known}", tool.name, tool.way);
            ToolCode::UnsupportedTool.failure(false, message)
        })
    }
}

#[async_trait]
impl Toolbox for Registry {
    async fn call(&self, request: ToolRequest) -> Result<String, Failure> {
        let tool = &request.tool;
        let way = self.way(tool)?;
        let mut failures = 0;
        loop {
            let attempt = way.call(&request, Duration::from_millis(tool.timeout_ms)).await;
            let failure = match attempt {
                Ok(result) => return Ok(result),
                Err(error) => settled(error, tool),
            };
            failures += 1;
            let Some(delay) = next_try(&failure, failures, tool, self.runtime.random()) else {
                return Err(failure);
            };
            self.runtime.sleep(delay).await;
        }
    }
}

/// What a call that is not to happen twice is worth when nobody knows whether it happened.
fn settled(error: CallError, tool: &ToolPlan) -> Failure {
    match error.outcome {
        Outcome::Unknown if !tool.idempotent => {
            let message = format!("nobody knows whether the call happened: {}", error.failure.message);
            Failure::new(ErrorClass::OutcomeUnknown, OUTCOME_UNKNOWN, message)
        }
        Outcome::Known | Outcome::Unknown => error.failure,
    }
}

/// How long to wait before the next attempt, if there is to be one. A tool that asks for more patience than
/// its policy has is not waited for.
fn next_try(failure: &Failure, failures: u32, tool: &ToolPlan, random: u64) -> Option<Duration> {
    let may_repeat = tool.idempotent && failure.class == ErrorClass::Transient;
    if !may_repeat || !tool.retry.allows(failures) {
        return None;
    }
    let patience = Duration::from_millis(tool.retry.max_backoff_ms);
    let asked = failure.retry_after();
    if asked.is_some_and(|asked| asked > patience) {
        return None;
    }
    Some(tool.retry.delay(failures, asked, random))
}

#[cfg(test)]
mod tests;
