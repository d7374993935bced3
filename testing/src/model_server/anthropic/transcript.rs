//! The messages: their order, that every tool use has its one result in the very next message, and that
//! thinking comes back as it was given.

use std::collections::BTreeSet;

use serde_json::Value;

use super::check::is_tool_name;
use super::{blocks, kind};
use crate::model_server::completion::THOUGHT_MARK;
use crate::model_server::media;
use crate::model_server::rules::{Findings, Rule};
use crate::model_server::signature;

pub(super) fn check(request: &Value, is_strict: bool, findings: &mut Findings) {
    let messages: Vec<_> = blocks(&request["messages"]).collect();
    let Some(first) = messages.first() else {
        return findings.add(Rule::NoMessages, "messages", "at least one message is required");
    };
    findings.require(
        first["role"] == "user",
        Rule::UserFirst,
        "messages",
        "first message must use the \"user\" role",
    );
    check_end(&messages, findings);
    let mut seen = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        check_content(index, message, is_strict, findings);
        check_uses(index, message, messages.get(index + 1).copied(), &mut seen, findings);
        let before = index.checked_sub(1).and_then(|before| messages.get(before)).copied();
        check_results(index, message, before, findings);
    }
    check_thought_uses(request, &messages, findings);
}

/// The model can't be made to go on with words that were put into its mouth.
fn check_end(messages: &[&Value], findings: &mut Findings) {
    let Some(last) = messages.last().filter(|last| last["role"] == "assistant") else { return };
    let is_paused = blocks(&last["content"]).last().is_some_and(|block| kind(block) == "server_tool_use");
    let message = "this model does not support assistant message prefill; the conversation must end with a user message";
    findings.require(is_paused, Rule::Order, "messages", message);
}

fn check_content(index: usize, message: &Value, is_strict: bool, findings: &mut Findings) {
    let path = format!("messages.{index}");
    let content = &message["content"];
    let silent = content.as_str().map_or_else(|| blocks(content).count() == 0, str::is_empty);
    findings.require(!silent, Rule::EmptyMessage, &path, "all messages must have non-empty content");
    for (nth, block) in blocks(content).enumerate() {
        let path = format!("{path}.content.{nth}");
        check_block(&path, block, findings);
        check_place(&path, message, block, is_strict, findings);
        for part in blocks(&block["content"]) {
            check_block(&path, part, findings);
        }
    }
}

fn check_block(path: &str, block: &Value, findings: &mut Findings) {
    let text = |name: &str| block[name].as_str().unwrap_or_default();
    match kind(block) {
        "text" => {
            let said = !text("text").trim().is_empty();
            let message = "text content blocks must contain non-whitespace text";
            findings.require(said, Rule::EmptyMessage, path, message);
        }
        "thinking" => {
            let (words, signature) = (text("thinking"), text("signature"));
            let genuine = if words.is_empty() {
                signature::is_genuine(signature)
            } else {
                signature::fits(signature, words)
            };
            findings.require(genuine, Rule::Thinking, path, "Invalid `signature` in `thinking` block");
        }
        "redacted_thinking" => {
            let genuine = signature::is_genuine(text("data"));
            findings.require(genuine, Rule::Thinking, path, "Invalid `data` in `redacted_thinking` block");
        }
        "image" if block["source"]["type"] == "base64" => {
            let source = |name: &str| block["source"][name].as_str().unwrap_or_default();
            if let Some(fault) = media::image_fault(source("media_type"), source("data")) {
                findings.add(Rule::Media, format_args!("{path}.image.source.base64"), fault);
            }
        }
        _ => {}
    }
}

/// A block stands with the role that says such things.
fn check_place(path: &str, message: &Value, block: &Value, is_strict: bool, findings: &mut Findings) {
    let role = message["role"].as_str().unwrap_or_default();
    let fits = match kind(block) {
        "thinking" | "redacted_thinking" | "tool_use" | "server_tool_use" => role == "assistant",
        "tool_result" | "image" => role == "user",
        "document" => role == "user" || role == "assistant" && !is_strict,
        _ => true,
    };
    let message = format_args!("`{}` blocks are not allowed in `{role}` messages", kind(block));
    findings.require(fits, Rule::FieldForRole, path, message);
    let cites = blocks(&block["citations"]).next().is_some();
    let message = "citations are not allowed in `user` messages";
    findings.require(!(cites && is_strict && role == "user"), Rule::FieldForRole, path, message);
}

fn check_uses<'m>(
    index: usize,
    message: &'m Value,
    next: Option<&Value>,
    seen: &mut BTreeSet<&'m str>,
    findings: &mut Findings,
) {
    for block in blocks(&message["content"]).filter(|block| kind(block) == "tool_use") {
        let id = block["id"].as_str().unwrap_or_default();
        let path = format!("messages.{index}");
        let is_id =
            !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let pattern = "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'";
        findings.require(is_id, Rule::CallId, &path, pattern);
        let name = block["name"].as_str().unwrap_or_default();
        findings.require(
            is_tool_name(name),
            Rule::Name,
            &path,
            "tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        );
        findings.require(seen.insert(id), Rule::DuplicateCallId, &path, "`tool_use` ids must be unique");
        let answered = next.is_some_and(|next| results(next).any(|result| result["tool_use_id"] == id));
        let missing =
            format_args!("`tool_use` ids were found without `tool_result` blocks immediately after: {id}");
        findings.require(answered, Rule::Unanswered, &path, missing);
    }
}

fn check_results(index: usize, message: &Value, before: Option<&Value>, findings: &mut Findings) {
    let path = format!("messages.{index}.content");
    let mut other = false;
    let mut answered = BTreeSet::new();
    for block in blocks(&message["content"]) {
        if kind(block) != "tool_result" {
            other = true;
            continue;
        }
        findings.require(
            !other,
            Rule::Order,
            &path,
            "`tool_result` blocks must come before any other content",
        );
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let asked = before.is_some_and(|before| {
            blocks(&before["content"]).any(|block| kind(block) == "tool_use" && block["id"] == id)
        });
        let message = format_args!("unexpected `tool_use_id` found in `tool_result` blocks: {id}");
        findings.require(asked, Rule::ResultWithoutCall, &path, message);
        let message = "each tool_use must have a single result";
        findings.require(answered.insert(id), Rule::ResultRepeated, &path, message);
    }
}

/// While thinking is on, what led to the tools in use comes back with them.
fn check_thought_uses(request: &Value, messages: &[&Value], findings: &mut Findings) {
    if request["thinking"]["type"] != "enabled" {
        return;
    }
    let last = messages.iter().rposition(|message| message["role"] == "assistant");
    let Some(index) =
        last.filter(|index| messages.iter().skip(index + 1).any(|next| results(next).next().is_some()))
    else {
        return;
    };
    let content = &messages[index]["content"];
    let thought = |block: &Value| {
        kind(block) == "tool_use" && block["id"].as_str().is_some_and(|id| id.ends_with(THOUGHT_MARK))
    };
    let begins = blocks(content).next().is_some_and(|block| kind(block).ends_with("thinking"));
    let kept = begins || !blocks(content).any(thought);
    let message = "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block";
    findings.require(kept, Rule::Thinking, format_args!("messages.{index}.content.0.type"), message);
}

fn results(message: &Value) -> impl Iterator<Item = &Value> {
    blocks(&message["content"]).filter(|block| kind(block) == "tool_result")
}
