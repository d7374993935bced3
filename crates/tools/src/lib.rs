//! The tool contract and every way to call a tool, one file each.
//!
//! The port is [`Toolbox`]. Two implementations: [`Registry`], which knows the ways, and the simulation's.

mod auth;
mod codes;
mod contract;
pub mod http;
pub mod redacting;
pub mod registry;
pub mod taxonomy;

use async_trait::async_trait;
use ostler_kernel::{Failure, plan::ToolPlan};

pub use auth::hide_parts;
pub use codes::codes;
pub use redacting::Redacting;
pub use registry::{Registry, Way};
pub use taxonomy::text_form;

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRequest {
    pub tool: ToolPlan,
    /// The step's id: the same when the call is made again.
    pub request_id: String,
    pub namespace: String,
    pub agent: String,
    pub task: String,
    /// What the model gave, already read as JSON.
    pub arguments: serde_json::Value,
}

#[async_trait]
pub trait Toolbox: Send + Sync {
    /// Calls the tool and gives its result as text. Its own timeout and retries are inside; dropping the
    /// future interrupts the call.
    async fn call(&self, request: ToolRequest) -> Result<String, Failure>;
}
