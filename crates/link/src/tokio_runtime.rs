//! The runtime port on tokio: the clock, the randomness and the executor of production.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use ostler_kernel::{
    Runtime, Timestamp,
    runtime::{BoxFuture, Spawned},
};
use tokio::runtime::Handle;

pub struct TokioRuntime {
    handle: Handle,
    start: Instant,
    drawn: Mutex<Drawn>,
}

/// Random numbers that were drawn ahead: a task takes a dozen, and the system is asked for many at once.
struct Drawn {
    bytes: [u8; 512],
    left: usize,
}

impl Drawn {
    fn next(&mut self) -> u64 {
        if self.left == 0 {
            // Without randomness ids would collide: going on would be worse than stopping.
            #[expect(clippy::expect_used, reason = "the system always has randomness once it is up")]
            getrandom::fill(&mut self.bytes).expect("the system gives random numbers");
            self.left = self.bytes.len() / 8;
        }
        self.left -= 1;
        let mut number = [0; 8];
        number.copy_from_slice(&self.bytes[self.left * 8..][..8]);
        u64::from_le_bytes(number)
    }
}

impl TokioRuntime {
    pub fn new(handle: Handle) -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the runtime port")]
        let start = Instant::now();
        Self { handle, start, drawn: Mutex::new(Drawn { bytes: [0; 512], left: 0 }) }
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
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner).next()
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
