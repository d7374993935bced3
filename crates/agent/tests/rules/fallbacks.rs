//! Models that stand in for one another.

use ostler_kernel::{Failure, StepKind, run::end::Leave};

use crate::{
    answered, failure,
    ground::{Scene, calls, model, says, turn},
    output,
};

fn with_fallbacks(mut scene: Scene) -> Scene {
    scene.plan.fallbacks = vec![model("second"), model("third")];
    scene
}

#[tokio::test]
async fn the_next_model_answers_and_goes_on_answering() {
    let scene = Scene::new(|request| match request.endpoint.endpoint.as_str() {
        "first" => Err(Failure::permanent("model_auth", "no such key")),
        _ if turn(request) == 0 => calls(&[("search", "{}")]),
        _ => says("done"),
    });
    let mut scene = with_fallbacks(scene);
    // A call that nobody answered is no turn.
    scene.plan.limits.max_steps = 2;
    let story = scene.play().await;
    assert_eq!(output(&story), "done");
    let asked: Vec<&str> = story.asked.iter().map(|(endpoint, _)| endpoint.as_str()).collect();
    assert_eq!(asked, ["first", "second", "second"], "the rest of the run stays with whoever answers");
    assert_eq!(answered(&story), [false, true, true]);
    let StepKind::Model { fallback: Some(fallback), .. } = &story.steps[1].kind else { panic!() };
    assert_eq!((fallback.place, fallback.endpoint.as_str()), (1, "second"));
}

#[tokio::test]
async fn all_are_asked_in_order_and_the_last_word_counts() {
    let scene = Scene::new(|request| match request.endpoint.endpoint.as_str() {
        "first" => Err(Failure::transient("model_overloaded", "later")),
        "second" => Err(Failure::transient("model_timeout", "slow")),
        _ => Err(Failure::permanent("model_not_found", "never heard of it")),
    });
    let story = with_fallbacks(scene).play().await;
    let asked: Vec<&str> = story.asked.iter().map(|(endpoint, _)| endpoint.as_str()).collect();
    assert_eq!(asked, ["first", "first", "second", "third"]);
    let failure = failure(&story);
    assert_eq!(failure.code, "model_not_found");
    assert!(failure.is_retryable(), "the first may answer again");
}

#[tokio::test]
async fn what_every_model_would_refuse_is_asked_of_one() {
    for code in ["model_bad_request", "model_context_overflow", "model_content_filter"] {
        let story = with_fallbacks(Scene::new(move |_| Err(Failure::permanent(code, "no")))).play().await;
        assert_eq!((failure(&story).code.as_str(), story.asked.len()), (code, 1));
    }
}

#[tokio::test]
async fn a_long_wait_is_taken_elsewhere_and_only_the_last_one_is_slept_on() {
    let wait = || Some(std::time::Duration::from_secs(60));
    let limited = move || Err(Failure::transient("model_rate_limited", "later").with_retry_after(wait()));
    let scene = Scene::new(move |request| match request.endpoint.endpoint.as_str() {
        "first" => limited(),
        _ => says("done"),
    });
    let story = with_fallbacks(scene).play().await;
    assert_eq!((output(&story), story.asked.len()), ("done", 2));

    let mut alone = Scene::new(move |_| limited());
    alone.plan.fallbacks = vec![model("second")];
    let story = alone.play().await;
    assert!(matches!(story.left, Leave::Sleep { .. }), "{:?}", story.left);
    assert_eq!(story.asked.len(), 2);
}
