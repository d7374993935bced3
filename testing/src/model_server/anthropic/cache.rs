//! The prompt as the vendor caches it: tools, then the system prompt, then the messages, block by block.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::blocks;
use crate::model_server::conversation::Prefix;

/// Every beginning of the prompt that ends with a block.
pub(super) fn prefixes(request: &Value) -> Vec<Prefix> {
    let mut walk = Walk::default();
    for tool in blocks(&request["tools"]) {
        walk.block("tool", tool);
    }
    walk.content("system", &request["system"]);
    for message in blocks(&request["messages"]) {
        walk.content(message["role"].as_str().unwrap_or_default(), &message["content"]);
    }
    // One mark for the whole request puts the breakpoint behind its last block.
    if !request["cache_control"].is_null()
        && let Some(last) = walk.prefixes.last_mut()
    {
        last.breakpoint = true;
    }
    walk.prefixes
}

/// Every mark in a request, in the order of the prompt.
pub(super) fn marks(request: &Value) -> Vec<&Value> {
    let mut marks: Vec<_> = blocks(&request["tools"]).filter_map(mark).collect();
    marks.extend(blocks(&request["system"]).filter_map(mark));
    for block in blocks(&request["messages"]).flat_map(|message| blocks(&message["content"])) {
        marks.extend(blocks(&block["content"]).filter_map(mark));
        marks.extend(mark(block));
    }
    marks.extend(mark(request));
    marks
}

/// A value without the marks, which are no part of what is said.
pub(super) fn without_marks(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "cache_control");
            kept.map(|(name, value)| (name.clone(), without_marks(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_marks).collect(),
        other => other.clone(),
    }
}

fn mark(block: &Value) -> Option<&Value> {
    block.get("cache_control").filter(|mark| !mark.is_null())
}

#[derive(Default)]
struct Walk {
    hasher: DefaultHasher,
    n_bytes: usize,
    prefixes: Vec<Prefix>,
}

impl Walk {
    fn content(&mut self, role: &str, content: &Value) {
        match content {
            Value::Null => {}
            // The same text is cached alike, whether it stands alone or in a block.
            Value::String(text) => self.block(role, &serde_json::json!({ "type": "text", "text": text })),
            content => blocks(content).for_each(|block| self.block(role, block)),
        }
    }

    fn block(&mut self, role: &str, block: &Value) {
        let said = without_marks(block).to_string();
        (role, &said).hash(&mut self.hasher);
        self.n_bytes += said.len();
        let breakpoint = mark(block).is_some();
        self.prefixes.push(Prefix { hash: self.hasher.finish(), n_bytes: self.n_bytes, breakpoint });
    }
}
