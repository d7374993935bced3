//! Where waiting is tried: a clock that stands until it is set, and calls that are looked at only when they were woken.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use ostler_kernel::{
    Runtime, Timestamp,
    runtime::{BoxFuture, Spawned},
};

#[derive(Default)]
pub(super) struct Clock(Arc<Mutex<Time>>);

#[derive(Default)]
struct Time {
    now: Duration,
    sleepers: Vec<Waker>,
}

impl Clock {
    pub(super) fn advance(&self, by: Duration) {
        let sleepers = {
            let mut time = self.0.lock().unwrap();
            time.now += by;
            std::mem::take(&mut time.sleepers)
        };
        sleepers.into_iter().for_each(Waker::wake);
    }
}

impl Runtime for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().unwrap().now
    }

    fn random(&self) -> u64 {
        0
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        let time = Arc::clone(&self.0);
        let until = self.monotonic() + delay;
        Box::pin(std::future::poll_fn(move |context| {
            let mut time = time.lock().unwrap();
            if time.now >= until {
                return Poll::Ready(());
            }
            time.sleepers.push(context.waker().clone());
            Poll::Pending
        }))
    }

    fn spawn(&self, _: &'static str, _: BoxFuture<'static, ()>) -> Spawned {
        panic!("nothing is spawned")
    }
}

/// A future that is looked at only when it was woken.
pub(super) struct Watched<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    woken: Arc<Flag>,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl<T> Watched<T> {
    pub(super) fn new(future: impl Future<Output = T> + 'static) -> Self {
        Self { future: Box::pin(future), woken: Arc::new(Flag(AtomicBool::new(true))) }
    }

    /// What it gave, if it was woken and is done.
    pub(super) fn look(&mut self) -> Option<T> {
        let waker = Waker::from(Arc::clone(&self.woken));
        while self.woken.0.swap(false, Ordering::SeqCst) {
            if let Poll::Ready(value) = self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Some(value);
            }
        }
        None
    }
}
