//! What tokens and users have in common: a role, namespaces, and when they were made.

use std::fmt;

use clap::ValueEnum;
use ostler_spec::GoDuration;

use crate::clock;

/// Each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    Reader,
    Writer,
    Controller,
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Reader => "reader",
            Role::Writer => "writer",
            Role::Controller => "controller",
            Role::Admin => "admin",
        })
    }
}

/// `team,other`, or `all namespaces`.
pub fn spaces(namespaces: &[String]) -> String {
    match namespaces {
        [] => "all namespaces".to_owned(),
        [all] if all == "*" => "all namespaces".to_owned(),
        some => some.join(","),
    }
}

/// How long ago, if ever.
pub fn age(time: Option<&str>, now_ms: i64) -> String {
    time.and_then(clock::parse).map(|at| clock::age(at, now_ms)).unwrap_or_default()
}

/// Days too: `30d`.
pub fn lifetime(text: &str) -> Result<GoDuration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    let lasts = match days {
        Some(days) => Ok(GoDuration::from_secs(days.saturating_mul(24 * 60 * 60))),
        None => text.parse().map_err(|_| "expected days such as 30d, or a duration such as 12h".to_owned()),
    };
    // It would be over before anybody has read it.
    lasts.and_then(|lasts: GoDuration| match lasts.is_zero() {
        true => Err("expected a duration longer than 0s".to_owned()),
        false => Ok(lasts),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_days_or_durations() {
        assert_eq!(lifetime("2d").unwrap(), GoDuration::from_secs(172_800));
        assert_eq!(lifetime("90m").unwrap(), GoDuration::from_secs(5400));
        assert!(lifetime("soon").is_err() && lifetime("0d").is_err() && lifetime("0s").is_err());
    }
}
