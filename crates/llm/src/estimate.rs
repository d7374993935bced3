//! How many tokens a call probably used, for vendors that report none: one for every four bytes. Bytes and
//! not letters, since a letter of a script that needs three of them is mostly a token of its own.

use ostler_kernel::{Block, step::Usage};

use crate::ModelRequest;

/// What a message or a tool costs beside its words.
const FRAME: usize = 16;

/// What an image costs, in bytes of text: vendors count by its size in pixels, 1,000 tokens and more for most.
const IMAGE: usize = 4 * 1000;

pub fn estimate(request: &ModelRequest, answer: &[Block]) -> Usage {
    let messages: usize = request.messages.iter().map(|message| FRAME + size(&message.blocks)).sum();
    let tools: usize = request
        .tools
        .iter()
        .map(|tool| FRAME + tool.name.len() + tool.description.len() + json_size(&tool.schema))
        .sum();
    Usage {
        input_tokens: tokens(request.system.len() + messages + tools),
        output_tokens: tokens(size(answer)),
        estimated: true,
        ..Usage::default()
    }
}

fn size(blocks: &[Block]) -> usize {
    let sizes = blocks.iter().map(|block| match block {
        Block::Text { text } => text.len(),
        Block::ToolCall { name, arguments, .. } => FRAME + name.len() + arguments.len(),
        Block::ToolResult { content, images, .. } => FRAME + content.len() + images.len() * IMAGE,
        Block::Image(_) => IMAGE,
        Block::Native { value, .. } => json_size(value),
    });
    sizes.sum()
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

fn json_size(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Null => 0,
        value => value.to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ostler_kernel::{Role, plan::ModelPlan};
    use serde_json::json;

    use super::*;
    use crate::{Message, ToolOffer};

    #[test]
    fn every_part_counts() {
        let endpoint = ModelPlan {
            endpoint: String::new(),
            provider: String::new(),
            base_url: String::new(),
            model: String::new(),
            options: BTreeMap::new(),
            secret_ref: None,
            allow_private: false,
        };
        let text = |n: usize| Block::Text { text: "x".repeat(n) };
        let mut request = ModelRequest {
            endpoint,
            system: "s".repeat(40),
            messages: vec![Message { role: Role::User, blocks: vec![text(384)] }],
            tools: vec![],
            output_schema: None,
            request_id: String::new(),
        };
        let usage = estimate(&request, &[text(41)]);
        assert_eq!(
            usage,
            Usage { input_tokens: 110, output_tokens: 11, estimated: true, ..Usage::default() }
        );
        request.tools =
            vec![ToolOffer { name: "t".into(), description: "d".into(), schema: json!({"type": "object"}) }];
        assert_eq!(estimate(&request, &[]).input_tokens, 110 + (16 + 2 + 17_u64).div_ceil(4));
    }
}
