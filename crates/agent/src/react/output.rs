//! Whether what a run would end with is what its rules ask for: a JSON schema, texts it must contain, tools it must have
//! called. Decided from the plan's rules and the run's own entries alone, so that it comes out the same after a crash.

use std::collections::BTreeSet;

use ostler_kernel::{
    Block, Entry, Failure, Role, StepKind,
    plan::{OnViolation, Rules},
};
use ostler_spec::output_schema;
use serde::de::IgnoredAny;
use serde_json::Value;

/// What becomes of an output.
#[derive(Debug, Clone, PartialEq)]
pub enum Judged {
    /// The run ends with it. Where a contract is only observed, what of it was not kept.
    Fits {
        output: String,
        violation: Option<String>,
    },
    /// The model is told this, and asked again.
    Again {
        complaint: String,
    },
    Fails(Failure),
}

/// Judges what the model said, or a tool gave. `past` is what was said in this run before; `calls_left` says whether the
/// model could be asked again.
pub fn judge(rules: &Rules, past: &[&Entry], text: &str, calls_left: bool) -> Judged {
    let lacking = lacking(rules, past, text);
    let fitted = fitted(rules, text);
    let observed = rules.on_violation == OnViolation::Observe;
    let breach = lacking.clone().filter(|_| !observed);
    match (breach, fitted) {
        (None, Ok(output)) => Judged::Fits { output, violation: lacking },
        (Some(breach), _) if !calls_left => Judged::Fails(violated(&breach)),
        (Some(breach), fitted) => Judged::Again { complaint: complaint(Some(&breach), fitted.err(), rules) },
        (None, Err(mistakes)) if calls_left && !was_told(rules, past) => {
            Judged::Again { complaint: complaint(None, Some(mistakes), rules) }
        }
        (None, Err(mistakes)) => Judged::Fails(unfit(&mistakes)),
    }
}

/// What a run breaks of its contract by calling these: tools outside of it.
pub fn outside(rules: &Rules, calls: &[StepKind]) -> Option<String> {
    if rules.contract.is_empty() {
        return None;
    }
    let names: BTreeSet<&str> = calls.iter().map(StepKind::name).collect();
    let others: Vec<&str> =
        names.into_iter().filter(|name| !rules.contract.iter().any(|tool| tool == name)).collect();
    (!others.is_empty())
        .then(|| format!("it calls {}; its contract has {}", others.join(", "), rules.contract.join(", ")))
}

/// What is lacking for the contract, and of the texts that the output must contain.
pub fn lacking(rules: &Rules, past: &[&Entry], text: &str) -> Option<String> {
    let called: BTreeSet<&str> = past.iter().flat_map(|entry| went_well(entry)).collect();
    let tools: Vec<&str> =
        rules.contract.iter().map(String::as_str).filter(|tool| !called.contains(tool)).collect();
    let markers: Vec<String> = rules
        .markers
        .iter()
        .filter(|marker| !text.contains(*marker))
        .map(|marker| format!("{marker:?}"))
        .collect();
    let mut told = Vec::new();
    if !tools.is_empty() {
        told.push(format!("these tools were not called, or did not work: {}", tools.join(", ")));
    }
    if !markers.is_empty() {
        told.push(format!("the answer does not contain {}", markers.join(", ")));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

pub fn violated(what: &str) -> Failure {
    Failure::permanent("agent_contract_violation", format!("the agent broke its contract: {what}"))
}

/// The names of the tools that answered here.
fn went_well(entry: &Entry) -> impl Iterator<Item = &str> {
    entry.blocks.iter().filter_map(|block| match block {
        Block::ToolResult { name, is_error: false, .. } => Some(name.as_str()),
        Block::ToolResult { .. }
        | Block::Text { .. }
        | Block::ToolCall { .. }
        | Block::Image(_)
        | Block::Native { .. } => None,
    })
}

/// The output as it is kept: of a run with a schema, the JSON alone.
fn fitted(rules: &Rules, text: &str) -> Result<String, Vec<String>> {
    let Some(schema) = &rules.output_schema else { return Ok(text.to_owned()) };
    let json = bare(text);
    let value: Value =
        serde_json::from_str(json).map_err(|error| vec![format!("the answer is not JSON: {error}")])?;
    match output_schema::mistakes(schema, &value) {
        Ok(mistakes) if mistakes.is_empty() => Ok(json.to_owned()),
        Ok(mistakes) => Err(mistakes),
        Err(of_schema) => Err(vec![of_schema]),
    }
}

/// What stands in a fenced block of code, where models like to put it and nothing else; otherwise all of it.
pub fn bare(text: &str) -> &str {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = fenced.and_then(|inner| inner.split_once('\n')).map(|(_, inner)| inner.trim());
    inner.filter(|inner| serde_json::from_str::<IgnoredAny>(inner).is_ok()).unwrap_or(text)
}

/// Whether the model has been asked again because of the schema: after an answer that did not fit it, the loop spoke.
fn was_told(rules: &Rules, past: &[&Entry]) -> bool {
    past.windows(2).any(|pair| match pair {
        [said, asked] => {
            let by_loop = asked.role == Role::User && asked.step.is_some();
            by_loop && said.role == Role::Assistant && fitted(rules, &said.text()).is_err()
        }
        _ => false,
    })
}

fn complaint(breach: Option<&str>, mistakes: Option<Vec<String>>, rules: &Rules) -> String {
    let mut told = "This can't be your final answer yet.".to_owned();
    if let Some(breach) = breach {
        told.push_str(&format!("\nWhat is lacking: {breach}."));
    }
    if let (Some(mistakes), Some(schema)) = (mistakes, &rules.output_schema) {
        told.push_str("\nIt must be one JSON value that fits the schema below, with nothing around it.");
        told.push_str(&format!(" What is wrong:\n- {}\nThe schema:\n{schema}", mistakes.join("\n- ")));
    }
    told
}

fn unfit(mistakes: &[String]) -> Failure {
    let message = format!("the output does not fit its schema: {}", mistakes.join("; "));
    Failure::permanent("output_schema_violation", message)
}

#[cfg(test)]
mod tests;
