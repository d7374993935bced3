//! Calls that give no answer: what they cost, and how long they are waited for.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use ostler_agent::hook::{Hook, Moment, ToolAsk};
use ostler_kernel::{
    Failure, Runtime, Step, Usage,
    run::end::Leave,
    step::{StepOutcome, StepState},
};
use ostler_link::TokioRuntime;

use crate::{
    failure,
    ground::{Scene, calls, says, turn},
    output,
};

fn used(step: &Step) -> Usage {
    match &step.state {
        StepState::Done { usage, .. } => *usage,
        StepState::Open => Usage::default(),
    }
}

fn cut(input_tokens: u64) -> Failure {
    let spent = Usage { input_tokens, output_tokens: 1, estimated: true, ..Usage::default() };
    Failure { retry_after_ms: Some(1), ..Failure::transient("model_stream_cut", "cut").with_spent(spent) }
}

fn busy(wait: Duration) -> Failure {
    Failure::transient("model_rate_limited", "not now").with_retry_after(Some(wait))
}

/// Fails for so many calls of each play, then answers.
fn failing(times: u32, failure: Failure) -> Scene {
    let calls = AtomicU32::new(0);
    Scene::new(move |_| match calls.fetch_add(1, Ordering::Relaxed) % (times + 1) < times {
        true => Err(failure.clone()),
        false => says("done"),
    })
}

#[tokio::test]
async fn tries_that_broke_off_are_charged_to_the_step_that_ends() {
    let story = failing(2, cut(100)).play().await;
    assert_eq!(output(&story), "done");
    let usage = used(&story.steps[0]);
    assert_eq!((usage.input_tokens, usage.output_tokens), (2 * 100 + 5, 2 + 2));
    assert!(usage.estimated);
}

#[tokio::test]
async fn a_call_that_never_is_answered_is_charged_with_all_its_tries() {
    let story = Scene::new(|_| Err(cut(100))).play().await;
    assert_eq!(failure(&story).code, "model_stream_cut");
    assert_eq!((used(&story.steps[0]).total(), story.asked.len()), (4 * 101, 4));
    let refused = || Failure { retry_after_ms: Some(1), ..Failure::transient("model_overloaded", "no") };
    let story = Scene::new(move |_| Err(refused())).play().await;
    assert_eq!(used(&story.steps[0]), Usage::default(), "who says no takes nothing");
}

#[tokio::test]
async fn tries_count_against_the_token_budget() {
    let mut scene = Scene::new(|_| Err(cut(400)));
    scene.plan.limits.token_budget = Some(1000);
    let story = scene.play().await;
    assert_eq!((failure(&story).code.as_str(), story.asked.len()), ("token_budget", 3));
    assert!(failure(&story).message.starts_with("1203 of 1000"), "{}", failure(&story));
}

#[tokio::test]
async fn a_call_that_the_runs_time_cuts_off_is_charged_with_its_prompt_and_what_was_shown() {
    let mut scene = Scene::new(|_| calls(&[("search", "{}")]));
    scene.hangs_after = Some("one two three");
    scene.plan.limits.timeout_ms = Some(300);
    let story = scene.play().await;
    assert_eq!(failure(&story).code, "run_timeout");
    let cut = &story.steps[2];
    let StepState::Done { outcome: StepOutcome::Failed { failure }, usage, took_ms, .. } = &cut.state else {
        panic!("{cut:?}")
    };
    assert_eq!((failure.code.as_str(), usage.output_tokens, usage.estimated), ("run_timeout", 3, true));
    assert!(usage.input_tokens > 10 && *took_ms > 0, "{cut:?}");
    assert_eq!(usage.cost_micro_usd, Some(usage.input_tokens + 2 * 3), "by the price of its model");
}

#[tokio::test]
async fn a_tool_that_the_runs_time_cuts_off_charges_no_model() {
    let mut scene = Scene::new(|_| calls(&[("search", "{}")])).hook(Endless);
    scene.plan.limits.timeout_ms = Some(300);
    let story = scene.play().await;
    assert_eq!(failure(&story).code, "run_timeout");
    let charged: Vec<u64> = story.steps.iter().map(|step| used(step).total()).collect();
    assert_eq!(charged, [7, 0]);
}

/// Never lets go of a tool's result.
struct Endless;

#[async_trait]
impl Hook for Endless {
    async fn after_tool(
        &self,
        _at: Moment<'_>,
        _call: &ToolAsk,
        _result: &mut Result<String, Failure>,
    ) -> Result<(), Failure> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn what_no_vendor_counted_has_a_price_all_the_same() {
    let story = Scene::new(|_| {
        says("one two three").map(|mut completion| {
            completion.usage = None;
            completion
        })
    });
    let usage = used(&story.play().await.steps[0]);
    assert_eq!(usage.cost_micro_usd, Some(usage.input_tokens + 2 * usage.output_tokens));
    assert!(usage.estimated && usage.output_tokens == 3, "{usage:?}");
}

#[tokio::test]
async fn an_answer_of_nothing_is_charged_too() {
    let empty = || {
        says("").map(|mut completion| {
            completion.blocks.clear();
            completion
        })
    };
    let story = Scene::new(move |_| empty()).play().await;
    assert_eq!(failure(&story).code, "model_empty_answer");
    assert_eq!(used(&story.steps[0]).total(), 4 * 7);
}

#[tokio::test]
async fn a_wait_of_a_day_is_slept_on_for_an_hour_and_says_why() {
    let began = TokioRuntime::new(tokio::runtime::Handle::current()).now();
    let story = Scene::new(|_| Err(busy(Duration::from_secs(86_400)))).play().await;
    let Leave::Sleep { until, delay_ms, why: Some(why) } = &story.left else { panic!("{:?}", story.left) };
    assert_eq!(*delay_ms, Some(3_600_000), "how long, for who dates it by another calendar");
    assert_eq!((why.code.as_str(), why.message.as_str()), ("model_rate_limited", "not now"));
    let slept = until.since(began);
    assert!(slept <= Duration::from_secs(3600 + 60), "{slept:?}");
    assert!(story.steps[0].is_open(), "the call is made again");
}

#[tokio::test]
async fn who_has_slept_too_often_fails_with_what_it_slept_on() {
    let mut scene = Scene::new(|_| Err(busy(Duration::from_secs(60))));
    scene.slept = 499;
    let story = scene.play().await;
    assert!(matches!(story.left, Leave::Sleep { .. }), "{:?}", story.left);
    scene.slept = 500;
    let story = scene.play().await;
    assert_eq!(failure(&story).code, "model_rate_limited");
    assert_eq!(failure(&story).retry_after_ms, Some(60_000));
    assert!(!story.steps[0].is_open());
}

#[tokio::test]
async fn what_was_spent_before_a_sleep_is_kept() {
    let calls = AtomicU32::new(0);
    let scene = Scene::new(move |_| match calls.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => Err(cut(100)),
        _ => Err(busy(Duration::from_secs(60))),
    });
    let story = scene.play().await;
    assert!(matches!(story.left, Leave::Sleep { .. }), "{:?}", story.left);
    assert_eq!(used(&story.steps[0]).total(), 101);
    assert!(story.steps[1].is_open(), "the next try is a step of its own");
}

#[tokio::test]
async fn a_finished_step_begins_the_count_of_sleeps_anew() {
    let mut scene = Scene::new(|request| match turn(request) {
        0 => calls(&[("search", "{}")]),
        _ => Err(busy(Duration::from_secs(60))),
    });
    scene.slept = 500;
    let story = scene.play().await;
    assert!(matches!(story.left, Leave::Sleep { .. }), "{:?}", story.left);
}
