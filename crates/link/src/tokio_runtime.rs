//! The runtime port on tokio: the clock, the randomness and the executor of production.

use std::time::{Duration, Instant};

use ostler_kernel::{
    Runtime, Timestamp,
    runtime::{BoxFuture, Spawned},
};
use tokio::runtime::Handle;

pub struct TokioRuntime {
    handle: Handle,
    start: Instant,
}

impl TokioRuntime {
    pub fn new(handle: Handle) -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the runtime port")]
        let start = Instant::now();
        Self { handle, start }
    }
}

impl Runtime for TokioRuntime {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn random(&self) -> u64 {
        // Without randomness ids would collide: going on would be worse than stopping.
        #[expect(clippy::expect_used, reason = "the system always has randomness once it is up")]
        getrandom::u64().expect("the system gives random numbers")
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        #[expect(clippy::disallowed_methods, reason = "this is the runtime port")]
        Box::pin(tokio::time::sleep(delay))
    }

    fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) -> Spawned {
        tracing::trace!(name, "spawned");
        let task = self.handle.spawn(future);
        let abort = task.abort_handle();
        Spawned::new(move || abort.abort())
    }
}
