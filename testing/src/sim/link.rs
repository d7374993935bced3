//! The worker port over a network that delays, loses and repeats. Every message is written out and read back.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use ostler_kernel::{Runtime, runtime::timeout};
use ostler_link::{LinkError, Request, Response, SecretAnswer, SecretValue, WorkerPort};
use tokio::sync::oneshot;

use super::{effects::SECRET, executor::Node, world::World};
use crate::sim::bug::Bug;

pub struct SimLink {
    world: Arc<World>,
    node: Node,
    runtime: Arc<dyn Runtime>,
}

type Answer = Result<Response, LinkError>;

/// How long a worker waits for an answer that should come at once.
const PATIENCE: Duration = Duration::from_millis(700);

impl SimLink {
    pub fn new(world: Arc<World>, node: Node, runtime: Arc<dyn Runtime>) -> Self {
        Self { world, node, runtime }
    }

    fn send(&self, text: String, answer: Option<oneshot::Sender<String>>, delay: u64) {
        if self.world.loses_message(self.node) {
            return;
        }
        let (world, node) = (Arc::clone(&self.world), self.node);
        let network = self.world.network();
        let clock = Arc::clone(&network);
        let deliver = async move {
            clock.sleep(Duration::from_millis(delay)).await;
            world.deliver(node, text, answer);
        };
        network.spawn("message", Box::pin(deliver)).detach();
    }
}

#[async_trait]
impl WorkerPort for SimLink {
    async fn call(&self, mut request: Request) -> Answer {
        let unavailable = |message: &str| LinkError::Unavailable { message: message.to_owned() };
        if self.world.bug() == Some(Bug::WakeupLostNoSweep)
            && let Request::Claim(claim) = &mut request
        {
            claim.wait_ms = 1_000_000_000;
        }
        let wait = match &request {
            Request::Claim(claim) => claim.wait_ms,
            Request::Signals(signals) => signals.wait_ms,
            _ => 0,
        };
        let asks_secret = matches!(request, Request::Secret(_));
        let text = serde_json::to_string(&request).map_err(|error| unavailable(&error.to_string()))?;
        let (sender, receiver) = oneshot::channel();
        let slowness = self.world.slowness(self.node);
        let (delay, again) = self.world.draw(|rng| {
            (
                rng.between(0, slowness),
                rng.one_in(10)
                    .then(|| if rng.one_in(3) { rng.between(0, 20_000) } else { rng.between(0, 2500) }),
            )
        });
        if let Some(delay) = again {
            self.send(text.clone(), None, delay);
        }
        self.send(text, Some(sender), delay);
        let patience = PATIENCE + Duration::from_millis(wait);
        let Ok(Ok(text)) = timeout(&*self.runtime, patience, receiver).await else {
            return Err(unavailable("no answer"));
        };
        let answer: Answer = serde_json::from_str(&text).map_err(|error| unavailable(&error.to_string()))?;
        match answer {
            Err(LinkError::Fenced { .. } | LinkError::Superseded)
                if asks_secret && self.world.bug() == Some(Bug::SecretForAnybody) =>
            {
                Ok(Response::Secret(SecretAnswer::Found { value: SecretValue::new(SECRET) }))
            }
            answer => answer,
        }
    }
}
