//! On which terms an endpoint is asked: how much at most, when it is left alone, and what it costs.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::choice::{Complaint, FromText};
use crate::duration::GoDuration;
use crate::fields::Fields;

/// Each worker keeps to them by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndpointLimits {
    /// Calls under way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Calls begun in any minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Tokens of the calls begun in any minute, estimated before a call and corrected behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// How long a call waits for its turn before its run gives its slot up; 10s by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wait: Option<GoDuration>,
}

/// When an endpoint that fails is left alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndpointBreaker {
    /// Faults of the endpoint in a row, 10 by default; 0 is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// For how long at first, 10s by default; twice as long behind each try that fails, up to 16 times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<GoDuration>,
}

/// What a million tokens cost, in US dollars.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointPrice {
    /// Of what the model reads.
    pub input: Dollars,
    /// Of what it writes.
    pub output: Dollars,
    /// Of the input: what comes from the vendor's cache; the price of other input by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Dollars>,
    /// Of the input: what goes into the vendor's cache; the price of other input by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Dollars>,
}

impl EndpointLimits {
    pub(super) fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self {
            concurrency: fields.count("concurrency", 1),
            requests_per_minute: fields.count("requests_per_minute", 1),
            tokens_per_minute: fields.positive("tokens_per_minute"),
            max_wait: fields.positive_duration("max_wait"),
        }
    }
}

impl EndpointBreaker {
    pub(super) fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self { failures: fields.count("failures", 0), cooldown: fields.positive_duration("cooldown") }
    }
}

impl EndpointPrice {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self {
            input: fields.required("input"),
            output: fields.required("output"),
            cache_read: fields.optional("cache_read"),
            cache_write: fields.optional("cache_write"),
        }
    }
}

/// An amount of US dollars, exact to the millionth. Written as a decimal number: `3`, `0.075`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dollars {
    micros: u64,
}

/// More for a million tokens is a slip of the finger.
const MOST: u64 = 1_000_000;

const EXPECTED: &str =
    "expected an amount of dollars such as 3 or 0.075, with at most six digits behind the point";

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{EXPECTED}")]
pub struct NoDollars;

impl Dollars {
    pub fn micros(self) -> u64 {
        self.micros
    }
}

impl FromStr for Dollars {
    type Err = NoDollars;

    fn from_str(text: &str) -> Result<Self, NoDollars> {
        let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_sound = !whole.is_empty() && is_number(whole) && is_number(fraction) && fraction.len() <= 6;
        let whole: u64 = whole.parse().ok().filter(|whole| is_sound && *whole <= MOST).ok_or(NoDollars)?;
        let fraction: u64 = format!("{fraction:0<6}").parse().map_err(|_| NoDollars)?;
        Ok(Self { micros: whole * 1_000_000 + fraction })
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.micros / 1_000_000, self.micros % 1_000_000);
        let fraction = format!("{fraction:06}");
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            digits => write!(f, "{whole}.{digits}"),
        }
    }
}

impl FromText for Dollars {
    const LOOSE: bool = true;

    fn expected() -> String {
        EXPECTED.to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Complaint> {
        text.parse().map_err(|error: NoDollars| Complaint::new(error))
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let text = match &value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Dollars {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number"], "pattern": r"^\s*\d+(\.\d{0,6})?\s*$", "minimum": 0, "examples": ["3", "0.075"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_exact() {
        for (text, micros, shown) in [
            ("3", 3_000_000, "3"),
            ("0.075", 75_000, "0.075"),
            (" 15.00 ", 15_000_000, "15"),
            ("0.000001", 1, "0.000001"),
        ] {
            let dollars: Dollars = text.parse().unwrap();
            assert_eq!((dollars.micros(), dollars.to_string().as_str()), (micros, shown));
        }
        for wrong in ["", ".5", "-1", "1e3", "0.0000001", "3 USD", "99999999"] {
            assert_eq!(wrong.parse::<Dollars>(), Err(NoDollars), "{wrong}");
        }
    }
}
