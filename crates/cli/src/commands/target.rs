//! What a person means by a kind, or by `kind/name`.

use ostler_spec::{Kind, kinds};

use crate::{error::CommandError, exit::Exit, suggest};

/// A kind, and perhaps a name: `agents`, `agent/hello`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub kind: Kind,
    pub name: Option<String>,
}

impl Target {
    /// From `KIND` and `NAME`, where the first may hold both.
    pub fn new(word: &str, name: Option<String>) -> Result<Self, CommandError> {
        let (word, name) = match (word.split_once('/'), name) {
            (None, name) => (word, name),
            (Some((kind, name)), None) => (kind, Some(name.to_owned())),
            (Some(_), Some(extra)) => {
                let message = format!("{word:?} already names one, so {extra:?} is too much");
                return Err(CommandError::new(Exit::Usage, message));
            }
        };
        Ok(Self { kind: kind(word)?, name })
    }
}

fn kind(word: &str) -> Result<Kind, CommandError> {
    Kind::from_word(word).ok_or_else(|| {
        let plurals = || kinds().map(|info| info.plural);
        let known = plurals().collect::<Vec<_>>().join(", ");
        let error = CommandError::new(Exit::Usage, format!("there is no kind {word:?}"));
        match suggest::nearest(word, plurals()) {
            Some(near) => error.with_remedy(format!("did you mean {near}? Kinds are {known}")),
            None => error.with_remedy(format!("kinds are {known}")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_named_in_one_word_or_two() {
        let hello = Target { kind: Kind::Agent, name: Some("hello".into()) };
        assert_eq!(Target::new("agent/hello", None).unwrap(), hello);
        assert_eq!(Target::new("agents", Some("hello".into())).unwrap(), hello);
        assert_eq!(Target::new("mep", None).unwrap().kind, Kind::ModelEndpoint);
        assert_eq!(Target::new("agent/a", Some("b".into())).unwrap_err().exit(), Exit::Usage);
    }

    #[test]
    fn an_unknown_kind_is_told_the_nearest() {
        let CommandError::Said(complaint) = Target::new("agnet", None).unwrap_err() else { panic!() };
        assert!(complaint.remedy.unwrap().starts_with("did you mean agents?"));
    }
}
