//! Items, tools and options of a request for a response.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::IgnoredAny;
use serde_json::Value;

use super::{kind, list, shapes};
use crate::model_server::chat;
use crate::model_server::completion::THOUGHT_MARK;
use crate::model_server::media;
use crate::model_server::rules::{Findings, Rule, bearer_token, header_text, is_name};
use crate::model_server::schema;
use crate::model_server::shape::Shape;
use crate::model_server::signature;
use crate::model_server::wire::Call;

pub(super) fn check(call: &Call<'_>, request: &Value, findings: &mut Findings) {
    let headers = &call.parts.headers;
    chat::check_headers(headers, findings);
    if call.is_azure() {
        let known = header_text(headers, "api-key").is_some() || bearer_token(headers).is_some();
        findings.require(
            known,
            Rule::Authorization,
            "api-key",
            "access denied due to missing subscription key",
        );
    }
    Shape::Fields(shapes::REQUEST).check(&with_types(request), "", findings);
    if !findings.0.is_empty() {
        return;
    }
    check_stored(request, findings);
    check_tools(request, findings);
    check_format(request, findings);
    check_cache(request, findings);
    let items: Vec<_> = list(&request["input"]).collect();
    let empty = items.is_empty() && request["input"].as_str().is_none_or(str::is_empty);
    findings.require(!empty, Rule::NoMessages, "input", "must not be empty");
    for (index, item) in items.iter().enumerate() {
        check_item(index, item, findings);
    }
    check_pairs(&items, findings);
    check_reasoning(request, &items, findings);
}

/// The request with the types that may be left out.
fn with_types(request: &Value) -> Value {
    let mut request = request.clone();
    for item in request["input"].as_array_mut().into_iter().flatten() {
        if let Some(fields) = item.as_object_mut().filter(|fields| !fields.contains_key("type")) {
            fields.insert("type".to_owned(), Value::from("message"));
        }
    }
    request
}

fn check_stored(request: &Value, findings: &mut Findings) {
    for name in ["previous_response_id", "conversation"] {
        let message = "not found: this server stores nothing";
        findings.require(request[name].is_null(), Rule::Conflict, name, message);
    }
}

fn check_tools(request: &Value, findings: &mut Findings) {
    let tools: Vec<_> = list(&request["tools"]).collect();
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        let name = tool["name"].as_str().unwrap_or_default();
        findings.require(
            is_name(name),
            Rule::Name,
            format_args!("{path}.name"),
            "must match ^[a-zA-Z0-9_-]{1,64}$",
        );
        let repeated = tools.iter().take(index).any(|other| other["name"] == tool["name"]);
        findings.require(!repeated, Rule::DuplicateTool, &path, "is the name of an earlier tool");
        let parameters = &tool["parameters"];
        let is_object =
            parameters.is_null() || parameters["type"] == "object" && parameters["properties"].is_object();
        let path = format!("{path}.parameters");
        findings.require(
            is_object,
            Rule::Parameters,
            &path,
            "must be the schema of an object with properties",
        );
        if tool["strict"] == true {
            schema::check(parameters, &path, schema::Grammar::OpenAi, findings);
        }
    }
    let choice = &request["tool_choice"];
    let allowed = match choice {
        Value::Null => true,
        Value::String(mode) => ["none", "auto", "required"].contains(&&**mode),
        named => tools.iter().any(|tool| tool["name"] == named["name"]),
    };
    findings.require(allowed, Rule::ToolChoice, "tool_choice", "is neither a mode nor a tool on offer");
}

fn check_format(request: &Value, findings: &mut Findings) {
    let format = &request["text"]["format"];
    if format["type"] != "json_schema" {
        return;
    }
    let name = format["name"].as_str().unwrap_or_default();
    findings.require(is_name(name), Rule::Name, "text.format.name", "must match ^[a-zA-Z0-9_-]{1,64}$");
    if format["strict"] == true {
        schema::check(&format["schema"], "text.format.schema", schema::Grammar::OpenAi, findings);
    }
}

fn check_cache(request: &Value, findings: &mut Findings) {
    let parts = list(&request["input"]).flat_map(|item| list(&item["content"]));
    let marks = parts.filter(|part| part["prompt_cache_breakpoint"]["mode"] == "explicit");
    let has_options = !request["prompt_cache_options"].is_null();
    let model = request["model"].as_str().unwrap_or_default();
    chat::check_breakpoints(model, marks.count(), has_options, findings);
}

fn check_item(index: usize, item: &Value, findings: &mut Findings) {
    let path = format!("input[{index}]");
    let prefix = match kind(item) {
        "message" => "msg",
        "function_call" => "fc",
        "reasoning" => "rs",
        _ => "",
    };
    let fits = item["id"].as_str().is_none_or(|id| id.starts_with(prefix));
    let message = format_args!("Invalid 'input[{index}].id': expected an ID that begins with '{prefix}'");
    findings.require(fits, Rule::CallId, format_args!("{path}.id"), message);
    match kind(item) {
        "message" => check_content(&path, item, findings),
        "function_call" => {
            let name = item["name"].as_str().unwrap_or_default();
            findings.require(
                is_name(name),
                Rule::Name,
                format_args!("{path}.name"),
                "must match ^[a-zA-Z0-9_-]{1,64}$",
            );
            let arguments = item["arguments"].as_str().unwrap_or_default();
            let is_json = serde_json::from_str::<IgnoredAny>(arguments).is_ok();
            findings.require(is_json, Rule::Arguments, format_args!("{path}.arguments"), "must be JSON");
        }
        "item_reference" => {
            findings.add(Rule::Conflict, &path, "item not found: this server stores nothing");
        }
        _ => {}
    }
}

fn check_content(path: &str, item: &Value, findings: &mut Findings) {
    let is_model = item["role"] == "assistant";
    let silent = item["content"].as_str().map_or_else(|| list(&item["content"]).count() == 0, str::is_empty);
    findings.require(!silent, Rule::EmptyMessage, format_args!("{path}.content"), "must not be empty");
    for (nth, part) in list(&item["content"]).enumerate() {
        let path = format!("{path}.content[{nth}]");
        let is_output = matches!(kind(part), "output_text" | "refusal");
        let wanted = if is_model {
            "'output_text' and 'refusal'"
        } else {
            "'input_text', 'input_image' and 'input_file'"
        };
        let message = format_args!("Invalid value: '{}'. Supported values are: {wanted}.", kind(part));
        findings.require(is_output == is_model, Rule::FieldForRole, &path, message);
        if kind(part) == "input_image" {
            check_image(&path, part, findings);
        }
    }
}

fn check_image(path: &str, part: &Value, findings: &mut Findings) {
    let sound = match part["image_url"].as_str() {
        None => part["file_id"].is_string(),
        Some(url) if url.starts_with("http") => true,
        Some(url) => url
            .strip_prefix("data:")
            .and_then(|rest| rest.split_once(";base64,"))
            .is_some_and(|(media_type, data)| media::image_fault(media_type, data).is_none()),
    };
    findings.require(
        sound,
        Rule::Media,
        format_args!("{path}.image_url"),
        "is neither a URL nor an image in base64",
    );
}

/// Every call has its one output, somewhere behind it.
fn check_pairs(items: &[&Value], findings: &mut Findings) {
    let mut calls = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        let path = format!("input[{index}].call_id");
        match kind(item) {
            "function_call" => {
                let length = id.chars().count();
                findings.require(
                    (1..=64).contains(&length),
                    Rule::CallId,
                    &path,
                    "must have 1 to 64 characters",
                );
                let is_new = calls.insert(id, false).is_none();
                findings.require(is_new, Rule::DuplicateCallId, &path, "is the id of an earlier call");
            }
            "function_call_output" => match calls.get_mut(id) {
                None => {
                    let message =
                        format_args!("No tool call found for function call output with call_id {id}.");
                    findings.add(Rule::ResultWithoutCall, &path, message);
                }
                Some(true) => findings.add(Rule::ResultRepeated, &path, "the call was already answered"),
                Some(answered) => *answered = true,
            },
            _ => {}
        }
    }
    for (id, _) in calls.iter().filter(|call| !*call.1) {
        findings.add(Rule::Unanswered, "input", format_args!("No tool output found for function call {id}."));
    }
}

/// Reasoning comes back with what it led to, and what it led to with its reasoning.
fn check_reasoning(request: &Value, items: &[&Value], findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let id = item["id"].as_str().unwrap_or_default();
        let path = format!("input[{index}]");
        if kind(item) == "reasoning" {
            seen.insert(id.trim_start_matches("rs_"));
            let next = items
                .get(index + 1)
                .is_some_and(|next| matches!(kind(next), "message" | "function_call" | "reasoning"));
            let message = format_args!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            );
            findings.require(next, Rule::Thinking, &path, message);
            check_encrypted(request, &path, item, findings);
        }
        if kind(item) == "function_call"
            && let Some(base) = id.strip_prefix("fc_").and_then(thought_base)
        {
            let message = format_args!(
                "Item '{id}' of type 'function_call' was provided without its required 'reasoning' item: 'rs_{base}'."
            );
            findings.require(seen.contains(base), Rule::Thinking, &path, message);
        }
    }
}

fn check_encrypted(request: &Value, path: &str, item: &Value, findings: &mut Findings) {
    let message = "The encrypted content for this item could not be verified.";
    let genuine = item["encrypted_content"].as_str().is_none_or(signature::is_genuine);
    findings.require(genuine, Rule::Thinking, path, message);
    let stored = request["store"] != false || item["encrypted_content"].is_string();
    let message = "Item not found. Items are not persisted when `store` is set to false.";
    findings.require(stored, Rule::Thinking, path, message);
}

/// The turn of a call that reasoning led to.
fn thought_base(id: &str) -> Option<&str> {
    let (base, nth) = id.split_once('_')?;
    nth.ends_with(THOUGHT_MARK).then_some(base)
}
