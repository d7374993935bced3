//! What a caller notices of limits: failures with a code and a time, and turns that are given back.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt, StreamExt, stream};
use ostler_kernel::Block;

use super::{ground::Clock, *};
use crate::{Completion, Finish};

/// Answers as it is told to, or never.
#[derive(Clone, Default)]
struct Scripted {
    fails_with: Option<&'static str>,
    is_silent: bool,
    calls: Arc<AtomicUsize>,
}

impl Gateway for Scripted {
    fn stream(&self, _: ModelRequest) -> Parts {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.is_silent {
            return Box::pin(
                stream::once(async { Ok(Part::Text("well, ".into())) }).chain(stream::pending()),
            );
        }
        let last = match self.fails_with {
            Some(code) => Err(Failure::transient(code, "no")),
            None => Ok(Part::Done(Completion {
                blocks: vec![Block::Text { text: "yes".into() }],
                finish: Finish::Stop,
                usage: None,
                identity: Default::default(),
            })),
        };
        Box::pin(stream::once(async { last }))
    }
}

fn request(limits: ModelLimits, base_url: &str) -> ModelRequest {
    ModelRequest {
        endpoint: ModelPlan {
            endpoint: "main".into(),
            base_url: base_url.into(),
            limits,
            ..ModelPlan::default()
        },
        system: String::new(),
        messages: vec![],
        tools: vec![],
        output_schema: None,
        request_id: String::new(),
    }
}

/// The first part, if there is one by now.
fn first(parts: &mut Parts) -> Option<Result<Part, Failure>> {
    parts.next().now_or_never().flatten()
}

fn failure(gateway: &impl Gateway, request: ModelRequest) -> Failure {
    first(&mut gateway.stream(request)).expect("an answer at once").expect_err("a failure")
}

#[test]
fn a_run_at_the_limit_is_sent_away_to_sleep() {
    let scripted = Scripted::default();
    let gateway = Limited::new(scripted.clone(), Arc::new(Clock::default()));
    let limits = ModelLimits { requests_per_minute: Some(1), ..ModelLimits::default() };
    assert!(matches!(first(&mut gateway.stream(request(limits.clone(), ""))), Some(Ok(Part::Done(_)))));
    let failure = failure(&gateway, request(limits, ""));
    assert_eq!((failure.code.as_str(), failure.is_retryable()), ("model_endpoint_busy", true));
    assert_eq!(failure.retry_after(), Some(Duration::from_secs(61)));
    assert!(failure.message.contains("requests_per_minute: 1"), "{failure}");
    assert_eq!(scripted.calls.load(Ordering::SeqCst), 1, "the endpoint is not asked");
}

#[test]
fn a_dropped_call_gives_its_turn_back() {
    let scripted = Scripted { is_silent: true, ..Scripted::default() };
    let gateway = Limited::new(scripted, Arc::new(Clock::default()));
    let limits = ModelLimits { concurrency: Some(1), ..ModelLimits::default() };
    let mut one = gateway.stream(request(limits.clone(), ""));
    assert!(matches!(first(&mut one), Some(Ok(Part::Text(_)))));
    let mut other = gateway.stream(request(limits, ""));
    assert!(first(&mut other).is_none(), "it waits");
    drop(one);
    assert!(matches!(first(&mut other), Some(Ok(Part::Text(_)))));
}

#[test]
fn an_endpoint_that_fails_is_left_alone_until_its_time_or_its_address_changes() {
    let clock = Arc::new(Clock::default());
    let scripted = Scripted { fails_with: Some("model_server_error"), ..Scripted::default() };
    let gateway = Limited::new(scripted.clone(), Arc::clone(&clock) as Arc<dyn Runtime>);
    for _ in 0..10 {
        assert_eq!(failure(&gateway, request(ModelLimits::default(), "")).code, "model_server_error");
    }
    let open = failure(&gateway, request(ModelLimits::default(), ""));
    assert_eq!((open.code.as_str(), open.is_retryable()), ("model_circuit_open", true));
    assert_eq!(open.retry_after(), Some(Duration::from_secs(10)));
    assert_eq!(scripted.calls.load(Ordering::SeqCst), 10);
    assert_eq!(failure(&gateway, request(ModelLimits::default(), "elsewhere")).code, "model_server_error");
    clock.advance(Duration::from_secs(10));
    assert_eq!(failure(&gateway, request(ModelLimits::default(), "")).code, "model_server_error");
    assert_eq!(failure(&gateway, request(ModelLimits::default(), "")).code, "model_circuit_open");
}

#[test]
fn what_a_vendor_refuses_opens_nothing() {
    let scripted = Scripted { fails_with: Some("model_rate_limited"), ..Scripted::default() };
    let gateway = Limited::new(scripted, Arc::new(Clock::default()));
    for _ in 0..50 {
        assert_eq!(failure(&gateway, request(ModelLimits::default(), "")).code, "model_rate_limited");
    }
}

#[test]
fn endpoints_that_nothing_is_known_of_are_forgotten() {
    let clock = Arc::new(Clock::default());
    let gateway = Limited::new(Scripted::default(), Arc::clone(&clock) as Arc<dyn Runtime>);
    for number in 0..ROOM + 10 {
        if number == ROOM {
            clock.advance(Duration::from_secs(120));
        }
        drop(first(&mut gateway.stream(request(ModelLimits::default(), &number.to_string()))));
    }
    assert_eq!(gateway.desks.lock().unwrap().len(), 10);
}

#[test]
fn endpoints_that_had_trouble_are_forgotten_by_age_and_the_youngest_are_kept() {
    let clock = Arc::new(Clock::default());
    let scripted = Scripted { fails_with: Some("model_server_error"), ..Scripted::default() };
    let gateway = Limited::new(scripted, Arc::clone(&clock) as Arc<dyn Runtime>);
    for number in 0..2 * ROOM {
        clock.advance(Duration::from_secs(1));
        failure(&gateway, request(ModelLimits::default(), &number.to_string()));
    }
    let desks = gateway.desks.lock().unwrap();
    assert!((ROOM - ROOM_LEFT..=ROOM).contains(&desks.len()), "{}", desks.len());
    let is_kept = |number: usize| desks.keys().any(|key| key[3] == number.to_string());
    assert!(is_kept(2 * ROOM - 1) && is_kept(2 * ROOM - ROOM / 2) && !is_kept(0));
}
