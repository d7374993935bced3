//! The chat completions wire: what goes out is built in `request`, what comes back is read in `answer`.

mod answer;
mod chunk;
mod request;

pub(super) use answer::Answer;
pub(super) use request::body;

use crate::options::{Known, Shape};

pub(super) const OPTIONS: Known = &[
    ("frequency_penalty", Shape::Number),
    ("logit_bias", Shape::Object),
    ("max_completion_tokens", Shape::Integer),
    ("max_tokens", Shape::Integer),
    ("metadata", Shape::Object),
    ("parallel_tool_calls", Shape::Flag),
    ("presence_penalty", Shape::Number),
    ("prompt_cache_key", Shape::Text),
    ("prompt_cache_options", Shape::Object),
    ("prompt_cache_retention", Shape::Text),
    ("reasoning_effort", Shape::Text),
    ("response_format", Shape::Object),
    ("safety_identifier", Shape::Text),
    ("seed", Shape::Integer),
    ("service_tier", Shape::Text),
    ("stop", Shape::Texts),
    ("store", Shape::Flag),
    ("temperature", Shape::Number),
    ("top_p", Shape::Number),
    ("user", Shape::Text),
    ("verbosity", Shape::Text),
    ("web_search_options", Shape::Object),
];

/// What servers of open models know beside those.
pub(super) const COMPATIBLE: Known = &[
    ("chat_template_kwargs", Shape::Object),
    ("min_p", Shape::Number),
    ("repetition_penalty", Shape::Number),
    ("top_k", Shape::Integer),
];
