//! Leaves an endpoint alone that has failed too often in a row. Closed, calls go through and faults are counted; open,
//! none goes for a while; then, half open, one goes to try it, and what becomes of that one decides.

use std::time::Duration;

use ostler_kernel::{Failure, plan::ModelLimits};

/// One run tries four times before it gives up: its own trouble alone opens nothing.
const FAILURES: u32 = 10;
const COOLDOWN: Duration = Duration::from_secs(10);

/// Behind each try that failed it is left alone for twice as long, up to so many times the first.
const MOST_DOUBLINGS: u32 = 4;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Breaker {
    Closed {
        /// In a row.
        faults: u32,
    },
    Open {
        until: Duration,
        /// Tries that failed since it was closed.
        tries: u32,
    },
    /// The one that tries it is under way.
    HalfOpen { tries: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// 0 is never.
    failures: u32,
    cooldown: Duration,
}

/// What a call goes as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    Plain,
    /// The one that tries an endpoint that was left alone.
    Probe,
}

/// What a call tells of its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It answered, be it with a refusal.
    Alive,
    Fault,
    /// The call never got there, or was dropped.
    Unknown,
}

/// What a verdict changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Opened { for_: Duration },
    Closed,
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed { faults: 0 }
    }
}

impl Rules {
    pub(super) fn of(limits: &ModelLimits) -> Self {
        Self {
            failures: limits.breaker_failures.unwrap_or(FAILURES),
            cooldown: limits.breaker_cooldown_ms.map_or(COOLDOWN, Duration::from_millis),
        }
    }

    fn cooldown(&self, tries: u32) -> Duration {
        self.cooldown.saturating_mul(1 << tries.min(MOST_DOUBLINGS))
    }
}

impl Breaker {
    /// How long no call can go; none if one may go now. Takes nothing.
    pub(super) fn closed_for(&self, now: Duration, rules: &Rules) -> Option<Duration> {
        match self {
            _ if rules.failures == 0 => None,
            Breaker::Closed { .. } => None,
            Breaker::Open { until, .. } => Some(until.saturating_sub(now)).filter(|left| !left.is_zero()),
            Breaker::HalfOpen { .. } => Some(rules.cooldown),
        }
    }

    /// Lets a call go, or says for how long none can.
    pub(super) fn pass(&mut self, now: Duration, rules: &Rules) -> Result<Pass, Duration> {
        match (self.closed_for(now, rules), &*self) {
            (Some(left), _) => Err(left),
            (None, Breaker::Open { tries, .. }) if rules.failures > 0 => {
                *self = Breaker::HalfOpen { tries: *tries };
                Ok(Pass::Probe)
            }
            (None, Breaker::Open { .. } | Breaker::Closed { .. } | Breaker::HalfOpen { .. }) => {
                Ok(Pass::Plain)
            }
        }
    }

    /// Takes what became of a call. Once it is open, only the probe is listened to.
    pub(super) fn report(
        &mut self,
        pass: Pass,
        verdict: Verdict,
        now: Duration,
        rules: &Rules,
    ) -> Option<Change> {
        match (&mut *self, pass, verdict) {
            (Breaker::Closed { faults }, _, Verdict::Alive) => *faults = 0,
            (Breaker::Closed { faults }, _, Verdict::Fault) => {
                *faults = faults.saturating_add(1);
                if rules.failures > 0 && *faults >= rules.failures {
                    return Some(self.open(now, 0, rules));
                }
            }
            (Breaker::HalfOpen { .. }, Pass::Probe, Verdict::Alive) => {
                *self = Breaker::default();
                return Some(Change::Closed);
            }
            (Breaker::HalfOpen { tries }, Pass::Probe, Verdict::Fault) => {
                let tries = tries.saturating_add(1);
                return Some(self.open(now, tries, rules));
            }
            // It told nothing, so the next one tries.
            (Breaker::HalfOpen { tries }, Pass::Probe, Verdict::Unknown) => {
                *self = Breaker::Open { until: now, tries: *tries };
            }
            (Breaker::Closed { .. }, _, Verdict::Unknown)
            | (Breaker::Open { .. }, _, _)
            | (Breaker::HalfOpen { .. }, Pass::Plain, _) => {}
        }
        None
    }

    pub(super) fn is_untroubled(&self) -> bool {
        matches!(self, Breaker::Closed { faults: 0 })
    }

    fn open(&mut self, now: Duration, tries: u32, rules: &Rules) -> Change {
        let for_ = rules.cooldown(tries);
        *self = Breaker::Open { until: now.saturating_add(for_), tries };
        Change::Opened { for_ }
    }
}

impl Verdict {
    /// What a failure says of the endpoint. Whatever was refused with a word of the vendor's shows that it is there; what
    /// failed on our side says nothing.
    pub(super) fn of(failure: &Failure) -> Self {
        match failure.code.as_str() {
            "model_unreachable" | "model_timeout" | "model_too_slow" | "model_stream_cut"
            | "model_bad_answer" | "model_overloaded" | "model_server_error" => Verdict::Fault,
            "model_rate_limited"
            | "model_auth"
            | "model_not_found"
            | "model_quota_exhausted"
            | "model_context_overflow"
            | "model_content_filter" => Verdict::Alive,
            _ => Verdict::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: Rules = Rules { failures: 3, cooldown: Duration::from_secs(10) };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            breaker.report(Pass::Plain, Verdict::Fault, at(0), &RULES);
        }
        breaker
    }

    #[test]
    fn opens_after_faults_in_a_row_and_lets_one_try_it() {
        let mut breaker = opened();
        assert_eq!(breaker.pass(at(4), &RULES), Err(at(6)));
        assert_eq!(breaker.pass(at(10), &RULES), Ok(Pass::Probe));
        assert_eq!(breaker.pass(at(10), &RULES), Err(at(10)), "one and no more");
        assert_eq!(breaker.report(Pass::Probe, Verdict::Alive, at(11), &RULES), Some(Change::Closed));
        assert_eq!(breaker.pass(at(11), &RULES), Ok(Pass::Plain));
    }

    #[test]
    fn a_try_that_fails_doubles_the_time_up_to_a_bound() {
        let (mut breaker, mut now) = (opened(), at(10));
        let mut times = Vec::new();
        for _ in 0..6 {
            assert_eq!(breaker.pass(now, &RULES), Ok(Pass::Probe));
            match breaker.report(Pass::Probe, Verdict::Fault, now, &RULES) {
                Some(Change::Opened { for_ }) => times.push(for_.as_secs()),
                other => panic!("{other:?}"),
            }
            now += at(*times.last().unwrap());
        }
        assert_eq!(times, [20, 40, 80, 160, 160, 160]);
    }

    #[test]
    fn a_try_that_told_nothing_makes_room_for_the_next() {
        let mut breaker = opened();
        assert_eq!(breaker.pass(at(10), &RULES), Ok(Pass::Probe));
        assert_eq!(breaker.report(Pass::Probe, Verdict::Unknown, at(12), &RULES), None);
        assert_eq!(breaker.pass(at(12), &RULES), Ok(Pass::Probe));
    }

    #[test]
    fn what_answers_is_alive_whatever_it_says() {
        let mut breaker = Breaker::default();
        for _ in 0..5 {
            for verdict in [Verdict::Fault, Verdict::Fault, Verdict::Alive] {
                assert_eq!(breaker.report(Pass::Plain, verdict, at(0), &RULES), None);
            }
        }
        let of = |code: &str| Verdict::of(&Failure::permanent(code, ""));
        assert_eq!((of("model_auth"), of("model_rate_limited")), (Verdict::Alive, Verdict::Alive));
        assert_eq!((of("model_server_error"), of("model_timeout")), (Verdict::Fault, Verdict::Fault));
        assert_eq!(of("secret_not_found"), Verdict::Unknown);
    }

    #[test]
    fn none_is_left_alone_where_that_was_said() {
        let rules = Rules { failures: 0, ..RULES };
        let mut breaker = Breaker::default();
        for _ in 0..100 {
            assert_eq!(breaker.report(Pass::Plain, Verdict::Fault, at(0), &rules), None);
        }
        assert_eq!(breaker.pass(at(0), &rules), Ok(Pass::Plain));
        assert_eq!(opened().pass(at(0), &rules), Ok(Pass::Plain), "the rule was lifted meanwhile");
    }

    #[derive(Debug, Clone)]
    enum Happening {
        Ask,
        Report(usize, Verdict),
        Later(u64),
    }

    fn happening() -> impl Strategy<Value = Happening> {
        let verdict = prop_oneof![Just(Verdict::Alive), Just(Verdict::Fault), Just(Verdict::Unknown)];
        prop_oneof![
            Just(Happening::Ask),
            (any::<usize>(), verdict).prop_map(|(which, verdict)| Happening::Report(which, verdict)),
            (0..30_u64).prop_map(Happening::Later),
        ]
    }

    proptest! {
        /// Whatever happens: never two probes, never a call while it is open, and behind its time one gets through.
        #[test]
        fn holds_in_any_order(happenings in proptest::collection::vec(happening(), 1..200)) {
            let (mut breaker, mut now) = (Breaker::default(), at(0));
            let mut under_way: Vec<Pass> = Vec::new();
            let mut open_until = None;
            for happening in happenings {
                match happening {
                    Happening::Ask => match breaker.pass(now, &RULES) {
                        Ok(pass) => {
                            prop_assert!(open_until.is_none_or(|until| now >= until), "went through while open");
                            under_way.push(pass);
                        }
                        Err(left) => {
                            let probes = under_way.iter().filter(|pass| **pass == Pass::Probe).count();
                            prop_assert!(left > Duration::ZERO);
                            prop_assert!(probes == 1 || open_until.is_some_and(|until| now < until));
                        }
                    },
                    Happening::Report(which, verdict) if !under_way.is_empty() => {
                        let pass = under_way.swap_remove(which % under_way.len());
                        match breaker.report(pass, verdict, now, &RULES) {
                            Some(Change::Opened { for_ }) => open_until = Some(now + for_),
                            Some(Change::Closed) => open_until = None,
                            None => {}
                        }
                    }
                    Happening::Report(..) => {}
                    Happening::Later(seconds) => now += at(seconds),
                }
                prop_assert!(under_way.iter().filter(|pass| **pass == Pass::Probe).count() <= 1);
            }
        }
    }
}
