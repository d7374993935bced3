//! Which traces are kept. Decided by what is durable alone, so that a task's spans are all kept or none, wherever and
//! whenever each of them is told.

use ostler_kernel::{TraceContext, TraceId};

use crate::config::{ConfigError, Variables, bad};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Whether a caller's decision counts, where there is one.
    follows_parent: bool,
    /// Of all traces, this part.
    ratio: f64,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { follows_parent: true, ratio: 1.0 }
    }
}

impl Sampler {
    pub(crate) fn read(variables: &Variables<'_>) -> Result<Self, ConfigError> {
        let name = "OTEL_TRACES_SAMPLER";
        let Some(text) = variables.text(name) else { return Ok(Self::default()) };
        let (follows_parent, root) = match text.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, text.as_str()),
        };
        let ratio = match root {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => ratio(variables)?,
            _ => {
                return Err(bad(
                    name,
                    &text,
                    "expected always_on, always_off or traceidratio, or parentbased_ and one of them",
                ));
            }
        };
        Ok(Self { follows_parent, ratio })
    }

    pub fn keeps(&self, trace: TraceId, caller: Option<&TraceContext>) -> bool {
        match caller {
            Some(caller) if self.follows_parent => caller.parent.sampled,
            _ => (trace.random_part() as f64) < self.ratio * (1_u64 << 56) as f64,
        }
    }
}

fn ratio(variables: &Variables<'_>) -> Result<f64, ConfigError> {
    let name = "OTEL_TRACES_SAMPLER_ARG";
    let Some(text) = variables.text(name) else { return Ok(1.0) };
    let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| bad(name, &text, "expected a number from 0 to 1"))
}

#[cfg(test)]
mod tests {
    use ostler_kernel::{TaskId, Timestamp};

    use super::*;

    fn kept(sampler: Sampler) -> usize {
        // As ids are drawn: their low bits at random, but for two that a UUID keeps for itself.
        let random = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
        let trace =
            |number| TraceId::of_task(TaskId::from_parts(Timestamp::from_millis(1), 0, random(number)));
        (0..10_000).filter(|number| sampler.keeps(trace(*number), None)).count()
    }

    #[test]
    fn a_ratio_keeps_about_that_part() {
        assert_eq!(kept(Sampler { follows_parent: true, ratio: 1.0 }), 10_000);
        assert_eq!(kept(Sampler { follows_parent: true, ratio: 0.0 }), 0);
        let half = kept(Sampler { follows_parent: false, ratio: 0.5 });
        assert!((4_000..6_000).contains(&half), "{half}");
    }

    #[test]
    fn a_callers_decision_counts_where_it_is_to_be_followed() {
        let dropped = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
        let caller = TraceContext::read(dropped, None).unwrap();
        let keeps = |follows_parent, ratio| {
            Sampler { follows_parent, ratio }.keeps(caller.parent.trace, Some(&caller))
        };
        assert!(!keeps(true, 1.0) && keeps(false, 1.0) && !keeps(false, 0.0));
    }
}
