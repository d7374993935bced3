//! What a request to the messages API may hold, field by field.

use crate::model_server::shape::{Field, Shape, optional, required};

/// The body of `POST /v1/messages`. Sampling left the API with its version of October 2026.
pub(super) const REQUEST: &[Field] = &[
    required("model", Shape::Text),
    required("max_tokens", Shape::Integer(1, 1_000_000)),
    required("messages", Shape::List(&MESSAGE)),
    optional("system", Shape::TextOr(&Shape::List(&TEXT_ONLY))),
    optional("tools", Shape::List(&TOOL)),
    optional("tool_choice", TOOL_CHOICE),
    optional("thinking", THINKING),
    optional("output_config", OUTPUT_CONFIG),
    optional("stream", Shape::Flag),
    optional("stop_sequences", Shape::List(&Shape::Text)),
    optional("metadata", Shape::Fields(&[optional("user_id", Shape::Text)])),
    optional("service_tier", Shape::Word(&["auto", "standard_only"])),
    optional("cache_control", CACHE_CONTROL),
    optional("container", Shape::Any),
    optional("diagnostics", Shape::Fields(&[optional("previous_message_id", Shape::Text)])),
    optional("inference_geo", Shape::Text),
    optional("speed", Shape::Word(&["standard", "fast"])),
    optional("user_profile_id", Shape::Text),
    optional("workspace_id", Shape::Text),
];

/// What the first version of the API takes beside that.
pub(super) const SAMPLING: [(&str, Shape); 3] = [
    ("temperature", Shape::Number(0.0, 1.0)),
    ("top_p", Shape::Number(0.0, 1.0)),
    ("top_k", Shape::Integer(0, i64::MAX)),
];

const MESSAGE: Shape = Shape::Fields(&[
    required("role", Shape::Word(&["user", "assistant", "system"])),
    required("content", Shape::TextOr(&Shape::List(&BLOCK))),
]);

const TEXT: &[Field] = &[
    required("text", Shape::Text),
    optional("cache_control", CACHE_CONTROL),
    optional("citations", Shape::List(&Shape::Object)),
];
const IMAGE: &[Field] = &[
    required("source", IMAGE_SOURCE),
    optional("cache_control", CACHE_CONTROL),
    optional("transformations", Shape::Object),
];
const DOCUMENT: &[Field] = &[
    required("source", Shape::Object),
    optional("cache_control", CACHE_CONTROL),
    optional("citations", Shape::Object),
    optional("context", Shape::Text),
    optional("title", Shape::Text),
];

const TEXT_ONLY: Shape = Shape::Tagged("type", &[("text", TEXT)]);

const BLOCK: Shape = Shape::Tagged(
    "type",
    &[
        ("text", TEXT),
        ("image", IMAGE),
        ("document", DOCUMENT),
        ("thinking", &[required("thinking", Shape::Text), required("signature", Shape::Text)]),
        ("redacted_thinking", &[required("data", Shape::Text)]),
        ("tool_use", TOOL_USE),
        ("server_tool_use", TOOL_USE),
        ("tool_result", TOOL_RESULT),
    ],
);

const TOOL_USE: &[Field] = &[
    required("id", Shape::Text),
    required("name", Shape::Text),
    required("input", Shape::Object),
    optional("cache_control", CACHE_CONTROL),
    optional("caller", Shape::Object),
    optional("toolset_name", Shape::Text),
];

const TOOL_RESULT: &[Field] = &[
    required("tool_use_id", Shape::Text),
    optional("content", Shape::TextOr(&Shape::List(&RESULT_BLOCK))),
    optional("is_error", Shape::Flag),
    optional("cache_control", CACHE_CONTROL),
    optional("toolset_name", Shape::Text),
];
const RESULT_BLOCK: Shape =
    Shape::Tagged("type", &[("text", TEXT), ("image", IMAGE), ("document", DOCUMENT)]);

const IMAGE_SOURCE: Shape = Shape::Tagged(
    "type",
    &[
        (
            "base64",
            &[
                required("media_type", Shape::Word(&["image/jpeg", "image/png", "image/gif", "image/webp"])),
                required("data", Shape::Text),
            ],
        ),
        ("url", &[required("url", Shape::Text)]),
        ("file", &[required("file_id", Shape::Text)]),
    ],
);

const CACHE_CONTROL: Shape =
    Shape::Tagged("type", &[("ephemeral", &[optional("ttl", Shape::Word(&["5m", "1h"]))])]);

/// Tools of the caller's own; those that the vendor runs are not scripted here.
const TOOL: Shape = Shape::Fields(&[
    required("name", Shape::Text),
    required("input_schema", Shape::Object),
    optional("description", Shape::Text),
    optional("type", Shape::Word(&["custom"])),
    optional("cache_control", CACHE_CONTROL),
    optional("strict", Shape::Flag),
    optional("defer_loading", Shape::Flag),
    optional("eager_input_streaming", Shape::Flag),
    optional("input_examples", Shape::List(&Shape::Object)),
    optional("allowed_callers", Shape::List(&Shape::Text)),
]);

const PARALLEL: Field = optional("disable_parallel_tool_use", Shape::Flag);

const TOOL_CHOICE: Shape = Shape::Tagged(
    "type",
    &[
        ("auto", &[PARALLEL]),
        ("any", &[PARALLEL]),
        ("none", &[]),
        ("tool", &[required("name", Shape::Text), PARALLEL]),
    ],
);

const DISPLAY: Field = optional("display", Shape::Word(&["summarized", "omitted"]));

const THINKING: Shape = Shape::Tagged(
    "type",
    &[
        ("enabled", &[required("budget_tokens", Shape::Integer(1024, i64::MAX)), DISPLAY]),
        ("adaptive", &[DISPLAY]),
        ("between_tools", &[]),
        ("disabled", &[]),
    ],
);

const OUTPUT_CONFIG: Shape = Shape::Fields(&[
    optional("effort", Shape::Word(&["low", "medium", "high", "xhigh", "max"])),
    optional("format", Shape::Tagged("type", &[("json_schema", &[required("schema", Shape::Object)])])),
]);
