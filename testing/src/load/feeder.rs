//! Creates tasks and sees them through, as a client that retries as documented: a create that got no answer, or one
//! that says "not now", is sent again under the same idempotency key, to the next server, until it is answered. So in
//! the end every key was accepted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ostler_client::{Client, ClientError, TaskQuery};
use tokio::task::{JoinHandle, JoinSet};

use super::{Meddled, Meddler, workload};

/// How often the feeder looks which tasks have ended.
const LOOK_EVERY: Duration = Duration::from_millis(40);

const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// Before a create without an answer is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(10);

/// The most that one look shows.
const PAGE: usize = 1000;

/// How much to create.
#[derive(Debug, Clone, Copy)]
pub struct Feed {
    /// As many are live at once.
    pub live: usize,
    /// As many in all, if they come this far.
    pub most: u64,
    /// The next one so long after the one before.
    pub every: Duration,
    /// When none of the servers could be asked for so long which tasks have ended, that is a failure.
    pub unread: Duration,
}

impl Feed {
    /// Whenever one ends, another one.
    pub fn keeping(live: usize, unread: Duration) -> Self {
        Self { live, most: u64::MAX, every: Duration::ZERO, unread }
    }
}

pub struct Feeder {
    shared: Arc<Shared>,
    feeding: JoinHandle<u64>,
}

struct Shared {
    clients: Vec<Client>,
    meddler: Meddler,
    stopping: AtomicBool,
    created: AtomicU64,
    live: AtomicU64,
    /// Creates sent and not answered yet.
    unanswered: AtomicU64,
    answered: AtomicU64,
    /// Creates that were sent again.
    again: AtomicU64,
    /// When those creates were sent that lost their connection before an answer.
    cut_off: Mutex<Vec<Instant>>,
    /// Answers that no retry helps against.
    refusals: Mutex<Vec<String>>,
}

impl Feeder {
    /// Feeds in the background, through any of the servers.
    pub fn start(clients: Vec<Client>, feed: Feed, meddler: Meddler) -> Self {
        let shared = Arc::new(Shared {
            clients,
            meddler,
            stopping: AtomicBool::new(false),
            created: AtomicU64::new(0),
            live: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            again: AtomicU64::new(0),
            cut_off: Mutex::default(),
            refusals: Mutex::default(),
        });
        let feeding = tokio::spawn(keep_feeding(Arc::clone(&shared), feed));
        Self { shared, feeding }
    }

    /// How it goes, to be asked at any time.
    pub fn figures(&self) -> Figures {
        Figures(Arc::clone(&self.shared))
    }

    /// Creates sent and not answered at this moment.
    pub fn unanswered(&self) -> u64 {
        self.shared.unanswered.load(Ordering::SeqCst)
    }

    /// Creates answered so far.
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::SeqCst)
    }

    /// Answers that a client which retries as documented would have to give up on.
    pub fn refusals(&self) -> Vec<String> {
        locked(&self.shared.refusals).clone()
    }

    /// Whether a create that was sent before the kill lost its connection since the last question. Asked when
    /// the next server is ready: by then every connection to the dead one has broken.
    pub fn was_cut_off(&self, killed_at: Instant) -> bool {
        std::mem::take(&mut *locked(&self.shared.cut_off)).into_iter().any(|sent_at| sent_at < killed_at)
    }

    /// What was done to tasks besides creating them.
    pub fn meddled(&self) -> Meddled {
        self.shared.meddler.done()
    }

    /// The keys of all that was created so far.
    pub fn keys(&self) -> BTreeSet<String> {
        (0..self.shared.created.load(Ordering::SeqCst)).map(workload::key).collect()
    }

    /// Creates nothing more, and waits until everything has ended.
    pub async fn finish(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // It ends by itself; if it could not, the keys tell what is missing.
        let _ = (&mut self.feeding).await;
    }
}

#[derive(Clone)]
pub struct Figures(Arc<Shared>);

impl Figures {
    /// Creates answered so far.
    pub fn answered(&self) -> u64 {
        self.0.answered.load(Ordering::SeqCst)
    }

    /// Creates that were sent again so far.
    pub fn again(&self) -> u64 {
        self.0.again.load(Ordering::SeqCst)
    }

    /// Asked for and not seen to have ended.
    pub fn live(&self) -> u64 {
        self.0.live.load(Ordering::SeqCst)
    }
}

impl Shared {
    /// Creates the n-th task, however often it has to be asked for.
    async fn create(self: Arc<Self>, n: u64) -> String {
        let manifest = workload::task(n);
        for client in self.clients.iter().cycle().skip(n as usize % self.clients.len()) {
            let sent_at = Instant::now();
            self.unanswered.fetch_add(1, Ordering::SeqCst);
            let answer = client.create_task(&manifest).await;
            self.unanswered.fetch_sub(1, Ordering::SeqCst);
            match answer {
                Ok(created) => {
                    self.answered.fetch_add(1, Ordering::SeqCst);
                    let meddled = self.meddler.meddle(&self.clients, n, &created.task).await;
                    self.refused_if(meddled.err());
                    break;
                }
                // It reached nobody.
                Err(ClientError::ConnectionRefused { .. }) => {}
                Err(error) if error.may_pass() => locked(&self.cut_off).push(sent_at),
                Err(error) => self.refused_if(Some(format!("task {n}: {error} ({error:?})"))),
            }
            self.again.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        workload::key(n)
    }

    fn refused_if(&self, refusal: Option<String>) {
        // Said once is enough: what can't be read is asked for again and again.
        let mut refusals = locked(&self.refusals);
        if let Some(refusal) = refusal.filter(|refusal| !refusals.contains(refusal)) {
            refusals.push(refusal);
        }
    }

    /// Takes those that have ended out of `live`.
    async fn retire(&self, client: &Client, live: &mut BTreeSet<String>) -> Result<(), ClientError> {
        let query = TaskQuery { limit: Some((2 * live.len()).clamp(1, PAGE)), ..TaskQuery::default() };
        let page = client.tasks(&query).await?;
        let mut overdue = live.clone();
        for task in page.items {
            overdue.remove(&task.metadata.name);
            if task.is_ended() {
                live.remove(&task.metadata.name);
            }
        }
        // Too old for the page.
        for name in overdue {
            if client.task(&name).await?.is_ended() {
                live.remove(&name);
            }
        }
        Ok(())
    }
}

/// Feeds until told to stop and all has ended; gives the number of tasks created.
async fn keep_feeding(shared: Arc<Shared>, feed: Feed) -> u64 {
    let mut live = BTreeSet::new();
    let mut creating = JoinSet::new();
    let mut n_created = 0;
    let mut clients = shared.clients.iter().cycle();
    let began = Instant::now();
    let mut read_at = began;
    loop {
        while let Some(created) = creating.try_join_next() {
            live.extend(created);
        }
        if let Some(client) = clients.next() {
            match tokio::time::timeout(LOOK_WITHIN, shared.retire(client, &mut live)).await {
                Ok(Ok(())) => read_at = Instant::now(),
                Ok(Err(error)) if !error.may_pass() => {
                    shared.refused_if(Some(format!("the tasks can't be read: {error} ({error:?})")));
                }
                // Who does not answer is passed over: the other server knows as well.
                Ok(Err(_)) | Err(_) if read_at.elapsed() > feed.unread => {
                    let unread = feed.unread;
                    shared.refused_if(Some(format!("no server could be asked for its tasks for {unread:?}")));
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
        let due = |n: u64| began.elapsed() >= feed.every.saturating_mul(n.try_into().unwrap_or(u32::MAX));
        let stopping = shared.stopping.load(Ordering::SeqCst);
        while !stopping && live.len() + creating.len() < feed.live && n_created < feed.most && due(n_created)
        {
            creating.spawn(Arc::clone(&shared).create(n_created));
            n_created += 1;
            shared.created.store(n_created, Ordering::SeqCst);
        }
        shared.live.store((live.len() + creating.len()) as u64, Ordering::SeqCst);
        if stopping && live.is_empty() && creating.is_empty() {
            return n_created;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
