//! Answers that were stopped for what they say.

use ostler_kernel::{Step, StepKind, step::Instead};
use ostler_llm::{Completion, Finish};

use crate::{
    failure,
    ground::{Scene, calls},
};

#[tokio::test]
async fn the_calls_of_an_answer_that_was_stopped_are_not_made() {
    for (finish, code) in
        [(Finish::ContentFilter, "model_content_filter"), (Finish::Refusal, "model_refused")]
    {
        let story = Scene::new(move |_| {
            calls(&[("search", "{}"), ("search", "{}")]).map(|answer| Completion { finish, ..answer })
        });
        let story = story.play().await;
        assert_eq!((failure(&story).code.as_str(), story.asked.len()), (code, 1));
        assert_eq!(story.called, [], "no tool has heard of it");
        let refused: Vec<_> = story.steps.iter().filter_map(instead).collect();
        assert!(matches!(refused[..], [Instead::Refused { .. }, Instead::Refused { .. }]), "{refused:?}");
    }
}

fn instead(step: &Step) -> Option<&Instead> {
    match &step.kind {
        StepKind::Tool { instead, .. } => instead.as_ref(),
        StepKind::Model { .. } | StepKind::Wait => None,
    }
}
