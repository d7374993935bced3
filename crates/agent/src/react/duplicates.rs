//! Calls that a run has made before: the same tool with the same arguments, whatever their order and spacing. Found in
//! the run's own entries. A call that failed is none: it may be tried again.

use ostler_kernel::{Block, Entry, Role};
use serde_json::Value;

/// Calls of one run, by what was asked for.
#[derive(Debug, Default)]
pub struct Made(Vec<(String, Value, u32)>);

impl Made {
    /// Those that went well, from the entries of the run.
    pub fn of(past: &[&Entry]) -> Self {
        let mut made = Self::default();
        let mut asked: &[Block] = &[];
        for entry in past {
            match entry.role {
                Role::Assistant => asked = &entry.blocks,
                Role::Tool => {
                    if let Some(step) = entry.step {
                        entry.blocks.iter().for_each(|block| made.take(asked, block, step));
                    }
                }
                Role::User => {}
            }
        }
        made
    }

    fn take(&mut self, asked: &[Block], result: &Block, step: u32) {
        let Block::ToolResult { call_id, is_error: false, .. } = result else { return };
        let call = asked.iter().find_map(|block| match block {
            Block::ToolCall { id, name, arguments } if id == call_id => Some((name, arguments)),
            _ => None,
        });
        if let Some((name, arguments)) = call {
            self.add(name, arguments, step);
        }
    }

    /// The call is made as this step.
    pub fn add(&mut self, name: &str, arguments: &str, step: u32) {
        if let Some(arguments) = read(arguments) {
            self.0.push((name.to_owned(), arguments, step));
        }
    }

    /// The first step that made this call.
    pub fn find(&self, name: &str, arguments: &str) -> Option<u32> {
        let arguments = read(arguments)?;
        let mut same = self.0.iter().filter(|(tool, given, _)| tool == name && *given == arguments);
        same.next().map(|(_, _, step)| *step)
    }
}

/// What can't be read reaches no tool, so it was never made.
fn read(arguments: &str) -> Option<Value> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(text).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use ostler_kernel::{RunId, conversation::ToolCallRef};

    use super::*;

    fn run() -> RunId {
        RunId::from_bytes([1; 16])
    }

    fn call(id: &str, name: &str, arguments: &str) -> Block {
        Block::ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
    }

    fn asks(blocks: Vec<Block>) -> Entry {
        Entry { role: Role::Assistant, blocks, ..Entry::user(run(), "") }
    }

    fn result(id: &str, step: u32, is_error: bool) -> Entry {
        let call = ToolCallRef { id: id.into(), name: "t".into() };
        Entry::tool_result(run(), step, &call, "given".into(), is_error)
    }

    #[test]
    fn arguments_are_compared_as_values() {
        let mut made = Made::default();
        made.add("look", r#"{"a": 1, "b": [true]}"#, 3);
        assert_eq!(made.find("look", r#"{"b":[true],"a":1}"#), Some(3));
        assert_eq!(made.find("look", r#"{"b":[true],"a":2}"#), None);
        assert_eq!(made.find("other", r#"{"a": 1, "b": [true]}"#), None);
        made.add("now", "", 4);
        assert_eq!(made.find("now", "{}"), Some(4));
        made.add("look", "{broken", 5);
        assert_eq!(made.find("look", "{broken"), None, "it reached nobody");
    }

    #[test]
    fn only_what_went_well_counts_and_ids_may_come_again() {
        let entries = [
            asks(vec![call("1", "a", "{}"), call("2", "b", "{}")]),
            result("2", 2, false),
            result("1", 1, true),
            asks(vec![call("1", "c", "{}")]),
            result("1", 4, false),
        ];
        let made = Made::of(&entries.iter().collect::<Vec<_>>());
        assert_eq!(
            (made.find("a", "{}"), made.find("b", "{}"), made.find("c", "{}")),
            (None, Some(2), Some(4))
        );
    }
}
