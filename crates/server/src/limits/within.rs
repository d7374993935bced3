//! How long an answer may take. Who waited for too long is told; what was begun is finished all the same, so that nothing
//! is left half done.

use std::{sync::Arc, time::Duration};

use axum::response::{IntoResponse, Response};
use futures_util::future::{Either, select};
use http::{Method, StatusCode};
use ostler_kernel::{Runtime, runtime::BoxFuture};
use tokio::sync::Semaphore;

use super::Limits;
use crate::problem::Problem;

/// More that are late than this are given up: then something is wrong that time does not mend.
const MOST_LATE: usize = 1024;

pub struct Within {
    limits: Limits,
    late: Arc<Semaphore>,
}

impl Within {
    pub fn new(limits: Limits) -> Self {
        Self { limits, late: Arc::new(Semaphore::new(MOST_LATE)) }
    }

    pub async fn answer(
        &self,
        runtime: &dyn Runtime,
        method: &Method,
        answering: BoxFuture<'static, Response>,
    ) -> Response {
        let Limits { read_within, write_within, .. } = self.limits;
        let limit = if method.is_safe() { read_within } else { write_within };
        match select(answering, runtime.sleep(limit)).await {
            Either::Left((response, _)) => response,
            Either::Right(((), unfinished)) => {
                if let Ok(permit) = Arc::clone(&self.late).try_acquire_owned() {
                    let finishing = async move {
                        drop(unfinished.await);
                        drop(permit);
                    };
                    runtime.spawn("late answer", Box::pin(finishing)).detach();
                }
                too_late(method, limit).into_response()
            }
        }
    }
}

/// Not 503: what was asked for may yet be done, so it must not be sent again without a look.
fn too_late(method: &Method, limit: Duration) -> Problem {
    let detail = format!("there was no answer within {} seconds", limit.as_secs());
    let remedy = if method.is_safe() {
        "try again"
    } else {
        "it may yet be done: look, and then try again; with an idempotency key a task stays one task"
    };
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "too_late", detail).remedy(remedy).after(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use ostler_kernel::{Timestamp, runtime::Spawned};
    use ostler_link::TokioRuntime;
    use tokio::sync::Notify;

    use super::*;

    /// In which no time is enough.
    struct Impatient(TokioRuntime);

    impl Runtime for Impatient {
        fn now(&self) -> Timestamp {
            self.0.now()
        }

        fn monotonic(&self) -> Duration {
            self.0.monotonic()
        }

        fn random(&self) -> u64 {
            self.0.random()
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }

        fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) -> Spawned {
            self.0.spawn(name, future)
        }
    }

    #[tokio::test]
    async fn who_waited_too_long_is_told_and_what_was_begun_is_finished() {
        let runtime = Impatient(TokioRuntime::new(tokio::runtime::Handle::current()));
        let (may_go_on, is_done) =
            (Arc::new(Notify::new()), Arc::new((AtomicBool::new(false), Notify::new())));
        let (go, done) = (Arc::clone(&may_go_on), Arc::clone(&is_done));
        let slow = async move {
            go.notified().await;
            done.0.store(true, Ordering::Relaxed);
            done.1.notify_one();
            Response::default()
        };
        let within = Within::new(Limits::default());
        let response = within.answer(&runtime, &Method::POST, Box::pin(slow)).await;
        assert_eq!(response.status(), 504);
        assert!(!is_done.0.load(Ordering::Relaxed));
        may_go_on.notify_one();
        is_done.1.notified().await;
        assert!(is_done.0.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn an_answer_that_is_there_counts() {
        let runtime = Impatient(TokioRuntime::new(tokio::runtime::Handle::current()));
        let quick = Box::pin(async { Response::default() });
        assert_eq!(Within::new(Limits::default()).answer(&runtime, &Method::GET, quick).await.status(), 200);
    }
}
