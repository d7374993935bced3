//! What was said, as the conventions write it into a span: only for who asked for it, and without secrets.

use ostler_agent::llm::{Completion, Message, ModelRequest, secrets::Redactor};
use ostler_kernel::{Block, Role};
use ostler_telemetry::{Telemetry, Value, genai};
use serde_json::{Value as Json, json};

/// Of one attribute. A collector would refuse more than a few megabytes for all of an export.
const MOST: usize = 64 * 1024;

pub(crate) struct Content(Redactor);

impl Content {
    pub fn wanted(telemetry: &Telemetry, redactor: &Redactor) -> Option<Self> {
        telemetry.has_content().then(|| Self(redactor.clone()))
    }

    pub fn of_request(&self, request: &ModelRequest) -> Vec<(&'static str, Value)> {
        let mut said = Vec::new();
        if !request.system.is_empty() {
            let system = json!([{ "type": "text", "content": request.system }]);
            said.push((genai::SYSTEM_INSTRUCTIONS, self.written(system)));
        }
        let messages: Vec<Json> = request.messages.iter().map(message).collect();
        said.push((genai::INPUT_MESSAGES, self.written(messages.into())));
        said
    }

    pub fn of_answer(&self, completion: &Completion, finish: &str) -> (&'static str, Value) {
        let parts: Vec<Json> = completion.blocks.iter().filter_map(part).collect();
        let message = json!([{ "role": "assistant", "parts": parts, "finish_reason": finish }]);
        (genai::OUTPUT_MESSAGES, self.written(message))
    }

    pub fn of_arguments(&self, arguments: &Json) -> (&'static str, Value) {
        (genai::TOOL_ARGUMENTS, self.written(arguments.clone()))
    }

    pub fn of_result(&self, result: &str) -> (&'static str, Value) {
        (genai::TOOL_RESULT, Value::Text(bounded(self.0.hidden_words(result))))
    }

    fn written(&self, mut json: Json) -> Value {
        self.0.clean_json(&mut json);
        Value::Text(bounded(json.to_string()))
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > MOST {
        text.truncate(text.floor_char_boundary(MOST));
        text.push('…');
    }
    text
}

fn message(message: &Message) -> Json {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    json!({ "role": role, "parts": message.blocks.iter().filter_map(part).collect::<Vec<Json>>() })
}

/// What only a vendor understands is nobody else's to read.
fn part(block: &Block) -> Option<Json> {
    match block {
        Block::Text { text } => Some(json!({ "type": "text", "content": text })),
        Block::ToolCall { id, name, arguments } => {
            let arguments =
                serde_json::from_str(arguments).unwrap_or_else(|_| Json::from(arguments.as_str()));
            Some(json!({ "type": "tool_call", "id": id, "name": name, "arguments": arguments }))
        }
        Block::ToolResult { call_id, content, .. } => {
            Some(json!({ "type": "tool_call_response", "id": call_id, "response": content }))
        }
        Block::Image(image) => {
            Some(json!({ "type": "blob", "modality": "image", "mime_type": image.media_type }))
        }
        Block::Native { .. } => None,
    }
}
