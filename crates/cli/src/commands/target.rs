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

    /// `agent/hello`, or `agent` if it has no name.
    pub fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("{}/{name}", self.kind.singular()),
            None => self.kind.singular(),
        }
    }
}

/// Several: `KIND NAME...`, or `KIND/NAME...`, or both. A kind alone is one target without a name.
pub fn targets(words: &[String]) -> Result<Vec<Target>, CommandError> {
    match words {
        [] => Ok(Vec::new()),
        [only] => Ok(vec![Target::new(only, None)?]),
        [first, ..] if first.contains('/') => words.iter().map(|word| with_name(word)).collect(),
        [first, names @ ..] => {
            let kind = kind(first)?;
            // One of another kind may stand among them: `agent hello tool/rooms`.
            let target = |name: &String| match name.contains('/') {
                true => with_name(name),
                false => Ok(Target { kind, name: Some(name.clone()) }),
            };
            names.iter().map(target).collect()
        }
    }
}

fn with_name(word: &str) -> Result<Target, CommandError> {
    let target = Target::new(word, None)?;
    match &target.name {
        Some(name) if !name.is_empty() => Ok(target),
        _ => Err(CommandError::new(Exit::Usage, format!("{word:?} names none"))
            .with_remedy("write KIND NAME..., or KIND/NAME KIND/NAME...")),
    }
}

/// The name of a task, which lists print as `task/NAME`.
pub fn task(word: &str) -> Result<String, CommandError> {
    if !word.contains('/') {
        return Ok(word.to_owned());
    }
    let Target { kind, name } = with_name(word)?;
    match name {
        Some(name) if kind == Kind::Task => Ok(name),
        _ => Err(CommandError::new(Exit::Usage, format!("{word:?} is no task"))
            .with_remedy("name a task: NAME, or task/NAME")),
    }
}

/// The names of several.
pub fn tasks(words: &[String]) -> Result<Vec<String>, CommandError> {
    words.iter().map(|word| task(word)).collect()
}

/// Namespaces are listed like a kind, and are none.
pub fn is_namespaces(word: &str) -> bool {
    matches!(word, "namespaces" | "namespace" | "ns")
}

pub fn kind(word: &str) -> Result<Kind, CommandError> {
    Kind::from_word(word).ok_or_else(|| {
        if is_namespaces(word) {
            let message = "namespaces are not declared: one is there while something lives in it";
            return CommandError::new(Exit::Usage, message).with_remedy("`ostler get namespaces` lists them");
        }
        let plurals = || kinds().map(|info| info.plural);
        let known = plurals().collect::<Vec<_>>().join(", ");
        let error = CommandError::new(Exit::Usage, format!("there is no kind {word:?}"));
        match suggest::nearest(word, plurals()) {
            Some(near) => error.with_remedy(format!("did you mean {near}?")),
            None => error.with_remedy(format!("kinds are {known}")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_target_is_named_in_one_word_or_two() {
        let hello = Target { kind: Kind::Agent, name: Some("hello".into()) };
        assert_eq!(Target::new("agent/hello", None).unwrap(), hello);
        assert_eq!(Target::new("agents", Some("hello".into())).unwrap(), hello);
        assert_eq!(Target::new("mep", None).unwrap().kind, Kind::ModelEndpoint);
        assert_eq!(Target::new("agent/a", Some("b".into())).unwrap_err().exit(), Exit::Usage);
    }

    #[test]
    fn several_are_named_behind_a_kind_or_each_with_its_own() {
        let titles = |text: &str| -> Vec<String> {
            targets(&words(text)).unwrap().iter().map(Target::title).collect()
        };
        assert_eq!(titles("agents a b"), ["agent/a", "agent/b"]);
        assert_eq!(titles("agent/a tool/b"), ["agent/a", "tool/b"]);
        assert_eq!(titles("agents a tool/b c"), ["agent/a", "tool/b", "agent/c"]);
        assert_eq!(titles("agents"), ["agent"]);
        for wrong in ["agent/a tool", "agent/a b", "agent/ tool/b", "agent a tool/", "castles x"] {
            assert_eq!(targets(&words(wrong)).unwrap_err().exit(), Exit::Usage, "{wrong}");
        }
    }

    #[test]
    fn a_task_is_named_with_its_kind_or_without() {
        for word in ["report", "task/report", "tasks/report"] {
            assert_eq!(task(word).unwrap(), "report");
        }
        for wrong in ["agent/report", "task/", "castle/report"] {
            assert_eq!(task(wrong).unwrap_err().exit(), Exit::Usage, "{wrong}");
        }
    }

    #[test]
    fn an_unknown_kind_is_told_the_nearest() {
        let CommandError::Said(complaint) = Target::new("agnet", None).unwrap_err() else { panic!() };
        assert!(complaint.remedy.unwrap().starts_with("did you mean agents?"));
    }
}
