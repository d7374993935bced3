//! Shows a task live: its log, and beside it the text as it comes. One follower reads the store's log and
//! hands each event to those who watch that task; who falls behind reads on from the store.
//!
//! On a shared store the log of all may stand still though tasks go on: it is read as far as it stands firm, and anybody in
//! the same database can keep it from that. The log of one task is exact at any time, so those who follow one look there.

mod awaited;
mod held_up;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ostler_kernel::{Event, EventBody, TaskId};
use ostler_link::{Delta, SignalKind};
use ostler_store::{FirmLog, Hint, Store, StoreError, StoreExt};
use tokio::sync::{Notify, Semaphore, broadcast, watch};

use self::{awaited::Awaited, held_up::HeldUp};
use crate::Control;

#[derive(Debug, Clone)]
pub enum Feed {
    Event(Arc<Event>),
    Delta(Delta),
}

/// What may wait for one who watches before it has to read the log again.
const ROOM: usize = 256;

const AT_ONCE: usize = 512;

/// Between two looks at the log of a shared store, which is asked each time. Nobody who watches sees the difference, and
/// all others feel it.
const NOT_OFTENER: Duration = Duration::from_millis(4);

/// The longest pause where someone keeps the log from standing firm, whoever that is in the same database.
const HELD_UP: Duration = Duration::from_millis(100);

/// While nobody watches, the place in the log is moved on so often, and only to what stands firm: an event in front of it
/// may still come, and whoever begins to watch has not read it.
const UNWATCHED: Duration = Duration::from_secs(1);

/// So many of those who follow one task look into the store at once without having been told that there is something. Whoever
/// asks for something comes first.
const LOOKERS: usize = 2;

pub struct Hub {
    watched: Mutex<BTreeMap<TaskId, broadcast::Sender<Feed>>>,
    /// For those who watch all of it.
    whole: Mutex<broadcast::Sender<Arc<Event>>>,
    /// Rises when those who follow one task should look into the store, whatever they were shown.
    doubts: watch::Sender<u64>,
    lookers: Arc<Semaphore>,
    awaited: Mutex<Awaited>,
    /// Someone follows from now on what was committed before.
    taken: Notify,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            watched: Mutex::default(),
            whole: Mutex::new(broadcast::channel(ROOM).0),
            doubts: watch::Sender::default(),
            lookers: Arc::new(Semaphore::new(LOOKERS)),
            awaited: Mutex::default(),
            taken: Notify::new(),
        }
    }
}

impl Hub {
    fn subscribe(&self, task: TaskId) -> broadcast::Receiver<Feed> {
        self.lock().entry(task).or_insert_with(|| broadcast::channel(ROOM).0).subscribe()
    }

    pub fn subscribe_to_all(&self) -> broadcast::Receiver<Arc<Event>> {
        self.whole().subscribe()
    }

    /// Has those who follow one task look into the store.
    fn doubt(&self) {
        self.doubts.send_modify(|doubts| *doubts += 1);
    }

    /// Positions that were shown are given again: nobody who watches all of it can go on.
    fn put_back(&self) {
        *self.whole() = broadcast::channel(ROOM).0;
        self.doubt();
    }

    /// Whether anybody is there to be shown what comes. Of a task that is only awaited, nobody is yet.
    fn is_watched(&self, now: Duration) -> bool {
        let n_awaited = self.awaited().keep_young(now);
        let mut watched = self.lock();
        watched.retain(|_, sender| sender.receiver_count() > 0);
        watched.len() > n_awaited
            || watched.values().any(|sender| sender.receiver_count() > 1)
            || self.whole().receiver_count() > 0
    }

    fn show_event(&self, event: Arc<Event>) {
        // Nobody there: then nobody misses it.
        let _ = self.whole().send(Arc::clone(&event));
        self.show(event.task, Feed::Event(event));
    }

    pub fn show(&self, task: TaskId, feed: Feed) {
        if let Some(sender) = self.lock().get(&task) {
            // Nobody there any more: then nobody misses it.
            let _ = sender.send(feed);
        }
    }

    /// This task may be accepted, and then followed.
    pub fn expect(&self, namespace: &str, task: TaskId, now: Duration) {
        let receiver = self.subscribe(task);
        self.awaited().add(namespace.to_owned(), task, receiver, now);
    }

    /// It was not accepted after all.
    pub fn forget(&self, task: TaskId) {
        self.awaited().forget(task);
    }

    fn awaited(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn whole(&self) -> MutexGuard<'_, broadcast::Sender<Arc<Event>>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, broadcast::Sender<Feed>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Control {
    /// The task's log behind `after`, and everything that comes.
    pub fn follow(&self, task: TaskId, after: u64) -> Follower {
        let receiver = self.feed.subscribe(task);
        Follower { after, behind: true, ..self.follower(task, receiver) }
    }

    /// The whole log of a task that was accepted here a moment ago: it is shown as it comes, and nothing is read.
    pub fn follow_new(&self, namespace: &str, task: TaskId) -> Option<Follower> {
        let receiver = self.feed.awaited().take(namespace, task)?;
        self.feed.taken.notify_one();
        Some(self.follower(task, receiver))
    }

    fn follower(&self, task: TaskId, receiver: broadcast::Receiver<Feed>) -> Follower {
        Follower {
            task,
            after: 0,
            store: Arc::clone(&self.store),
            receiver,
            doubts: self.feed.doubts.subscribe(),
            lookers: Arc::clone(&self.feed.lookers),
            read: VecDeque::new(),
            behind: false,
            in_doubt: false,
        }
    }

    /// Hands events to those who watch. Who subscribes reads the store afterwards, so what was passed over
    /// because nobody watched is not missed.
    pub(crate) async fn follow_log(&self) {
        let mut hints = self.store.watch();
        let Hint { mut position, mut put_back, .. } = *hints.borrow_and_update();
        let (mut pause, mut moved_at) = (NOT_OFTENER, self.runtime.monotonic());
        let mut held_up = HeldUp::default();
        loop {
            let hint = *hints.borrow_and_update();
            if hint.put_back != put_back {
                (position, put_back, held_up) = (hint.position, hint.put_back, HeldUp::default());
                self.feed.put_back();
            }
            let (before, last) = (position, hint.position);
            let is_needed = self.is_needed();
            let is_due = is_needed || self.runtime.monotonic() >= moved_at + UNWATCHED;
            if position >= last || !is_due || !self.look_on(&mut position, last).await {
                tokio::select! {
                    biased;
                    changed = hints.changed() => if changed.is_err() { return },
                    () = self.feed.taken.notified() => {}
                }
                continue;
            }
            moved_at = self.runtime.monotonic();
            if held_up.looked(position, last, moved_at) {
                self.feed.doubt();
            }
            pause = if position > before { NOT_OFTENER } else { (pause * 2).min(HELD_UP) };
            if self.store.is_shared() {
                self.runtime.sleep(pause).await;
            }
        }
    }

    /// Passes on what the log has behind this position, and moves it; up to `last`, as far as that stands firm. Where
    /// nobody needs it, it is only moved. Tells whether the log could be read.
    async fn look_on(&self, position: &mut u64, last: u64) -> bool {
        self.feed.awaited().pass_over();
        // From here on nobody is given a receiver that lacks what is passed over; who has got one just now is seen.
        let is_needed = self.is_needed();
        if is_needed {
            self.feed.awaited().stay();
        }
        let could_be_read = self.read_on(position, last, if is_needed { AT_ONCE } else { 0 }).await;
        if !is_needed {
            self.feed.awaited().pass_over();
        }
        could_be_read
    }

    async fn read_on(&self, position: &mut u64, last: u64, at_once: usize) -> bool {
        loop {
            match self.store.firm_log(*position, at_once).await {
                Ok(FirmLog { events, upto }) => {
                    let is_full = events.len() == at_once && at_once > 0;
                    for event in events {
                        *position = event.position;
                        self.pass_on(&event);
                        self.feed.show_event(Arc::new(event));
                    }
                    if !is_full {
                        *position = upto.min(last).max(*position);
                        return true;
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "the log can't be read");
                    return false;
                }
            }
        }
    }
}

impl Control {
    fn is_needed(&self) -> bool {
        self.feed.is_watched(self.runtime.monotonic()) || self.is_concerned()
    }

    /// Whether other servers may do something to runs that were handed out here.
    fn is_concerned(&self) -> bool {
        self.store.is_shared() && !self.leases.is_empty()
    }

    /// What was done to a run that was handed out here, by whichever server: its worker is told. Told twice or in vain
    /// does no harm: a worker knows what it holds.
    fn pass_on(&self, event: &Event) {
        if !self.store.is_shared() {
            return;
        }
        match &event.body {
            EventBody::InputAccepted { run, .. } => {
                if let Some(view) = self.leases.get(*run) {
                    self.signals.send(&view.run, SignalKind::Input);
                }
            }
            EventBody::AttemptEnded { run, attempt, .. } => {
                let view = self.leases.get(*run).filter(|view| view.run.attempt == *attempt);
                view.iter().for_each(|view| self.stopped(view));
            }
            EventBody::TaskEnded { .. } => {
                self.leases.of_task(event.task).iter().for_each(|view| self.stopped(view));
            }
            EventBody::TaskAccepted { .. }
            | EventBody::MessageSent { .. }
            | EventBody::RunEnded { .. }
            | EventBody::AttemptStarted { .. }
            | EventBody::StepFinished(_)
            | EventBody::RunRetrying { .. }
            | EventBody::RunWaiting { .. }
            | EventBody::RunSleeping { .. }
            | EventBody::RunReady { .. }
            | EventBody::ResourceChanged(_)
            | EventBody::Unknown(_) => {}
        }
    }
}

/// One who watches a task.
pub struct Follower {
    task: TaskId,
    after: u64,
    store: Arc<dyn Store>,
    receiver: broadcast::Receiver<Feed>,
    doubts: watch::Receiver<u64>,
    lookers: Arc<Semaphore>,
    read: VecDeque<Event>,
    /// There may be events in the store that were not received.
    behind: bool,
    /// One looks whether there are.
    in_doubt: bool,
}

impl Follower {
    /// The next thing to show, each event once and in order; never ends by itself.
    pub async fn next(&mut self) -> Result<Feed, StoreError> {
        loop {
            if let Some(event) = self.read.pop_front() {
                self.after = event.seq;
                return Ok(Feed::Event(Arc::new(event)));
            }
            if self.behind {
                let events = self.store.events(self.task, self.after, AT_ONCE).await?;
                self.take(events);
                continue;
            }
            if self.in_doubt {
                self.look().await;
                continue;
            }
            let received = tokio::select! {
                biased;
                received = self.receiver.recv() => received,
                Ok(()) = self.doubts.changed() => {
                    self.look_again();
                    continue;
                }
            };
            match received {
                Ok(Feed::Event(event)) if event.seq <= self.after => {}
                Ok(Feed::Event(event)) if event.seq == self.after + 1 => {
                    self.after = event.seq;
                    return Ok(Feed::Event(event));
                }
                Ok(Feed::Event(_)) | Err(broadcast::error::RecvError::Lagged(_)) => self.behind = true,
                Ok(delta @ Feed::Delta(_)) => return Ok(delta),
                Err(broadcast::error::RecvError::Closed) => {
                    return Err(StoreError::Unavailable("the server is stopping".into()));
                }
            }
        }
    }

    /// Makes it look into the store, for what it was perhaps not shown. What comes from this server alone comes without fail.
    pub fn look_again(&mut self) {
        self.in_doubt = self.store.is_shared();
    }

    /// Nothing is known to be missing: if the store can't say, the next look will.
    async fn look(&mut self) {
        let Ok(_turn) = Arc::clone(&self.lookers).acquire_owned().await else { return };
        if let Ok(events) = self.store.events(self.task, self.after, AT_ONCE).await {
            self.take(events);
        }
        self.in_doubt = false;
    }

    fn take(&mut self, events: Vec<Event>) {
        self.behind = events.len() == AT_ONCE;
        self.read.extend(events);
    }
}
