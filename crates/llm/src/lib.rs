//! Model gateways, one file per vendor: streaming, usage, typed errors.
//!
//! The port is [`Gateway`]: a request in the kernel's own words goes in, parts come out as they arrive. Two
//! implementations: [`Registry`], which knows the vendors, and the simulation's. It has no vendor's shape: a
//! vendor's own blocks travel as [`Block::Native`] and come back to that vendor verbatim.

pub mod registry;

mod anthropic;
mod gemini;
pub mod mock;
mod ollama;
mod openai;

mod call;
mod draft;
mod error;
mod fit;
mod kind;
mod lines;
mod names;
mod nulls;
mod options;
mod schema;
mod sse;
mod stream;

mod codes;
pub mod estimate;
mod failure;
mod limits;
mod priced;
mod prices;
mod redacting;
mod tokenizer;

use std::{pin::Pin, sync::Arc};

use futures_util::{Stream, StreamExt};
use ostler_kernel::{Block, ErrorClass, Failure, Price, Role, plan::ModelPlan, step::Usage};

pub use codes::CODES;
pub use estimate::estimate;
pub use limits::Limited;
/// The client that [`Registry::standard`] is given, for whoever equips a worker.
pub use ostler_net as net;
pub use ostler_secrets as secrets;
pub use ostler_secrets::Secrets;
pub use priced::Priced;
pub use prices::{BadPrices, Prices};
pub use redacting::Redacting;
pub use registry::{Provider, Registry};

/// One call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    pub endpoint: ModelPlan,
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolOffer>,
    /// JSON schema that the answer's text must follow, in the vendor's own way.
    pub output_schema: Option<serde_json::Value>,
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
    /// More of what the model thinks before it answers. No part of the answer: it is shown, and that is all.
    Thinking(String),
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
    pub identity: Identity,
}

/// What the vendor calls its answer, and the model that gave it: an alias was asked, a version answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    pub id: Option<String>,
    pub model: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    Stop,
    ToolCalls,
    /// Cut off at the vendor's bound for one answer.
    Length,
    ContentFilter,
    Refusal,
    /// Not done: the vendor wants the conversation back as it stands, to go on.
    Pause,
}

/// What is shown of an answer while it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown<'a> {
    Text(&'a str),
    Thinking(&'a str),
}

impl Completion {
    /// What the model said when it refused, if it did. A vendor that keeps this apart from its text gives it
    /// as the field `refusal` of a native block.
    pub fn refusal(&self) -> Option<&str> {
        self.blocks.iter().find_map(|block| match block {
            Block::Native { value, .. } => value.get("refusal")?.as_str(),
            Block::Text { .. } | Block::ToolCall { .. } | Block::ToolResult { .. } | Block::Image(_) => None,
        })
    }
}

pub type Parts = Pin<Box<dyn Stream<Item = Result<Part, Failure>> + Send>>;

pub trait Gateway: Send + Sync {
    /// Begins the call. The stream ends after its first error or [`Part::Done`]; one that ends without
    /// either was cut. Dropping it interrupts the call.
    fn stream(&self, request: ModelRequest) -> Parts;

    /// What calls of the endpoint cost, if that is known here: for what was used and no vendor reported.
    fn price(&self, _endpoint: &ModelPlan) -> Option<Price> {
        None
    }
}

impl<G: Gateway + ?Sized> Gateway for Arc<G> {
    fn stream(&self, request: ModelRequest) -> Parts {
        (**self).stream(request)
    }

    fn price(&self, endpoint: &ModelPlan) -> Option<Price> {
        (**self).price(endpoint)
    }
}

/// Calls the model, showing text and thinking to `watch` as they come.
pub async fn complete(
    gateway: &dyn Gateway,
    request: ModelRequest,
    mut watch: impl FnMut(Shown<'_>) + Send,
) -> Result<Completion, Failure> {
    let mut parts = gateway.stream(request);
    while let Some(part) = parts.next().await {
        match part? {
            Part::Text(text) => watch(Shown::Text(&text)),
            Part::Thinking(text) => watch(Shown::Thinking(&text)),
            Part::Done(completion) => return Ok(completion),
        }
    }
    Err(Failure::new(ErrorClass::Transient, "model_stream_cut", "the model's answer broke off"))
}
