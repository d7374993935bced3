//! Durations as Go writes them: `30s`, `1m30s`, `250ms`, `1.5h`. Never negative here.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time that reads and prints in Go's notation; at most what Go can hold, about 292 years.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(Duration);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("expected a duration such as \"30s\", \"1m30s\" or \"250ms\"")]
    Malformed,
    #[error("expected a duration that is not negative")]
    Negative,
    #[error("expected a duration of at most 292 years")]
    TooLong,
}

impl GoDuration {
    pub const ZERO: Self = Self(Duration::ZERO);

    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub const fn get(self) -> Duration {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0.is_zero()
    }
}

impl From<GoDuration> for Duration {
    fn from(duration: GoDuration) -> Self {
        duration.0
    }
}

impl From<Duration> for GoDuration {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl JsonSchema for GoDuration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let part = r"(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)";
        let pattern = format!(r"^\s*([-+]?({part})+|[-+]?0)?\s*$");
        // An unquoted 0 is a number.
        json_schema!({"type": ["string", "integer"], "pattern": pattern, "examples": ["30s", "1m30s", "250ms"]})
    }
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let text = text.trim();
        let negative = text.starts_with('-');
        let nanos = total_nanos(text.strip_prefix(['-', '+']).unwrap_or(text))?;
        if nanos > i64::MAX as u64 {
            Err(DurationError::TooLong)
        } else if negative && nanos > 0 {
            Err(DurationError::Negative)
        } else {
            Ok(Self(Duration::from_nanos(nanos)))
        }
    }
}

fn total_nanos(unsigned: &str) -> Result<u64, DurationError> {
    let mut rest = unsigned;
    match rest {
        "" => return Err(DurationError::Malformed),
        "0" => return Ok(0),
        _ => {}
    }
    let mut nanos: u64 = 0;
    while !rest.is_empty() {
        let (part, left) = leading_part(rest)?;
        nanos = nanos.checked_add(part).ok_or(DurationError::TooLong)?;
        rest = left;
    }
    Ok(nanos)
}

/// One `<number><unit>`, in nanoseconds, and what follows it.
fn leading_part(text: &str) -> Result<(u64, &str), DurationError> {
    let (whole, rest) = leading_digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => leading_digits(after),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Malformed);
    }
    let end =
        rest.find(|character: char| character.is_ascii_digit() || character == '.').unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let scale = unit_nanos(unit).ok_or(DurationError::Malformed)?;
    let whole: u64 = match whole {
        "" => 0,
        digits => digits.parse().map_err(|_| DurationError::TooLong)?,
    };
    let nanos = whole.checked_mul(scale).ok_or(DurationError::TooLong)?;
    Ok((nanos.checked_add(fraction_nanos(fraction, scale)).ok_or(DurationError::TooLong)?, rest))
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len()))
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Digits after the point, of which those below a nanosecond are cut off.
fn fraction_nanos(digits: &str, scale: u64) -> u64 {
    let mut nanos: u128 = 0;
    let mut divisor: u128 = 1;
    for digit in digits.bytes().take(18) {
        nanos = nanos * 10 + u128::from(digit - b'0');
        divisor *= 10;
    }
    u64::try_from(nanos * u128::from(scale) / divisor).unwrap_or(0)
}

impl fmt::Display for GoDuration {
    /// Go's notation without the trailing zero units Go prints (`1h`, not `1h0m0s`).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.as_secs(), self.0.subsec_nanos());
        if seconds == 0 && nanos > 0 {
            return match nanos {
                1_000_000.. => write_decimal(out, (nanos / 1_000_000).into(), nanos % 1_000_000, 6, "ms"),
                1_000.. => write_decimal(out, (nanos / 1_000).into(), nanos % 1_000, 3, "µs"),
                _ => write!(out, "{nanos}ns"),
            };
        }
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        if hours > 0 {
            write!(out, "{hours}h")?;
        }
        if minutes > 0 {
            write!(out, "{minutes}m")?;
        }
        if seconds > 0 || nanos > 0 || (hours == 0 && minutes == 0) {
            write_decimal(out, seconds, nanos, 9, "s")?;
        }
        Ok(())
    }
}

fn write_decimal(
    out: &mut fmt::Formatter<'_>,
    whole: u64,
    fraction: u32,
    width: usize,
    unit: &str,
) -> fmt::Result {
    if fraction == 0 {
        return write!(out, "{whole}{unit}");
    }
    let digits = format!("{fraction:0width$}");
    write!(out, "{whole}.{}{unit}", digits.trim_end_matches('0'))
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, nanos: u64, printed: &str) {
        let duration: GoDuration = text.parse().unwrap();
        assert_eq!(duration.get(), Duration::from_nanos(nanos), "{text}");
        assert_eq!(duration.to_string(), printed, "{text}");
    }

    #[test]
    fn reads_and_prints_what_go_does() {
        check("30s", 30_000_000_000, "30s");
        check("1m30s", 90_000_000_000, "1m30s");
        check("90s", 90_000_000_000, "1m30s");
        check("250ms", 250_000_000, "250ms");
        check("1.5h", 5_400_000_000_000, "1h30m");
        check("24h", 86_400_000_000_000, "24h");
        check("0", 0, "0s");
        check("0s", 0, "0s");
        check("-0s", 0, "0s");
        check("+5s", 5_000_000_000, "5s");
        check(".5s", 500_000_000, "500ms");
        check("1.s", 1_000_000_000, "1s");
        check("1.25ms", 1_250_000, "1.25ms");
        check("1us", 1_000, "1µs");
        check("1.5μs", 1_500, "1.5µs");
        check("7ns", 7, "7ns");
        check("1h0.000000001s", 3_600_000_000_001, "1h0.000000001s");
        check("2562047h47m16.854775807s", i64::MAX as u64, "2562047h47m16.854775807s");
    }

    #[test]
    fn refuses_what_is_no_duration() {
        for text in ["", "5", "s", ".", ".s", "5 s", "5d", "1h5", "one second", "5s!", "--5s", "+", "1e3s"] {
            assert_eq!(text.parse::<GoDuration>(), Err(DurationError::Malformed), "{text:?}");
        }
        assert_eq!("-5s".parse::<GoDuration>(), Err(DurationError::Negative));
        for text in
            ["2562047h47m16.854775808s", "99999999999999999999s", "9999999999h", "-99999999999999999999s"]
        {
            assert_eq!(text.parse::<GoDuration>(), Err(DurationError::TooLong), "{text:?}");
        }
    }
}
