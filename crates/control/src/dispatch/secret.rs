//! Gives a worker the secret of a run that it holds, if the plan that the run was accepted with names it.

use ostler_kernel::{BlobId, run::RunView};
use ostler_link::{LinkError, SecretAnswer, SecretRequest, SecretValue};
use ostler_spec::{DEFAULT_NAMESPACE, SecretRef};

use crate::{Control, ControlError, leases::is_held_by};

impl Control {
    pub(super) async fn secret(&self, request: SecretRequest) -> Result<SecretAnswer, LinkError> {
        let known = self.leases.get(request.run).filter(|view| is_held_by(&view.run, &request.caller));
        let view = match known {
            Some(view) => view,
            None => self.still_held(&request).await?,
        };
        let answer = self.named_secret(view.run.plan, &request).await?;
        // Looking it up took a while, in which another one may have been given the run, and have closed the step that this is
        // for. What is held once the answer is known is what counts.
        self.still_held(&request).await?;
        Ok(answer)
    }

    async fn still_held(&self, request: &SecretRequest) -> Result<RunView, LinkError> {
        let view = self.read_held(request.run).await?;
        let is_held = is_held_by(&view.run, &request.caller);
        if is_held { Ok(view) } else { Err(LinkError::Fenced { found: "another worker".into() }) }
    }

    async fn named_secret(&self, plan: BlobId, request: &SecretRequest) -> Result<SecretAnswer, LinkError> {
        let SecretRequest { run, reference, .. } = request;
        let plan = match self.stored_plan(plan).await {
            Ok(plan) => plan,
            Err(ControlError::Store(error)) => return Err(super::unavailable(error)),
            Err(error) => return Ok(SecretAnswer::Refused { message: error.to_string() }),
        };
        if !plan.secret_refs().any(|named| named == *reference) {
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
