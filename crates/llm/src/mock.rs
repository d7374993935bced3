//! A model that needs no network and no key, and always says the same to the same: what a newcomer meets
//! before an endpoint is configured. It calls the first tool it is offered and then tells what the tool said. Where an
//! answer must follow a schema, and there is no tool, it does.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use ostler_kernel::{Block, Failure, Role, Runtime, plan::ModelPlan};
use serde_json::{Map, Value, json};

use crate::{
    Completion, Finish, Identity, Message, ModelRequest, Part, Parts, Provider, ToolOffer,
    estimate::estimate, failure,
};

pub struct Mock {
    runtime: Arc<dyn Runtime>,
}

const LATENCY: &str = "latency_ms";

/// Words that are streamed together.
const WORDS_PER_PART: usize = 4;

/// Letters of what was said that are said again.
const MAX_QUOTE: usize = 400;

impl Mock {
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self { runtime }
    }
}

impl Provider for Mock {
    fn names(&self) -> &'static [&'static str] {
        &["mock"]
    }

    fn stream(&self, request: ModelRequest) -> Parts {
        let latency = match latency(&request.endpoint) {
            Ok(latency) => latency,
            Err(failure) => return Box::pin(stream::once(async { Err(failure) })),
        };
        let parts = stream::iter(answer(&request)).map(Ok);
        if latency.is_zero() {
            return Box::pin(parts);
        }
        let sleep = self.runtime.sleep(latency);
        let late = async {
            sleep.await;
            parts
        };
        Box::pin(stream::once(late).flatten())
    }
}

/// It asks nobody, so that an address or a key is meant for another.
fn refuse_address(endpoint: &ModelPlan) -> Result<(), Failure> {
    let field = match (endpoint.base_url.is_empty(), &endpoint.secret_ref) {
        (false, _) => "base_url",
        (true, Some(_)) => "auth",
        (true, None) => return Ok(()),
    };
    let name = &endpoint.endpoint;
    let message = format!("endpoint `{name}` has `{field}`, and its provider `mock` answers by itself");
    Err(Failure::permanent("model_bad_endpoint", message))
}

fn latency(endpoint: &ModelPlan) -> Result<Duration, Failure> {
    refuse_address(endpoint)?;
    if let Some(unknown) = endpoint.options.keys().find(|name| *name != LATENCY) {
        return Err(failure::unknown_option(&endpoint.endpoint, unknown, &[LATENCY]));
    }
    let Some(text) = endpoint.options.get(LATENCY) else { return Ok(Duration::ZERO) };
    let millis = text.trim().parse();
    let millis = millis
        .map_err(|_| failure::invalid_option(&endpoint.endpoint, LATENCY, "a number of milliseconds"))?;
    Ok(Duration::from_millis(millis))
}

fn answer(request: &ModelRequest) -> Vec<Part> {
    let asked = last_asked(&request.messages);
    let results = last_results(&request.messages);
    match request.tools.first() {
        Some(_) if !results.is_empty() => say(request, &tell(&results)),
        Some(offer) => call(request, chosen(&request.tools, &asked).unwrap_or(offer), &asked),
        None if !results.is_empty() => say(request, &tell(&results)),
        None => match &request.output_schema {
            Some(schema) => say(request, &argument(schema, &asked).to_string()),
            None => say(request, &greet(&asked)),
        },
    }
}

fn say(request: &ModelRequest, text: &str) -> Vec<Part> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let mut parts: Vec<Part> = words.chunks(WORDS_PER_PART).map(|words| Part::Text(words.concat())).collect();
    let blocks = vec![Block::Text { text: text.to_owned() }];
    parts.push(done(request, blocks, Finish::Stop));
    parts
}

fn call(request: &ModelRequest, offer: &ToolOffer, asked: &str) -> Vec<Part> {
    // One name per turn, so that the calls of a session differ.
    let id = format!("call_mock_{}", request.messages.len());
    let arguments = arguments(&offer.schema, asked).to_string();
    let blocks = vec![Block::ToolCall { id, name: offer.name.clone(), arguments }];
    vec![done(request, blocks, Finish::ToolCalls)]
}

fn done(request: &ModelRequest, blocks: Vec<Block>, finish: Finish) -> Part {
    let usage = Some(estimate(request, &blocks));
    Part::Done(Completion { blocks, finish, usage, identity: Identity::default() })
}

fn greet(asked: &str) -> String {
    format!(
        "Hello! You asked: \"{}\". I am the mock model that comes with Ostler, so I only repeat what I am \
         told; configure a ModelEndpoint to talk to a real one.",
        quoted(asked)
    )
}

fn tell(results: &[(&str, &str, bool)]) -> String {
    let told = results.iter().map(|(name, content, is_error)| match is_error {
        false => format!("The tool {name} answered: {}.", quoted(content).trim_end_matches('.')),
        true => format!("The tool {name} failed: {}.", quoted(content).trim_end_matches('.')),
    });
    told.collect::<Vec<_>>().join(" ")
}

/// On one line and not too long.
fn quoted(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The tool that the user's words name, if they name one.
fn chosen<'r>(offers: &'r [ToolOffer], asked: &str) -> Option<&'r ToolOffer> {
    let asked = asked.to_lowercase();
    offers.iter().find(|offer| !offer.name.is_empty() && asked.contains(&offer.name.to_lowercase()))
}

fn last_asked(messages: &[Message]) -> String {
    let message = messages.iter().rev().find(|message| message.role == Role::User);
    let texts = message.into_iter().flat_map(|message| &message.blocks).filter_map(Block::text);
    texts.collect::<Vec<_>>().join("\n\n")
}

/// What the tools answered since the model spoke last: name, content, and whether it failed.
fn last_results(messages: &[Message]) -> Vec<(&str, &str, bool)> {
    let heard = messages.iter().rev().take_while(|message| message.role != Role::Assistant);
    let blocks = heard.flat_map(|message| &message.blocks);
    let results = blocks.filter_map(|block| match block {
        Block::ToolResult { name, content, is_error, .. } => {
            Some((name.as_str(), content.as_str(), *is_error))
        }
        Block::Text { .. } | Block::ToolCall { .. } | Block::Image(_) | Block::Native { .. } => None,
    });
    results.collect()
}

/// Arguments that the schema accepts: what is required, texts with the user's words.
fn arguments(schema: &Value, asked: &str) -> Value {
    if schema.as_object().is_none_or(Map::is_empty) {
        return json!({ "input": asked });
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return json!({}) };
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let fill = |name: &str| {
        let schema = properties.get(name)?;
        Some((name.to_owned(), argument(schema, asked)))
    };
    Value::Object(required.into_iter().filter_map(fill).collect::<Map<_, _>>())
}

fn argument(schema: &Value, asked: &str) -> Value {
    let given = [&schema["default"], &schema["const"], &schema["enum"][0], &schema["examples"][0]];
    if let Some(given) = given.into_iter().find(|given| !given.is_null()) {
        return given.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => arguments(schema, asked),
        Some("null") => Value::Null,
        _ => json!(asked),
    }
}

#[cfg(test)]
mod tests;
