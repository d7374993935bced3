//! Times that come again: five fields for minute, hour, day of month, month and day of week.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::choice::{Complaint, FromText};

/// A checked expression. Displays as it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cron {
    text: String,
    fields: [u64; 5],
}

const FIELDS: [(&str, u8, u8); 5] =
    [("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7)];

/// What people write elsewhere.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("expected five fields such as \"30 9 * * 1-5\"")]
    Malformed,
    #[error("expected {name} as numbers from {least} to {most}, ranges, lists, steps or *")]
    Field { name: &'static str, least: u8, most: u8 },
    #[error("expected a day that exists in one of its months")]
    Never,
}

impl Cron {
    /// Whether a minute belongs to it. `weekday` counts from 0 for Sunday.
    pub fn matches(&self, minute: u8, hour: u8, day: u8, month: u8, weekday: u8) -> bool {
        let [minutes, hours, days, months, weekdays] = self.fields;
        let has = |set: u64, value: u8| set & (1 << value) != 0;
        // Where both say which days, either is enough: that is what crontabs have always meant.
        let on_day = match (self.restricts(2), self.restricts(4)) {
            (true, true) => has(days, day) || has(weekdays, weekday),
            _ => has(days, day) && has(weekdays, weekday),
        };
        has(minutes, minute) && has(hours, hour) && has(months, month) && on_day
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let text = text.trim();
        let parts: Vec<&str> = text.split_ascii_whitespace().collect();
        let parts: [&str; 5] = parts.try_into().map_err(|_| CronError::Malformed)?;
        let mut fields = [0; 5];
        for ((field, part), (name, least, most)) in fields.iter_mut().zip(parts).zip(FIELDS) {
            *field = set(part, least, most).ok_or(CronError::Field { name, least, most })?;
        }
        // Sunday is 0 and 7.
        fields[4] |= (fields[4] >> 7) & 1;
        let cron = Self { text: text.to_owned(), fields };
        if cron.comes() { Ok(cron) } else { Err(CronError::Never) }
    }
}

impl Cron {
    /// Whether a field says which, and not only how often.
    fn restricts(&self, field: usize) -> bool {
        self.text.split_ascii_whitespace().nth(field).is_some_and(|text| !text.starts_with('*'))
    }

    /// Whether there is any such day: the 30th of February never comes.
    fn comes(&self) -> bool {
        const LENGTHS: [u8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let [_, _, days, months, _] = self.fields;
        let comes_in = |(month, length): (u64, u8)| {
            months & (1 << month) != 0 && (1..=length).any(|day| days & (1 << day) != 0)
        };
        self.restricts(4) || (1..).zip(LENGTHS).any(comes_in)
    }
}

/// The values that a field names, as bits.
fn set(text: &str, least: u8, most: u8) -> Option<u64> {
    text.split(',').try_fold(0, |all, part| Some(all | part_of(part, least, most)?))
}

fn part_of(text: &str, least: u8, most: u8) -> Option<u64> {
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, number(step).filter(|step| *step > 0)?),
        None => (text, 1),
    };
    let (from, to) = match range.split_once('-') {
        _ if range == "*" => (least, if most == 7 { 6 } else { most }),
        Some((from, to)) => (number(from)?, number(to)?),
        // `5/15` goes on to the end.
        None if text.contains('/') => (number(range)?, most),
        None => (number(range)?, number(range)?),
    };
    if from < least || to > most || from > to {
        return None;
    }
    Some((from..=to).step_by(step.into()).fold(0, |all, value| all | (1 << value)))
}

fn number(text: &str) -> Option<u8> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl FromText for Cron {
    fn expected() -> String {
        CronError::Malformed.to_string()
    }

    fn from_text(text: &str) -> Result<Self, Complaint> {
        text.parse().map_err(|error: CronError| {
            let suggestion = NICKNAMES.iter().find(|(name, _)| *name == text.trim());
            let suggestion = suggestion.map(|(_, fields)| (*fields).to_owned());
            Complaint { expected: error.to_string(), suggestion }
        })
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl Serialize for Cron {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Cron {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Cron {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cron".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"^\s*\S+(\s+\S+){4}\s*$", "examples": ["30 9 * * 1-5"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_crontabs_mean() {
        let cron = |text: &str| text.parse::<Cron>().unwrap();
        let weekdays = cron("30 9 * * 1-5");
        assert!(weekdays.matches(30, 9, 4, 7, 1) && !weekdays.matches(30, 9, 4, 7, 0));
        assert!(!weekdays.matches(31, 9, 4, 7, 1) && !weekdays.matches(30, 10, 4, 7, 1));
        let quarters = cron("*/15 0-6/2 * * *");
        assert!(quarters.matches(45, 4, 1, 1, 3) && !quarters.matches(46, 4, 1, 1, 3));
        assert!(!quarters.matches(45, 5, 1, 1, 3));
        assert!(cron("5/20 * * * *").matches(25, 1, 1, 1, 1));
        let sunday = cron("0 0 * * 7");
        assert!(sunday.matches(0, 0, 1, 1, 0) && !sunday.matches(0, 0, 1, 1, 6));
        let either = cron("0 0 13 * 5");
        assert!(
            either.matches(0, 0, 13, 1, 2) && either.matches(0, 0, 2, 1, 5) && !either.matches(0, 0, 2, 1, 2)
        );
        assert_eq!(cron(" 0  1,2 * 1-3 * ").to_string(), "0  1,2 * 1-3 *");
    }

    #[test]
    fn what_can_not_be_meant_is_refused() {
        for text in
            ["", "* * * *", "* * * * * *", "@daily", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *"]
        {
            assert!(text.parse::<Cron>().is_err(), "{text}");
        }
        for text in [
            "* * * * 8",
            "5-1 * * * *",
            "*/0 * * * *",
            "a * * * *",
            "1, * * * *",
            "+1 * * * *",
            "* * * jan *",
        ] {
            assert!(text.parse::<Cron>().is_err(), "{text}");
        }
        assert_eq!("0 0 30 2 *".parse::<Cron>(), Err(CronError::Never));
        assert!("0 0 30 2 1".parse::<Cron>().is_ok());
        assert!("0 0 29 2 *".parse::<Cron>().is_ok());
    }
}
