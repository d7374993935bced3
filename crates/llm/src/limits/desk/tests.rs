//! Turns are taken in order, given back whatever happens, and nobody is left asleep.

use super::{
    super::ground::{Clock, Watched},
    *,
};

type Entered = Watched<Result<Permit, Refused>>;

struct Ground {
    desk: Arc<Desk>,
    clock: Arc<Clock>,
    limits: ModelLimits,
}

impl Ground {
    fn new(limits: ModelLimits) -> Self {
        Self { desk: Arc::default(), clock: Arc::default(), limits }
    }

    fn enter(&self) -> Entered {
        let (desk, runtime, limits) = (Arc::clone(&self.desk), Arc::clone(&self.clock), self.limits.clone());
        Watched::new(async move { desk.enter(runtime, &limits, 0).await })
    }

    fn enter_now(&self) -> Permit {
        self.enter().look().expect("no wait").unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    fn seconds(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn one_at_a_time() -> ModelLimits {
    ModelLimits { concurrency: Some(1), ..ModelLimits::default() }
}

#[test]
fn the_first_who_waits_is_the_next() {
    let ground = Ground::new(one_at_a_time());
    let first = ground.enter_now();
    let (mut second, mut third) = (ground.enter(), ground.enter());
    assert!(second.look().is_none() && third.look().is_none());
    drop(first);
    assert!(third.look().is_none(), "it is not its turn");
    let second = second.look().expect("it was woken");
    drop(second);
    assert!(third.look().is_some_and(|entered| entered.is_ok()));
}

#[test]
fn who_gives_up_is_passed_over() {
    let ground = Ground::new(one_at_a_time());
    let first = ground.enter_now();
    let (mut second, mut third) = (ground.enter(), ground.enter());
    assert!(second.look().is_none() && third.look().is_none());
    drop(first);
    // It was called, and is gone before it has looked.
    drop(second);
    assert!(third.look().is_some_and(|entered| entered.is_ok()));
}

#[test]
fn a_minute_that_is_full_is_waited_for_by_the_clock() {
    let limits =
        ModelLimits { requests_per_minute: Some(1), max_wait_ms: Some(120_000), ..ModelLimits::default() };
    let ground = Ground::new(limits);
    drop(ground.enter_now());
    let (mut second, mut third) = (ground.enter(), ground.enter());
    assert!(second.look().is_none() && third.look().is_none());
    ground.seconds(60);
    assert!(second.look().is_none());
    ground.seconds(1);
    assert!(second.look().is_some_and(|entered| entered.is_ok()));
    assert!(
        third.look().is_some_and(|entered| {
            entered.is_err_and(|refused| matches!(refused, Refused::Busy { for_: Some(_), .. }))
        }),
        "its own minute comes too late"
    );
}

#[test]
fn who_is_sure_to_come_too_late_is_told_at_once() {
    let ground = Ground::new(ModelLimits { requests_per_minute: Some(1), ..ModelLimits::default() });
    drop(ground.enter_now());
    let refused = ground.enter().look().and_then(Result::err);
    let for_ = Some(Duration::from_secs(61));
    assert_eq!(refused, Some(Refused::Busy { waited: Duration::ZERO, for_ }));
}

#[test]
fn nobody_waits_longer_than_is_allowed() {
    let ground = Ground::new(one_at_a_time());
    let _first = ground.enter_now();
    let mut second = ground.enter();
    assert!(second.look().is_none());
    ground.seconds(9);
    assert!(second.look().is_none());
    ground.seconds(1);
    let refused = second.look().and_then(Result::err);
    assert_eq!(refused, Some(Refused::Busy { waited: MAX_WAIT, for_: None }));
    assert!(ground.desk.lock().wakers.is_empty(), "nothing is left of it");
}

#[test]
fn an_endpoint_that_fails_is_left_alone_and_then_tried_by_one() {
    let ground = Ground::new(ModelLimits { breaker_failures: Some(2), ..one_at_a_time() });
    for _ in 0..2 {
        ground.enter_now().end(Verdict::Fault, None);
    }
    let refused = ground.enter().look().and_then(Result::err);
    assert_eq!(refused, Some(Refused::CircuitOpen { for_: Duration::from_secs(10) }));
    ground.seconds(10);
    let probe = ground.enter_now();
    let (mut second, rules) = (ground.enter(), ground.enter().look().and_then(Result::err));
    assert!(matches!(rules, Some(Refused::CircuitOpen { .. })), "one tries it, others are told");
    assert!(second.look().is_some());
    // The one that tries it is cancelled: the next one may.
    drop(probe);
    assert_eq!(ground.enter_now().end(Verdict::Alive, None), Some(Change::Closed));
    assert!(ground.desk.is_idle(Duration::from_secs(1000)));
}
