//! Model gateways, one file per vendor: streaming, usage, typed errors.
//!
//! The port is [`Gateway`]: a request in the kernel's own words goes in, parts come out as they arrive. Two
//! implementations: [`Registry`], which knows the vendors, and the simulation's. It has no vendor's shape: a
//! vendor's own blocks travel as [`Block::Native`] and come back to that vendor verbatim.

mod codes;
pub mod estimate;
mod failure;
pub mod mock;
pub mod openai;
pub mod redacting;
pub mod registry;
mod sse;

use std::pin::Pin;

use futures_util::{Stream, StreamExt};
use ostler_kernel::{Block, ErrorClass, Failure, Role, plan::ModelPlan, step::Usage};

pub use codes::CODES;
pub use estimate::estimate;
/// The client that [`Registry::standard`] is given, for whoever equips a worker.
pub use ostler_net as net;
pub use ostler_secrets as secrets;
pub use ostler_secrets::Secrets;
pub use redacting::Redacting;
pub use registry::{Provider, Registry};

/// One call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    pub endpoint: ModelPlan,
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolOffer>,
    /// The step's id: the same when the call is made again.
    pub request_id: String,
}

/// Neighbours of one role are already joined, and every tool call has its result right behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    pub blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolOffer {
    pub name: String,
    pub description: String,
    /// JSON schema of the arguments, an object; null if the tool declares none, and then it is offered one
    /// string, `input`.
    pub schema: serde_json::Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// More of the answer's text.
    Text(String),
    /// The last part: the whole answer.
    Done(Completion),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// Text and tool calls in the model's order, and what the vendor wants back verbatim.
    pub blocks: Vec<Block>,
    pub finish: Finish,
    /// None if the vendor reported nothing.
    pub usage: Option<Usage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    Stop,
    ToolCalls,
    /// Cut off at the vendor's bound for one answer.
    Length,
    ContentFilter,
    Refusal,
}

impl Completion {
    /// What the model said when it refused, if it did. A vendor that keeps this apart from its text gives it
    /// as the field `refusal` of a native block.
    pub fn refusal(&self) -> Option<&str> {
        self.blocks.iter().find_map(|block| match block {
            Block::Native { value, .. } => value.get("refusal")?.as_str(),
            Block::Text { .. } | Block::ToolCall { .. } | Block::ToolResult { .. } => None,
        })
    }
}

pub type Parts = Pin<Box<dyn Stream<Item = Result<Part, Failure>> + Send>>;

pub trait Gateway: Send + Sync {
    /// Begins the call. The stream ends after its first error or [`Part::Done`]; one that ends without
    /// either was cut. Dropping it interrupts the call.
    fn stream(&self, request: ModelRequest) -> Parts;
}

/// Calls the model, showing text to `watch` as it comes.
pub async fn complete(
    gateway: &dyn Gateway,
    request: ModelRequest,
    mut watch: impl FnMut(&str) + Send,
) -> Result<Completion, Failure> {
    let mut parts = gateway.stream(request);
    while let Some(part) = parts.next().await {
        match part? {
            Part::Text(text) => watch(&text),
            Part::Done(completion) => return Ok(completion),
        }
    }
    Err(Failure::new(ErrorClass::Transient, "model_stream_cut", "the model's answer broke off"))
}
