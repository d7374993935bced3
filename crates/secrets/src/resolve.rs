//! Finds the secret that an endpoint or a tool names: asked anew for every call, so that a changed one takes effect at the
//! next. The first place that has it counts; a place that has it and can't give it fails the call, whatever others have.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use ostler_kernel::Failure;

use crate::{Redactor, SecretText, environment::Environment};

/// A place where secrets are: a server's store, asked through the worker port, or the environment.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// None if it has none of this name. Never an empty one.
    async fn find(&self, asked: &Asked<'_>) -> Result<Option<SecretText>, Failure>;

    /// Behind "the secret `x` ": that it is not here.
    fn lacks(&self, reference: &str) -> String;
}

/// Who asks for what.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// `[namespace/]name[:key]`, as the plan has it.
    pub reference: &'a str,
    /// The step that the call belongs to, such as `run_x.3`.
    pub step: &'a str,
}

#[derive(Clone)]
pub struct Secrets {
    places: Arc<[Arc<dyn Resolver>]>,
    redactor: Redactor,
}

impl Secrets {
    /// The places in the order in which they count. What is found is hidden by the redactor from then on.
    pub fn of(places: Vec<Arc<dyn Resolver>>, redactor: Redactor) -> Self {
        Self { places: places.into(), redactor }
    }

    /// What a server keeps, and behind it the environment of this process.
    pub fn kept_or_environment(kept: Arc<dyn Resolver>, redactor: Redactor) -> Self {
        Self::of(vec![kept, Arc::new(Environment::of_process())], redactor)
    }

    /// Variables alone.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::of(vec![Arc::new(Environment::new(lookup))], Redactor::default())
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The secret, for one call of one step.
    pub async fn resolve(&self, reference: &str, step: &str) -> Result<SecretText, Failure> {
        let asked = Asked { reference, step };
        for place in self.places.iter() {
            if let Some(secret) = place.find(&asked).await? {
                self.redactor.hide(secret.expose());
                return Ok(secret);
            }
        }
        let lacks: Vec<String> = self.places.iter().map(|place| place.lacks(reference)).collect();
        let message = format!("the secret `{reference}` {}", lacks.join(", and "));
        Err(Failure::permanent("secret_not_found", message))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secrets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variable: &'static str, value: &'static str) -> Secrets {
        Secrets::new(move |name| (name == variable).then(|| value.to_owned()))
    }

    async fn resolve(secrets: &Secrets) -> Result<String, Failure> {
        let found = secrets.resolve("team/openai-key:value", "run.1").await;
        found.map(|secret| secret.expose().to_owned())
    }

    struct Kept(Result<Option<&'static str>, Failure>);

    #[async_trait]
    impl Resolver for Kept {
        async fn find(&self, _: &Asked<'_>) -> Result<Option<SecretText>, Failure> {
            self.0.clone().map(|found| found.map(SecretText::new))
        }

        fn lacks(&self, _: &str) -> String {
            "is not kept by the server".to_owned()
        }
    }

    fn chain(kept: Result<Option<&'static str>, Failure>) -> Secrets {
        let variables = Environment::new(|_| Some("from-variable".to_owned()));
        Secrets::of(vec![Arc::new(Kept(kept)), Arc::new(variables)], Redactor::default())
    }

    #[tokio::test]
    async fn a_secret_is_found_under_its_own_name_alone() {
        assert_eq!(resolve(&environment("OSTLER_SECRET_TEAM__OPENAI_KEY_VALUE", " k\n")).await.unwrap(), "k");
        for name in ["team/openai-key:value", "TEAM_OPENAI_KEY_VALUE", "OSTLER_SECRET_TEAM_OPENAI_KEY_VALUE"]
        {
            assert!(resolve(&environment(name, "k")).await.is_err(), "{name}");
        }
    }

    #[tokio::test]
    async fn a_missing_or_empty_one_is_refused_for_good() {
        for (name, value) in [("OTHER", "k"), ("OSTLER_SECRET_TEAM__OPENAI_KEY_VALUE", " ")] {
            let failure = resolve(&environment(name, value)).await.unwrap_err();
            assert_eq!(failure.code, "secret_not_found");
            assert!(!failure.is_retryable() && failure.message.contains("OSTLER_SECRET_TEAM__"), "{failure}");
        }
    }

    #[tokio::test]
    async fn what_the_server_keeps_counts_before_the_environment() {
        assert_eq!(resolve(&chain(Ok(Some("from-store")))).await.unwrap(), "from-store");
        assert_eq!(resolve(&chain(Ok(None))).await.unwrap(), "from-variable");
        let refused = Failure::permanent("secret_refused", "not yours");
        let failure = resolve(&chain(Err(refused.clone()))).await.unwrap_err();
        assert_eq!(failure, refused, "a place that refuses is not passed over");
    }

    #[tokio::test]
    async fn what_was_found_is_hidden_from_then_on() {
        let secrets = chain(Ok(Some("from-store")));
        assert_eq!(secrets.redactor().hidden("it is from-store"), "it is from-store");
        resolve(&secrets).await.unwrap();
        assert_eq!(secrets.redactor().hidden("it is from-store"), "it is [REDACTED]");
    }
}
