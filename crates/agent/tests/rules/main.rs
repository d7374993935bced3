//! The loop's rules, each played through with a crash at every write of its journal: before the write and after it.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod fallbacks;
mod ground;
mod hooks;
mod stopped;
mod text_calls;
mod waste;

use ground::{Scene, Story, calls, calls_cut_off, heard, says, turn};
use ostler_kernel::{
    Block, Failure, Role, StepKind,
    plan::{AfterTool, Duplicates, OnViolation, Rules},
    run::end::Leave,
    step::{Instead, StepOutcome, StepState},
};
use serde_json::json;

fn output(story: &Story) -> &str {
    match &story.left {
        Leave::Ok { output } => output,
        other => panic!("{other:?}"),
    }
}

fn failure(story: &Story) -> &Failure {
    match &story.left {
        Leave::Failed { failure } => failure,
        other => panic!("{other:?}"),
    }
}

/// What the tools gave, as the model is told.
fn results(story: &Story) -> Vec<(&str, bool)> {
    let blocks =
        story.entries.iter().filter(|entry| entry.role == Role::Tool).flat_map(|entry| &entry.blocks);
    let given = blocks.filter_map(|block| match block {
        Block::ToolResult { content, is_error, .. } => Some((content.as_str(), *is_error)),
        _ => None,
    });
    given.collect()
}

fn colour() -> Rules {
    let schema =
        json!({"type": "object", "properties": {"colour": {"enum": ["red"]}}, "required": ["colour"]});
    Rules { output_schema: Some(schema), ..Rules::default() }
}

#[tokio::test]
async fn an_output_that_does_not_fit_its_schema_is_asked_for_once_more() {
    let story = Scene::new(|request| {
        assert!(request.output_schema.is_some(), "the vendor is told too");
        match turn(request) {
            0 => says("It is green."),
            _ if heard(request).contains("not JSON") => says("```json\n{\"colour\": \"red\"}\n```"),
            _ => panic!("the model was not told what is wrong: {}", heard(request)),
        }
    });
    let story = story.rules(colour()).play().await;
    assert_eq!((output(&story), story.asked.len()), ("{\"colour\": \"red\"}", 2));
}

#[tokio::test]
async fn an_output_that_never_fits_fails_with_what_is_wrong() {
    let story = Scene::new(|_| says("{\"colour\":\"green\"}")).rules(colour()).play().await;
    let failure = failure(&story);
    assert_eq!((failure.code.as_str(), story.asked.len()), ("output_schema_violation", 2));
    assert!(failure.message.contains("/colour") && !failure.is_retryable(), "{failure}");
}

#[tokio::test]
async fn the_last_call_of_a_run_is_not_followed_by_another() {
    let mut scene = Scene::new(|_| says("green")).rules(colour());
    scene.plan.limits.max_steps = 1;
    let story = scene.play().await;
    assert_eq!((failure(&story).code.as_str(), story.asked.len()), ("output_schema_violation", 1));
}

fn twice(duplicates: Duplicates) -> Scene {
    let scene = Scene::new(|request| match turn(request) {
        0 => calls(&[("search", "{\"q\": 1, \"n\": 2}")]),
        1 => calls(&[("search", "{\"n\":2,\"q\":1}"), ("search", "{\"q\":3}"), ("search", "{\"q\":3}")]),
        _ => says("done"),
    });
    scene.rules(Rules { duplicates, ..Rules::default() })
}

#[tokio::test]
async fn a_call_that_was_made_before_gets_its_result_again() {
    let story = twice(Duplicates::Reuse).play().await;
    assert_eq!(output(&story), "done");
    assert_eq!(story.called.len(), 2, "{:?}", story.called);
    let given = results(&story);
    assert_eq!(given.len(), 4, "each has a result: {given:?}");
    assert!(given.iter().all(|(_, is_error)| !is_error), "{given:?}");
    assert_eq!(given.iter().filter(|(content, _)| content.contains("\"n\"")).count(), 2, "{given:?}");
    let reused: Vec<_> = story
        .steps
        .iter()
        .filter_map(|step| match &step.kind {
            StepKind::Tool { instead: Some(Instead::Reuse { step: of }), .. } => Some((step.id.index, *of)),
            _ => None,
        })
        .collect();
    assert_eq!(reused, [(3, 1), (5, 4)], "the log tells of whom");
}

#[tokio::test]
async fn a_call_that_was_made_before_is_denied() {
    let story = twice(Duplicates::Deny).play().await;
    assert_eq!((output(&story), story.called.len()), ("done", 2));
    let denied = results(&story).into_iter().filter(|(content, is_error)| {
        *is_error && content.starts_with("error duplicate_tool_call: this very call was made before, in step")
    });
    assert_eq!(denied.count(), 2);
}

#[tokio::test]
async fn a_call_may_be_made_as_often_as_one_likes_where_that_is_allowed() {
    let story = twice(Duplicates::Call).play().await;
    assert_eq!((output(&story), story.called.len()), ("done", 4));
}

#[tokio::test]
async fn a_call_that_failed_is_no_duplicate() {
    for duplicates in [Duplicates::Reuse, Duplicates::Deny] {
        let scene = Scene::new(|request| match turn(request) {
            0 | 1 => calls(&[("search", "{}")]),
            _ => says("done"),
        });
        let scene = scene.tools(|request| match request.request_id.ends_with(".1") {
            true => Err(Failure::permanent("execution_failed", "not today")),
            false => Ok("found".into()),
        });
        let story = scene.rules(Rules { duplicates, ..Rules::default() }).play().await;
        assert_eq!(results(&story)[1], ("found", false), "{duplicates:?}");
    }
}

#[tokio::test]
async fn equal_calls_of_one_answer_share_a_failure_too() {
    let scene = Scene::new(|request| match turn(request) {
        0 => calls(&[("search", "{}"), ("search", "{}")]),
        _ => says("done"),
    });
    let scene = scene.tools(|_| Err(Failure::permanent("execution_failed", "not today")));
    let story = scene.rules(Rules { duplicates: Duplicates::Reuse, ..Rules::default() }).play().await;
    let told = ("error execution_failed: not today", true);
    assert_eq!((results(&story), story.called.len()), (vec![told, told], 1));
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_not_made_with_what_had_come_of_it() {
    for begun in ["", " ", "{\"q\": \"the be", "[1]"] {
        let scene = Scene::new(move |request| match turn(request) {
            0 => calls_cut_off(&[("search", "{\"q\":1}"), ("delete", begun)]),
            _ if heard(request).contains("not called: the answer was cut off") => says("done"),
            _ => panic!("the model was not told: {}", heard(request)),
        });
        for rules in [Rules::default(), Rules { duplicates: Duplicates::Call, ..Rules::default() }] {
            let story = scene.clone().rules(rules).play().await;
            let called: Vec<&str> = story.called.iter().map(|(_, name, _)| name.as_str()).collect();
            assert_eq!((output(&story), called), ("done", vec!["search"]), "{begun:?}");
            assert_eq!(results(&story).len(), 2, "each has a result");
        }
    }
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_not_answered_by_one_without_arguments() {
    let scene = Scene::new(|request| match turn(request) {
        0 => calls(&[("search", "")]),
        1 => calls_cut_off(&[("search", "")]),
        _ => says("done"),
    });
    let story = scene.rules(Rules { duplicates: Duplicates::Reuse, ..Rules::default() }).play().await;
    assert_eq!((output(&story), story.called.len()), ("done", 1));
    let given: Vec<bool> = results(&story).into_iter().map(|(_, is_error)| is_error).collect();
    assert_eq!(given, [false, true], "a whole call without arguments is made, one that was cut off is not");
}

fn stopping() -> Rules {
    Rules { after_tool: AfterTool::Stop, ..Rules::default() }
}

#[tokio::test]
async fn a_run_may_end_with_its_first_tool() {
    let scene = Scene::new(|request| match turn(request) {
        0 => calls(&[("search", "{\"q\":1}"), ("publish", "{}")]),
        _ => panic!("the model was asked again"),
    });
    let story = scene.rules(stopping()).play().await;
    assert_eq!(output(&story), "search of {\"q\":1}");
    assert_eq!(story.called.len(), 1, "the other was not called: {:?}", story.called);
    assert!(results(&story).iter().any(|(content, _)| content.starts_with("error tool_not_called")));
}

#[tokio::test]
async fn a_tool_that_fails_ends_nothing() {
    let scene = Scene::new(|request| match turn(request) {
        0 => calls(&[("search", "{}")]),
        1 => calls(&[("publish", "{}")]),
        _ => panic!("the model was asked again"),
    });
    let scene = scene.tools(|request| match request.tool.name.as_str() {
        "search" => Err(Failure::permanent("execution_failed", "not today")),
        _ => Ok("published".into()),
    });
    assert_eq!(output(&scene.rules(stopping()).play().await), "published");
}

#[tokio::test]
async fn a_tools_result_that_does_not_fit_is_left_to_the_model() {
    let scene = Scene::new(|request| match turn(request) {
        0 => calls(&[("search", "{}")]),
        _ => says("{\"colour\":\"red\"}"),
    });
    let rules = Rules { after_tool: AfterTool::Stop, ..colour() };
    let story = scene.rules(rules).play().await;
    assert_eq!((output(&story), story.asked.len()), ("{\"colour\":\"red\"}", 2));
}

fn contract() -> Rules {
    Rules {
        contract: vec!["search".into(), "publish".into()],
        markers: vec!["DONE".into()],
        ..Rules::default()
    }
}

#[tokio::test]
async fn a_contract_is_asked_for_until_it_is_kept() {
    let scene = Scene::new(|request| match turn(request) {
        0 => says("DONE, I would say"),
        1 if heard(request).contains("search, publish") => calls(&[("publish", "{}"), ("search", "{}")]),
        2 => says("well"),
        3 if heard(request).contains("does not contain") => says("DONE"),
        n => panic!("{n}: {}", heard(request)),
    });
    let story = scene.rules(contract()).play().await;
    assert_eq!((output(&story), story.violations.len()), ("DONE", 0));
}

#[tokio::test]
async fn a_contract_that_is_not_kept_fails_for_good() {
    let mut scene = Scene::new(|_| says("well")).rules(contract());
    scene.plan.limits.max_steps = 3;
    let story = scene.play().await;
    let failure = failure(&story);
    assert_eq!((failure.code.as_str(), story.asked.len()), ("agent_contract_violation", 3));
    assert!(failure.message.contains("publish") && !failure.is_retryable(), "{failure}");
}

#[tokio::test]
async fn a_run_that_only_calls_tools_breaks_its_contract_at_its_last_step() {
    let mut scene = Scene::new(|request| calls(&[("search", &format!("{{\"q\":{}}}", turn(request)))]));
    scene = scene.rules(contract());
    scene.plan.limits.max_steps = 2;
    let story = scene.play().await;
    assert_eq!(failure(&story).code, "agent_contract_violation");
    let observed = Rules { on_violation: OnViolation::Observe, ..contract() };
    assert_eq!(failure(&scene.rules(observed).play().await).code, "max_steps");
}

#[tokio::test]
async fn a_tool_outside_the_contract_is_not_called() {
    let scene = Scene::new(|_| calls(&[("search", "{}"), ("delete", "{}")]));
    let story = scene.rules(contract()).play().await;
    assert_eq!((failure(&story).code.as_str(), story.called.len()), ("agent_contract_violation", 0));
    assert_eq!(story.violations.len(), 1);
    let refused =
        story.steps.iter().filter(|step| matches!(&step.kind, StepKind::Tool { instead: Some(_), .. }));
    assert_eq!(refused.count(), 2, "what was asked for is told");
}

#[tokio::test]
async fn an_observed_contract_is_told_and_changes_nothing() {
    let scene = Scene::new(|request| match turn(request) {
        0 => calls(&[("delete", "{}")]),
        _ => says("well"),
    });
    let story = scene.rules(Rules { on_violation: OnViolation::Observe, ..contract() }).play().await;
    assert_eq!((output(&story), story.called.len()), ("well", 1));
    assert_eq!(story.violations.len(), 2, "{:?}", story.violations);
    assert!(story.violations[0].contains("delete") && story.violations[1].contains("search"));
}

/// Whether each model step was answered.
fn answered(story: &Story) -> Vec<bool> {
    let models = story.steps.iter().filter(|step| matches!(step.kind, StepKind::Model { .. }));
    models.map(|step| matches!(&step.state, StepState::Done { outcome: StepOutcome::Ok, .. })).collect()
}
