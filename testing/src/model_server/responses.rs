//! OpenAI's responses: items in, items out, typed events, and reasoning that is sent back encrypted. This server
//! stores nothing, so what refers to something stored is not found.

mod check;
mod render;
mod shapes;

use http::StatusCode;
use serde_json::Value;

use super::chat;
use super::completion::Completion;
use super::conversation::{Conversation, Speaker};
use super::events::Events;
use super::rules::Findings;
use super::signature;
use super::trouble::Trouble;
use super::wire::{Call, Dialect};

pub(super) struct Responses;

impl Dialect for Responses {
    type Request<'a> = Value;
    const CALL_PREFIX: &'static str = "call_";
    const BEFORE_CONTENT: &'static [&'static str] = &[r#""delta":""#, r#""arguments":""#, r#""text":""#];

    fn read(body: &[u8]) -> serde_json::Result<Value> {
        serde_json::from_slice(body)
    }

    fn check(call: &Call<'_>, request: &Value, findings: &mut Findings) {
        check::check(call, request, findings);
    }

    fn conversation<'r>(call: &'r Call<'_>, request: &'r Value) -> Conversation<'r> {
        conversation(call, request)
    }

    fn whole(completion: &Completion<'_>) -> Vec<u8> {
        render::whole(completion)
    }

    fn stream(completion: &Completion<'_>, size: Option<usize>) -> Events {
        render::stream(completion, size)
    }

    fn error(trouble: &Trouble<'_>) -> (StatusCode, Value) {
        chat::error(trouble)
    }

    fn error_event() -> Vec<u8> {
        render::failure()
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// What an item is; one without a type is a message.
fn kind(item: &Value) -> &str {
    item["type"].as_str().unwrap_or("message")
}

fn text_of(content: &Value) -> String {
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => list(content).filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}

fn conversation<'r>(call: &'r Call<'_>, request: &'r Value) -> Conversation<'r> {
    let mut conversation = Conversation::new(call.wire, request["model"].as_str().unwrap_or_default());
    if let Some(instructions) = request["instructions"].as_str() {
        conversation.say(Speaker::System, instructions);
    }
    if let Some(text) = request["input"].as_str() {
        conversation.say(Speaker::User, text);
    }
    for item in list(&request["input"]) {
        let (by, text) = match (kind(item), item["role"].as_str()) {
            ("message", Some("assistant")) => (Speaker::Model, text_of(&item["content"])),
            ("message", Some("user")) => (Speaker::User, text_of(&item["content"])),
            ("message", _) => (Speaker::System, text_of(&item["content"])),
            ("function_call_output", _) => (Speaker::Tool, text_of(&item["output"])),
            _ => (Speaker::Model, String::new()),
        };
        // What the model did in one turn is several items.
        match conversation
            .messages
            .last_mut()
            .filter(|last| last.by == Speaker::Model && by == Speaker::Model)
        {
            Some(last) => last.text.to_mut().push_str(&text),
            None => conversation.say(by, text),
        }
    }
    conversation.tools.extend(list(&request["tools"]).filter_map(|tool| tool["name"].as_str()));
    conversation.stream = request["stream"] == true;
    conversation.wishes.thinking = request["reasoning"]["summary"].is_string();
    conversation.wishes.encrypted_reasoning =
        list(&request["include"]).any(|wanted| wanted == "reasoning.encrypted_content");
    conversation.fingerprint = signature::hash(&request["input"].to_string());
    conversation
}
