//! What a request for a response may hold, field by field.

use crate::model_server::shape::{Field, Shape, optional, required};

pub(super) const REQUEST: &[Field] = &[
    required("model", Shape::Text),
    required("input", Shape::TextOr(&Shape::List(&ITEM))),
    optional("instructions", Shape::Text),
    optional("tools", Shape::List(&TOOL)),
    optional("tool_choice", Shape::TextOr(&Shape::Object)),
    optional("parallel_tool_calls", Shape::Flag),
    optional("stream", Shape::Flag),
    optional("stream_options", Shape::Fields(&[optional("include_obfuscation", Shape::Flag)])),
    optional("store", Shape::Flag),
    optional("include", Shape::List(&Shape::Text)),
    optional("reasoning", REASONING),
    optional("text", TEXT_CONFIG),
    optional("max_output_tokens", Shape::Integer(16, i64::MAX)),
    optional("max_tool_calls", Shape::Integer(1, i64::MAX)),
    optional("temperature", Shape::Number(0.0, 2.0)),
    optional("top_p", Shape::Number(0.0, 1.0)),
    optional("top_logprobs", Shape::Integer(0, 20)),
    optional("truncation", Shape::Word(&["auto", "disabled"])),
    optional("previous_response_id", Shape::Text),
    optional("conversation", Shape::Any),
    optional("background", Shape::Flag),
    optional("metadata", Shape::Object),
    optional("prompt_cache_key", Shape::Text),
    optional("prompt_cache_options", Shape::Object),
    optional("prompt_cache_retention", Shape::Word(&["in_memory", "24h"])),
    optional("safety_identifier", Shape::Text),
    optional("service_tier", Shape::Word(&["auto", "default", "flex", "scale", "priority", "fast"])),
    optional("user", Shape::Text),
    optional("context_management", Shape::List(&Shape::Object)),
    optional("moderation", Shape::Object),
];

const STATUS: Field = optional("status", Shape::Word(&["in_progress", "completed", "incomplete"]));
const ID: Field = optional("id", Shape::Text);

const ITEM: Shape = Shape::Tagged(
    "type",
    &[
        (
            "message",
            &[
                required("role", Shape::Word(&["user", "assistant", "system", "developer"])),
                required("content", Shape::TextOr(&Shape::List(&CONTENT))),
                optional("phase", Shape::Word(&["commentary", "final_answer"])),
                ID,
                STATUS,
            ],
        ),
        (
            "function_call",
            &[
                required("call_id", Shape::Text),
                required("name", Shape::Text),
                required("arguments", Shape::Text),
                optional("caller", Shape::Object),
                optional("namespace", Shape::Text),
                optional("async", Shape::Flag),
                ID,
                STATUS,
            ],
        ),
        (
            "function_call_output",
            &[
                required("call_id", Shape::Text),
                required("output", Shape::TextOr(&Shape::List(&CONTENT))),
                optional("caller", Shape::Object),
                optional("name", Shape::Text),
                optional("namespace", Shape::Text),
                ID,
                STATUS,
            ],
        ),
        (
            "reasoning",
            &[
                required("id", Shape::Text),
                required("summary", Shape::List(&Shape::Tagged("type", &[("summary_text", TEXT)]))),
                optional("content", Shape::List(&Shape::Tagged("type", &[("reasoning_text", TEXT)]))),
                optional("encrypted_content", Shape::Text),
                STATUS,
            ],
        ),
        ("item_reference", &[required("id", Shape::Text)]),
    ],
);

const TEXT: &[Field] = &[required("text", Shape::Text)];
const BREAKPOINT: Field = optional("prompt_cache_breakpoint", Shape::Object);

const CONTENT: Shape = Shape::Tagged(
    "type",
    &[
        ("input_text", &[required("text", Shape::Text), BREAKPOINT]),
        (
            "input_image",
            &[
                optional("detail", Shape::Word(&["low", "high", "auto", "original"])),
                optional("image_url", Shape::Text),
                optional("file_id", Shape::Text),
                BREAKPOINT,
            ],
        ),
        (
            "input_file",
            &[
                optional("file_data", Shape::Text),
                optional("file_id", Shape::Text),
                optional("file_url", Shape::Text),
                optional("filename", Shape::Text),
                optional("detail", Shape::Text),
                BREAKPOINT,
            ],
        ),
        (
            "output_text",
            &[
                required("text", Shape::Text),
                optional("annotations", Shape::List(&Shape::Object)),
                optional("logprobs", Shape::List(&Shape::Object)),
            ],
        ),
        ("refusal", &[required("refusal", Shape::Text)]),
    ],
);

/// Functions of the caller's own; tools that the vendor runs are not scripted here.
const TOOL: Shape = Shape::Tagged(
    "type",
    &[(
        "function",
        &[
            required("name", Shape::Text),
            optional("description", Shape::Text),
            optional("parameters", Shape::Object),
            optional("strict", Shape::Flag),
            optional("defer_loading", Shape::Flag),
            optional("allowed_callers", Shape::List(&Shape::Text)),
            optional("output_schema", Shape::Object),
            optional("async", Shape::Flag),
        ],
    )],
);

const REASONING: Shape = Shape::Fields(&[
    optional("effort", Shape::Word(&["none", "minimal", "low", "medium", "high", "xhigh", "max"])),
    optional("summary", Shape::Word(&["auto", "concise", "detailed"])),
    optional("context", Shape::Word(&["auto", "current_turn", "all_turns"])),
    optional("generate_summary", Shape::Word(&["auto", "concise", "detailed"])),
    optional("mode", Shape::Text),
]);

const TEXT_CONFIG: Shape = Shape::Fields(&[
    optional("verbosity", Shape::Word(&["low", "medium", "high"])),
    optional(
        "format",
        Shape::Tagged(
            "type",
            &[
                ("text", &[]),
                ("json_object", &[]),
                (
                    "json_schema",
                    &[
                        required("name", Shape::Text),
                        required("schema", Shape::Object),
                        optional("description", Shape::Text),
                        optional("strict", Shape::Flag),
                    ],
                ),
            ],
        ),
    ),
]);
