//! Label selectors: which labels something must have, or must not have, to be meant.

use std::{collections::BTreeMap, fmt, str::FromStr};

/// All of these must hold; none means anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    Is {
        key: String,
        value: String,
    },
    /// Another value, or none at all.
    IsNot {
        key: String,
        value: String,
    },
    Has {
        key: String,
    },
    HasNot {
        key: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected k=v, k==v, k!=v, k or !k, separated by commas, found {found:?}{why}")]
pub struct BadSelector {
    found: String,
    why: &'static str,
}

/// More of them are more than anybody wrote.
const MOST: usize = 64;

impl Selector {
    /// Whether it holds for everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Requirement::Is { key, value } => labels.get(key) == Some(value),
            Requirement::IsNot { key, value } => labels.get(key) != Some(value),
            Requirement::Has { key } => labels.contains_key(key),
            Requirement::HasNot { key } => !labels.contains_key(key),
        }
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        let pair = |(key, value): (&str, &str)| (key.trim().to_owned(), value.trim().to_owned());
        let requirement = if let Some(parts) = text.split_once("!=") {
            let (key, value) = pair(parts);
            Requirement::IsNot { key, value }
        } else if let Some(parts) = text.split_once("==").or_else(|| text.split_once('=')) {
            let (key, value) = pair(parts);
            Requirement::Is { key, value }
        } else if let Some(key) = text.strip_prefix('!') {
            Requirement::HasNot { key: key.trim().to_owned() }
        } else {
            Requirement::Has { key: text.trim().to_owned() }
        };
        requirement.checked()
    }

    fn checked(self) -> Result<Self, &'static str> {
        let (key, value) = match &self {
            Requirement::Is { key, value } | Requirement::IsNot { key, value } => (key, value.as_str()),
            Requirement::Has { key } | Requirement::HasNot { key } => (key, ""),
        };
        if key.is_empty() {
            Err(", which names no label")
        } else if key.contains(['=', '!', '(', ')']) || key.contains(char::is_whitespace) {
            Err(", whose label can't be meant")
        } else if value.contains(['=', '!']) {
            Err(", whose value can't be meant")
        } else {
            Ok(self)
        }
    }
}

impl FromStr for Selector {
    type Err = BadSelector;

    fn from_str(text: &str) -> Result<Self, BadSelector> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let bad = |found: &str, why| BadSelector { found: found.to_owned(), why };
        let read = |part: &str| Requirement::read(part.trim()).map_err(|why| bad(part, why));
        let requirements: Vec<_> = text.split(',').map(read).collect::<Result<_, _>>()?;
        if requirements.len() > MOST {
            return Err(bad(text, ", which has more than 64 parts"));
        }
        Ok(Self(requirements))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, requirement) in self.0.iter().enumerate() {
            if place > 0 {
                out.write_str(",")?;
            }
            match requirement {
                Requirement::Is { key, value } => write!(out, "{key}={value}")?,
                Requirement::IsNot { key, value } => write!(out, "{key}!={value}")?,
                Requirement::Has { key } => out.write_str(key)?,
                Requirement::HasNot { key } => write!(out, "!{key}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        selector.parse::<Selector>().unwrap().matches(&labels)
    }

    #[test]
    fn all_parts_must_hold() {
        let labels = [("team", "blue"), ("tier", ""), ("ostler.dev/x", "1")];
        for selector in [
            "",
            " ",
            "team=blue",
            "team == blue",
            "team!=red",
            "other!=red",
            "team",
            "!other",
            "tier=",
            "tier",
        ] {
            assert!(check(selector, &labels), "{selector:?} does not hold");
        }
        assert!(check("team=blue,!other , ostler.dev/x=1", &labels));
        for selector in ["team=red", "team!=blue", "other", "!team", "team=blue,other", "Team=blue"] {
            assert!(!check(selector, &labels), "{selector:?} holds");
        }
    }

    #[test]
    fn reads_back_as_it_is_shown() {
        for text in ["a=b", "a!=b", "a", "!a", "a=b,!c,d!=e,f"] {
            assert_eq!(text.parse::<Selector>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let many = vec!["a"; MOST + 1].join(",");
        for text in ["=", "a,", ",", "!", "=b", "!=b", "a=b=c", "a in (b)", "!!a", "a b", "!a=b", &many] {
            assert!(text.parse::<Selector>().is_err(), "{text:?} was taken");
        }
    }
}
