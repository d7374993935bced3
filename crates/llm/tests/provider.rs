//! A provider that lives outside of the crate: written with what is public alone, given to a registry, and then limited,
//! priced and asked like any other. What `CONTRIBUTING.md` says of "a model provider" is shown here.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

use std::{collections::BTreeMap, sync::Arc};

use futures_util::stream;
use ostler_kernel::{Block, Failure, Role, plan::ModelPlan, step::Usage};
use ostler_llm::{
    Completion, Finish, Identity, Message, ModelRequest, Part, Parts, Priced, Prices, Provider, Registry,
    Shown, complete,
};

/// Says what it was told, word by word.
struct Echo;

impl Provider for Echo {
    fn names(&self) -> &'static [&'static str] {
        &["echo", "acme-echo"]
    }

    fn stream(&self, request: ModelRequest) -> Parts {
        let parts = match request.endpoint.options.keys().next() {
            Some(option) => vec![Err(refused(&request.endpoint, option))],
            None => answer(&request),
        };
        Box::pin(stream::iter(parts))
    }
}

/// Whatever was not asked for in a way that it knows is refused, with a code that says so.
fn refused(endpoint: &ModelPlan, option: &str) -> Failure {
    let message = format!("endpoint `{}` has the option `{option}`; there is none", endpoint.endpoint);
    Failure::permanent("model_option_unknown", message)
}

/// The pieces as they come, and at the end the whole: that is what counts.
fn answer(request: &ModelRequest) -> Vec<Result<Part, Failure>> {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let said: String = blocks.filter_map(Block::text).collect();
    let words = said.split_inclusive(' ').map(|word| Ok(Part::Text(word.to_owned())));
    let count = said.split_whitespace().count() as u64;
    let usage = Usage { input_tokens: count, output_tokens: count, ..Usage::default() };
    let whole = Completion {
        blocks: vec![Block::Text { text: said.clone() }],
        finish: Finish::Stop,
        usage: Some(usage),
        identity: Identity::default(),
    };
    words.chain([Ok(Part::Done(whole))]).collect()
}

fn request(provider: &str, options: &[(&str, &str)]) -> ModelRequest {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    ModelRequest {
        endpoint: ModelPlan {
            endpoint: "main".into(),
            provider: provider.into(),
            model: "parrot-1".into(),
            options: options.iter().map(owned).collect::<BTreeMap<_, _>>(),
            ..ModelPlan::default()
        },
        system: String::new(),
        messages: vec![Message {
            role: Role::User,
            blocks: vec![Block::Text { text: "well well well".into() }],
        }],
        tools: vec![],
        output_schema: None,
        request_id: "r".into(),
    }
}

#[tokio::test]
async fn a_provider_from_outside_is_asked_and_priced_like_any_other() {
    let mut registry = Registry::default();
    registry.register(Arc::new(Echo)).unwrap();
    let prices =
        r#"{"prices": [{"vendor": "acme-echo", "models": ["parrot-*"], "input": "1", "output": "2"}]}"#;
    let gateway = Priced::new(registry, Prices::default().under(prices).unwrap());
    let mut shown = Vec::new();
    let watch = |part: Shown<'_>| match part {
        Shown::Text(text) | Shown::Thinking(text) => shown.push(text.to_owned()),
    };
    let completion = complete(&gateway, request("acme-echo", &[]), watch).await.unwrap();
    assert_eq!(shown, ["well ", "well ", "well"]);
    assert_eq!(completion.blocks, [Block::Text { text: "well well well".into() }]);
    assert_eq!(completion.usage.unwrap().cost_micro_usd, Some(9));
    let failure = complete(&gateway, request("echo", &[("volume", "11")]), |_| {}).await.unwrap_err();
    assert_eq!(failure.code, "model_option_unknown");
}
