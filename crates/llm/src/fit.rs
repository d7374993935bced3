//! Makes a transcript one that every vendor takes, whoever answered before: ids of calls that fit each vendor's
//! pattern and differ over the whole conversation (some vendors give none, and ours are the same in every answer), and
//! a beginning by the user. Mostly nothing is to be done.

use std::collections::{BTreeMap, BTreeSet};

use ostler_kernel::{Block, Role};

use crate::{Message, draft::MAX_ID};

/// Stands before an answer that begins a conversation.
const BEGINNING: &str = "(the conversation goes on)";

pub(crate) fn fit(messages: &mut Vec<Message>) {
    if messages.first().is_some_and(|message| message.role == Role::Assistant) {
        let blocks = vec![Block::Text { text: BEGINNING.to_owned() }];
        messages.insert(0, Message { role: Role::User, blocks });
    }
    if has_odd_ids(messages) {
        rename(messages);
    }
}

fn has_odd_ids(messages: &[Message]) -> bool {
    let mut seen = BTreeSet::new();
    let mut ids = messages.iter().flat_map(|message| &message.blocks).filter_map(call_id);
    ids.any(|id| !is_allowed(id) || !seen.insert(id))
}

fn call_id(block: &Block) -> Option<&str> {
    match block {
        Block::ToolCall { id, .. } => Some(id),
        Block::Text { .. } | Block::ToolResult { .. } | Block::Image(_) | Block::Native { .. } => None,
    }
}

/// A result belongs to the last call of its id before it.
fn rename(messages: &mut [Message]) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    for block in messages.iter_mut().flat_map(|message| &mut message.blocks) {
        match block {
            Block::ToolCall { id, .. } => {
                let new = free_id(id, &taken);
                taken.insert(new.clone());
                renamed.insert(std::mem::replace(id, new.clone()), new);
            }
            Block::ToolResult { call_id, .. } => {
                if let Some(new) = renamed.get(call_id) {
                    call_id.clone_from(new);
                }
            }
            Block::Text { .. } | Block::Image(_) | Block::Native { .. } => {}
        }
    }
}

fn free_id(id: &str, taken: &BTreeSet<String>) -> String {
    let letters = id.chars().map(|c| if is_letter(c) { c } else { '_' });
    let plain: String = letters.take(MAX_ID).collect();
    let plain = if plain.is_empty() { "call".to_owned() } else { plain };
    let numbered = (2_u32..).map(|number| {
        let end = format!("_{number}");
        let kept: String = plain.chars().take(MAX_ID - end.len()).collect();
        kept + &end
    });
    let mut candidates = std::iter::once(plain.clone()).chain(numbered);
    candidates.find(|candidate| !taken.contains(candidate)).unwrap_or_default()
}

fn is_allowed(id: &str) -> bool {
    (1..=MAX_ID).contains(&id.len()) && id.chars().all(is_letter)
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(ids: &[&str]) -> [Message; 2] {
        let call = |id: &&str| Block::ToolCall { id: (*id).into(), name: "t".into(), arguments: "{}".into() };
        let result = |id: &&str| Block::ToolResult {
            call_id: (*id).into(),
            name: "t".into(),
            content: String::new(),
            is_error: false,
            images: vec![],
        };
        [
            Message { role: Role::Assistant, blocks: ids.iter().map(call).collect() },
            Message { role: Role::Tool, blocks: ids.iter().map(result).collect() },
        ]
    }

    fn ids(messages: &[Message]) -> Vec<&str> {
        let id = |block: &'static Block| match block {
            Block::ToolCall { id, .. } => id.as_str(),
            Block::ToolResult { call_id, .. } => call_id.as_str(),
            Block::Text { .. } | Block::Image(_) | Block::Native { .. } => "-",
        };
        let blocks: &'static [Block] =
            messages.iter().flat_map(|m| m.blocks.clone()).collect::<Vec<_>>().leak();
        blocks.iter().map(id).collect()
    }

    #[test]
    fn ids_that_fit_stay_and_the_others_change_with_their_results() {
        let mut messages = [turn(&["call_0", "x.y"]), turn(&["call_0"]), turn(&["", "toolu_1"])].concat();
        fit(&mut messages);
        assert_eq!(
            ids(&messages),
            [
                "-", "call_0", "x_y", "call_0", "x_y", "call_0_2", "call_0_2", "call", "toolu_1", "call",
                "toolu_1",
            ]
        );
        let before = messages.clone();
        fit(&mut messages);
        assert_eq!(messages, before);
    }

    #[test]
    fn long_ids_are_cut_and_still_differ() {
        let long = "x".repeat(90);
        let mut messages = turn(&[&format!("{long}a"), &format!("{long}b")]).to_vec();
        fit(&mut messages);
        let ids = ids(&messages);
        assert!(ids.iter().all(|id| *id == "-" || id.len() == MAX_ID), "{ids:?}");
        assert_eq!((ids[1], ids[2]), (ids[3], ids[4]));
        assert_ne!(ids[1], ids[2]);
    }
}
