//! What the model call under way has used so far, all its tries together: for when it ends without an answer.

use std::{sync::Arc, time::Duration};

use ostler_kernel::{Block, Usage};
use ostler_llm::{ModelRequest, Shown};

#[derive(Debug, Default)]
pub(super) struct Tally {
    /// When the call began, on the runtime's clock.
    pub began: Duration,
    /// What the tries took that are over.
    pub spent: Usage,
    /// The one that is being made.
    pub trying: Option<Try>,
}

/// A try of a call, and what was shown of its answer.
#[derive(Debug)]
pub(super) struct Try {
    request: Arc<ModelRequest>,
    said: String,
    thought: String,
}

impl Tally {
    /// None if nothing was asked yet. Of a try that is not over nobody tells what it took, so that `count` has to.
    pub fn used(&self, count: impl FnOnce(&ModelRequest, &[Block]) -> Usage) -> Option<Usage> {
        let mut used = self.spent;
        if let Some(Try { request, said, thought }) = &self.trying {
            used.add(&count(request, &blocks(thought, said)));
        }
        (used.total() > 0).then_some(used)
    }

    /// The try that was being made is over, and took so much.
    pub fn over(&mut self, spent: &Usage) {
        self.trying = None;
        self.spent.add(spent);
    }
}

impl Try {
    pub fn new(request: &Arc<ModelRequest>) -> Self {
        Self { request: Arc::clone(request), said: String::new(), thought: String::new() }
    }

    /// More was shown. Gives where it stands in the text, or in the thinking.
    pub fn add(&mut self, shown: Shown<'_>) -> u64 {
        let (before, text) = match shown {
            Shown::Text(text) => (&mut self.said, text),
            Shown::Thinking(text) => (&mut self.thought, text),
        };
        let offset = before.len() as u64;
        before.push_str(text);
        offset
    }

    /// What was shown, if anything was.
    pub fn shown(&self) -> Option<[Block; 2]> {
        let is_silent = self.said.is_empty() && self.thought.is_empty();
        (!is_silent).then(|| blocks(&self.thought, &self.said))
    }
}

fn blocks(thought: &str, said: &str) -> [Block; 2] {
    [thought, said].map(|text| Block::Text { text: text.to_owned() })
}
