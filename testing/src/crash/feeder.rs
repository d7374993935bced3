//! Keeps tasks live: whenever one ends, another is created. A create that got no answer is sent again under
//! the same idempotency key until it is answered, so in the end every key was accepted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ostler_client::{Client, ClientError, TaskQuery};
use tokio::task::{JoinHandle, JoinSet};

use super::workload;

/// How often the feeder looks which tasks have ended.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// Before a create without an answer is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(10);

/// The most that one look shows.
const PAGE: usize = 1000;

pub(super) struct Feeder {
    shared: Arc<Shared>,
    feeding: JoinHandle<u64>,
}

struct Shared {
    client: Client,
    stopping: AtomicBool,
    /// Creates sent and not answered yet.
    unanswered: AtomicU64,
    answered: AtomicU64,
    /// When those creates were sent that lost their connection before an answer.
    cut_off: Mutex<Vec<Instant>>,
}

impl Feeder {
    /// Feeds in the background.
    pub fn start(client: Client, live: usize) -> Self {
        let shared = Arc::new(Shared {
            client,
            stopping: AtomicBool::new(false),
            unanswered: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            cut_off: Mutex::default(),
        });
        let feeding = tokio::spawn(feed(Arc::clone(&shared), live));
        Self { shared, feeding }
    }

    /// Creates sent and not answered at this moment.
    pub fn unanswered(&self) -> u64 {
        self.shared.unanswered.load(Ordering::SeqCst)
    }

    /// Creates answered so far.
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::SeqCst)
    }

    /// Whether a create that was sent before the kill lost its connection since the last question. Asked when
    /// the next server is ready: by then every connection to the dead one has broken.
    pub fn was_cut_off(&self, killed_at: Instant) -> bool {
        std::mem::take(&mut *self.shared.cut_off()).into_iter().any(|sent_at| sent_at < killed_at)
    }

    /// Creates nothing more, waits until everything has ended, and gives the keys of all that was created.
    pub async fn finish(self) -> BTreeSet<String> {
        self.shared.stopping.store(true, Ordering::SeqCst);
        let n_created = self.feeding.await.unwrap_or_default();
        (0..n_created).map(workload::key).collect()
    }
}

impl Shared {
    fn cut_off(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.cut_off.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the n-th task, however often it has to be asked for.
    async fn create(self: Arc<Self>, n: u64) -> String {
        let manifest = workload::task(n);
        loop {
            let sent_at = Instant::now();
            self.unanswered.fetch_add(1, Ordering::SeqCst);
            let answer = self.client.create_task(&manifest).await;
            self.unanswered.fetch_sub(1, Ordering::SeqCst);
            match answer {
                Ok(_) => {
                    self.answered.fetch_add(1, Ordering::SeqCst);
                    return workload::key(n);
                }
                // It reached nobody.
                Err(ClientError::ConnectionRefused { .. }) => {}
                Err(_) => self.cut_off().push(sent_at),
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// Takes those that have ended out of `live`.
    async fn retire(&self, live: &mut BTreeSet<String>) {
        let query = TaskQuery { limit: Some((2 * live.len()).clamp(1, PAGE)), ..TaskQuery::default() };
        let Ok(page) = self.client.tasks(&query).await else { return };
        let mut overdue = live.clone();
        for task in page.items {
            overdue.remove(&task.metadata.name);
            if task.is_ended() {
                live.remove(&task.metadata.name);
            }
        }
        // Too old for the page.
        for name in overdue {
            if self.client.task(&name).await.is_ok_and(|task| task.is_ended()) {
                live.remove(&name);
            }
        }
    }
}

/// Feeds until told to stop and all has ended; gives the number of tasks created.
async fn feed(shared: Arc<Shared>, n_live: usize) -> u64 {
    let mut live = BTreeSet::new();
    let mut creating = JoinSet::new();
    let mut n_created = 0;
    loop {
        while let Some(created) = creating.try_join_next() {
            live.extend(created);
        }
        shared.retire(&mut live).await;
        let stopping = shared.stopping.load(Ordering::SeqCst);
        while !stopping && live.len() + creating.len() < n_live {
            creating.spawn(Arc::clone(&shared).create(n_created));
            n_created += 1;
        }
        if stopping && live.is_empty() && creating.is_empty() {
            return n_created;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
