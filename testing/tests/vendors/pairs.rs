//! A conversation that changes its vendor in the middle, from every one to every other and back: the other reads what it
//! can, and is sent nothing that it refuses.

use ostler_kernel::Block;
use ostler_llm::Completion;
use ostler_testing::model_server::{Script, Turn};
use serde_json::{Value, json};

use crate::setup::{ALL, Ground, answered, offer, user};

fn script() -> Script {
    let first =
        Turn::text("I look.").and_call("look-up", &json!({"q": "1"})).and_call("look-up", &json!({"q": "2"}));
    Script::turns([
        first.thinking("two at once"),
        Turn::call("look-up", &json!({"q": "3"})).thinking("one more"),
        Turn::call("look-up", &json!({"q": "4"})).thinking("and one"),
        Turn::text("done").thinking("enough"),
        Turn::text("bye"),
    ])
}

/// What stands in the native blocks of an answer and nowhere else: signatures, which the server makes so that they prove
/// themselves, or the words of who signs nothing.
fn native_proofs(completion: &Completion) -> Vec<String> {
    fn texts(value: &Value) -> Vec<&str> {
        match value {
            Value::String(text) => vec![text],
            Value::Array(values) => values.iter().flat_map(texts).collect(),
            Value::Object(fields) => fields.values().flat_map(texts).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
        }
    }
    let natives = completion.blocks.iter().filter_map(|block| match block {
        Block::Native { value, .. } => Some(value),
        _ => None,
    });
    let is_proof = |text: &&str| text.starts_with("c2lnbmVk") || *text == "two at once";
    natives.flat_map(texts).filter(is_proof).map(str::to_owned).collect()
}

#[tokio::test]
async fn every_pair_of_vendors_takes_over_from_each_other() {
    for first in ALL {
        for second in ALL {
            let ground = Ground::with(first, script()).await;
            let name = format!("{} to {}", first.name, second.name);
            let mut messages = vec![user("go")];
            let mut proofs = Vec::new();
            // Amid the calls of tools, back again amid them, and once more when all was said.
            for vendor in [first, second, first, second, second] {
                let mut request = ground.thinking_request(messages.clone());
                request.endpoint = vendor.plan(&ground.server);
                let thinking =
                    vendor.thinking.iter().map(|(name, value)| (name.to_string(), value.to_string()));
                request.endpoint.options.extend(thinking);
                request.tools = vec![offer("look-up")];
                let completion = ground.complete(&request).await;
                let sent = ground.last_body();
                match ground.server.requests().len() {
                    1 => proofs = native_proofs(&completion),
                    // The first is back: what only it understands has come back to it, to the letter.
                    3 => {
                        let lost: Vec<_> = proofs.iter().filter(|proof| !sent.contains(*proof)).collect();
                        assert!(lost.is_empty(), "{name}: {lost:?} did not come back in {sent}");
                        assert_eq!(proofs.is_empty(), !first.thinks, "{name}");
                    }
                    _ => {}
                }
                messages.extend(answered(&completion));
                if !completion.blocks.iter().any(|block| matches!(block, Block::ToolCall { .. })) {
                    messages.push(user("and?"));
                }
            }
            assert_eq!(ground.server.violations(), [], "{name}");
            assert_eq!(ground.server.desk().all().answered, 5, "{name}");
            let sent = ground.last_body();
            assert!(
                sent.contains("I look.") && sent.contains("it rains") && sent.contains("done"),
                "{name}: {sent}"
            );
        }
    }
}
