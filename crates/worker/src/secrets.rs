//! The secrets that a server keeps, asked for through the worker port: for a run that this worker holds, and anew for each
//! call, so that a changed one takes effect at the next. Nothing is kept here.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use ostler_agent::llm::secrets::{Asked, Resolver, SecretText};
use ostler_kernel::{Failure, Runtime, StepId, runtime::timeout};
use ostler_link::{Caller, LinkError, SecretAnswer, SecretRequest, WorkerPort, WorkerPortExt};

use crate::{ahead::Named, held::Held, insist};

/// How long the server may take. Longer than it takes to start anew.
const PATIENCE: Duration = Duration::from_secs(10);

tokio::task_local! {
    /// Under whose lease the run at hand is worked on. Not who holds it now: a worker that registered anew may hold the same
    /// run again, and what is left of its former attempt must not be let through by that.
    static HOLDER: Holder;
}

/// This incarnation of the worker, at work on a run.
#[derive(Clone)]
pub(crate) struct Holder {
    pub(crate) caller: Caller,
    pub(crate) held: Arc<Held>,
    pub(crate) named: Arc<Named>,
}

impl Holder {
    /// Works on a run.
    pub(crate) async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        HOLDER.scope(self, work).await
    }

    /// Who is at work here, if that is so of what its plan names.
    pub(crate) fn who_lacks(is_so: impl FnOnce(&Named) -> bool) -> Option<Self> {
        HOLDER.try_with(|holder| is_so(&holder.named).then(|| holder.clone())).ok().flatten()
    }

    pub(crate) fn lease_stands(&self, runtime: &dyn Runtime) -> bool {
        self.held.lease_stands(runtime.monotonic())
    }
}

pub struct KeptSecrets {
    port: Arc<dyn WorkerPort>,
    runtime: Arc<dyn Runtime>,
}

impl KeptSecrets {
    pub fn new(port: Arc<dyn WorkerPort>, runtime: Arc<dyn Runtime>) -> Arc<Self> {
        Arc::new(Self { port, runtime })
    }

    fn request(asked: &Asked<'_>) -> Option<(SecretRequest, Arc<Held>)> {
        let step: StepId = asked.step.parse().ok()?;
        let Holder { caller, held, .. } = HOLDER.try_with(Holder::clone).ok()?;
        Some((SecretRequest { caller, run: step.run, reference: asked.reference.to_owned() }, held))
    }
}

#[async_trait]
impl Resolver for KeptSecrets {
    async fn find(&self, asked: &Asked<'_>) -> Result<Option<SecretText>, Failure> {
        let refused = |message: String| {
            let message = format!("the secret `{}` was not given: {message}", asked.reference);
            Failure::permanent("secret_refused", message)
        };
        let (request, held) = Self::request(asked).ok_or_else(|| refused("no run asks for it".to_owned()))?;
        let asking = insist(&*self.runtime, || self.port.secret(request.clone()));
        let unavailable = |why: &str| {
            let message = format!("the secret `{}` could not be asked for: {why}", asked.reference);
            Failure::transient("secret_unavailable", message)
        };
        let Ok(answer) = timeout(&*self.runtime, PATIENCE, asking).await else {
            return Err(unavailable("the server did not answer in time"));
        };
        // The effect follows at once. Whoever stood still meanwhile must not begin what another one does by now.
        if !held.lease_stands(self.runtime.monotonic()) {
            return Err(unavailable("the lease ran out meanwhile"));
        }
        match answer {
            Ok(SecretAnswer::Found { value }) => Ok(Some(SecretText::new(value.expose()))),
            Ok(SecretAnswer::Absent) => Ok(None),
            // A server that does not know the question keeps none: it is of the version before.
            Err(error) if error.is_not_understood() => Ok(None),
            Ok(SecretAnswer::Refused { message }) | Err(LinkError::Rejected { message }) => {
                Err(refused(message))
            }
            Err(error) => Err(unavailable(&error.to_string())),
        }
    }

    fn lacks(&self, _: &str) -> String {
        "is not kept by the server".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use ostler_kernel::RunId;
    use ostler_link::{Request, Response, SecretValue, TokioRuntime};
    use tokio::runtime::Handle;

    use super::*;

    /// Gives one answer to whatever it is asked.
    struct Answers(Result<SecretAnswer, LinkError>);

    #[async_trait]
    impl WorkerPort for Answers {
        async fn call(&self, _: Request) -> Result<Response, LinkError> {
            self.0.clone().map(Response::Secret)
        }
    }

    async fn find(answer: Result<SecretAnswer, LinkError>) -> Result<Option<String>, Failure> {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::new(Handle::current()));
        let held = Arc::new(Held::new(runtime.monotonic(), Duration::from_secs(60)));
        let caller = Caller { worker: "one".into(), incarnation: 1 };
        let holder = Holder { caller, held, named: Arc::default() };
        let step = StepId { run: RunId::new(&*runtime), index: 1 }.to_string();
        let kept = KeptSecrets::new(Arc::new(Answers(answer)), runtime);
        let asked = Asked { reference: "default/openai", step: &step };
        let found = holder.scope(kept.find(&asked)).await;
        found.map(|found| found.map(|secret| secret.expose().to_owned()))
    }

    fn rejected(message: &str) -> Result<SecretAnswer, LinkError> {
        Err(LinkError::Rejected { message: message.to_owned() })
    }

    #[tokio::test]
    async fn only_a_server_that_does_not_know_the_question_is_passed_over() {
        let found = find(Ok(SecretAnswer::Found { value: SecretValue::new("hush-hush") })).await;
        assert_eq!(found, Ok(Some("hush-hush".to_owned())));
        assert_eq!(find(Ok(SecretAnswer::Absent)).await, Ok(None));
        assert_eq!(find(rejected("not understood: unknown variant `secret`")).await, Ok(None));
        for message in [
            "\"two\" can't speak for \"one\"",
            "this belongs on /work",
            "the answer is not understood: EOF",
            "can't be written down: x",
        ] {
            let failure = find(rejected(message)).await.expect_err("the environment must not be asked");
            assert_eq!(failure.code, "secret_refused", "{message}");
            assert!(failure.message.contains(message), "{failure}");
        }
        let fenced = Err(LinkError::Fenced { found: "another worker".to_owned() });
        assert_eq!(find(fenced).await.unwrap_err().code, "secret_unavailable");
    }
}
