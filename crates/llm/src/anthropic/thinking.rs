//! How much a model thinks. Its newer models are told with how much effort, and think as long as they see fit; those
//! before 4.6 are given a budget; those before 3.7 don't think.

use ostler_kernel::Failure;
use serde_json::{Map, Value, json};

use crate::options::Options;

/// The vendor wants a bound for every answer. Its current models take at least this.
const MAX_TOKENS: u64 = 16_384;

/// Least of what a model may think that is given a budget.
const LEAST: u64 = 1024;

/// What each effort is in tokens.
const BUDGETS: [(&str, u64); 6] =
    [("minimal", LEAST), ("low", LEAST), ("medium", 2048), ("high", 4096), ("xhigh", 8192), ("max", 16_384)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Effort,
    Budget,
    Never,
}

/// Parts of the names of models that are given a budget.
const BUDGETED: [&str; 11] = [
    "claude-3-7",
    "claude-4-opus",
    "claude-4-sonnet",
    "haiku-4-5",
    "opus-4-0",
    "opus-4-1",
    "opus-4-2025",
    "opus-4-5",
    "sonnet-4-0",
    "sonnet-4-2025",
    "sonnet-4-5",
];

/// And of those that don't think.
const THOUGHTLESS: [&str; 3] = ["claude-2", "claude-3-", "claude-instant"];

/// Whoever is not known to be older is taken to be newer.
fn way(model: &str) -> Way {
    let model = model.replace('.', "-");
    let is_among = |names: &[&str]| names.iter().any(|name| model.contains(name));
    if is_among(&BUDGETED) {
        Way::Budget
    } else if is_among(&THOUGHTLESS) {
        Way::Never
    } else {
        Way::Effort
    }
}

/// What the options say of it.
struct Asked {
    mode: Option<Value>,
    budget: Option<u64>,
    display: Option<Value>,
}

pub(super) fn put(
    body: &mut Map<String, Value>,
    options: &mut Options,
    model: &str,
    messages: &[Value],
) -> Result<(), Failure> {
    let (mode, display) = (options.take("thinking"), options.take("thinking_display"));
    let budget = take_count(options, "thinking_budget")?;
    let max_tokens = take_count(options, "max_tokens")?;
    let mut asked = Asked { mode, budget, display };
    let effort = take_effort(options, &mut asked, model)?;
    if let Some(effort) = effort {
        body.insert("output_config".into(), json!({"effort": effort}));
    }
    let Asked { mode, budget, display } = asked;
    if display.is_some() && mode.is_none() && budget.is_none() {
        let expected =
            "left out, unless `thinking`, `thinking_budget` or `reasoning_effort` says that it thinks";
        return Err(options.invalid("thinking_display", expected));
    }
    let least = budget.unwrap_or(0);
    if max_tokens.is_some_and(|max| max <= least) {
        let expected = format!("larger than the {least} tokens that it may think, which are a part of it");
        return Err(options.invalid("max_tokens", &expected));
    }
    body.insert("max_tokens".into(), max_tokens.unwrap_or(MAX_TOKENS + least).into());
    let mut thinking = match (budget, mode) {
        // In the middle of calls of tools that began without thinking, it must not begin.
        (Some(_), _) if is_amid_foreign_calls(messages) => return Ok(()),
        (Some(budget), _) => json!({"type": "enabled", "budget_tokens": budget}),
        (None, Some(mode)) => json!({"type": mode}),
        (None, None) => return Ok(()),
    };
    if let Some(display) = display {
        thinking["display"] = display;
    }
    body.insert("thinking".into(), thinking);
    Ok(())
}

/// What `reasoning_effort` comes to with this model: an effort that goes out as such, or a budget. What says how it
/// thinks in the vendor's own words goes before it, where both can be said.
fn take_effort(options: &mut Options, asked: &mut Asked, model: &str) -> Result<Option<Value>, Failure> {
    let own = options.take("effort");
    let Some(given) = options.take("reasoning_effort") else { return Ok(own) };
    let word = given.as_str().unwrap_or_default();
    if word == "none" {
        return Ok(own);
    }
    let is_said = asked.mode.is_some() || asked.budget.is_some();
    match way(model) {
        Way::Never => {
            Err(options.invalid("reasoning_effort", &format!("left out: `{model}` does not think")))
        }
        Way::Budget if is_said => {
            let expected =
                "left out where `thinking` or `thinking_budget` is given: with this model they say one thing";
            Err(options.invalid("reasoning_effort", expected))
        }
        Way::Budget => {
            let budget = BUDGETS.iter().find(|(name, _)| *name == word).map(|(_, budget)| *budget);
            asked.budget = Some(budget.ok_or_else(|| options.invalid("reasoning_effort", &words()))?);
            Ok(own)
        }
        Way::Effort => {
            if !is_said {
                asked.mode = Some("adaptive".into());
                // Otherwise some of its models show nothing of it.
                asked.display.get_or_insert_with(|| "summarized".into());
            }
            Ok(Some(own.unwrap_or(if word == "minimal" { "low".into() } else { given })))
        }
    }
}

fn words() -> String {
    let names: Vec<&str> = BUDGETS.iter().map(|(name, _)| *name).collect();
    format!("one of none, {}", names.join(", "))
}

/// A number of tokens.
fn take_count(options: &mut Options, name: &str) -> Result<Option<u64>, Failure> {
    let Some(value) = options.take(name) else { return Ok(None) };
    match value.as_u64().filter(|count| *count > 0) {
        Some(count) => Ok(Some(count)),
        None => Err(options.invalid(name, "a whole number above 0")),
    }
}

/// The last answer called tools and shows no thinking: another vendor gave it, or this one before it was asked to think.
fn is_amid_foreign_calls(messages: &[Value]) -> bool {
    let last = messages.iter().rev().find(|message| message["role"] == "assistant");
    let kinds = last.and_then(|message| message["content"].as_array()).into_iter().flatten();
    let kinds: Vec<&str> = kinds.filter_map(|block| block["type"].as_str()).collect();
    kinds.contains(&"tool_use") && !kinds.iter().any(|kind| kind.ends_with("thinking"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_model_is_told_follows_from_its_name() {
        for model in [
            "claude-haiku-4-5",
            "claude-sonnet-4-5-20250929",
            "claude-opus-4-1",
            "claude-opus-4-5",
            "claude-sonnet-4-20250514",
            "claude-3-7-sonnet-20250219",
            "claude-sonnet-4.5",
        ] {
            assert_eq!(way(model), Way::Budget, "{model}");
        }
        for model in [
            "claude-opus-4-6",
            "claude-sonnet-4-6",
            "claude-opus-4-7",
            "claude-sonnet-5",
            "claude-fable-5",
            "x",
        ] {
            assert_eq!(way(model), Way::Effort, "{model}");
        }
        for model in ["claude-3-5-haiku-latest", "claude-3-opus-20240229", "claude-3.5-sonnet", "claude-2.1"]
        {
            assert_eq!(way(model), Way::Never, "{model}");
        }
    }
}
