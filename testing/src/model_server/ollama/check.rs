//! What a chat may hold, and the order of its messages.

use serde_json::Value;

use super::list;
use crate::model_server::media;
use crate::model_server::rules::{Findings, Rule, check_content_type};
use crate::model_server::shape::{Field, Shape, optional, required};
use crate::model_server::wire::Call;

const REQUEST: &[Field] = &[
    required("model", Shape::Text),
    required("messages", Shape::List(&MESSAGE)),
    optional("tools", Shape::List(&TOOL)),
    optional("format", Shape::TextOr(&Shape::Object)),
    optional("options", OPTIONS),
    optional("stream", Shape::Flag),
    optional("think", Shape::Any),
    optional("keep_alive", Shape::Any),
    optional("truncate", Shape::Flag),
    optional("shift", Shape::Flag),
    optional("logprobs", Shape::Flag),
    optional("top_logprobs", Shape::Integer(0, 20)),
];

const MESSAGE: Shape = Shape::Fields(&[
    required("role", Shape::Word(&["system", "user", "assistant", "tool"])),
    optional("content", Shape::Text),
    optional("thinking", Shape::Text),
    optional("images", Shape::List(&Shape::Text)),
    optional("tool_calls", Shape::List(&CALL)),
    optional("tool_name", Shape::Text),
    optional("tool_call_id", Shape::Text),
]);

const CALL: Shape = Shape::Fields(&[
    optional("id", Shape::Text),
    optional("type", Shape::Word(&["function"])),
    required(
        "function",
        Shape::Fields(&[
            required("name", Shape::Text),
            required("arguments", Shape::Object),
            optional("index", Shape::Integer(0, i64::MAX)),
            optional("description", Shape::Text),
        ]),
    ),
]);

const TOOL: Shape = Shape::Fields(&[
    required("type", Shape::Word(&["function"])),
    required(
        "function",
        Shape::Fields(&[
            required("name", Shape::Text),
            optional("description", Shape::Text),
            optional("parameters", Shape::Object),
        ]),
    ),
]);

const WHOLE: Shape = Shape::Integer(i64::MIN, i64::MAX);
const REAL: Shape = Shape::Number(f64::MIN, f64::MAX);

const OPTIONS: Shape = Shape::Fields(&[
    optional("num_ctx", WHOLE),
    optional("num_predict", WHOLE),
    optional("num_keep", WHOLE),
    optional("num_batch", WHOLE),
    optional("num_gpu", WHOLE),
    optional("main_gpu", WHOLE),
    optional("num_thread", WHOLE),
    optional("use_mmap", Shape::Flag),
    optional("seed", WHOLE),
    optional("temperature", REAL),
    optional("top_k", WHOLE),
    optional("top_p", REAL),
    optional("min_p", REAL),
    optional("typical_p", REAL),
    optional("repeat_last_n", WHOLE),
    optional("repeat_penalty", REAL),
    optional("presence_penalty", REAL),
    optional("frequency_penalty", REAL),
    optional("stop", Shape::List(&Shape::Text)),
]);

pub(super) fn check(call: &Call<'_>, request: &Value, findings: &mut Findings) {
    check_content_type(&call.parts.headers, findings);
    Shape::Fields(REQUEST).check(request, "", findings);
    if !findings.0.is_empty() {
        return;
    }
    let format = &request["format"];
    let known = !format.is_string() || format == "json" || format == "";
    findings.require(
        known,
        Rule::OutputSchema,
        "format",
        "invalid format: expected \"json\" or a JSON schema",
    );
    let think = &request["think"];
    let is_level = think.as_str().is_some_and(|level| ["low", "medium", "high", "max"].contains(&level));
    let message = "must be a boolean or one of low, medium, high and max";
    findings.require(think.is_null() || think.is_boolean() || is_level, Rule::Range, "think", message);
    check_tools(request, findings);
    check_messages(request, findings);
}

fn check_tools(request: &Value, findings: &mut Findings) {
    let names: Vec<_> = list(&request["tools"]).map(|tool| &tool["function"]["name"]).collect();
    for (index, tool) in list(&request["tools"]).enumerate() {
        let path = format!("tools.{index}.function");
        findings.require(names[index] != "", Rule::Name, format_args!("{path}.name"), "must not be empty");
        let repeated = names.iter().take(index).any(|name| *name == names[index]);
        findings.require(!repeated, Rule::DuplicateTool, &path, "is the name of an earlier tool");
        let parameters = &tool["function"]["parameters"];
        let is_object = parameters.is_null() || parameters["type"] == "object";
        findings.require(is_object, Rule::Parameters, &path, "parameters must have the type \"object\"");
    }
}

fn check_messages(request: &Value, findings: &mut Findings) {
    let messages: Vec<_> = list(&request["messages"]).collect();
    findings.require(!messages.is_empty(), Rule::NoMessages, "messages", "must not be empty");
    let mut n_open = 0;
    for (index, message) in messages.iter().enumerate() {
        let path = format!("messages.{index}");
        let is_tool = message["role"] == "tool";
        if is_tool {
            findings.require(n_open > 0, Rule::ResultWithoutCall, &path, "no call is open");
            n_open = usize::saturating_sub(n_open, 1);
        } else {
            findings.require(n_open == 0, Rule::Unanswered, &path, "calls before it have no tool message");
            n_open = list(&message["tool_calls"]).count();
        }
        check_message(&path, message, findings);
    }
    findings.require(n_open == 0, Rule::Unanswered, "messages", "the last calls have no tool message");
}

fn check_message(path: &str, message: &Value, findings: &mut Findings) {
    let role = message["role"].as_str().unwrap_or_default();
    let calls = message["tool_calls"].is_array();
    findings.require(
        role == "assistant" || !calls,
        Rule::FieldForRole,
        path,
        "only an assistant calls tools",
    );
    let silent = message["content"].as_str().is_none_or(str::is_empty);
    let has_images = list(&message["images"]).next().is_some();
    let excused =
        calls || has_images || role == "tool" || role == "assistant" && message["thinking"].is_string();
    findings.require(!silent || excused, Rule::EmptyMessage, path, "says nothing");
    for image in list(&message["images"]).filter_map(Value::as_str) {
        let known = media::image_type_of_base64(image).is_some();
        findings.require(known, Rule::Media, path, "illegal base64 data, or no image");
    }
}
