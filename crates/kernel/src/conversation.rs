//! What was said and done in a session, and what of it the model sees.
//!
//! *Entries* are what happened, in order and for ever. A *context* is ordered ranges of them and of
//! summaries, the last one open: compaction swaps ranges and deletes nothing; a fork or a rewind is a new
//! context with a parent and a position.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ContextId, RunId};

/// One thing said or done, at its place in its session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub role: Role,
    pub blocks: Vec<Block>,
    pub run: RunId,
    /// The step that produced it; what a person or a caller said has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    Tool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
    },
    ToolCall {
        id: String,
        name: String,
        /// As the model wrote them: not always valid JSON.
        arguments: String,
    },
    ToolResult {
        call_id: String,
        name: String,
        content: String,
        is_error: bool,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// What a model that can see is shown.
    Image(Image),
    /// What only its vendor understands (a thinking signature, say), kept to the letter and given back to
    /// that vendor alone.
    Native {
        vendor: String,
        value: serde_json::Value,
    },
}

/// A picture, as its bytes came.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Such as `image/png`.
    pub media_type: String,
    /// In base64.
    pub data: String,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {} bytes)", self.media_type, self.data.len())
    }
}

impl Image {
    /// From `data:image/png;base64,...`; none if the text is no such address of an image. Whether it is one that
    /// models can be shown is not looked at.
    pub fn from_data_url(text: &str) -> Option<Self> {
        let (media_type, data) = text.strip_prefix("data:image/")?.split_once(";base64,")?;
        let media_type = format!("image/{}", media_type.to_ascii_lowercase());
        Some(Self { media_type, data: data.trim_end().to_owned() })
    }

    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

impl Block {
    /// The text, of a block of text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Block::Text { text } => Some(text),
            Block::ToolCall { .. } | Block::ToolResult { .. } | Block::Image(_) | Block::Native { .. } => {
                None
            }
        }
    }
}

impl Entry {
    pub fn user(run: RunId, text: impl Into<String>) -> Self {
        Self { role: Role::User, blocks: vec![Block::Text { text: text.into() }], run, step: None }
    }

    pub fn tool_result(run: RunId, step: u32, call: &ToolCallRef, content: String, is_error: bool) -> Self {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        let block = Block::ToolResult { call_id, name, content, is_error, images: Vec::new() };
        Self { role: Role::Tool, blocks: vec![block], run, step: Some(step) }
    }

    /// The plain text of it, blocks joined.
    pub fn text(&self) -> String {
        self.blocks.iter().filter_map(Block::text).collect()
    }
}

/// Which call of the model a tool step answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallRef {
    pub id: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Context {
    pub id: ContextId,
    /// Where it was forked from: the context, and the first entry it does not share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<(ContextId, u64)>,
    pub ranges: Vec<Range>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Range {
    /// Entries `from..to`, or all there are from `from` on.
    Entries {
        from: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<u64>,
    },
    /// Stands for entries that are left out.
    Summary { text: String, from: u64, to: u64 },
}

impl Context {
    /// Sees everything from the start of its session.
    pub fn whole(id: ContextId) -> Self {
        Self { id, parent: None, ranges: vec![Range::Entries { from: 0, to: None }] }
    }

    /// A new context that shares what this one shows before `position`, and goes on at `resume`: the place
    /// where the session's next entry will stand.
    pub fn fork(&self, id: ContextId, position: u64, resume: u64) -> Self {
        let mut ranges: Vec<Range> = self.ranges.iter().filter_map(|range| cut(range, position)).collect();
        ranges.push(Range::Entries { from: resume, to: None });
        Self { id, parent: Some((self.id, position)), ranges }
    }
}

fn cut(range: &Range, position: u64) -> Option<Range> {
    match range {
        Range::Entries { from, .. } if *from >= position => None,
        Range::Entries { from, to } => {
            Some(Range::Entries { from: *from, to: Some(to.map_or(position, |to| to.min(position))) })
        }
        Range::Summary { to, .. } if *to > position => None,
        Range::Summary { .. } => Some(range.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    fn id(n: u64) -> ContextId {
        ContextId::from_parts(Timestamp::from_millis(0), 0, n)
    }

    #[test]
    fn a_fork_shares_what_came_before_and_goes_on_behind_the_session() {
        let fork = Context::whole(id(1)).fork(id(2), 4, 9);
        assert_eq!(fork.parent, Some((id(1), 4)));
        assert_eq!(
            fork.ranges,
            [Range::Entries { from: 0, to: Some(4) }, Range::Entries { from: 9, to: None }]
        );
        let again = fork.fork(id(3), 2, 12);
        assert_eq!(
            again.ranges,
            [Range::Entries { from: 0, to: Some(2) }, Range::Entries { from: 12, to: None }]
        );
    }

    #[test]
    fn a_summary_is_shared_only_whole() {
        let context = Context {
            id: id(1),
            parent: None,
            ranges: vec![
                Range::Summary { text: "s".into(), from: 0, to: 6 },
                Range::Entries { from: 6, to: None },
            ],
        };
        assert_eq!(context.fork(id(2), 3, 8).ranges, [Range::Entries { from: 8, to: None }]);
        assert_eq!(context.fork(id(2), 7, 8).ranges.len(), 3);
    }
}
