//! From entries to what a model is sent. Whatever the session holds (an interrupted call, two messages in a
//! row), what comes out is valid for every vendor: roles alternate, and each tool call has one result.

use std::collections::BTreeMap;

use ostler_kernel::{Block, Entry, Role};
use ostler_llm::Message;

pub fn messages(entries: &[Entry]) -> Vec<Message> {
    let mut results = results_by_call(entries);
    let mut messages: Vec<Message> = Vec::new();
    for entry in entries {
        match entry.role {
            Role::User => push(&mut messages, Role::User, entry.blocks.clone()),
            Role::Assistant => {
                push(&mut messages, Role::Assistant, entry.blocks.clone());
                let answers = answers(&entry.blocks, &mut results);
                push(&mut messages, Role::Tool, answers);
            }
            // Taken up where its call stands.
            Role::Tool => {}
        }
    }
    messages
}

/// Results wait in the order they came: ids are unique within an answer, not within a session.
fn results_by_call(entries: &[Entry]) -> BTreeMap<String, Vec<Block>> {
    let mut results: BTreeMap<String, Vec<Block>> = BTreeMap::new();
    for block in entries.iter().rev().filter(|entry| entry.role == Role::Tool).flat_map(|entry| &entry.blocks)
    {
        if let Block::ToolResult { call_id, .. } = block {
            results.entry(call_id.clone()).or_default().push(block.clone());
        }
    }
    results
}

fn answers(blocks: &[Block], results: &mut BTreeMap<String, Vec<Block>>) -> Vec<Block> {
    let calls = blocks.iter().filter_map(|block| match block {
        Block::ToolCall { id, name, .. } => Some((id, name)),
        Block::Text { .. } | Block::ToolResult { .. } | Block::Image(_) | Block::Native { .. } => None,
    });
    calls
        .map(|(id, name)| {
            results.get_mut(id).and_then(Vec::pop).unwrap_or_else(|| Block::ToolResult {
                call_id: id.clone(),
                name: name.clone(),
                content: "interrupted: this call has no result".to_owned(),
                is_error: true,
                images: Vec::new(),
            })
        })
        .collect()
}

fn push(messages: &mut Vec<Message>, role: Role, blocks: Vec<Block>) {
    if blocks.is_empty() {
        return;
    }
    match messages.last_mut() {
        Some(last) if last.role == role => last.blocks.extend(blocks),
        _ => messages.push(Message { role, blocks }),
    }
}

#[cfg(test)]
mod tests {
    use ostler_kernel::{RunId, Timestamp, conversation::ToolCallRef};

    use super::*;

    fn run() -> RunId {
        RunId::from_parts(Timestamp::from_millis(0), 0, 0)
    }

    fn calls(ids: &[&str]) -> Entry {
        let call = |id: &&str| Block::ToolCall { id: (*id).into(), name: "t".into(), arguments: "{}".into() };
        Entry { role: Role::Assistant, blocks: ids.iter().map(call).collect(), run: run(), step: Some(0) }
    }

    fn result(id: &str, content: &str) -> Entry {
        let call = ToolCallRef { id: id.into(), name: "t".into() };
        Entry::tool_result(run(), 1, &call, content.into(), false)
    }

    fn contents(message: &Message) -> Vec<&str> {
        let content = |block: &'_ Block| match block {
            Block::ToolResult { content, .. } => content.clone().leak() as &str,
            other => panic!("{other:?}"),
        };
        message.blocks.iter().map(content).collect()
    }

    #[test]
    fn results_stand_in_the_order_of_their_calls_whenever_they_came() {
        let entries = [Entry::user(run(), "go"), calls(&["a", "b"]), result("b", "2"), result("a", "1")];
        let messages = messages(&entries);
        assert_eq!(
            messages.iter().map(|m| m.role).collect::<Vec<_>>(),
            [Role::User, Role::Assistant, Role::Tool]
        );
        assert_eq!(contents(&messages[2]), ["1", "2"]);
    }

    #[test]
    fn a_call_without_a_result_gets_one() {
        let messages = messages(&[Entry::user(run(), "go"), calls(&["a"]), Entry::user(run(), "and?")]);
        assert!(contents(&messages[2])[0].starts_with("interrupted"));
        assert_eq!(messages[3].role, Role::User);
    }

    #[test]
    fn an_id_used_again_later_keeps_its_own_result() {
        let entries = [calls(&["a"]), result("a", "first"), calls(&["a"]), result("a", "second")];
        let messages = messages(&entries);
        assert_eq!((contents(&messages[1]), contents(&messages[3])), (vec!["first"], vec!["second"]));
    }

    #[test]
    fn two_messages_in_a_row_become_one() {
        let messages = messages(&[Entry::user(run(), "a"), Entry::user(run(), "b")]);
        assert_eq!((messages.len(), messages[0].blocks.len()), (1, 2));
    }
}
