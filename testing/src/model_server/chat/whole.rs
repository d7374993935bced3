//! A completion as one JSON object, for requests that don't stream, and the usage both ways report.

use serde::Serialize;

use super::finish_reason;
use crate::model_server::completion::{Completion, MadeCall};
use crate::model_server::script::Usage;

/// The moment every answer was made: equal requests get equal answers.
pub(in crate::model_server) const CREATED: u64 = 1_700_000_000;

/// Puts a completion into one object.
pub(super) fn render(completion: &Completion<'_>) -> Vec<u8> {
    let message = Message {
        role: "assistant",
        content: completion.text.as_deref(),
        tool_calls: completion.calls.iter().map(Call::from).collect(),
        refusal: completion.refusal.as_deref(),
        annotations: [],
    };
    let body = Body {
        id: &format!("chatcmpl-{}", completion.id),
        object: "chat.completion",
        created: CREATED,
        model: &completion.model,
        choices: [Choice {
            index: 0,
            message,
            logprobs: (),
            finish_reason: finish_reason(completion.finish),
        }],
        usage: completion.usage.map(UsageReport::from),
        service_tier: "default",
        system_fingerprint: "fp_scripted",
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

/// The usage in the vendor's shape.
#[derive(Serialize)]
pub(super) struct UsageReport {
    prompt_tokens: i64,
    completion_tokens: i64,
    total_tokens: i64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Serialize)]
struct PromptDetails {
    cached_tokens: i64,
    cache_write_tokens: i64,
    audio_tokens: i64,
}

#[derive(Serialize)]
struct CompletionDetails {
    reasoning_tokens: i64,
    audio_tokens: i64,
    accepted_prediction_tokens: i64,
    rejected_prediction_tokens: i64,
}

#[derive(Serialize)]
struct Body<'c> {
    id: &'c str,
    object: &'c str,
    created: u64,
    model: &'c str,
    choices: [Choice<'c>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageReport>,
    service_tier: &'c str,
    system_fingerprint: &'c str,
}

#[derive(Serialize)]
struct Choice<'c> {
    index: u32,
    message: Message<'c>,
    logprobs: (),
    finish_reason: &'c str,
}

#[derive(Serialize)]
struct Message<'c> {
    role: &'c str,
    content: Option<&'c str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'c>>,
    refusal: Option<&'c str>,
    annotations: [(); 0],
}

#[derive(Serialize)]
struct Call<'c> {
    id: &'c str,
    r#type: &'c str,
    function: Function<'c>,
}

#[derive(Serialize)]
struct Function<'c> {
    name: &'c str,
    arguments: &'c str,
}

impl<'c> From<&'c MadeCall> for Call<'c> {
    fn from(call: &'c MadeCall) -> Self {
        let function = Function { name: &call.name, arguments: &call.arguments };
        Call { id: &call.id, r#type: "function", function }
    }
}

impl From<Usage> for UsageReport {
    fn from(usage: Usage) -> Self {
        let Usage { prompt_tokens, completion_tokens, cache_read, cache_write, reasoning } = usage;
        UsageReport {
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens.saturating_add(completion_tokens),
            prompt_tokens_details: PromptDetails {
                cached_tokens: cache_read,
                cache_write_tokens: cache_write,
                audio_tokens: 0,
            },
            completion_tokens_details: CompletionDetails {
                reasoning_tokens: reasoning,
                audio_tokens: 0,
                accepted_prediction_tokens: 0,
                rejected_prediction_tokens: 0,
            },
        }
    }
}
