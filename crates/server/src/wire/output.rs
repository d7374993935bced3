//! What a task came to, and how, agent by agent: a map whose values are all text, under the keys that are read elsewhere.
//! What is not known is left out.

use std::{borrow::Cow, collections::BTreeMap};

use ostler_control::Telling;
use ostler_kernel::{EventBody, Run, RunState, StepKind, Task, Usage, plan::AgentPlan, queue::Priority};

use super::{log_line, trace};

pub type Output<'a> = BTreeMap<String, Cow<'a, str>>;

/// The most of a value. The task's log has all of it.
const MOST: usize = 256 * 1024;

/// Behind what was cut off.
pub const CUT: &str = "...[truncated]";

/// The end alone: what is shown of a task in a list.
pub fn short(task: &Task) -> Option<Output<'_>> {
    task.output.as_deref().map(|text| BTreeMap::from([("last_output".to_owned(), bounded(text, MOST))]))
}

/// The text, up to so many bytes of it.
pub fn bounded(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    format!("{}{CUT}", &text[..text.floor_char_boundary(most)]).into()
}

/// Adds how it came about.
pub fn tell_how<'a>(output: &mut Output<'a>, task: &'a Task, telling: &'a Telling) {
    let runs = &telling.runs;
    let mut put = |key: &str, value: Cow<'a, str>| output.insert(key.to_owned(), value);
    let agents: Vec<&str> = runs.iter().map(|run| run.agent.as_str()).collect();
    put("result", "executed".into());
    if let Some(system) = &task.request.system {
        put("system", Cow::from(&system.name));
    }
    if let Some(topic) = task.request.input.get("topic") {
        put("topic", bounded(topic, MOST));
    }
    put("priority", priority(task.request.priority).into());
    put("runtime.mode", "sequential".into());
    put("runtime.entry_agent", Cow::from(&task.request.agent));
    // A task that a policy holds for is refused before it begins.
    put("policies_matched", "0".into());
    put("policies_enforced", "0".into());
    put("execution_order", agents.join(" -> ").into());
    put("agents_executed", runs.len().to_string().into());
    put("tokens_used_total", task.usage.total().to_string().into());
    for (key, value) in costs(&task.usage, ["cost_micro_usd_total", "cost_incomplete"]) {
        put(key, value);
    }
    let estimates: Vec<u64> = telling.planned().filter_map(|(_, plan)| plan.map(estimate)).collect();
    if estimates.len() == runs.len() {
        put("tokens_estimated_total", estimates.iter().sum::<u64>().to_string().into());
    }
    if let Some(budget) = budget(task, telling) {
        put("token_budget", budget.to_string().into());
        put("token_budget_remaining", budget.saturating_sub(task.usage.total()).to_string().into());
    }
    for (number, (run, plan)) in (1..).zip(telling.planned()) {
        let next = runs.get(number);
        for (key, value) in of_agent(task, telling, (run, plan), next) {
            put(&format!("agent.{number}.{key}"), value);
        }
    }
    if let Some(last) = telling.planned().last() {
        for (key, value) in of_last(task, telling, last) {
            put(key, value);
        }
    }
}

/// What one agent did.
fn of_agent<'a>(
    task: &Task,
    telling: &Telling,
    (run, plan): (&'a Run, Option<&AgentPlan>),
    next: Option<&'a Run>,
) -> Vec<(&'static str, Cow<'a, str>)> {
    let mut values = vec![
        ("name", Cow::from(&run.agent)),
        ("model", Cow::from(&run.model)),
        ("steps", run.model_calls.to_string().into()),
        ("tool_calls", tool_calls(telling, run).to_string().into()),
        // No agent has a memory that it could write to.
        ("memory_writes", "0".into()),
        ("duration_ms", run.worked_ms.to_string().into()),
        ("tokens_used", run.usage.total().to_string().into()),
        ("token_usage_source", trace::usage_source(run.usage.estimated).into()),
        ("last_event", last_event(task, run, next).into()),
    ];
    values.extend(plan.map(|plan| ("estimated_tokens", estimate(plan).to_string().into())));
    values.extend(costs(&run.usage, ["cost_micro_usd", "cost_incomplete"]));
    if let (Some(next), RunState::Ok { output }) = (next, &run.state) {
        values.push(("message_to", Cow::from(&next.agent)));
        values.push(("message_content", bounded(output, MOST)));
    }
    values
}

/// The same of the one whose output is the task's.
fn of_last<'a>(
    task: &Task,
    telling: &Telling,
    (last, plan): (&'a Run, Option<&AgentPlan>),
) -> Vec<(&'static str, Cow<'a, str>)> {
    let mut values = vec![
        ("last_agent", Cow::from(&last.agent)),
        ("last_event", last_event(task, last, None).into()),
        ("last_steps", last.model_calls.to_string().into()),
        ("last_tool_calls", tool_calls(telling, last).to_string().into()),
        ("last_tokens_used", last.usage.total().to_string().into()),
        ("last_token_usage_source", trace::usage_source(last.usage.estimated).into()),
        ("last_duration_ms", last.worked_ms.to_string().into()),
    ];
    values.extend(plan.map(|plan| ("last_estimated_tokens", estimate(plan).to_string().into())));
    values.extend(costs(&last.usage, ["last_cost_micro_usd", "last_cost_incomplete"]));
    values
}

/// What an agent was expected to use before it began, by what it is declared with alone: the formula is Orloj's, so that
/// whoever compares the two compares the same. What was used is told beside it.
fn estimate(plan: &AgentPlan) -> u64 {
    let (per_step, per_tool) = (120, 40);
    let prompt = plan.prompt.len() as u64 / 4;
    1 + prompt + per_step * u64::from(plan.limits.max_steps) + per_tool * plan.tools.len() as u64
}

/// What it cost, where a price is known; and whether something is lacking in that.
fn costs<'a>(usage: &Usage, [cost, incomplete]: [&'static str; 2]) -> Vec<(&'static str, Cow<'a, str>)> {
    let known = usage.cost_micro_usd.map(|micros| (cost, micros.to_string().into()));
    let lacking = usage.cost_incomplete.then(|| (incomplete, "true".into()));
    known.into_iter().chain(lacking).collect()
}

/// What the task may use in all, where one agent does it. The agents of a system have one each, and the whole has none.
fn budget(task: &Task, telling: &Telling) -> Option<u64> {
    match (&task.request.system, telling.planned().next()) {
        (None, Some((_, Some(plan)))) => plan.limits.token_budget,
        _ => None,
    }
}

/// A run of before it counted them has its calls in the log.
fn tool_calls(telling: &Telling, run: &Run) -> usize {
    let is_call = |body: &EventBody| {
        matches!(body, EventBody::StepFinished(step)
            if step.run == run.id && matches!(step.kind, StepKind::Tool { .. }))
    };
    let logged = telling.events.iter().filter(|event| is_call(&event.body)).count();
    logged.max(run.tool_calls as usize)
}

/// How its part ended, as the log has it.
fn last_event(task: &Task, run: &Run, next: Option<&Run>) -> String {
    log_line::what(&match next {
        Some(_) => EventBody::RunEnded { run: run.id, usage: run.usage },
        None => EventBody::TaskEnded {
            state: task.state.clone(),
            output: None,
            failure: task.failure.clone(),
            usage: task.usage,
        },
    })
}

fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
        Priority::Urgent => "urgent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_two_characters_and_says_so() {
        assert_eq!(bounded("whole", 5), "whole");
        assert_eq!(bounded("cut off", 3), "cut...[truncated]");
        assert_eq!(bounded("aä", 2), "a...[truncated]");
    }
}
