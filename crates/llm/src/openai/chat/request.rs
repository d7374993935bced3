//! What goes out: our conversation in the words of chat completions. The wire has no mark for a failed tool, so the
//! result says it; and no image in a tool's result, so the user shows it.

use std::{borrow::Cow, collections::BTreeMap};

use ostler_kernel::{Block, Failure, Role, conversation::Image};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    Message, ModelRequest, ToolOffer,
    call::written,
    names::ToolNames,
    openai::cache::{BREAKPOINT, Breakpoint, MARKED_TURNS},
    options::Options,
    schema::{self, parameters},
};

/// The vendor refuses longer ones.
const MAX_DESCRIPTION: usize = 1024;

pub(crate) fn body(
    request: &ModelRequest,
    (model, mark): (&str, &str),
    names: &ToolNames,
    mut options: Options,
    marks_prompts: bool,
) -> Result<Vec<u8>, Failure> {
    let has_tools = !request.tools.is_empty();
    if !has_tools {
        options.take("parallel_tool_calls");
    }
    if request.output_schema.is_some() {
        options.take("response_format");
    }
    let mut messages = messages(request, mark, names);
    if marks_prompts {
        mark_prompt(&mut messages);
    }
    written(&Body {
        model,
        messages,
        tools: request.tools.iter().map(|offer| tool(offer, names)).collect(),
        tool_choice: has_tools.then_some("auto"),
        response_format: request.output_schema.as_ref().map(response_format),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        options: options.rest(),
    })
}

fn response_format(schema: &Value) -> Value {
    let strict = schema::is_strict(schema);
    json!({
        "type": "json_schema",
        "json_schema": {"name": schema::ANSWER, "schema": schema, "strict": strict},
    })
}

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    messages: Vec<WireMessage<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(flatten)]
    options: &'r BTreeMap<&'static str, Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'r> {
    System {
        content: Content<'r>,
    },
    User {
        content: Content<'r>,
    },
    Assistant {
        content: Option<Cow<'r, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'r>>,
        #[serde(flatten)]
        native: BTreeMap<&'r str, &'r Value>,
    },
    Tool {
        tool_call_id: &'r str,
        content: Cow<'r, str>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'r> {
    Text(Cow<'r, str>),
    Parts(Vec<Part<'r>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'r> {
    Text {
        text: Cow<'r, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Breakpoint>,
    },
    ImageUrl {
        image_url: ImageUrl,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Breakpoint>,
    },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct WireCall<'r> {
    id: &'r str,
    r#type: &'static str,
    function: WireFunction<'r>,
}

#[derive(Serialize)]
struct WireFunction<'r> {
    name: Cow<'r, str>,
    arguments: &'r str,
}

#[derive(Serialize)]
struct WireTool<'r> {
    r#type: &'static str,
    function: WireOffer<'r>,
}

#[derive(Serialize)]
struct WireOffer<'r> {
    name: Cow<'r, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: Cow<'r, str>,
    parameters: Cow<'r, Value>,
}

fn messages<'r>(request: &'r ModelRequest, mark: &str, names: &'r ToolNames) -> Vec<WireMessage<'r>> {
    let mut wire = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        wire.push(WireMessage::System { content: Content::Text(Cow::Borrowed(&request.system)) });
    }
    for message in &request.messages {
        match message.role {
            Role::User | Role::Tool => push_heard(message, &mut wire),
            Role::Assistant => wire.extend(assistant(message, mark, names)),
        }
    }
    wire
}

/// Marks where the prompt ends that the next call begins with: behind the system's words, and behind the user's last.
fn mark_prompt(messages: &mut [WireMessage<'_>]) {
    let mut n_marked = 0;
    for message in messages.iter_mut().rev() {
        match message {
            WireMessage::System { content } => content.mark(),
            WireMessage::User { content } if n_marked < MARKED_TURNS => {
                content.mark();
                n_marked += 1;
            }
            WireMessage::User { .. } | WireMessage::Assistant { .. } | WireMessage::Tool { .. } => {}
        }
    }
}

impl Content<'_> {
    fn mark(&mut self) {
        if let Content::Text(text) = self {
            let text = std::mem::take(text);
            *self = Content::Parts(vec![Part::Text { text, prompt_cache_breakpoint: None }]);
        }
        let Content::Parts(parts) = self else { return };
        match parts.last_mut() {
            Some(
                Part::Text { prompt_cache_breakpoint, .. } | Part::ImageUrl { prompt_cache_breakpoint, .. },
            ) => *prompt_cache_breakpoint = Some(BREAKPOINT),
            None => {}
        }
    }
}

/// What the model was told: the results it waits for first, then what people said.
fn push_heard<'r>(message: &'r Message, wire: &mut Vec<WireMessage<'r>>) {
    let results = message.blocks.iter().filter_map(|block| match block {
        Block::ToolResult { call_id, content, is_error, .. } => {
            Some(WireMessage::Tool { tool_call_id: call_id, content: schema::result(content, *is_error) })
        }
        Block::Text { .. } | Block::ToolCall { .. } | Block::Image(_) | Block::Native { .. } => None,
    });
    wire.extend(results);
    let text = joined(&message.blocks, "\n\n");
    let images: Vec<&Image> = message.blocks.iter().flat_map(images).collect();
    if images.is_empty() {
        if !text.is_empty() {
            wire.push(WireMessage::User { content: Content::Text(text) });
        }
        return;
    }
    let text = (!text.is_empty()).then_some(Part::Text { text, prompt_cache_breakpoint: None });
    let images = images.into_iter().map(|image| Part::ImageUrl {
        image_url: ImageUrl { url: image.data_url() },
        prompt_cache_breakpoint: None,
    });
    wire.push(WireMessage::User { content: Content::Parts(text.into_iter().chain(images).collect()) });
}

fn images(block: &Block) -> &[Image] {
    match block {
        Block::Image(image) => std::slice::from_ref(image),
        Block::ToolResult { images, .. } => images,
        Block::Text { .. } | Block::ToolCall { .. } | Block::Native { .. } => &[],
    }
}

/// What the model said; nothing if it said nothing, since the wire allows no empty message.
fn assistant<'r>(message: &'r Message, mark: &str, names: &'r ToolNames) -> Option<WireMessage<'r>> {
    let mut tool_calls = Vec::new();
    let mut native = BTreeMap::new();
    for block in &message.blocks {
        match block {
            Block::ToolCall { id, name, arguments } => {
                let function =
                    WireFunction { name: names.to_wire(name), arguments: schema::arguments(arguments) };
                tool_calls.push(WireCall { id, r#type: "function", function });
            }
            Block::Native { vendor, value: Value::Object(fields) } if vendor == mark => {
                let foreign = |name: &str| !["role", "content", "tool_calls"].contains(&name);
                let fields = fields.iter().filter(|(name, _)| foreign(name));
                native.extend(fields.map(|(name, value)| (name.as_str(), value)));
            }
            Block::Text { .. } | Block::ToolResult { .. } | Block::Image(_) | Block::Native { .. } => {}
        }
    }
    let content = Some(joined(&message.blocks, "")).filter(|text| !text.is_empty());
    let is_silent = content.is_none() && tool_calls.is_empty() && native.is_empty();
    (!is_silent).then_some(WireMessage::Assistant { content, tool_calls, native })
}

fn joined<'r>(blocks: &'r [Block], between: &str) -> Cow<'r, str> {
    let mut texts = blocks.iter().filter_map(Block::text);
    let Some(first) = texts.next() else { return Cow::Borrowed("") };
    texts.fold(Cow::Borrowed(first), |joined, text| Cow::Owned(joined.into_owned() + between + text))
}

fn tool<'r>(offer: &'r ToolOffer, names: &'r ToolNames) -> WireTool<'r> {
    let description = match offer.description.char_indices().nth(MAX_DESCRIPTION) {
        None => Cow::Borrowed(offer.description.as_str()),
        Some(_) => offer.description.chars().take(MAX_DESCRIPTION - 1).chain(['…']).collect(),
    };
    let parameters = parameters(&offer.schema);
    WireTool {
        r#type: "function",
        function: WireOffer { name: names.to_wire(&offer.name), description, parameters },
    }
}

#[cfg(test)]
mod tests;
