//! What was said, as the conventions write it into a span: only for who asked for it, and without secrets. All of it leaves for
//! somebody else, so what looks like a key is hidden too, whoever wrote it.

use ostler_agent::llm::{
    Completion, Message, ModelRequest, ToolOffer,
    secrets::{HIDDEN, Redactor},
};
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
        if !request.tools.is_empty() {
            let tools: Vec<Json> = request.tools.iter().map(definition).collect();
            said.push((genai::TOOL_DEFINITIONS, self.written(tools.into())));
        }
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
        self.clean_words(&mut json);
        Value::Text(bounded(json.to_string()))
    }

    /// Text by text, since a key that stands behind an escaped sign would not be seen in all of it together.
    fn clean_words(&self, json: &mut Json) {
        match json {
            Json::String(text) => *text = self.0.hidden_words(text),
            Json::Array(items) => items.iter_mut().for_each(|item| self.clean_words(item)),
            Json::Object(members) => members.iter_mut().for_each(|(name, member)| {
                self.clean_words(member);
                self.clean_labelled(name, member);
            }),
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    /// A member's name may tell what its value is, as in `{"password": "..."}`.
    fn clean_labelled(&self, name: &str, member: &mut Json) {
        let value = match &*member {
            Json::String(text) => text.clone(),
            Json::Number(number) => number.to_string(),
            Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => return,
        };
        // In quotes, or of several words only the first would be taken for the value.
        let said = json!({ name: value }).to_string();
        let hidden = self.0.hidden_words(&said);
        if hidden != said {
            let cleaned = serde_json::from_str::<Json>(&hidden).ok();
            *member = cleaned.and_then(|cleaned| cleaned.get(name).cloned()).unwrap_or_else(|| HIDDEN.into());
        }
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

fn definition(tool: &ToolOffer) -> Json {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
    })
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

#[cfg(test)]
mod tests {
    use ostler_agent::llm::Finish;
    use ostler_kernel::plan::ModelPlan;

    use super::*;

    const KEY: &str = "sk-proj-0123456789abcdef";

    fn content() -> Content {
        let redactor = Redactor::default();
        redactor.hide("geheim-wort-1");
        Content(redactor)
    }

    fn text((_, value): (&'static str, Value)) -> String {
        match value {
            Value::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn whatever_is_told_of_a_call_is_cleaned_alike() {
        let said = format!("mine:\n{KEY} and geheim-wort-1");
        let block = Block::Text { text: said.clone() };
        let request = ModelRequest {
            endpoint: ModelPlan::default(),
            system: said.clone(),
            messages: vec![Message { role: Role::User, blocks: vec![block.clone()] }],
            tools: vec![ToolOffer {
                name: "search".into(),
                description: said.clone(),
                schema: json!({"type": "object"}),
            }],
            output_schema: None,
            request_id: String::new(),
        };
        let completion = Completion {
            blocks: vec![block],
            finish: Finish::Stop,
            usage: None,
            identity: Default::default(),
        };
        let content = content();
        let mut all: Vec<String> = content.of_request(&request).into_iter().map(text).collect();
        assert!(all[2].contains(r#""name":"search""#), "the tools on offer: {all:?}");
        all.push(text(content.of_answer(&completion, "stop")));
        all.push(text(content.of_arguments(&json!({ "q": said }))));
        all.push(text(content.of_result(&said)));
        for told in all {
            assert!(!told.contains(KEY) && !told.contains("geheim-wort-1"), "{told}");
            assert!(told.contains("mine:"), "and the rest stays: {told}");
        }
    }

    #[test]
    fn a_name_tells_what_its_value_is() {
        let arguments = json!({"user": "ann", "password": "hush-1 \"and\" more", "deep": {"api_key": 12345}, "max_tokens": 5});
        let told: Json = serde_json::from_str(&text(content().of_arguments(&arguments))).unwrap();
        let hidden = "[REDACTED]";
        let expected =
            json!({"user": "ann", "password": hidden, "deep": {"api_key": hidden}, "max_tokens": 5});
        assert_eq!(told, expected);
    }
}
