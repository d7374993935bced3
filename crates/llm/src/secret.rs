//! The keys that endpoints name, taken from the environment: the reference as it is written, in capitals with
//! `_` for everything else, and the same behind `OSTLER_SECRET_`.

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

    /// The secret, which must not find its way into any message.
    pub fn resolve(&self, reference: &str) -> Result<String, Failure> {
        let capitals: String = reference.chars().map(capital).collect();
        let prefixed = format!("OSTLER_SECRET_{capitals}");
        let found = [reference, &capitals, &prefixed].into_iter().find_map(|name| (self.lookup)(name));
        let missing = |what: &str| {
            let places = format!("`{reference}`, `{capitals}` and `{prefixed}`");
            Failure::permanent("secret_not_found", format!("the secret `{reference}` {what} ({places})"))
        };
        match found.as_deref().map(str::trim) {
            None => Err(missing("is in none of the variables looked at")),
            Some("") => Err(missing("is empty in the first of the variables that has it")),
            Some(secret) => Ok(secret.to_owned()),
        }
    }
}

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
    fn a_secret_is_found_under_three_names() {
        for name in ["team/openai-key:value", "TEAM_OPENAI_KEY_VALUE", "OSTLER_SECRET_TEAM_OPENAI_KEY_VALUE"]
        {
            assert_eq!(resolve(name, " k\n").unwrap(), "k", "{name}");
        }
    }

    #[test]
    fn a_missing_or_empty_one_is_refused_for_good() {
        for (name, value) in [("OTHER", "k"), ("TEAM_OPENAI_KEY_VALUE", " ")] {
            let failure = resolve(name, value).unwrap_err();
            assert_eq!(failure.code, "secret_not_found");
            assert!(!failure.is_retryable() && failure.message.contains("OSTLER_SECRET_TEAM"), "{failure}");
        }
    }
}
