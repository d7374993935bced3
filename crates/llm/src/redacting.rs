//! A gateway behind which nobody gets to see a secret that this process knows: not in the answer, not in its pieces, not
//! in what went wrong.

use futures_util::{StreamExt, stream};
use ostler_kernel::{Block, Failure};
use ostler_secrets::{Flow, Redactor};
use serde_json::{Value, json};

use crate::{Completion, Gateway, ModelRequest, Part, Parts};

pub struct Redacting<G> {
    inner: G,
    redactor: Redactor,
}

impl<G> Redacting<G> {
    pub fn new(inner: G, redactor: Redactor) -> Self {
        Self { inner, redactor }
    }
}

impl<G: Gateway> Gateway for Redacting<G> {
    fn stream(&self, request: ModelRequest) -> Parts {
        let (text, thinking) = (self.redactor.flow(), self.redactor.flow());
        let state =
            State { parts: self.inner.stream(request), text, thinking, redactor: self.redactor.clone() };
        let parts = stream::unfold(Some(state), |state| async move {
            let mut state = state?;
            let part = state.parts.next().await?;
            let (parts, is_last) = state.clean(part);
            Some((stream::iter(parts), (!is_last).then_some(state)))
        });
        Box::pin(parts.flatten())
    }
}

struct State {
    parts: Parts,
    text: Flow,
    thinking: Flow,
    redactor: Redactor,
}

impl State {
    /// What is shown of a part, and whether it was the last.
    fn clean(&mut self, part: Result<Part, Failure>) -> (Vec<Result<Part, Failure>>, bool) {
        match part {
            Ok(Part::Text(text)) => (shown(self.text.push(text)), false),
            Ok(Part::Thinking(text)) => (thought(self.thinking.push(text)), false),
            Ok(Part::Done(mut completion)) => {
                self.clean_answer(&mut completion);
                let mut parts = self.rest();
                parts.push(Ok(Part::Done(completion)));
                (parts, true)
            }
            Err(mut failure) => {
                failure.message = self.redactor.hidden_words(&failure.message);
                let mut parts = self.rest();
                parts.push(Err(failure));
                (parts, true)
            }
        }
    }

    /// What was held back, as it might have been the beginning of a secret.
    fn rest(&mut self) -> Vec<Result<Part, Failure>> {
        let mut parts = thought(self.thinking.finish());
        parts.extend(shown(self.text.finish()));
        parts
    }

    fn clean_answer(&self, completion: &mut Completion) {
        self.clean_native(&mut completion.blocks);
        self.clean_ids(&mut completion.blocks);
        for block in &mut completion.blocks {
            match block {
                Block::Text { text } => self.redactor.clean(text),
                Block::ToolCall { name, arguments, .. } => {
                    *name = self.redactor.hidden(name).into_owned();
                    self.redactor.clean(arguments);
                }
                Block::ToolResult { content, .. } => self.redactor.clean(content),
                Block::Native { .. } | Block::Image(_) => {}
            }
        }
    }

    /// An id with a secret in it is replaced by one of ours: results are told apart by it, and vendors take few signs in it.
    fn clean_ids(&self, blocks: &mut [Block]) {
        let mut taken: Vec<String> = blocks.iter().filter_map(call_id).map(str::to_owned).collect();
        for block in blocks {
            let Block::ToolCall { id, .. } = block else { continue };
            if self.redactor.hidden_cut(id) == *id {
                continue;
            }
            let ours = (0..).map(|nth| format!("call_{nth}")).find(|ours| !taken.contains(ours));
            *id = ours.unwrap_or_default();
            taken.push(id.clone());
        }
    }

    /// What only the vendor understands is signed, or belongs to another such block: changed, or without its neighbour, it
    /// would be refused, and with it every later call of the conversation. So none of the answer's goes back, as if another
    /// vendor had given it. What was said in a refusal is for people, and stays.
    fn clean_native(&self, blocks: &mut Vec<Block>) {
        let is_clean = |block: &Block| match block {
            Block::Native { value, .. } => self.cleaned(value) == *value,
            Block::Text { .. } | Block::ToolCall { .. } | Block::ToolResult { .. } | Block::Image(_) => true,
        };
        if blocks.iter().all(is_clean) {
            return;
        }
        blocks.retain_mut(|block| match block {
            Block::Native { value, .. } => match value.get("refusal") {
                Some(refusal) => {
                    *value = json!({"refusal": self.cleaned(refusal)});
                    true
                }
                None => false,
            },
            Block::Text { .. } | Block::ToolCall { .. } | Block::ToolResult { .. } | Block::Image(_) => true,
        });
    }

    fn cleaned(&self, value: &Value) -> Value {
        let mut cleaned = value.clone();
        self.redactor.clean_json(&mut cleaned);
        cleaned
    }
}

fn call_id(block: &Block) -> Option<&str> {
    match block {
        Block::ToolCall { id, .. } => Some(id),
        Block::Text { .. } | Block::ToolResult { .. } | Block::Image(_) | Block::Native { .. } => None,
    }
}

fn thought(text: String) -> Vec<Result<Part, Failure>> {
    if text.is_empty() { Vec::new() } else { vec![Ok(Part::Thinking(text))] }
}

fn shown(text: String) -> Vec<Result<Part, Failure>> {
    if text.is_empty() { Vec::new() } else { vec![Ok(Part::Text(text))] }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ostler_kernel::plan::ModelPlan;

    use super::*;
    use crate::{Finish, Identity};

    /// Says what it was told to, once.
    struct Scripted(Mutex<Vec<Result<Part, Failure>>>);

    impl Gateway for Scripted {
        fn stream(&self, _: ModelRequest) -> Parts {
            Box::pin(stream::iter(std::mem::take(&mut *self.0.lock().unwrap())))
        }
    }

    async fn parts(script: Vec<Result<Part, Failure>>) -> Vec<Result<Part, Failure>> {
        let redactor = Redactor::default();
        redactor.hide("geheim-wort-1");
        let gateway = Redacting::new(Scripted(Mutex::new(script)), redactor);
        let endpoint = ModelPlan {
            endpoint: "main".into(),
            provider: "x".into(),
            base_url: String::new(),
            model: String::new(),
            options: Default::default(),
            secret_ref: None,
            allow_private: false,
            ..ModelPlan::default()
        };
        let request = ModelRequest {
            endpoint,
            system: String::new(),
            messages: vec![],
            tools: vec![],
            output_schema: None,
            request_id: String::new(),
        };
        gateway.stream(request).collect().await
    }

    fn text(text: &str) -> Result<Part, Failure> {
        Ok(Part::Text(text.to_owned()))
    }

    #[tokio::test]
    async fn an_answer_shows_no_secret_in_pieces_or_whole() {
        let whole = "it is geheim-wort-1, as I said; g";
        let blocks = vec![
            Block::Text { text: whole.into() },
            Block::ToolCall {
                id: "1".into(),
                name: "t".into(),
                arguments: "{\"a\":\"geheim-wort-1\"}".into(),
            },
        ];
        let done = Part::Done(Completion {
            blocks,
            finish: Finish::Stop,
            usage: None,
            identity: Default::default(),
        });
        let script = vec![text("it is gehe"), text("im-wort"), text("-1, as I said; g"), Ok(done)];
        let seen = parts(script).await;
        let shown: String = seen
            .iter()
            .filter_map(|part| match part {
                Ok(Part::Text(text)) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(shown, "it is [REDACTED], as I said; g");
        let Some(Ok(Part::Done(completion))) = seen.last() else { panic!("{seen:?}") };
        assert_eq!(completion.blocks[0], Block::Text { text: shown });
        assert!(!format!("{completion:?}").contains("geheim"), "{completion:?}");
    }

    /// The blocks of an answer as they are kept.
    async fn kept(blocks: Vec<Block>) -> Vec<Block> {
        let done = Part::Done(Completion {
            blocks,
            finish: Finish::ToolCalls,
            usage: None,
            identity: Identity::default(),
        });
        let mut seen = parts(vec![Ok(done)]).await;
        let Some(Ok(Part::Done(completion))) = seen.pop() else { panic!("{seen:?}") };
        completion.blocks
    }

    fn native(value: Value) -> Block {
        Block::Native { vendor: "anthropic".into(), value }
    }

    fn call() -> Block {
        Block::ToolCall { id: "1".into(), name: "t".into(), arguments: "{}".into() }
    }

    #[tokio::test]
    async fn signed_blocks_are_left_out_rather_than_changed() {
        let thought = |text: &str| native(json!({"type": "thinking", "thinking": text, "signature": "s"}));
        let clean = vec![thought("hm"), thought("ah"), call()];
        assert_eq!(kept(clean.clone()).await, clean, "as they came");
        let leaky = vec![thought("hm"), thought("use geheim-wort-1"), call()];
        assert_eq!(
            kept(leaky).await,
            [call()],
            "nor the one before it, which the vendor wants whole or not at all"
        );
    }

    #[tokio::test]
    async fn an_id_that_holds_a_secret_is_replaced_and_stays_its_own() {
        let call = |id: &str| Block::ToolCall { id: id.into(), name: "t".into(), arguments: "{}".into() };
        let said = vec![call("geheim-wort-1"), call("call_0"), call("x-geheim-wort-1"), call("y-geheim-wo")];
        assert_eq!(kept(said).await, [call("call_1"), call("call_0"), call("call_2"), call("call_3")]);
    }

    #[tokio::test]
    async fn of_a_secret_that_an_answer_breaks_off_in_nothing_is_shown() {
        let cut = "it is geheim-wort";
        let failure = Failure::transient("model_stream_cut", "it broke off");
        let seen = parts(vec![text(cut), Err(failure)]).await;
        assert_eq!(seen[..2], [text("it is "), text("[REDACTED]")]);
        assert_eq!(
            kept(vec![Block::Text { text: cut.into() }]).await,
            [Block::Text { text: "it is [REDACTED]".into() }]
        );
    }

    #[tokio::test]
    async fn what_was_said_in_a_refusal_stays() {
        let refused = kept(vec![native(json!({"refusal": "not with geheim-wort-1"}))]).await;
        assert_eq!(refused, [native(json!({"refusal": "not with [REDACTED]"}))]);
    }

    #[tokio::test]
    async fn what_went_wrong_shows_none_either() {
        let failure = Failure::transient("model_bad_answer", "said geheim-wort-1, api_key=abc");
        let seen = parts(vec![text("ge"), Err(failure)]).await;
        assert_eq!(seen[0], text("ge"));
        let Err(failure) = &seen[1] else { panic!("{seen:?}") };
        assert_eq!(failure.message, "said [REDACTED], api_key=[REDACTED]");
    }
}
