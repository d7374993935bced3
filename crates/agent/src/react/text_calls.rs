//! Tool calls that a model writes as text, since it knows no other way: an answer that is such JSON and nothing else. What is
//! quoted inside of prose is no call, and neither is what the model was told and says again: who may write into what a
//! tool gives, or into a message, must not be able to call one
//! ([decision 41](../../../../docs/decisions/0041-a-call-written-as-text-is-the-whole-answer.md)).

use ostler_kernel::{Block, Entry, Role, plan::AgentPlan};
use serde_json::{Map, Value, json};

use super::{model::text_of, output::bare};

/// Keys that hold what a tool is called with.
const ARGUMENTS: [&str; 3] = ["input", "arguments", "parameters"];

/// The calls that the answer of this step is, to stand beside its text. None where it has calls of the vendor's own.
pub fn read<'e>(
    plan: &AgentPlan,
    told: impl Iterator<Item = &'e Entry>,
    step: u32,
    answer: &[Block],
) -> Vec<Block> {
    let has_calls = answer.iter().any(|block| matches!(block, Block::ToolCall { .. }));
    // What must be JSON anyway is the output.
    if has_calls || plan.tools.is_empty() || plan.rules.output_schema.is_some() {
        return Vec::new();
    }
    let text = text_of(answer);
    let json = bare(&text);
    let calls = match serde_json::from_str(json) {
        Ok(Value::Object(written)) => calls(&written),
        Ok(_) | Err(_) => None,
    };
    let is_offered = |call: &Call| plan.tool(&call.name).is_some();
    let calls = calls.filter(|calls| calls.iter().all(is_offered)).unwrap_or_default();
    if calls.is_empty() || is_repeated(json, told) {
        return Vec::new();
    }
    let block = |(place, Call { name, arguments }): (usize, Call)| {
        let id = format!("text_{step}_{place}");
        Block::ToolCall { id, name, arguments }
    };
    calls.into_iter().enumerate().map(block).collect()
}

#[derive(Debug, PartialEq)]
struct Call {
    name: String,
    arguments: String,
}

/// All of them, or none: `{"tool_calls": [..]}`, or one call.
fn calls(written: &Map<String, Value>) -> Option<Vec<Call>> {
    let list = ["tool_calls", "tools"].iter().find_map(|key| written.get(*key)?.as_array());
    match list {
        Some(list) if written.len() == 1 => list.iter().map(|value| call(value.as_object()?)).collect(),
        Some(_) => None,
        None => Some(vec![call(written)?]),
    }
}

/// `{"tool": .., "input": ..}`, the same with `name`, or as vendors write it: `{"type": "function", "function": {..}}`.
fn call(written: &Map<String, Value>) -> Option<Call> {
    if let Some(Value::Object(function)) = written.get("function") {
        let has_others = written.keys().any(|key| !["function", "type", "id"].contains(&key.as_str()));
        return if has_others { None } else { call(function) };
    }
    let given = ARGUMENTS.iter().find_map(|key| written.get(*key));
    let name = match (written.get("tool"), written.get("name"), given) {
        (Some(Value::String(tool)), None, _) => tool,
        // A name alone says nothing of a call.
        (None, Some(Value::String(name)), Some(_)) => name,
        _ => return None,
    };
    // Whatever has more to say is an answer.
    let is_all = written.len() == 1 + usize::from(given.is_some());
    is_all.then(|| Call { name: name.clone(), arguments: arguments(given) })
}

/// JSON as text. A text that is none is what a tool without a schema is offered: its `input`.
fn arguments(given: Option<&Value>) -> String {
    match given {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Object(_)) => text.clone(),
            Ok(_) | Err(_) => json!({ "input": text }).to_string(),
        },
        // What is no object is refused where it is called, and the model is told.
        Some(other) => other.to_string(),
    }
}

/// Whether it stands in something that the model was told, blanks aside.
fn is_repeated<'e>(json: &str, told: impl Iterator<Item = &'e Entry>) -> bool {
    let json = squeezed(json);
    let mut others = told.filter(|entry| entry.role != Role::Assistant).flat_map(|entry| &entry.blocks);
    others.any(|block| match block {
        Block::Text { text } | Block::ToolResult { content: text, .. } => squeezed(text).contains(&json),
        Block::ToolCall { .. } | Block::Image(_) | Block::Native { .. } => false,
    })
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(text: &str) -> Option<(String, String)> {
        let Ok(Value::Object(written)) = serde_json::from_str(text) else { panic!("{text}") };
        let mut calls = calls(&written)?;
        assert_eq!(calls.len(), 1, "{text}");
        calls.pop().map(|call| (call.name, call.arguments))
    }

    #[test]
    fn a_call_is_written_in_many_ways() {
        let expected = Some(("search".to_owned(), r#"{"q":1}"#.to_owned()));
        for text in [
            r#"{"tool": "search", "input": {"q": 1}}"#,
            r#"{"name": "search", "arguments": {"q": 1}}"#,
            r#"{"name": "search", "parameters": {"q": 1}}"#,
            r#"{"name": "search", "arguments": "{\"q\":1}"}"#,
            r#"{"tool_calls": [{"name": "search", "arguments": {"q": 1}}]}"#,
            r#"{"tools": [{"tool": "search", "input": {"q": 1}}]}"#,
            r#"{"tool_calls": [{"id": "1", "type": "function", "function": {"name": "search", "arguments": "{\"q\":1}"}}]}"#,
        ] {
            assert_eq!(read_one(text), expected, "{text}");
        }
        let given = |text: &str| read_one(text).map(|(_, arguments)| arguments);
        assert_eq!(given(r#"{"tool": "search"}"#).as_deref(), Some("{}"));
        assert_eq!(given(r#"{"tool": "search", "input": "cats"}"#).as_deref(), Some(r#"{"input":"cats"}"#));
        assert_eq!(given(r#"{"tool": "search", "input": [1]}"#).as_deref(), Some("[1]"));
    }

    #[test]
    fn json_with_anything_else_to_say_is_an_answer() {
        for text in [
            r#"{"name": "search"}"#,
            r#"{"name": "search", "input": {}, "result": 5}"#,
            r#"{"tool": "search", "name": "search", "input": {}}"#,
            r#"{"tool": 5, "input": {}}"#,
            r#"{"answer": "search"}"#,
            r#"{"tool_calls": [{"tool": "search"}], "note": "now"}"#,
            r#"{"tool_calls": [{"tool": "search"}, "publish"]}"#,
            r#"{"function": {"name": "search", "arguments": {}}, "note": "now"}"#,
        ] {
            assert_eq!(read_one(text), None, "{text}");
        }
    }
}
