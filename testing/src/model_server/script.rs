//! What the model shall say: turns, and the rule that picks the one to play.

use std::time::Duration;

use serde_json::Value;

use super::conversation::Conversation;
use super::fault::Fault;
use super::plan::{self, PlanError};

/// What a scripted model says, as a function of the request alone: a call repeated after a crash gets the
/// very answer it lost.
pub enum Script {
    /// The n-th answer of a transcript is the n-th of these.
    Turns(Vec<Turn>),
    /// Whatever this says.
    Function(Box<dyn Fn(&Conversation<'_>) -> Turn + Send + Sync>),
    /// What the plan in the user's message says (see [`plan`]); an echo when there is none.
    Plan,
}

/// One answer of the model, in no vendor's words: each wire has its own for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    pub(super) thinking: Option<Thinking>,
    pub(super) text: Option<String>,
    pub(super) refusal: Option<String>,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Option<Finish>,
    pub(super) usage: Option<Usage>,
    pub(super) latency: Duration,
    pub(super) chunk: Option<usize>,
    pub(super) pace: Duration,
    pub(super) fault: Option<FaultPlan>,
}

/// A tool call the model makes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    /// The first tool on offer when absent.
    pub name: Option<String>,
    /// JSON as text, as it goes over the wire.
    pub arguments: String,
}

/// What the model thinks before it speaks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thinking {
    pub text: String,
    /// Shown to nobody, only kept to be sent back.
    pub redacted: bool,
}

/// Why the model stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// It has said all.
    Stop,
    /// It wants results of its tools.
    ToolCalls,
    /// It reached the limit of tokens.
    Length,
    /// The filter stopped it.
    ContentFilter,
    /// It refuses.
    Refusal,
    /// It was interrupted and wants to be asked to go on.
    Pause,
}

/// Tokens, as the model counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request, all of them.
    pub prompt_tokens: i64,
    /// Tokens of the answer, all of them.
    pub completion_tokens: i64,
    /// Tokens of the request that came out of the vendor's cache.
    pub cache_read: i64,
    /// Tokens of the request that went into it.
    pub cache_write: i64,
    /// Tokens of the answer that nobody sees: the thinking.
    pub reasoning: i64,
}

/// A fault, and for how many tries of the same call it strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FaultPlan {
    pub fault: Fault,
    /// Always, when absent.
    pub times: Option<u32>,
}

/// Why there is nothing to say.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The transcript is longer than the script.
    #[error("the script has {n_turns} turns and the transcript asks for turn {wanted}")]
    Ended {
        /// How many there are.
        n_turns: usize,
        /// Which was wanted, the first being 1.
        wanted: usize,
    },
    /// The plan in the user's message can't be read.
    #[error("the plan in the user message can't be read")]
    Plan(#[from] PlanError),
}

impl Script {
    /// A script of turns.
    pub fn turns(turns: impl IntoIterator<Item = Turn>) -> Self {
        Script::Turns(turns.into_iter().collect())
    }

    /// A script that is a function of the request.
    pub fn function(say: impl Fn(&Conversation<'_>) -> Turn + Send + Sync + 'static) -> Self {
        Script::Function(Box::new(say))
    }

    /// The turn that answers `request`.
    pub(super) fn turn(&self, request: &Conversation<'_>) -> Result<Turn, ScriptError> {
        match self {
            Script::Turns(turns) => {
                let index = request.n_assistant_messages();
                let ended = ScriptError::Ended { n_turns: turns.len(), wanted: index + 1 };
                turns.get(index).cloned().ok_or(ended)
            }
            Script::Function(say) => Ok(say(request)),
            Script::Plan => Ok(plan::turn(request)?),
        }
    }
}

impl Turn {
    /// Says this.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Calls a tool.
    pub fn call(name: &str, arguments: &Value) -> Self {
        Self::default().and_call(name, arguments)
    }

    /// Calls the first tool on offer, whatever it is.
    pub fn call_first_offered(arguments: &Value) -> Self {
        let call = Call { name: None, arguments: arguments.to_string() };
        Self { calls: vec![call], ..Self::default() }
    }

    /// Refuses.
    pub fn refusal(reason: impl Into<String>) -> Self {
        Self { refusal: Some(reason.into()), ..Self::default() }
    }

    /// Thinks this first.
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.thinking = Some(Thinking { text: text.into(), redacted: false });
        self
    }

    /// Thinks this first, and shows nobody what.
    pub fn redacted_thinking(mut self, text: impl Into<String>) -> Self {
        self.thinking = Some(Thinking { text: text.into(), redacted: true });
        self
    }

    /// Stops for this reason, whatever was said.
    pub fn finish(mut self, finish: Finish) -> Self {
        self.finish = Some(finish);
        self
    }

    /// Also calls a tool, in parallel with others.
    pub fn and_call(mut self, name: &str, arguments: &Value) -> Self {
        self.calls.push(Call { name: Some(name.to_owned()), arguments: arguments.to_string() });
        self
    }

    /// Reports this usage instead of one counted from the bytes.
    pub fn usage(self, prompt_tokens: u32, completion_tokens: u32) -> Self {
        let (prompt_tokens, completion_tokens) = (prompt_tokens.into(), completion_tokens.into());
        self.whole_usage(Usage { prompt_tokens, completion_tokens, ..Usage::default() })
    }

    /// Reports this usage, cache and thinking included.
    pub fn whole_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Waits so long before the first byte.
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Streams pieces of this many characters, each in a write of its own.
    pub fn chunk(mut self, n_characters: usize) -> Self {
        self.chunk = Some(n_characters.max(1));
        self
    }

    /// Waits this long before each chunk.
    pub fn pace(mut self, every: Duration) -> Self {
        self.pace = every;
        self
    }

    /// Misbehaves, each time.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(FaultPlan { fault, times: None });
        self
    }

    /// Misbehaves for the first tries of this call, then behaves. Tries of the same call are told by their
    /// equal transcripts, so conversations with equal words count as one: put something unique into the
    /// user's message.
    pub fn fault_times(mut self, fault: Fault, times: u32) -> Self {
        self.fault = Some(FaultPlan { fault, times: Some(times) });
        self
    }
}
