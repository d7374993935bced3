//! Server fault x loop rule x vendor, through the real stack: each row of the table ends as it states, and the session
//! it leaves behind is one that the model's strict validator accepts. Many rows of a vendor run at once.
//!
//! Every pair of fault and rule runs on the wires of [`WHOLE`], the written rows on all: all pairs on all wires would take
//! minutes, and what differs from wire to wire is told by the rows and by the suite of the vendors.

#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "fault_table/rows.rs"]
mod rows;
#[path = "vendors/setup.rs"]
mod setup;
mod stack;
#[path = "fault_table/whole.rs"]
mod whole;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, stream};
use ostler_kernel::{EventBody, Failure, RunId, TaskState};
use ostler_testing::{
    model_server::{Fault, ModelServer, Script, Settings, Turn},
    tool_server::ToolServer,
};
use ostler_worker::Equipment;
use rows::{ANSWER, Ends, ROWS, Row, Rule};
use serde_json::{Value, json};
use setup::{ALL, ANTHROPIC, CHAT, Vendor};
use stack::{Stack, Watched};

/// Rows of a vendor that run together: more would keep a small machine from meeting the hasty ones' waits.
const AT_ONCE: usize = 48;

/// The wires of the whole table: on them every fault can be told.
const WHOLE: [Vendor; 2] = [CHAT, ANTHROPIC];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_ends_as_its_rule_says() {
    let whole = whole::rows();
    for vendor in ALL {
        let rows = if WHOLE.contains(&vendor) { &whole[..] } else { ROWS };
        try_vendor(vendor, rows).await;
    }
    println!("fault table: {} rows x {} wires", ROWS.len(), ALL.len());
    println!("fault table: {} of {} pairs x {} wires", n_pairs(&whole), all_pairs(), WHOLE.len());
}

#[test]
fn every_pair_has_a_row_or_a_reason_to_have_none() {
    let (whole, left) = (whole::rows(), whole::left());
    assert_eq!(n_pairs(&whole) + left.len(), all_pairs(), "{left:?}");
    let mut reasons: BTreeMap<_, usize> = BTreeMap::new();
    for (_, _, reason) in &left {
        *reasons.entry(reason).or_default() += 1;
    }
    println!("fault table: left out {reasons:?}");
    assert!(n_pairs(&whole) * 5 > all_pairs() * 4, "only {} pairs are judged: {reasons:?}", n_pairs(&whole));
}

fn n_pairs(rows: &[Row]) -> usize {
    rows.iter().map(|row| (row.rule, row.fault)).collect::<BTreeSet<_>>().len()
}

fn all_pairs() -> usize {
    Rule::ALL.len() * Fault::ALL.len()
}

async fn try_vendor(vendor: Vendor, table: &[Row]) {
    let settings = Settings { forget_bodies: true, ..Settings::default() };
    let model = ModelServer::start_with(Script::Plan, settings).await.expect("a model");
    // Where another endpoint is asked, it always answers.
    let spare = ModelServer::start(Script::function(|_| Turn::text(ANSWER))).await.expect("another model");
    let tools = ToolServer::start().await.expect("tools");
    let stack = Stack::start(Duration::from_secs(30));
    declare(&stack, vendor, [&model, &spare], &tools).await;
    let gateway = Arc::new(setup::registry(&stack.runtime));
    let equipment = Equipment { gateway, ..stack.equipment(Arc::clone(&stack.control) as _) };
    let worker = Stack::worker_with("all", 2 * table.len() as u32, equipment);

    let rows = table.iter().filter(|row| row.is_known_to(&vendor)).enumerate();
    let checks = rows.map(|(number, row)| check(&stack, vendor, [&model, &spare], number, row));
    let checks = stream::iter(checks).buffer_unordered(AT_ONCE);
    let wrong: Vec<String> = checks.filter_map(std::future::ready).collect().await;
    worker.stop().await;
    let name = vendor.name;
    assert!(wrong.is_empty(), "{name}: {} rows ended differently:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(model.violations(), [], "{name}: the model was sent what its vendor would refuse");
    assert_eq!(spare.violations(), [], "{name}: so was the other");
}

/// Runs one row, and then says something more in the same session. Gives what is wrong.
async fn check(
    stack: &Stack,
    vendor: Vendor,
    models: [&ModelServer; 2],
    number: usize,
    row: &Row,
) -> Option<String> {
    let name = format!("row-{number}");
    let message = format!("{name} plan: {}", row.plan());
    let retry = json!({ "max_attempts": row.rule.max_attempts(), "backoff": "1ms" });
    let task = stack.create(&name, request(row, &name, &message, retry)).await;
    let watched = stack.watch(task.id).await;
    let n_calls = calls(models[0], task.run);
    let wrong = difference(row, vendor, &watched, n_calls);

    let once = json!({ "max_attempts": 1 });
    let more = stack.create(&format!("{name}-more"), request(row, &name, "go on. plan: text=on", once)).await;
    stack.watch(more.id).await;
    let is_asked = models.iter().any(|model| calls(model, more.run) > 0);
    let told = wrong.or_else(|| (!is_asked).then(|| "the session can't go on".to_owned()));
    told.map(|told| format!("{row:?}: {told}"))
}

fn request(row: &Row, session: &str, message: &str, retry: Value) -> Value {
    let mut request = json!({
        "agent": row.rule.agent(), "session": session, "input": { "message": message }, "retry": retry,
    });
    if let Some(deadline) = row.rule.deadline() {
        request["deadline"] = deadline.into();
    }
    request
}

fn difference(row: &Row, vendor: Vendor, watched: &Watched, n_calls: u64) -> Option<String> {
    let task = &watched.task.task;
    let code = task.failure.as_ref().map(|Failure { code, .. }| code.as_str());
    let ended = match (&task.state, code) {
        (TaskState::Succeeded, None) => Some(Ends::Well),
        (TaskState::Failed, Some(code)) => Some(Ends::Failed(code)),
        (TaskState::DeadLetter, Some(code)) => Some(Ends::DeadLetter(code)),
        _ => None,
    };
    if ended != Some(row.ends_for(&vendor)) {
        return Some(format!("it is {:?}: {:?}", task.state, task.failure));
    }
    if row.calls.is_some_and(|calls| calls != n_calls) {
        return Some(format!("the model was called {n_calls} times"));
    }
    let is_dense = watched.events.iter().zip(1..).all(|(event, seq)| event.seq == seq);
    if !is_dense || watched.task.last_seq != watched.events.len() as u64 {
        return Some("its log has a gap".to_owned());
    }
    if let Some(wrong) = bad_sleep(row, watched) {
        return Some(wrong);
    }
    match &task.output {
        Some(output) if row.answer().is_some_and(|answer| answer != output) => {
            Some(format!("it gave {output:?}"))
        }
        Some(output) if row.shows_only_its_answer() => {
            stray_delta(output, watched).map(|delta| format!("it showed {delta:?}"))
        }
        Some(_) | None => None,
    }
}

/// Who sleeps says on what, and for an hour at most.
fn bad_sleep(row: &Row, watched: &Watched) -> Option<String> {
    let sleeps = watched.events.iter().filter_map(|event| match &event.body {
        EventBody::RunSleeping { until, failure, .. } => Some((until.since(event.at), failure)),
        _ => None,
    });
    let sleeps: Vec<_> = sleeps.collect();
    let is_to_sleep = row.rule == Rule::Deadline && row.fault == Fault::RateLimitedDay;
    if is_to_sleep == sleeps.is_empty() {
        return Some(format!("it slept {} times", sleeps.len()));
    }
    let is_told = |failure: &Option<Failure>| {
        failure.as_ref().is_some_and(|failure| failure.code == "model_rate_limited")
    };
    let is_bad = |(length, failure): &&(Duration, &Option<Failure>)| {
        *length > Duration::from_secs(3601) || !is_told(failure)
    };
    sleeps.iter().find(is_bad).map(|(length, failure)| format!("it sleeps for {length:?} on {failure:?}"))
}

/// A piece of text that was shown and is not part of what the task gave.
fn stray_delta<'w>(output: &str, watched: &'w Watched) -> Option<&'w (u64, String)> {
    let fits = |offset: u64, text: &str| {
        let place = usize::try_from(offset).ok().and_then(|offset| output.get(offset..));
        place.is_some_and(|rest| rest.starts_with(text))
    };
    watched.deltas.iter().find(|(offset, text)| !fits(*offset, text))
}

/// How often the model was called for a run.
fn calls(model: &ModelServer, run: RunId) -> u64 {
    let prefix = format!("{run}.");
    let by_id = model.desk().by_id(|_| true);
    by_id.iter().filter(|(id, _)| id.starts_with(&prefix)).map(|(_, tally)| tally.received).sum()
}

async fn declare(stack: &Stack, vendor: Vendor, [model, spare]: [&ModelServer; 2], tools: &ToolServer) {
    let endpoint = |model: &ModelServer, waits: &[(&str, &str)]| {
        let plan = vendor.plan(model);
        let mut options = plan.options.clone();
        options.extend(waits.iter().map(|(wait, millis)| ((*wait).to_owned(), (*millis).to_owned())));
        json!({
            "provider": plan.provider, "base_url": plan.base_url, "default_model": plan.model,
            "allowPrivate": true, "options": options, "auth": { "secretRef": "model-key" },
        })
    };
    stack.apply("ModelEndpoint", "patient", endpoint(model, &[])).await;
    stack.apply("ModelEndpoint", "spare", endpoint(spare, &[])).await;
    let waits = [("first_byte_timeout_ms", "500"), ("idle_timeout_ms", "500")];
    stack.apply("ModelEndpoint", "hasty", endpoint(model, &waits)).await;
    stack.apply("ModelEndpoint", "brief", endpoint(model, &[("timeout_ms", "250")])).await;
    let tool = json!({
        "type": "http", "endpoint": tools.tool_url("echo"), "allowPrivate": true, "description": "Echoes.",
        "input_schema": { "type": "object", "properties": { "q": { "type": "string" } } },
    });
    stack.apply("Tool", "lookup", tool).await;
    for rule in Rule::ALL {
        let [first, others @ ..] = rule.endpoints() else { continue };
        let spec = json!({
            "model_ref": first, "fallback_model_refs": others, "prompt": "Do as planned.", "tools": ["lookup"],
            "limits": rule.limits(), "execution": rule.execution(),
        });
        stack.apply("Agent", rule.agent(), spec).await;
    }
}
