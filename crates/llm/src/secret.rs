//! The keys that endpoints name, taken from the environment: only from variables that are there for it, and each
//! namespace only from its own. `openai-key` of the namespace `default` is `OSTLER_SECRET_OPENAI_KEY`, that of `team` is
//! `OSTLER_SECRET_TEAM__OPENAI_KEY`. Whoever may declare an endpoint could else send any variable of this process away.

use std::{fmt, sync::Arc};

use ostler_kernel::Failure;

/// Looks a variable up, or not.
type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

#[derive(Clone)]
pub struct Secrets {
    lookup: Arc<Lookup>,
}

impl Secrets {
    /// Reads the environment anew at every call, so that nothing stale is kept.
    pub fn from_environment() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { lookup: Arc::new(lookup) }
    }

    /// The secret, which must not find its way into any message. `reference` is `[namespace/]name[:key]`.
    pub fn resolve(&self, reference: &str) -> Result<String, Failure> {
        let missing =
            |what: String| Failure::permanent("secret_not_found", format!("the secret `{reference}` {what}"));
        let Some(variable) = variable(reference) else {
            let what =
                "can't be a variable: a namespace of lower-case letters, digits and single hyphens can";
            return Err(missing(what.to_owned()));
        };
        match (self.lookup)(&variable).as_deref().map(str::trim) {
            None => Err(missing(format!("is not in the environment, as `{variable}`"))),
            Some("") => Err(missing(format!("is empty in the environment, as `{variable}`"))),
            Some(secret) => Ok(secret.to_owned()),
        }
    }
}

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
        return Some(format!("OSTLER_SECRET_{name}"));
    }
    let is_lower = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let capitals: String = namespace.chars().map(capital).collect();
    (namespace.chars().all(is_lower) && is_plain(&capitals))
        .then(|| format!("OSTLER_SECRET_{capitals}__{name}"))
}

const DEFAULT_NAMESPACE: &str = "default";

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

fn capital(c: char) -> char {
    if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(variable: &'static str, value: &'static str) -> Result<String, Failure> {
        let secrets = Secrets::new(move |name| (name == variable).then(|| value.to_owned()));
        secrets.resolve("team/openai-key:value")
    }

    #[test]
    fn a_secret_is_found_under_its_own_name_alone() {
        assert_eq!(resolve("OSTLER_SECRET_TEAM__OPENAI_KEY_VALUE", " k\n").unwrap(), "k");
        for name in ["team/openai-key:value", "TEAM_OPENAI_KEY_VALUE", "OSTLER_SECRET_TEAM_OPENAI_KEY_VALUE"]
        {
            assert!(resolve(name, "k").is_err(), "{name}");
        }
    }

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
    fn a_missing_or_empty_one_is_refused_for_good() {
        for (name, value) in [("OTHER", "k"), ("OSTLER_SECRET_TEAM__OPENAI_KEY_VALUE", " ")] {
            let failure = resolve(name, value).unwrap_err();
            assert_eq!(failure.code, "secret_not_found");
            assert!(!failure.is_retryable() && failure.message.contains("OSTLER_SECRET_TEAM__"), "{failure}");
        }
    }
}
