//! Gives a worker the secret of a run that it holds, if the plan that the run was accepted with names it.

use ostler_link::{LinkError, SecretAnswer, SecretRequest, SecretValue};
use ostler_spec::{DEFAULT_NAMESPACE, SecretRef};

use crate::{Control, ControlError, leases::is_held_by};

impl Control {
    pub(super) async fn secret(&self, request: SecretRequest) -> Result<SecretAnswer, LinkError> {
        let SecretRequest { caller, run, reference } = request;
        let known = self.leases.get(run).filter(|view| is_held_by(&view.run, &caller));
        let view = match known {
            Some(view) => view,
            None => self.read_held(run).await?,
        };
        if !is_held_by(&view.run, &caller) {
            return Err(LinkError::Fenced { found: "another worker".into() });
        }
        let unavailable = |error: ControlError| LinkError::Unavailable { message: error.to_string() };
        let plan = self.stored_plan(view.run.plan).await.map_err(unavailable)?;
        if !plan.secret_refs().any(|named| named == reference) {
            let message = format!("the plan of {run} does not name it");
            return Ok(SecretAnswer::Refused { message });
        }
        let Ok(named) = reference.parse::<SecretRef>() else {
            return Ok(SecretAnswer::Refused { message: "it is no reference to a secret".to_owned() });
        };
        let namespace = named.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        match self.kept_secret(namespace, &named.name, named.key_or_default()).await {
            Ok(None) => Ok(SecretAnswer::Absent),
            Ok(Some(Ok(value))) => Ok(SecretAnswer::Found { value: SecretValue::new(&value) }),
            Ok(Some(Err(message))) => Ok(SecretAnswer::Refused { message }),
            Err(ControlError::Store(error)) => Err(super::unavailable(error)),
            Err(error) => Ok(SecretAnswer::Refused { message: error.to_string() }),
        }
    }
}
