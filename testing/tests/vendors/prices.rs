//! What is named somewhere has a price: in the examples, in the guides, and in this suite. And what a vendor counts is charged.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use ostler_kernel::{Runtime, plan::ModelPlan};
use ostler_link::TokioRuntime;
use ostler_llm::{Priced, Prices, complete};
use ostler_spec::{Spec, parse_with_notices};
use ostler_testing::model_server::Turn;

use crate::{
    EFFORTS,
    setup::{self, ALL, ANTHROPIC, Ground, Vendor, user},
};

/// Providers whose models have no price of a vendor's.
const UNPRICED: [&str; 4] = ["mock", "ollama", "openai-compatible", "openai_compatible"];

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found
}

/// The manifests that stand in a page.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next())
}

/// Who is asked for which model, and where that is said.
fn named() -> Vec<(String, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut texts: Vec<(PathBuf, String)> = Vec::new();
    for path in files(&root.join("examples"), "yaml") {
        let text = fs::read_to_string(&path).expect("text");
        texts.push((path, text));
    }
    for path in files(&root.join("docs/guides"), "md") {
        let page = fs::read_to_string(&path).expect("text");
        let whole = blocks(&page).filter(|block| block.contains("kind: ModelEndpoint"));
        texts.extend(whole.map(|block| (path.clone(), block.to_owned())));
    }
    let mut named = Vec::new();
    for (path, text) in texts {
        let place = path.display().to_string();
        let parsed =
            parse_with_notices(&place, &text).unwrap_or_else(|problems| panic!("{place}: {problems:?}"));
        for resource in parsed.resources {
            let Spec::ModelEndpoint(spec) = resource.spec else { continue };
            // Who lives next door asks for no vendor's price.
            if spec.allow_private {
                continue;
            }
            let models = spec.aliases.values().chain([&spec.default_model]);
            named.extend(models.map(|model| (spec.provider.clone(), model.clone(), place.clone())));
        }
    }
    named
}

#[test]
fn every_model_that_is_named_has_a_price() {
    let suite =
        |(provider, model): (&str, &str)| (provider.to_owned(), model.to_owned(), "this suite".to_owned());
    let told =
        EFFORTS.iter().flat_map(|(vendor, models)| models.iter().map(|model| (vendor.provider, *model)));
    let all: Vec<_> =
        ALL.iter().map(|vendor| (vendor.provider, vendor.model)).chain(told).map(suite).collect();
    let prices = Prices::standard();
    let (mut n_checked, named) = (0, named());
    assert!(named.len() > 5, "few manifests were found: {named:?}");
    for (provider, model, place) in named.into_iter().chain(all) {
        if UNPRICED.contains(&provider.as_str()) || model == "scripted" {
            continue;
        }
        assert!(prices.find(&provider, &model).is_some(), "{place}: {provider} {model} has no price");
        n_checked += 1;
    }
    println!("prices: {n_checked} named models");
}

#[tokio::test]
async fn what_a_cache_keeps_for_an_hour_is_charged_as_such() {
    for (kept, price) in [("5m", 1_250_000), ("1h", 2_000_000)] {
        let ground =
            Ground::start(Vendor { model: "claude-haiku-4-5", ..ANTHROPIC }, [Turn::text("one")]).await;
        let mut request = ground.request(vec![user(&"a long question ".repeat(400))]);
        request.endpoint =
            ModelPlan { options: [("cache".to_owned(), kept.to_owned())].into(), ..request.endpoint };
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::new(tokio::runtime::Handle::current()));
        let gateway = Priced::new(setup::registry(&runtime), Prices::standard());
        let usage = complete(&gateway, request, |_| {}).await.expect("an answer").usage.expect("usage");
        let plain = usage.input_tokens - usage.cache_write_tokens;
        let cost = (plain * 1_000_000
            + usage.cache_write_tokens * price
            + usage.output_tokens * 5_000_000
            + 500_000)
            / 1_000_000;
        assert!(usage.cache_write_tokens > 1000, "{usage:?}");
        assert_eq!(usage.cost_micro_usd, Some(cost), "{kept}: {usage:?}");
        let sent = ground.last_body();
        assert_eq!(sent.contains("\"ttl\":\"1h\""), kept == "1h", "{sent}");
    }
}
