//! Which ModelEndpoint a name means: the one of that name, or else the one that has it as an alias for one of its models.

use ostler_kernel::{
    Price,
    plan::{ModelLimits, ModelPlan},
};
use ostler_spec::{EndpointPrice, Kind, ModelEndpointSpec, Resource, Spec};

use crate::{
    Control, ControlError,
    plans::{in_its_home, millis},
    resources::Beside,
};

/// An endpoint, and which of its models is asked.
pub(crate) struct Endpoint {
    /// Its own name, whatever it was found by.
    pub name: String,
    pub model: String,
    pub spec: ModelEndpointSpec,
}

/// The option that says where a model is deployed, and so which one answers.
const DEPLOYMENT: &str = "deployment";

/// So many are read at once.
const PAGE: usize = 500;

impl Control {
    pub(crate) async fn endpoint(
        &self,
        namespace: &str,
        name: &str,
        beside: Beside<'_>,
    ) -> Result<Option<Endpoint>, ControlError> {
        if let Some(Spec::ModelEndpoint(spec)) =
            self.spec(Kind::ModelEndpoint, namespace, name, beside).await?
        {
            return Ok(Some(Endpoint { name: name.to_owned(), model: spec.default_model.clone(), spec }));
        }
        let mut found = self.endpoints_with_alias(namespace, name, beside).await?;
        match (found.pop(), found.pop()) {
            (Some(one), Some(other)) => Err(ControlError::BadReference(format!(
                "the alias {name:?} is given by two ModelEndpoints, {:?} and {:?}; leave it to one of them",
                other.name, one.name
            ))),
            (only, _) => Ok(only),
        }
    }

    /// What is declared now goes before what is stored under its name.
    async fn endpoints_with_alias(
        &self,
        namespace: &str,
        alias: &str,
        beside: Beside<'_>,
    ) -> Result<Vec<Endpoint>, ControlError> {
        let declared = beside.of(Kind::ModelEndpoint, namespace);
        let mut found: Vec<Endpoint> = declared.filter_map(|it| with_alias(it, alias)).collect();
        let mut after = None;
        loop {
            let home = Some(namespace.to_owned());
            let page = self.resources(Kind::ModelEndpoint, home, after, PAGE).await?;
            let is_replaced = |name: &str| beside.find(Kind::ModelEndpoint, namespace, name).is_some();
            let stored = page.iter().filter(|it| !is_replaced(&it.metadata.name));
            found.extend(stored.filter_map(|it| with_alias(it, alias)));
            match page.last() {
                Some(last) if page.len() == PAGE => {
                    after = Some((last.metadata.namespace.clone(), last.metadata.name.clone()));
                }
                Some(_) | None => return Ok(found),
            }
        }
    }
}

fn with_alias(resource: &Resource, alias: &str) -> Option<Endpoint> {
    let Spec::ModelEndpoint(spec) = &resource.spec else { return None };
    let model = spec.aliases.get(alias)?.trim().to_owned();
    let mut spec = spec.clone();
    if model != spec.default_model.trim() {
        leave_out_what_is_of_one_model(&mut spec);
    }
    Some(Endpoint { name: resource.metadata.name.clone(), model, spec })
}

/// Of an endpoint's own model alone: what it costs, and the deployment of Azure that holds it. Another one is deployed
/// under its own name, and costs what the table of prices says.
fn leave_out_what_is_of_one_model(spec: &mut ModelEndpointSpec) {
    spec.price = None;
    spec.options.remove(DEPLOYMENT);
}

/// `home` is the namespace that the endpoint lives in.
pub(crate) fn model_plan(home: &str, endpoint: Endpoint) -> Result<ModelPlan, ControlError> {
    let Endpoint { name, model, spec } = endpoint;
    let user = format!("model endpoint {name:?}");
    let (limits, price) = (limits(&spec), spec.price.as_ref().map(price));
    let allow_private = spec.may_be_private();
    let secret_ref = spec.auth.secret_ref.map(|secret| in_its_home(home, &user, secret)).transpose()?;
    Ok(ModelPlan {
        namespace: home.to_owned(),
        endpoint: name,
        provider: spec.provider,
        base_url: spec.base_url,
        model,
        options: spec.options,
        secret_ref,
        allow_private,
        limits,
        price,
    })
}

fn limits(spec: &ModelEndpointSpec) -> ModelLimits {
    let (limits, breaker) = (&spec.limits, &spec.breaker);
    ModelLimits {
        concurrency: limits.concurrency,
        requests_per_minute: limits.requests_per_minute,
        tokens_per_minute: limits.tokens_per_minute,
        max_wait_ms: limits.max_wait.map(|wait| millis(wait.get())),
        breaker_failures: breaker.failures,
        breaker_cooldown_ms: breaker.cooldown.map(|cooldown| millis(cooldown.get())),
    }
}

fn price(price: &EndpointPrice) -> Price {
    Price {
        input: price.input.micros(),
        output: price.output.micros(),
        cache_read: price.cache_read.map(|dollars| dollars.micros()),
        cache_write: price.cache_write.map(|dollars| dollars.micros()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDPOINT: &str = r#"
kind: ModelEndpoint
metadata: {name: main}
spec:
  provider: azure
  base_url: https://my-resource.openai.azure.com
  default_model: gpt-4o
  aliases: {fast: gpt-4o-mini, same: gpt-4o}
  options: {deployment: my-4o, temperature: "0"}
  price: {input: 2.50, output: 10}
"#;

    fn planned(alias: &str) -> ModelPlan {
        let resources = ostler_spec::parse("endpoint.yaml", ENDPOINT).unwrap();
        model_plan("default", with_alias(&resources[0], alias).unwrap()).unwrap()
    }

    #[test]
    fn another_model_of_an_endpoint_has_neither_its_deployment_nor_its_price() {
        let fast = planned("fast");
        assert_eq!((fast.model.as_str(), fast.price), ("gpt-4o-mini", None));
        assert_eq!(fast.options.keys().collect::<Vec<_>>(), ["temperature"]);
        let same = planned("same");
        assert_eq!(same.price.map(|price| price.input), Some(2_500_000));
        assert_eq!(same.options["deployment"], "my-4o");
    }
}
