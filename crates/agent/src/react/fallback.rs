//! Which of an agent's models is asked, and when the next one is. Decided from the plan, the step that failed and its
//! failure alone; the decision is journaled as the step that it opens.

use ostler_kernel::{
    ErrorClass, Failure, StepKind,
    plan::{AgentPlan, ModelPlan},
    step::Fallback,
};

/// So often a call is tried that fails in passing, before the run's own retries are touched.
const TRIES: u32 = 4;

/// The same where another model stands behind: it is asked sooner.
const TRIES_BEFORE_ANOTHER: u32 = 2;

/// Failures that took, or will take, so long that the same model is not asked again if there is another.
const LENGTHY: [&str; 2] = ["model_timeout", "model_circuit_open"];

/// It took all the time that an answer may take: another try would hold the slot for as long again.
const TOO_SLOW: &str = "model_too_slow";

/// Final for one endpoint, and no reason for another to fail alike: a key, a name, an address, a setting. What a vendor
/// says of the conversation itself (a bad request, too long, filtered, refused) is not among them.
const OF_THE_ENDPOINT: [&str; 13] = [
    "model_auth",
    "model_not_found",
    "model_quota_exhausted",
    "model_insecure",
    "model_address_refused",
    "model_redirected",
    "model_bad_endpoint",
    "model_provider_unknown",
    "model_option_unknown",
    "model_option_invalid",
    "secret_not_found",
    "secret_invalid",
    "secret_refused",
];

/// The model that the step asks.
pub fn asked<'p>(plan: &'p AgentPlan, kind: &StepKind) -> &'p ModelPlan {
    match kind {
        StepKind::Model { fallback: Some(fallback), .. } => chosen(plan, fallback.place),
        StepKind::Model { fallback: None, .. } | StepKind::Tool { .. } | StepKind::Wait => &plan.model,
    }
}

/// The step that asks this model.
pub fn step(plan: &AgentPlan, fallback: Option<Fallback>) -> StepKind {
    let model = chosen(plan, fallback.as_ref().map_or(0, |fallback| fallback.place)).model.clone();
    StepKind::Model { model, fallback }
}

/// The step that asks the next model after `kind` failed, if there is one that could do better.
pub fn next(plan: &AgentPlan, kind: &StepKind, failure: &Failure) -> Option<StepKind> {
    if !could_be_mended(failure) {
        return None;
    }
    let former = former(kind);
    let place = former.map_or(0, |fallback| fallback.place);
    let model = plan.fallbacks.get(usize::try_from(place).ok()?)?;
    let may_pass = failure.is_retryable() || former.is_some_and(|fallback| fallback.may_pass);
    Some(step(plan, Some(Fallback { place: place + 1, endpoint: model.endpoint.clone(), may_pass })))
}

/// How often the call is tried in all, if it fails so.
pub fn tries(plan: &AgentPlan, kind: &StepKind, failure: &Failure) -> u32 {
    match next(plan, kind, failure) {
        _ if failure.code == TOO_SLOW => 1,
        None => TRIES,
        Some(_) if LENGTHY.contains(&failure.code.as_str()) => 1,
        Some(_) => TRIES_BEFORE_ANOTHER,
    }
}

/// What the run fails with when no model is left. If one of those before may come back, the run is worth another try,
/// though the last would fail for good.
pub fn last_word(kind: &StepKind, failure: Failure) -> Failure {
    match former(kind) {
        Some(fallback) if fallback.may_pass && could_be_mended(&failure) => {
            Failure { class: ErrorClass::Transient, ..failure }
        }
        _ => failure,
    }
}

/// Whether another endpoint might answer where this one failed.
fn could_be_mended(failure: &Failure) -> bool {
    match failure.class {
        ErrorClass::Transient => true,
        ErrorClass::Permanent => OF_THE_ENDPOINT.contains(&failure.code.as_str()),
        ErrorClass::Limit | ErrorClass::Timeout | ErrorClass::OutcomeUnknown | ErrorClass::Cancelled => false,
    }
}

fn former(kind: &StepKind) -> Option<&Fallback> {
    match kind {
        StepKind::Model { fallback, .. } => fallback.as_ref(),
        StepKind::Tool { .. } | StepKind::Wait => None,
    }
}

/// The place 0 is the agent's own model.
fn chosen(plan: &AgentPlan, place: u32) -> &ModelPlan {
    let index = place.checked_sub(1).and_then(|index| usize::try_from(index).ok());
    index.and_then(|index| plan.fallbacks.get(index)).unwrap_or(&plan.model)
}

#[cfg(test)]
mod tests {
    use ostler_kernel::plan::{Limits, Rules};

    use super::*;

    fn model(name: &str) -> ModelPlan {
        ModelPlan {
            endpoint: format!("at-{name}"),
            provider: "mock".into(),
            model: name.into(),
            secret_ref: Some(format!("key-{name}")),
            ..ModelPlan::default()
        }
    }

    fn plan(fallbacks: &[&str]) -> AgentPlan {
        AgentPlan {
            namespace: "default".into(),
            agent: "a".into(),
            description: String::new(),
            prompt: String::new(),
            model: model("first"),
            fallbacks: fallbacks.iter().map(|name| model(name)).collect(),
            tools: Vec::new(),
            limits: Limits::default(),
            rules: Rules::default(),
        }
    }

    fn overloaded() -> Failure {
        Failure::transient("model_overloaded", "later")
    }

    #[test]
    fn models_are_asked_in_their_order_and_then_no_more() {
        let plan = plan(&["second", "third"]);
        let mut kind = step(&plan, None);
        let mut names = Vec::new();
        loop {
            names.push((kind.name().to_owned(), asked(&plan, &kind).endpoint.clone()));
            match next(&plan, &kind, &overloaded()) {
                Some(following) => kind = following,
                None => break,
            }
        }
        let expected = ["first", "second", "third"].map(|name| (name.to_owned(), format!("at-{name}")));
        assert_eq!(names, expected);
        let secrets: Vec<_> = plan.secret_refs().collect();
        assert_eq!(secrets, ["key-first", "key-second", "key-third"], "each may ask for its own key");
    }

    #[test]
    fn only_what_another_endpoint_could_mend_is_taken_to_it() {
        let plan = plan(&["second"]);
        let first = step(&plan, None);
        let goes_on = |failure: &Failure| next(&plan, &first, failure).is_some();
        for code in ["model_overloaded", "model_unreachable", "model_timeout", "model_circuit_open"] {
            assert!(goes_on(&Failure::transient(code, "")), "{code}");
        }
        for code in ["model_auth", "model_not_found", "model_quota_exhausted", "secret_not_found"] {
            assert!(goes_on(&Failure::permanent(code, "")), "{code}");
        }
        let content =
            ["model_bad_request", "model_context_overflow", "model_content_filter", "model_refused"];
        for code in content.into_iter().chain(["model_image_refused", "model_answer_too_large"]) {
            assert!(!goes_on(&Failure::permanent(code, "")), "{code}");
        }
        assert!(
            !goes_on(&Failure::limit("token_budget", "")) && !goes_on(&Failure::timeout("run_timeout", ""))
        );
    }

    #[test]
    fn where_another_stands_behind_it_is_asked_sooner() {
        let (alone, two) = (plan(&[]), plan(&["second"]));
        let first = step(&two, None);
        let timeout = Failure::transient("model_timeout", "");
        assert_eq!((tries(&alone, &first, &overloaded()), tries(&two, &first, &overloaded())), (4, 2));
        assert_eq!((tries(&alone, &first, &timeout), tries(&two, &first, &timeout)), (4, 1));
        let slow = Failure::transient("model_too_slow", "");
        assert_eq!((tries(&alone, &first, &slow), tries(&two, &first, &slow)), (1, 1));
        assert!(next(&two, &first, &slow).is_some());
        let second = next(&two, &first, &timeout).unwrap();
        assert_eq!(tries(&two, &second, &timeout), 4, "nobody stands behind the last");
    }

    #[test]
    fn a_fallback_that_fails_for_good_does_not_end_what_may_pass() {
        let plan = plan(&["second"]);
        let first = step(&plan, None);
        let auth = Failure::permanent("model_auth", "no key");
        let behind_overload = next(&plan, &first, &overloaded()).unwrap();
        assert!(last_word(&behind_overload, auth.clone()).is_retryable());
        let behind_auth = next(&plan, &first, &auth).unwrap();
        assert!(!last_word(&behind_auth, auth.clone()).is_retryable());
        let refused = Failure::permanent("model_refused", "no");
        assert!(!last_word(&behind_overload, refused).is_retryable(), "that is said of the conversation");
    }

    #[test]
    fn a_plan_of_fewer_models_than_the_step_names_asks_the_first() {
        let kind =
            step(&plan(&["second"]), Some(Fallback { place: 9, endpoint: "x".into(), may_pass: false }));
        assert_eq!(asked(&plan(&[]), &kind).model, "first");
    }
}
