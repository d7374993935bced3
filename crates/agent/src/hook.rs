//! Seams around each model call and each tool call, for what is plugged into the loop. A run without hooks pays
//! nothing for them.
//!
//! **Order.** Before a call the hooks are asked as they were given, after it in reverse: the first stands outermost.
//!
//! **What they may change**, and no more: before a model call what is said to it, not whom; after it what it said, before
//! anybody else takes it up; before a tool call its arguments, or whether it is made; after it its result. Texts are shown
//! to whoever watches as the model gives them, before any hook.
//!
//! **What is kept.** The journal holds what the hooks left: an answer as they changed it, the arguments with which a tool
//! is called (the conversation shows the model its own), a refusal with its reason, a result as they changed it. So a
//! step that is finished is never shown to a hook again. One that was under way when its worker died is: a hook with
//! effects of its own must bear to be asked twice about the same step of the same run.
//!
//! **When one fails**, the run fails with that failure, and its class decides whether it is tried again. An answer that a
//! hook failed on is not kept, though what it cost is; a tool's result is kept, since the tool was called, and the
//! other calls under way are waited for. To stop one call and go on, a hook refuses it. The time a hook takes is the
//! run's.

use std::sync::Arc;

use async_trait::async_trait;
use ostler_kernel::{Block, Failure};
use ostler_llm::{Message, ModelRequest, ToolOffer};

use crate::port::RunStart;

/// Something plugged into the loop. Whatever it doesn't say leaves things as they are.
#[async_trait]
pub trait Hook: Send + Sync {
    async fn before_model(&self, _at: Moment<'_>, _ask: &mut Ask) -> Result<(), Failure> {
        Ok(())
    }

    async fn after_model(&self, _at: Moment<'_>, _answer: &mut Vec<Block>) -> Result<(), Failure> {
        Ok(())
    }

    async fn before_tool(&self, _at: Moment<'_>, _call: &mut ToolAsk) -> Result<Verdict, Failure> {
        Ok(Verdict::Proceed)
    }

    /// Only of a call that was really made.
    async fn after_tool(
        &self,
        _at: Moment<'_>,
        _call: &ToolAsk,
        _result: &mut Result<String, Failure>,
    ) -> Result<(), Failure> {
        Ok(())
    }
}

/// Where in which run it happens.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The run as this attempt found it.
    pub start: &'a RunStart,
    pub step: u32,
}

/// What is said to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolOffer>,
}

/// A tool call as the model asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAsk {
    pub name: String,
    /// JSON as text, though a model may write anything.
    pub arguments: String,
}

/// What becomes of a tool call. The first hook that refuses decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Proceed,
    /// It is not made, and the model is told why.
    Refuse {
        reason: String,
    },
}

/// All that are plugged in.
#[derive(Clone, Default)]
pub(crate) struct Hooks(pub Vec<Arc<dyn Hook>>);

impl Hooks {
    pub async fn before_model(&self, at: Moment<'_>, request: &mut ModelRequest) -> Result<(), Failure> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut ask = Ask {
            system: std::mem::take(&mut request.system),
            messages: std::mem::take(&mut request.messages),
            tools: std::mem::take(&mut request.tools),
        };
        for hook in &self.0 {
            hook.before_model(at, &mut ask).await?;
        }
        (request.system, request.messages, request.tools) = (ask.system, ask.messages, ask.tools);
        Ok(())
    }

    pub async fn after_model(&self, at: Moment<'_>, answer: &mut Vec<Block>) -> Result<(), Failure> {
        for hook in self.0.iter().rev() {
            hook.after_model(at, answer).await?;
        }
        Ok(())
    }

    pub async fn before_tool(&self, at: Moment<'_>, call: &mut ToolAsk) -> Result<Verdict, Failure> {
        for hook in &self.0 {
            match hook.before_tool(at, call).await? {
                Verdict::Proceed => {}
                refused @ Verdict::Refuse { .. } => return Ok(refused),
            }
        }
        Ok(Verdict::Proceed)
    }

    pub async fn after_tool(
        &self,
        at: Moment<'_>,
        call: &ToolAsk,
        result: &mut Result<String, Failure>,
    ) -> Result<(), Failure> {
        for hook in self.0.iter().rev() {
            hook.after_tool(at, call, result).await?;
        }
        Ok(())
    }
}
