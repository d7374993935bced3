//! The responses wire. Nothing is kept at the vendor's unless asked for: each call carries the whole conversation, and a
//! model's encrypted thinking with it, so that the journal stays the only truth.

mod answer;
mod request;

pub(super) use answer::Answer;
pub(super) use request::{body, thinks};

use crate::options::{Known, Shape};

pub(super) const OPTIONS: Known = &[
    ("encrypted_reasoning", Shape::Flag),
    ("max_output_tokens", Shape::Integer),
    ("max_tokens", Shape::Integer),
    ("metadata", Shape::Object),
    ("parallel_tool_calls", Shape::Flag),
    ("prompt_cache_key", Shape::Text),
    ("prompt_cache_options", Shape::Object),
    ("prompt_cache_retention", Shape::Text),
    ("reasoning_effort", Shape::Text),
    ("reasoning_summary", Shape::Text),
    ("safety_identifier", Shape::Text),
    ("service_tier", Shape::Text),
    ("store", Shape::Flag),
    ("temperature", Shape::Number),
    ("top_p", Shape::Number),
    ("truncation", Shape::Text),
    ("user", Shape::Text),
    ("verbosity", Shape::Text),
];
