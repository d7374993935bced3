//! The contents: their order, that calls and responses match in number and name, and that signatures of
//! thoughts come back where the vendor wants them.

use serde_json::Value;

use super::check::is_function_name;
use super::{list, shapes, wants_signatures};
use crate::model_server::media;
use crate::model_server::rules::{Findings, Rule};
use crate::model_server::signature;

/// What a caller may send in place of a signature it can't have.
const NO_SIGNATURE: [&str; 2] = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

pub(super) fn check(model: &str, request: &Value, findings: &mut Findings) {
    let contents: Vec<_> = list(&request["contents"]).collect();
    let Some((first, last)) = contents.first().zip(contents.last()) else {
        return findings.add(Rule::NoMessages, "contents", "contents is not specified");
    };
    findings.require(first["role"] != "model", Rule::UserFirst, "contents", "must begin with a user turn");
    findings.require(last["role"] != "model", Rule::Order, "contents", "must end with a user turn");
    for (index, content) in contents.iter().enumerate() {
        check_parts(index, content, findings);
        let before = index.checked_sub(1).and_then(|before| contents.get(before)).copied();
        check_responses(index, content, before, findings);
        check_calls(index, content, contents.get(index + 1).copied(), findings);
    }
    if wants_signatures(model) {
        check_current_turn(&contents, findings);
    }
}

fn check_parts(index: usize, content: &Value, findings: &mut Findings) {
    let path = format!("contents[{index}].parts");
    let empty = list(&content["parts"]).next().is_none();
    findings.require(!empty, Rule::EmptyMessage, &path, "contents.parts must not be empty");
    for (nth, part) in list(&content["parts"]).enumerate() {
        let n_data = shapes::DATA.iter().filter(|name| !part[**name].is_null()).count();
        let message = "required oneof field 'data' must have one initialized field";
        let is_one = n_data == 1 || n_data == 0 && part["thoughtSignature"].is_string();
        findings.require(is_one, Rule::EmptyMessage, format_args!("{path}[{nth}]"), message);
        check_media(&format!("{path}[{nth}].inline_data"), &part["inlineData"], findings);
        check_signature(&format!("{path}[{nth}]"), part, findings);
        let said_by_model = part.get("functionCall").is_some() || part["thought"] == true;
        let fits = !said_by_model || content["role"] == "model";
        findings.require(fits, Rule::FieldForRole, format_args!("{path}[{nth}]"), "is the model's to say");
    }
}

fn check_media(path: &str, blob: &Value, findings: &mut Findings) {
    let Some((kind, data)) = blob["mimeType"].as_str().zip(blob["data"].as_str()) else { return };
    let data = &media::in_usual_alphabet(data);
    if kind.starts_with("image/") {
        if let Some(fault) = media::image_fault(kind, data) {
            findings.add(Rule::Media, path, fault);
        }
    } else {
        findings.require(media::is_base64(data), Rule::Media, path, "Base64 decoding failed");
    }
}

/// A signature that is sent is one that was given, for this very call.
fn check_signature(path: &str, part: &Value, findings: &mut Findings) {
    let Some(signature) = part["thoughtSignature"].as_str() else { return };
    let genuine = match part["functionCall"]["name"].as_str() {
        Some(name) => signature::fits(signature, name),
        None => signature::is_genuine(signature),
    };
    let kept = genuine || NO_SIGNATURE.contains(&signature);
    findings.require(kept, Rule::Thinking, path, "Thought signature is not valid");
}

fn calls(content: &Value) -> impl Iterator<Item = &Value> {
    list(&content["parts"]).filter_map(|part| part.get("functionCall"))
}

fn responses(content: &Value) -> impl Iterator<Item = &Value> {
    list(&content["parts"]).filter_map(|part| part.get("functionResponse"))
}

fn check_calls(index: usize, content: &Value, next: Option<&Value>, findings: &mut Findings) {
    let path = format!("contents[{index}]");
    let n_calls = calls(content).count();
    for call in calls(content) {
        let name = call["name"].as_str().unwrap_or_default();
        findings.require(is_function_name(name), Rule::Name, &path, "Invalid function name");
    }
    let n_responses = next.map_or(0, |next| responses(next).count());
    let message = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
    findings.require(n_calls == 0 || n_responses == n_calls, Rule::Unanswered, &path, message);
}

fn check_responses(index: usize, content: &Value, before: Option<&Value>, findings: &mut Findings) {
    let path = format!("contents[{index}]");
    let mut called: Vec<_> = before.into_iter().flat_map(calls).collect();
    for response in responses(content) {
        let same = |call: &&Value| {
            call["name"] == response["name"] && (response["id"].is_null() || call["id"] == response["id"])
        };
        match called.iter().position(same) {
            Some(place) => {
                called.remove(place);
            }
            None => {
                let message =
                    "Please ensure that function response turn comes immediately after a function call turn.";
                findings.add(Rule::ResultWithoutCall, &path, message);
            }
        }
    }
}

/// In every step since the user spoke, the first call carries its signature.
fn check_current_turn(contents: &[&Value], findings: &mut Findings) {
    let spoke = |content: &&Value| content["role"] != "model" && responses(content).next().is_none();
    let since = contents.iter().rposition(spoke).unwrap_or_default();
    for (index, content) in contents.iter().enumerate().skip(since) {
        let first = list(&content["parts"]).find(|part| part.get("functionCall").is_some());
        let kept = first.is_none_or(|part| part["thoughtSignature"].is_string());
        let name = first.map(|part| &part["functionCall"]["name"]);
        let message = format_args!(
            "Function call {} in the {index}. content block is missing a thought_signature.",
            name.unwrap_or(&Value::Null)
        );
        findings.require(kept, Rule::Thinking, format_args!("contents[{index}]"), message);
    }
}
