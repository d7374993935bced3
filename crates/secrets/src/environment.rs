//! Secrets of the environment: only from variables that are there for it, and each namespace only from its own.
//! `openai-key` of the namespace `default` is `OSTLER_SECRET_OPENAI_KEY`, that of `team` is
//! `OSTLER_SECRET_TEAM__OPENAI_KEY`. Whoever may declare an endpoint could else send any variable of this process away.

use std::sync::Arc;

use async_trait::async_trait;
use ostler_kernel::Failure;

use crate::{Asked, Resolver, SecretText};

/// Looks a variable up, or not.
type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

pub struct Environment {
    lookup: Arc<Lookup>,
}

impl Environment {
    /// Reads the environment anew at every call, so that nothing stale is kept.
    pub fn of_process() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { lookup: Arc::new(lookup) }
    }
}

#[async_trait]
impl Resolver for Environment {
    async fn find(&self, asked: &Asked<'_>) -> Result<Option<SecretText>, Failure> {
        let Some(variable) = variable(asked.reference) else { return Ok(None) };
        match (self.lookup)(&variable).as_deref().map(str::trim) {
            None => Ok(None),
            Some("") => {
                let message =
                    format!("the secret `{}` is empty in the environment, as `{variable}`", asked.reference);
                Err(Failure::permanent("secret_not_found", message))
            }
            Some(secret) => Ok(Some(SecretText::new(secret))),
        }
    }

    fn lacks(&self, reference: &str) -> String {
        match variable(reference) {
            Some(variable) => format!("is not in the environment, as `{variable}`"),
            None => "can't be a variable: a namespace of lower-case letters, digits and single hyphens can, and a \
                     name other than `key` and `key-file`"
                .to_owned(),
        }
    }
}

const DEFAULT_NAMESPACE: &str = "default";
const PREFIX: &str = "OSTLER_SECRET_";

/// Variables of the server's own that begin alike: the key that opens everything is nobody's secret to name.
const OURS: [&str; 2] = ["OSTLER_SECRET_KEY", "OSTLER_SECRET_KEY_FILE"];

/// Where the environment has a secret. No two namespaces share a variable: two underlines stand behind a namespace, and
/// nowhere else.
pub fn variable(reference: &str) -> Option<String> {
    let (namespace, name) = reference.split_once('/').unwrap_or((DEFAULT_NAMESPACE, reference));
    let name: String = name.chars().map(capital).collect();
    let is_plain = |text: &str| {
        !text.is_empty() && !text.starts_with('_') && !text.ends_with('_') && !text.contains("__")
    };
    if !is_plain(&name) {
        return None;
    }
    if namespace == DEFAULT_NAMESPACE {
        return Some(format!("{PREFIX}{name}")).filter(|variable| !OURS.contains(&variable.as_str()));
    }
    let is_lower = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let capitals: String = namespace.chars().map(capital).collect();
    (namespace.chars().all(is_lower) && is_plain(&capitals)).then(|| format!("{PREFIX}{capitals}__{name}"))
}

fn capital(c: char) -> char {
    if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_namespace_reaches_for_the_variable_of_another() {
        let of = |reference: &str| variable(reference);
        assert_eq!(of("openai-key").as_deref(), Some("OSTLER_SECRET_OPENAI_KEY"));
        assert_eq!(of("default/openai-key"), of("openai-key"));
        assert_eq!(of("b/openai-key").as_deref(), Some("OSTLER_SECRET_B__OPENAI_KEY"));
        for reference in
            ["b--openai-key", "b__openai-key", "B/key", "a_b/key", "a.b/key", "b-/key", "b/-key", "", "b/"]
        {
            assert_eq!(of(reference), None, "{reference}");
        }
    }

    #[test]
    fn the_key_of_the_server_is_no_secret_that_can_be_named() {
        for reference in ["key", "default/key", "KEY", "key-file", "key:file", "Key_File"] {
            assert_eq!(variable(reference), None, "{reference}");
        }
        assert_eq!(variable("team/key").as_deref(), Some("OSTLER_SECRET_TEAM__KEY"));
    }
}
