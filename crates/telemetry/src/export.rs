//! The activities that send: spans as they gather, figures at intervals. Each has a connection of its own, so that a
//! large export of one does not hold up the other.

mod buffer;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use ostler_kernel::{
    Runtime,
    runtime::{AbortOnDrop, timeout},
};
use tokio::sync::{mpsc, watch};

pub(crate) use buffer::Buffer;

use crate::{
    Config, Moment, Shared, Source, Telemetry, otlp,
    send::{SendError, Sender, SetupError},
};

/// What could not be sent is tried again so often, if it may pass by itself.
const TRIES: u32 = 5;
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(8);

/// How long a process that stops waits for its last spans to be taken.
const PARTING: Duration = Duration::from_secs(3);

/// Keeps the export going as long as it is held.
pub struct Exporter {
    closing: watch::Sender<bool>,
    /// Closed when everybody is done.
    done: mpsc::Receiver<()>,
    runtime: Arc<dyn Runtime>,
    _activities: Vec<AbortOnDrop>,
}

impl Exporter {
    pub(crate) fn start(
        telemetry: &Telemetry,
        config: &Config,
        runtime: Arc<dyn Runtime>,
        source: Source,
    ) -> Result<Self, SetupError> {
        let (closing, is_closing) = watch::channel(false);
        let (alive, done) = mpsc::channel(1);
        let mut activities = Vec::new();
        let worker = |target| -> Result<Delivery, SetupError> {
            Ok(Delivery {
                sender: Sender::new(target, Arc::clone(&runtime))?,
                shared: Arc::clone(&telemetry.shared),
                config: config.clone(),
                runtime: Arc::clone(&runtime),
                closing: is_closing.clone(),
                is_troubled: false,
                _alive: alive.clone(),
            })
        };
        if let Some(target) = &config.traces {
            let delivery = worker(target.clone())?;
            activities.push(runtime.spawn("span export", Box::pin(delivery.spans())).abort_on_drop());
        }
        if let Some(target) = &config.metrics {
            let delivery = worker(target.clone())?;
            activities
                .push(runtime.spawn("figure export", Box::pin(delivery.figures(source))).abort_on_drop());
        }
        drop(alive);
        Ok(Self { closing, done, runtime, _activities: activities })
    }

    /// Sends what is left, for a few seconds at most.
    pub async fn shutdown(mut self) {
        self.closing.send_replace(true);
        let _in_time_or_not = timeout(&*self.runtime, PARTING, self.done.recv()).await;
    }
}

/// One activity with its connection.
struct Delivery {
    sender: Sender,
    shared: Arc<Shared>,
    config: Config,
    runtime: Arc<dyn Runtime>,
    closing: watch::Receiver<bool>,
    /// The last export failed: it was said, and need not be said again.
    is_troubled: bool,
    _alive: mpsc::Sender<()>,
}

impl Delivery {
    async fn spans(mut self) {
        let shared = Arc::clone(&self.shared);
        let Some(spans) = &shared.spans else { return };
        loop {
            let is_last = *self.closing.borrow();
            if !is_last {
                let mut closing = self.closing.clone();
                tokio::select! {
                    biased;
                    _ = closing.wait_for(|closing| *closing) => {}
                    () = spans.buffer.filled() => {}
                    () = self.runtime.sleep(self.config.delay) => {}
                }
            }
            while let Some(batch) = spans.buffer.take() {
                let count = batch.len() as u64;
                let body = otlp::traces(&self.config.resource, &batch);
                match self.deliver(body).await {
                    Ok(rejected) => {
                        shared.counts.export(count.saturating_sub(rejected));
                        shared.counts.drop(rejected.min(count));
                    }
                    Err(Undelivered) => shared.counts.drop(count),
                }
            }
            if is_last {
                return;
            }
        }
    }

    async fn figures(mut self, source: Source) {
        let since = Moment::from(self.runtime.now());
        loop {
            let mut closing = self.closing.clone();
            tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => {}
                () = self.runtime.sleep(self.config.interval) => {}
            }
            let is_last = *self.closing.borrow();
            let families = source().await;
            let body =
                otlp::metrics(&self.config.resource, &families, since, Moment::from(self.runtime.now()));
            // The next ones tell of all that these would have.
            let _ = self.deliver(body).await;
            if is_last {
                return;
            }
        }
    }

    /// How many of them the collector would not take.
    async fn deliver(&mut self, body: Bytes) -> Result<u64, Undelivered> {
        let mut delay = FIRST_DELAY;
        for tries in 1.. {
            match self.sender.send(body.clone()).await {
                Ok(rejected) => {
                    self.recovered();
                    return Ok(rejected);
                }
                Err(error) => {
                    self.troubled(&error);
                    let is_closing = *self.closing.borrow();
                    if !error.is_transient() || tries >= TRIES || is_closing {
                        return Err(Undelivered);
                    }
                    let asked = error.retry_after().unwrap_or_default().min(LONGEST_DELAY);
                    let mut closing = self.closing.clone();
                    tokio::select! {
                        biased;
                        _ = closing.wait_for(|closing| *closing) => {}
                        () = self.runtime.sleep(delay.max(asked)) => {}
                    }
                    delay = (delay * 2).min(LONGEST_DELAY);
                }
            }
        }
        Err(Undelivered)
    }

    fn troubled(&mut self, error: &SendError) {
        if !std::mem::replace(&mut self.is_troubled, true) {
            let collector = self.sender.shown();
            tracing::warn!(collector, %error, "telemetry can't be exported; what waits for too long is dropped");
        }
    }

    fn recovered(&mut self) {
        if std::mem::replace(&mut self.is_troubled, false) {
            tracing::info!(collector = self.sender.shown(), "telemetry is exported again");
        }
    }
}

/// Given up.
struct Undelivered;
