//! Tool names as the wire allows them, and back. A name that is fine travels as it is; any other gets an
//! alias for the length of one call.

use std::{borrow::Cow, collections::BTreeMap};

use crate::ToolOffer;

/// Only the names that need an alias are in here: mostly none.
#[derive(Debug, Default, Clone)]
pub(crate) struct ToolNames {
    aliases: BTreeMap<String, String>,
    originals: BTreeMap<String, String>,
}

const MAX_LENGTH: usize = 64;

impl ToolNames {
    pub(crate) fn new(offers: &[ToolOffer]) -> Self {
        let mut names = Self::default();
        for offer in offers.iter().filter(|offer| !is_allowed(&offer.name)) {
            let is_taken = |alias: &str, names: &Self| {
                names.originals.contains_key(alias) || offers.iter().any(|offer| offer.name == alias)
            };
            let plain = allowed(&offer.name);
            let mut alias = plain.clone();
            for number in 2.. {
                if !is_taken(&alias, &names) {
                    break;
                }
                alias = numbered(&plain, number);
            }
            names.originals.insert(alias.clone(), offer.name.clone());
            names.aliases.insert(offer.name.clone(), alias);
        }
        names
    }

    /// Also for names in the transcript that are no longer, or never were, on offer.
    pub(crate) fn to_wire<'n>(&'n self, name: &'n str) -> Cow<'n, str> {
        match self.aliases.get(name) {
            Some(alias) => Cow::Borrowed(alias),
            None if is_allowed(name) => Cow::Borrowed(name),
            None => Cow::Owned(allowed(name)),
        }
    }

    pub(crate) fn original(&self, name: String) -> String {
        self.originals.get(&name).cloned().unwrap_or(name)
    }
}

/// What every vendor allows: one of them wants a letter or an underline first.
fn is_allowed(name: &str) -> bool {
    name.len() <= MAX_LENGTH && name.starts_with(is_first) && name.chars().all(is_allowed_letter)
}

fn is_first(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_allowed_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn allowed(name: &str) -> String {
    let letters = name.chars().map(|c| if is_allowed_letter(c) { c } else { '_' });
    let first = name.chars().next().filter(|c| is_allowed_letter(*c) && !is_first(*c)).map(|_| '_');
    let name: String = first.into_iter().chain(letters).take(MAX_LENGTH).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}

fn numbered(name: &str, number: u32) -> String {
    let end = format!("_{number}");
    let kept: String = name.chars().take(MAX_LENGTH - end.len()).collect();
    kept + &end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(offered: &[&str]) -> ToolNames {
        let offer = |name: &&str| ToolOffer {
            name: name.to_string(),
            description: String::new(),
            schema: serde_json::Value::Null,
        };
        ToolNames::new(&offered.iter().map(offer).collect::<Vec<_>>())
    }

    #[test]
    fn allowed_names_travel_as_they_are() {
        let names = names(&["web-search", "memory_read"]);
        assert_eq!(names.to_wire("web-search"), "web-search");
        assert_eq!(names.original("memory_read".into()), "memory_read");
        assert!(names.aliases.is_empty());
    }

    #[test]
    fn others_get_an_alias_of_their_own_and_come_back() {
        let long = "x".repeat(80);
        let offered = [
            "memory.read",
            "memory/read",
            "memory_read",
            "grüße",
            "",
            "3d-print",
            &long,
            &format!("{long}y"),
        ];
        let names = names(&offered);
        let mut aliases = offered.map(|name| names.to_wire(name).into_owned());
        for (alias, name) in aliases.iter().zip(offered) {
            assert!(is_allowed(alias), "{alias}");
            assert_eq!(names.original(alias.clone()), name);
        }
        aliases.sort();
        assert!(aliases.is_sorted_by(|a, b| a < b), "{aliases:?}");
    }

    #[test]
    fn a_name_that_was_never_offered_is_still_allowed_on_the_wire() {
        assert_eq!(names(&[]).to_wire("no such tool!"), "no_such_tool_");
        assert_eq!(names(&[]).to_wire(""), "tool");
    }
}
