//! What can be asked of a store, and a typed way to ask it.

use async_trait::async_trait;
use ostler_kernel::{
    BlobId, BlockerId, Entry, Event, Run, RunId, Selector, Session, SessionId, Step, Task, TaskId, Timestamp,
    Worker,
    resource::{ResourceKey, StoredResource},
    run::{RunView, blocker::Blocker},
    task::{TaskRequest, input::Input},
};

use crate::{Store, StoreError, body::due};

#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    Task(TaskRef),
    Tasks(TaskFilter),
    /// Tasks that were accepted before a moment, the oldest first, behind one of them.
    OldTasks {
        before: Timestamp,
        after: Option<TaskId>,
        limit: usize,
    },
    /// The `nth` newest task of a namespace, counted from 0.
    NthTask {
        namespace: String,
        nth: usize,
    },
    RunView(RunId),
    Run(RunId),
    Steps(RunId),
    Session(SessionId),
    SessionByKey {
        namespace: String,
        subject: String,
        key: String,
    },
    /// Conversations that have a key, by namespace, subject and key.
    Sessions {
        namespace: Option<String>,
        after: Option<SessionPlace>,
        limit: usize,
    },
    /// Entries `from..to` of a session.
    Entries {
        session: SessionId,
        from: u64,
        to: Option<u64>,
    },
    /// The task's inputs behind number `after`.
    Inputs {
        task: TaskId,
        after: u64,
    },
    Blocker(BlockerId),
    /// The task's log behind `after`.
    Events {
        task: TaskId,
        after: u64,
        limit: usize,
    },
    /// Every task's log behind a position, in the order of commits.
    Log {
        after: u64,
        limit: usize,
    },
    /// The same for one who follows it, as far as it stands firm: what was committed a moment ago may be missing, and is
    /// there when one looks again. With a limit of 0, only how far that is.
    FirmLog {
        after: u64,
        limit: usize,
    },
    /// Runs under a lease: of one worker, or all.
    Leased {
        worker: Option<String>,
    },
    Workers,
    /// How many runs of a namespace, or of one class in it, are ready; past `most` they are not counted.
    Ready {
        namespace: String,
        class: Option<String>,
        most: usize,
    },
    /// How many tasks of a namespace, or of those that a run of one class in it belongs to, were accepted after `since` and by
    /// `upto`; of more than `most` only the last are looked at.
    Accepted {
        namespace: String,
        class: Option<String>,
        since: Timestamp,
        upto: Timestamp,
        most: usize,
    },
    /// Runs that wake or expire by `now`, behind one of them.
    Due {
        after: DuePlace,
        now: Timestamp,
        limit: usize,
    },
    /// When the next run wakes or expires.
    NextDue,
    Resource(ResourceKey),
    /// By namespace and name.
    Resources(ResourceFilter),
    /// Every namespace that a resource or a task lives in.
    Namespaces,
    Blob(BlobId),
    /// Blobs that were last put by then.
    OldBlobs {
        put_by: Timestamp,
    },
}

/// Where a run stands in the order of what is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DuePlace {
    pub at: Timestamp,
    pub run: RunId,
}

impl DuePlace {
    /// Before all of them.
    pub const FIRST: Self = Self { at: Timestamp::from_millis(i64::MIN), run: RunId::from_bytes([0; 16]) };

    /// Behind all that are due by then.
    pub const fn behind(at: Timestamp) -> Self {
        Self { at, run: RunId::from_bytes([u8::MAX; 16]) }
    }

    pub fn of(run: &Run) -> Option<Self> {
        due(run).map(|at| Self { at, run: run.id })
    }
}

/// Where a conversation stands in their list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SessionPlace {
    pub namespace: String,
    pub subject: String,
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResourceFilter {
    pub kind: String,
    pub namespace: Option<String>,
    /// The namespace and name behind which to go on.
    pub after: Option<(String, String)>,
    /// Only those whose labels it holds for. A page is full as long as there are any.
    pub labels: Selector,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TaskRef {
    Id(TaskId),
    Name { namespace: String, name: String },
    Key { namespace: String, key: String },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskFilter {
    pub namespace: Option<String>,
    /// Only tasks whose state has one of these names; empty means any.
    pub states: Vec<String>,
    pub archived: bool,
    /// Only tasks older than this one: the cursor of a list that shows the newest first.
    pub before: Option<TaskId>,
    /// Only tasks whose labels it holds for.
    pub labels: Selector,
    /// Only tasks of this agent, or of this system.
    pub agent: Option<String>,
    pub system: Option<String>,
    pub limit: usize,
    /// How many tasks are looked at by what no index knows: labels, agent, system. There may be a million of them, so
    /// a page can end early and say where; none means no bound.
    pub look_at: Option<usize>,
}

/// A part of a list of tasks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskPage {
    pub rows: Vec<TaskRow>,
    /// The last task that was looked at, if the page ended there though it was not full.
    pub stopped_at: Option<TaskId>,
}

impl From<TaskPage> for Vec<TaskRow> {
    fn from(page: TaskPage) -> Self {
        page.rows
    }
}

impl TaskPage {
    /// Takes from tasks in the order of the list as many as the filter wants.
    pub fn of<E>(
        filter: &TaskFilter,
        candidates: impl Iterator<Item = Result<TaskRow, E>>,
    ) -> Result<Self, E> {
        let mut page = Self::default();
        let bound = filter.look_at.filter(|_| filter.is_selective()).unwrap_or(usize::MAX);
        let mut last = None;
        for (looked_at, row) in candidates.enumerate() {
            if page.rows.len() >= filter.limit {
                break;
            }
            if looked_at >= bound {
                page.stopped_at = last;
                break;
            }
            let row = row?;
            last = Some(row.task.id);
            if filter.selects(&row.task.request) {
                page.rows.push(row);
            }
        }
        Ok(page)
    }
}

/// How the tasks of a filter are found among a million that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By their runs, which have not ended.
    Live,
    /// By an index of those that ended otherwise than well.
    Troubled,
    /// By their ids: any will do, or nearly.
    Newest,
}

/// The states that the index of tasks in trouble names, as it names them.
pub(crate) const TROUBLED: &str = "state IN ('failed', 'dead_letter', 'cancelled', 'dropped')";

impl TaskFilter {
    /// Whether tasks have to be looked at one by one.
    pub fn is_selective(&self) -> bool {
        !self.labels.is_empty() || self.agent.is_some() || self.system.is_some()
    }

    /// Whether a task is meant, as far as no index knows it.
    pub fn selects(&self, request: &TaskRequest) -> bool {
        self.labels.matches(&request.labels)
            && self.agent.as_ref().is_none_or(|agent| request.has_agent(agent))
            && self.system.as_ref().is_none_or(|system| request.doer() == ("system", system))
    }

    pub(crate) fn way(&self) -> Way {
        let all = |names: &[&str]| {
            !self.states.is_empty() && self.states.iter().all(|state| names.contains(&state.as_str()))
        };
        if all(&["queued", "running", "waiting", "sleeping"]) {
            Way::Live
        } else if all(&["failed", "dead_letter", "cancelled", "dropped"]) {
            Way::Troubled
        } else {
            Way::Newest
        }
    }
}

/// A task with what the store keeps count of beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    pub task: Task,
    pub last_seq: u64,
    pub last_input: u64,
    pub consumed_input: u64,
    pub archived_at: Option<Timestamp>,
}

/// Tasks that were accepted in a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepted {
    pub count: usize,
    /// When the first of those that were counted was.
    pub oldest: Option<Timestamp>,
}

impl Accepted {
    pub fn of(count: usize, first: Option<TaskId>) -> Self {
        Self { count, oldest: first.map(|task| task.made_at()) }
    }
}

/// A part of the log of all tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct FirmLog {
    pub events: Vec<Event>,
    /// Up to this position nothing is missing.
    pub upto: u64,
}

impl FirmLog {
    /// Of one that is firm to its end, as far as there may be `limit` of it.
    pub fn whole(events: Vec<Event>, limit: usize) -> Self {
        let is_cut = events.len() >= limit;
        let upto = events.last().filter(|_| is_cut).map_or(u64::MAX, |event| event.position);
        Self { events, upto }
    }
}

#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "an answer is taken apart at once, never kept")]
pub enum Answer {
    Task(Option<TaskRow>),
    Tasks(Vec<TaskRow>),
    TaskPage(TaskPage),
    TaskId(Option<TaskId>),
    RunView(Option<Box<RunView>>),
    Run(Option<Box<Run>>),
    Runs(Vec<Run>),
    Steps(Vec<Step>),
    Session(Option<Box<Session>>),
    Sessions(Vec<Session>),
    Entries(Vec<(u64, Entry)>),
    Inputs(Vec<Input>),
    Blocker(Option<Blocker>),
    Events(Vec<Event>),
    FirmLog(FirmLog),
    Workers(Vec<Worker>),
    Time(Option<Timestamp>),
    Accepted(Accepted),
    Count(usize),
    Resource(Option<StoredResource>),
    Resources(Vec<StoredResource>),
    Names(Vec<String>),
    Blob(Option<Vec<u8>>),
    Blobs(Vec<BlobId>),
}

macro_rules! typed {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) = $query:expr => $variant:ident -> $answer:ty;)*) => {
        /// The queries as functions, with the type of their answer.
        #[async_trait]
        pub trait StoreExt: Store {
            $($(#[$doc])*
            async fn $name(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                match self.read($query).await? {
                    Answer::$variant(answer) => Ok(answer.into()),
                    other => Err(StoreError::Read(format!("{other:?} does not answer {}", stringify!($name)))),
                }
            })*
        }
    };
}

typed! {
    task(reference: TaskRef) = Query::Task(reference) => Task -> Option<TaskRow>;
    task_page(filter: TaskFilter) = Query::Tasks(filter) => TaskPage -> TaskPage;
    /// As many as the filter lets through, where the page has no end of its own.
    tasks(filter: TaskFilter) = Query::Tasks(filter) => TaskPage -> Vec<TaskRow>;
    old_tasks(before: Timestamp, after: Option<TaskId>, limit: usize) =
        Query::OldTasks { before, after, limit } => Tasks -> Vec<TaskRow>;
    nth_task(namespace: String, nth: usize) = Query::NthTask { namespace, nth } => TaskId -> Option<TaskId>;
    run_view(run: RunId) = Query::RunView(run) => RunView -> Option<Box<RunView>>;
    run(run: RunId) = Query::Run(run) => Run -> Option<Box<Run>>;
    steps(run: RunId) = Query::Steps(run) => Steps -> Vec<Step>;
    session(session: SessionId) = Query::Session(session) => Session -> Option<Box<Session>>;
    session_by_key(namespace: String, subject: String, key: String) =
        Query::SessionByKey { namespace, subject, key } => Session -> Option<Box<Session>>;
    sessions(namespace: Option<String>, after: Option<SessionPlace>, limit: usize) =
        Query::Sessions { namespace, after, limit } => Sessions -> Vec<Session>;
    entries(session: SessionId, from: u64, to: Option<u64>) =
        Query::Entries { session, from, to } => Entries -> Vec<(u64, Entry)>;
    inputs(task: TaskId, after: u64) = Query::Inputs { task, after } => Inputs -> Vec<Input>;
    blocker(blocker: BlockerId) = Query::Blocker(blocker) => Blocker -> Option<Blocker>;
    events(task: TaskId, after: u64, limit: usize) = Query::Events { task, after, limit } => Events -> Vec<Event>;
    log(after: u64, limit: usize) = Query::Log { after, limit } => Events -> Vec<Event>;
    firm_log(after: u64, limit: usize) = Query::FirmLog { after, limit } => FirmLog -> FirmLog;
    leased(worker: Option<String>) = Query::Leased { worker } => Runs -> Vec<Run>;
    workers() = Query::Workers => Workers -> Vec<Worker>;
    ready(namespace: String, class: Option<String>, most: usize) =
        Query::Ready { namespace, class, most } => Count -> usize;
    accepted(namespace: String, class: Option<String>, between: (Timestamp, Timestamp), most: usize) =
        Query::Accepted { namespace, class, since: between.0, upto: between.1, most } => Accepted -> Accepted;
    due(now: Timestamp, limit: usize) = Query::Due { after: DuePlace::FIRST, now, limit } => Runs -> Vec<Run>;
    due_behind(after: DuePlace, now: Timestamp, limit: usize) = Query::Due { after, now, limit } => Runs -> Vec<Run>;
    next_due() = Query::NextDue => Time -> Option<Timestamp>;
    resource(key: ResourceKey) = Query::Resource(key) => Resource -> Option<StoredResource>;
    resources(filter: ResourceFilter) = Query::Resources(filter) => Resources -> Vec<StoredResource>;
    namespaces() = Query::Namespaces => Names -> Vec<String>;
    blob(blob: BlobId) = Query::Blob(blob) => Blob -> Option<Vec<u8>>;
    old_blobs(put_by: Timestamp) = Query::OldBlobs { put_by } => Blobs -> Vec<BlobId>;
}

impl<S: Store + ?Sized> StoreExt for S {}
