//! The world's network: messages of workers, and what clients ask.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt;
use ostler_control::Control;
use ostler_kernel::Runtime;
use ostler_link::{Caller, JournalRequest, LeaveRequest, LinkError, Request, Response, WorkerPort};
use ostler_store::StoreExt;
use tokio::sync::oneshot;

use super::{LEASE, SERVER, World};
use crate::sim::{
    bug::{Bug, Condition},
    executor::{Node, NodeRuntime},
};

impl World {
    pub fn cut(&self, node: Node, cut: bool) {
        let mut state = self.state();
        if cut {
            state.cut.insert(node)
        } else {
            state.cut.remove(&node)
        };
    }

    pub fn slow_down(&self, node: Node, slow: bool) {
        let mut state = self.state();
        if slow {
            state.slow.insert(node)
        } else {
            state.slow.remove(&node)
        };
    }

    /// The longest that a message of this node takes, in milliseconds.
    pub fn slowness(&self, node: Node) -> u64 {
        if self.state().slow.contains(&node) { 2 * LEASE.as_millis() as u64 } else { 8 }
    }

    pub fn deliver(self: &Arc<Self>, from: Node, text: String, answer: Option<oneshot::Sender<String>>) {
        let Some(control) = self.control() else { return };
        let Ok(mut request) = serde_json::from_str::<Request>(&text) else {
            return self.violate(format!("a message can't be read back: {text}"));
        };
        self.pass_for_holder(&mut request);
        let world = Arc::clone(self);
        let serve = async move {
            let response: Result<Response, LinkError> = control.call(request).await;
            let Some(answer) = answer else { return };
            if world.loses_message(from) {
                return;
            }
            let text = serde_json::to_string(&response).unwrap_or_default();
            let clock = world.network();
            let slowness = world.slowness(from);
            let delay = Duration::from_millis(world.draw(|rng| rng.between(0, slowness)));
            let carry = async move {
                clock.sleep(delay).await;
                let _ = answer.send(text);
            };
            world.network().spawn("answer", Box::pin(carry)).detach();
        };
        NodeRuntime::new(&self.executor, SERVER).spawn("call", Box::pin(serve)).detach();
    }

    /// Where the epoch is not looked at, it is not looked at who asks either.
    fn pass_for_holder(&self, request: &mut Request) {
        use ostler_kernel::Command::{Finish, Journal, Yield};
        let (caller, run) = match (self.bug, request) {
            (
                Some(Bug::JournalWithoutEpoch | Bug::Unchecked(Journal, Condition::Run)),
                Request::Journal(JournalRequest { caller, key, .. }),
            )
            | (
                Some(Bug::FinishWithoutEpoch | Bug::Unchecked(Finish | Yield, Condition::Run)),
                Request::Leave(LeaveRequest { caller, key, .. }),
            ) => (caller, key.run),
            _ => return,
        };
        let sqlite = self.state().server.as_ref().map(|server| Arc::clone(&server.sqlite));
        let run = sqlite.and_then(|sqlite| sqlite.run(run).now_or_never()).and_then(Result::ok).flatten();
        if let Some(lease) = run.as_ref().and_then(|run| run.lease()) {
            *caller = Caller { worker: lease.worker.clone(), incarnation: lease.incarnation };
        }
    }

    /// Asks the server something, as a client; none if it died before it answered.
    pub async fn ask<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(Arc<Control>) -> F,
    ) -> Option<T> {
        let control = self.control()?;
        let (sender, receiver) = oneshot::channel();
        let asked = question(control);
        let serve = async move {
            let _ = sender.send(asked.await);
        };
        NodeRuntime::new(&self.executor, SERVER).spawn("request", Box::pin(serve)).detach();
        receiver.await.ok()
    }
}
