//! What models cost: a table as a data file that comes along (`data/prices.json`), and another file that goes before it.
//! A model that neither knows has no price, which is not the same as nothing.

use std::sync::Arc;

use ostler_kernel::{Price, plan::ModelPlan};
use ostler_spec::Dollars;
use serde::Deserialize;

/// Prices by vendor and model. What was put in front counts first.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    tables: Vec<Arc<[Entry]>>,
}

#[derive(Debug, thiserror::Error)]
#[error("it is no table of prices: {0}")]
pub struct BadPrices(String);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// For who reads the file.
    #[serde(default, rename = "about")]
    _about: String,
    prices: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The provider of endpoints.
    vendor: String,
    /// Names of models; a `*` at the end stands for any rest.
    models: Vec<String>,
    input: Dollars,
    output: Dollars,
    cache_read: Option<Dollars>,
    cache_write: Option<Dollars>,
    /// Of what is kept there for an hour instead of five minutes.
    cache_write_1h: Option<Dollars>,
    /// When that was so.
    #[serde(default, rename = "as_of")]
    _as_of: String,
}

const STANDARD: &str = include_str!("../data/prices.json");

/// Providers that are called differently and cost the same.
const SAME: [(&str, &str); 4] = [
    ("google", "gemini"),
    ("openai_compatible", "openai-compatible"),
    ("azure_openai", "azure-openai"),
    ("azure", "azure-openai"),
];

impl Prices {
    /// The table that comes along.
    pub fn standard() -> Self {
        // A test reads it; without it nothing has a price.
        Self::default().under(STANDARD).unwrap_or_default()
    }

    /// With another table before those that are there.
    pub fn under(mut self, text: &str) -> Result<Self, BadPrices> {
        let table: Table = serde_json::from_str(text).map_err(|error| BadPrices(error.to_string()))?;
        if let Some(entry) = table.prices.iter().find(|entry| entry.models.iter().any(|name| is_bad(name))) {
            let names = entry.models.join(", ");
            return Err(BadPrices(format!("a model needs a name, with a `*` at most at its end: {names}")));
        }
        self.tables.insert(0, table.prices.into());
        Ok(self)
    }

    /// What calls of an endpoint cost. All that it puts into a cache it keeps there for as long as its option says, so one
    /// price of that is enough.
    pub fn of(&self, endpoint: &ModelPlan) -> Option<Price> {
        let entry = self.entry(&endpoint.provider, &endpoint.model)?;
        let is_kept_longer = endpoint.options.get("cache").is_some_and(|kept| kept == "1h");
        let longer = entry.cache_write_1h.filter(|_| is_kept_longer).map(Dollars::micros);
        let price = entry.price();
        Some(Price { cache_write: longer.or(price.cache_write), ..price })
    }

    pub fn find(&self, provider: &str, model: &str) -> Option<Price> {
        self.entry(provider, model).map(Entry::price)
    }

    fn entry(&self, provider: &str, model: &str) -> Option<&Entry> {
        let provider = provider.trim().to_lowercase();
        let vendor =
            SAME.iter().find(|(other, _)| *other == provider).map_or(provider.as_str(), |(_, it)| it);
        self.tables.iter().find_map(|table| best(table, vendor, model))
    }
}

impl Entry {
    fn price(&self) -> Price {
        Price {
            input: self.input.micros(),
            output: self.output.micros(),
            cache_read: self.cache_read.map(Dollars::micros),
            cache_write: self.cache_write.map(Dollars::micros),
        }
    }
}

/// The one that says most of the model's name.
fn best<'t>(table: &'t [Entry], vendor: &str, model: &str) -> Option<&'t Entry> {
    let of_vendor = table.iter().filter(|entry| entry.vendor.trim().to_lowercase() == vendor);
    let fitting = of_vendor.filter_map(|entry| {
        let fits = entry.models.iter().filter_map(|name| fit(name, model));
        fits.max().map(|fit| (fit, entry))
    });
    fitting.max_by_key(|(fit, _)| *fit).map(|(_, entry)| entry)
}

/// How well a name fits: not at all, by so many letters, or entirely.
fn fit(name: &str, model: &str) -> Option<usize> {
    match name.strip_suffix('*') {
        Some(beginning) => model.starts_with(beginning).then_some(beginning.len()),
        None => (name == model).then_some(usize::MAX),
    }
}

fn is_bad(name: &str) -> bool {
    name.is_empty() || name.strip_suffix('*').unwrap_or(name).contains('*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_that_comes_along_can_be_read_and_dates_its_prices() {
        let table: Table = serde_json::from_str(STANDARD).unwrap();
        assert!(table.prices.len() > 20 && Prices::default().under(STANDARD).is_ok());
        for entry in &table.prices {
            let price = entry.price();
            assert!(price.input > 0 && price.output >= price.input, "{:?} costs nothing", entry.models);
            assert!(price.cache_read.is_none_or(|read| 0 < read && read < price.input), "{:?}", entry.models);
            let hour = entry.cache_write_1h.map(Dollars::micros);
            assert!(hour.is_none_or(|hour| Some(hour) > price.cache_write), "{:?}", entry.models);
            assert_eq!(hour.is_some(), entry.vendor == "anthropic", "{:?}", entry.models);
            assert!(entry._as_of.starts_with("202") && entry._as_of.len() == 7, "{:?}", entry.models);
        }
    }

    #[test]
    fn a_model_is_found_by_the_name_that_says_most_of_it() {
        let prices = Prices::standard();
        let input = |provider: &str, model: &str| prices.find(provider, model).map(|price| price.input);
        assert_eq!(input("openai", "gpt-4o"), Some(2_500_000));
        assert_eq!(input("OpenAI", "gpt-4o-mini-2024-07-18"), Some(150_000));
        assert_eq!(input("openai", "gpt-4o-2024-05-13"), Some(5_000_000));
        assert_eq!(input("google", "gemini-2.5-flash"), Some(300_000));
        assert_eq!(input("azure", "gpt-5.4-mini"), Some(750_000));
        assert_eq!(input("anthropic", "claude-sonnet-4-5-20250929"), Some(3_000_000));
    }

    #[test]
    fn what_is_kept_in_a_cache_for_an_hour_costs_more() {
        let prices = Prices::standard();
        let written = |cache: &str| {
            let options = [("cache".to_owned(), cache.to_owned())].into();
            let (provider, model) = ("anthropic".into(), "claude-haiku-4-5".into());
            let endpoint = ModelPlan { provider, model, options, ..ModelPlan::default() };
            prices.of(&endpoint).and_then(|price| price.cache_write)
        };
        assert_eq!((written("5m"), written("1h")), (Some(1_250_000), Some(2_000_000)));
        let own = r#"{"prices": [{"vendor": "anthropic", "models": ["claude-haiku-4-5"], "input": 1, "output": 5,
            "cache_write": 3}]}"#;
        let prices = Prices::standard().under(own).unwrap();
        let (provider, model) = ("anthropic".into(), "claude-haiku-4-5".into());
        let options = [("cache".to_owned(), "1h".to_owned())].into();
        let endpoint = ModelPlan { provider, model, options, ..ModelPlan::default() };
        let price = prices.of(&endpoint).unwrap();
        assert_eq!(price.cache_write, Some(3_000_000), "a table of before says one price");
    }

    #[test]
    fn what_nobody_knows_has_no_price() {
        let prices = Prices::standard();
        for (provider, model) in [
            ("openai", "gpt-4o-audio"),
            ("openai", ""),
            ("ollama", "gpt-4o"),
            ("mock", "mock"),
            ("openai", "scripted"),
        ] {
            assert_eq!(prices.find(provider, model), None, "{provider} {model}");
        }
    }

    #[test]
    fn another_table_goes_before() {
        let own = r#"{"prices": [{"vendor": "openai", "models": ["gpt-4o*"], "input": "1", "output": 2.5},
            {"vendor": "ollama", "models": ["*"], "input": "0.01", "output": "0.02"}]}"#;
        let prices = Prices::standard().under(own).unwrap();
        let input = |provider: &str, model: &str| prices.find(provider, model).map(|price| price.input);
        assert_eq!((input("openai", "gpt-4o"), input("openai", "o3")), (Some(1_000_000), Some(2_000_000)));
        assert_eq!(input("ollama", "any"), Some(10_000));
    }

    #[test]
    fn a_bad_table_says_where() {
        for (text, said) in [
            ("{", "line 1"),
            (r#"{"prices": [{"vendor": "v", "models": ["a*b"], "input": 1, "output": 1}]}"#, "a*b"),
            (r#"{"prices": [{"vendor": "v", "models": ["a"], "input": -1, "output": 1}]}"#, "dollars"),
            (r#"{"prices": [{"vendor": "v", "models": ["a"], "in": 1, "output": 1}]}"#, "in"),
        ] {
            let error = Prices::default().under(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
