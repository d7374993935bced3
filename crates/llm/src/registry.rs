//! The vendors, by name. [`Provider`] is how a vendor is added; [`Registry`] is the gateway that finds it.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::stream;
use ostler_kernel::{Failure, Runtime};
use ostler_net::Client;

use crate::{
    Gateway, ModelRequest, Parts, Secrets, anthropic, call::Caller, gemini, mock::Mock, ollama, openai,
};

/// One vendor's wire.
pub trait Provider: Send + Sync {
    /// What an endpoint may call it; the first is the name we show. Upper and lower case are one.
    fn names(&self) -> &'static [&'static str];

    /// Begins a call, as [`Gateway::stream`] promises.
    fn stream(&self, request: ModelRequest) -> Parts;
}

#[derive(Default)]
pub struct Registry {
    by_name: BTreeMap<String, Arc<dyn Provider>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two model providers are named `{name}`")]
pub struct NameTaken {
    pub name: String,
}

impl Registry {
    /// All the vendors we know.
    pub fn standard(client: Client, runtime: Arc<dyn Runtime>, secrets: Secrets) -> Result<Self, NameTaken> {
        let mut registry = Self::default();
        let vendors: [fn(Client, Secrets) -> Caller; 6] = [
            openai::openai,
            openai::compatible,
            openai::azure,
            anthropic::anthropic,
            gemini::gemini,
            ollama::ollama,
        ];
        for vendor in vendors {
            registry.register(Arc::new(vendor(client.clone(), secrets.clone())))?;
        }
        registry.register(Arc::new(Mock::new(runtime)))?;
        Ok(registry)
    }

    /// Adds a vendor under all its names, or under none.
    pub fn register(&mut self, provider: Arc<dyn Provider>) -> Result<(), NameTaken> {
        let names: Vec<String> = provider.names().iter().map(|name| name.to_lowercase()).collect();
        if let Some(name) = names.iter().find(|name| self.by_name.contains_key(*name)) {
            return Err(NameTaken { name: name.clone() });
        }
        self.by_name.extend(names.into_iter().map(|name| (name, provider.clone())));
        Ok(())
    }

    /// All that an endpoint may call a vendor, in lower case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    fn find(&self, name: &str) -> Option<&Arc<dyn Provider>> {
        // Nearly always it is written as we write it.
        self.by_name.get(name).or_else(|| self.by_name.get(&name.trim().to_lowercase()))
    }

    fn unknown(&self, request: &ModelRequest) -> Failure {
        let known = self.names().collect::<Vec<_>>().join(", ");
        let (endpoint, provider) = (&request.endpoint.endpoint, &request.endpoint.provider);
        Failure::permanent(
            "model_provider_unknown",
            format!("endpoint `{endpoint}` names the provider `{provider}`; known are {known}"),
        )
    }
}

impl Gateway for Registry {
    fn stream(&self, request: ModelRequest) -> Parts {
        match self.find(&request.endpoint.provider) {
            Some(provider) => provider.stream(request),
            None => {
                let failure = self.unknown(&request);
                Box::pin(stream::once(async { Err(failure) }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use ostler_kernel::{ErrorClass, plan::ModelPlan};

    use super::*;
    use crate::Part;

    struct Named(&'static [&'static str]);

    impl Provider for Named {
        fn names(&self) -> &'static [&'static str] {
            self.0
        }

        fn stream(&self, _: ModelRequest) -> Parts {
            let name = self.0.first().copied().unwrap_or_default();
            Box::pin(stream::once(async move { Ok(Part::Text(name.to_owned())) }))
        }
    }

    fn registry() -> Registry {
        let mut registry = Registry::default();
        registry.register(Arc::new(Named(&["acme", "Acme-Compatible"]))).unwrap();
        registry.register(Arc::new(Named(&["zeta"]))).unwrap();
        registry
    }

    fn call(registry: &Registry, provider: &str) -> Result<Part, Failure> {
        let endpoint = ModelPlan {
            endpoint: "main".into(),
            provider: provider.into(),
            base_url: String::new(),
            model: String::new(),
            options: BTreeMap::new(),
            secret_ref: None,
            allow_private: false,
            ..ModelPlan::default()
        };
        let request = ModelRequest {
            endpoint,
            system: String::new(),
            messages: vec![],
            tools: vec![],
            output_schema: None,
            request_id: String::new(),
        };
        futures_util::FutureExt::now_or_never(registry.stream(request).next()).unwrap().unwrap()
    }

    #[test]
    fn a_provider_is_found_by_every_name_in_any_case() {
        for name in ["acme", "ACME", " Acme-compatible ", "acme-compatible"] {
            assert_eq!(call(&registry(), name), Ok(Part::Text("acme".into())), "{name}");
        }
    }

    #[test]
    fn an_unknown_provider_is_told_the_known_ones() {
        let failure = call(&registry(), "acmee").unwrap_err();
        assert_eq!((failure.class, failure.code.as_str()), (ErrorClass::Permanent, "model_provider_unknown"));
        assert!(failure.message.ends_with("known are acme, acme-compatible, zeta"), "{failure}");
    }

    #[test]
    fn a_name_is_given_once() {
        let mut registry = registry();
        let taken = registry.register(Arc::new(Named(&["new", "ZETA"])));
        assert_eq!(taken, Err(NameTaken { name: "zeta".into() }));
        assert!(call(&registry, "new").is_err(), "a refused provider leaves nothing behind");
    }
}
