//! Bundles: what a command wants written, with what must be true for it to count. Declarative, so that every
//! store judges them with the same function and refuses each one alone.

mod refusal;

use serde::{Deserialize, Serialize};

pub use self::refusal::{Clash, Reason, Refusal};
use crate::{
    BlobId, Entry, EventBody, Run, RunId, RunTag, Session, SessionId, Step, Task, TaskId, Timestamp, Worker,
    resource::{ResourceKey, StoredResource},
    run::blocker::Blocker,
    task::{forget::Forgotten, input::Input},
    worker::Standing,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bundle {
    pub command: Command,
    /// Given by a worker: the same bundle sent again gets its first result.
    pub key: Option<WriteKey>,
    pub expect: Vec<Expect>,
    pub writes: Vec<Write>,
}

/// What a bundle is for. Names it in logs, refusals and planted bugs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Accept,
    AcceptInput,
    Journal,
    Finish,
    Yield,
    TakeOver,
    Wake,
    Resolve,
    Cancel,
    Expire,
    Archive,
    Forget,
    Register,
    Renew,
    Stand,
    Limit,
    Apply,
    Delete,
    PutBlob,
}

/// Which write of which lease: a worker numbers its writes to a run 1, 2, 3 over all attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WriteKey {
    pub run: RunId,
    pub epoch: u64,
    pub number: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "row", rename_all = "snake_case")]
pub enum Expect {
    /// The run is in this state, under this epoch, and has taken so many journal writes (if that matters).
    Run { id: RunId, state: RunTag, epoch: u64, journal: Option<u64> },
    /// The run is there, and has ended.
    Ended { run: RunId },
    /// Nobody wrote the session since; 0 means it isn't there.
    Session { id: SessionId, version: u64 },
    /// No input came for the task since the one with this number.
    Inputs { task: TaskId, last: u64 },
    /// No other task has this name.
    TaskName { namespace: String, name: String },
    /// No other task was accepted under this key.
    TaskKey { namespace: String, key: String },
    /// No other session has this key.
    SessionKey { namespace: String, subject: String, key: String },
    /// This is the worker's present incarnation; 0 means it never registered.
    Worker { name: String, incarnation: u64 },
    /// The worker's counter still stands here. It begins anew with every incarnation.
    Counter { worker: String, incarnation: u64, counter: u64 },
    /// Nobody wrote the resource since; 0 means it isn't there.
    Resource { key: ResourceKey, version: u64 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "write", content = "row", rename_all = "snake_case")]
pub enum Write {
    NewTask(Task),
    /// All of a task but its request, which never changes.
    Task(Task),
    NewRun(Run),
    Run(Run),
    /// A run that goes on as it was, under the same lease: only its counters moved.
    RunProgress(Run),
    Session(Session),
    Step(Step),
    Entry {
        session: SessionId,
        seq: u64,
        entry: Entry,
    },
    Event {
        task: TaskId,
        at: Timestamp,
        body: EventBody,
    },
    Input(Input),
    /// The run took the task's inputs up to this number.
    Consume {
        task: TaskId,
        upto: u64,
        run: RunId,
    },
    Blocker(Blocker),
    Archive {
        task: TaskId,
        at: Timestamp,
    },
    Forget(Forgotten),
    ForgetSession {
        id: SessionId,
        namespace: String,
        subject: String,
        key: Option<String>,
    },
    Worker(Worker),
    ForgetWorker {
        worker: String,
    },
    Renewal {
        worker: String,
        counter: u64,
    },
    Standing {
        worker: String,
        standing: Standing,
    },
    /// So many runs of a class may hold a lease at once, those included that wait already.
    Limit {
        namespace: String,
        class: String,
        limit: Option<u32>,
    },
    Resource(StoredResource),
    DeleteResource(ResourceKey),
    /// Put again, only the time changes.
    Blob {
        id: BlobId,
        bytes: Vec<u8>,
        at: Timestamp,
    },
    /// Goes unless it was put again after that time.
    ForgetBlob {
        id: BlobId,
        put_by: Timestamp,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Apply,
    /// It was applied before; nothing is to be written.
    Duplicate,
    Refuse(Refusal),
}

/// What a judge has to look up. A store answers from inside the transaction that will apply the bundle.
pub trait Rows {
    type Error;

    fn run(&mut self, id: RunId) -> Result<Option<RunAt>, Self::Error>;
    fn session_version(&mut self, id: SessionId) -> Result<u64, Self::Error>;
    fn inputs(&mut self, task: TaskId) -> Result<InputsAt, Self::Error>;
    fn task_name_taken(&mut self, namespace: &str, name: &str) -> Result<bool, Self::Error>;
    fn task_key_taken(&mut self, namespace: &str, key: &str) -> Result<bool, Self::Error>;
    fn session_key_taken(&mut self, namespace: &str, subject: &str, key: &str) -> Result<bool, Self::Error>;
    fn incarnation(&mut self, worker: &str) -> Result<u64, Self::Error>;
    fn counter(&mut self, worker: &str) -> Result<u64, Self::Error>;
    fn resource_version(&mut self, key: &ResourceKey) -> Result<u64, Self::Error>;
}

/// Of a run, what a judge needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunAt {
    pub state: RunTag,
    pub epoch: u64,
    pub journal: u64,
    pub last_write: Option<(u64, u64)>,
}

/// The numbers of a task's last input, and of the last one that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputsAt {
    pub last: u64,
    pub taken: u64,
}

impl Bundle {
    pub fn new(command: Command) -> Self {
        Self { command, key: None, expect: Vec::new(), writes: Vec::new() }
    }

    #[must_use]
    pub fn keyed(mut self, key: WriteKey) -> Self {
        self.key = Some(key);
        self
    }

    #[must_use]
    pub fn expect(mut self, expect: Expect) -> Self {
        self.expect.push(expect);
        self
    }

    #[must_use]
    pub fn write(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }

    #[must_use]
    pub fn event(self, task: TaskId, at: Timestamp, body: EventBody) -> Self {
        self.write(Write::Event { task, at, body })
    }

    /// Stores bytes under their hash. They go ahead of the bundle that names them, in a commit of their own.
    pub fn blob(bytes: Vec<u8>, at: Timestamp) -> (BlobId, Self) {
        let id = BlobId::of(&bytes);
        (id, Self::new(Command::PutBlob).write(Write::Blob { id, bytes, at }))
    }

    /// Forgets a blob that no task names, and that nobody has put since.
    pub fn forget_blob(id: BlobId, put_by: Timestamp) -> Self {
        Self::new(Command::Forget).write(Write::ForgetBlob { id, put_by })
    }

    /// Whether it counts, given the rows as they are now.
    pub fn judge<R: Rows>(&self, rows: &mut R) -> Result<Verdict, R::Error> {
        if let Some(key) = self.key
            && let Some(run) = rows.run(key.run)?
            && run.last_write == Some((key.epoch, key.number))
        {
            return Ok(Verdict::Duplicate);
        }
        // Whoever holds the run, and whatever came meanwhile: nobody can have seen it.
        if let Some(reason) = self.takes_wrongly(rows, |upto, inputs| upto > inputs.last)? {
            return Ok(self.refused(reason));
        }
        for expect in &self.expect {
            if let Some(found) = contradiction(expect, rows)? {
                return Ok(self.refused(Reason::Unmet { expect: expect.clone(), found }));
            }
        }
        match self.takes_wrongly(rows, |upto, inputs| upto < inputs.taken)? {
            Some(reason) => Ok(self.refused(reason)),
            None => Ok(Verdict::Apply),
        }
    }

    /// The first consumption of inputs that is wrong.
    fn takes_wrongly<R: Rows>(
        &self,
        rows: &mut R,
        wrong: impl Fn(u64, InputsAt) -> bool,
    ) -> Result<Option<Reason>, R::Error> {
        for write in &self.writes {
            let Write::Consume { task, upto, .. } = write else { continue };
            let inputs = rows.inputs(*task)?;
            if wrong(*upto, inputs) {
                let InputsAt { last, taken } = inputs;
                return Ok(Some(Reason::Inputs { task: *task, upto: *upto, taken, last }));
            }
        }
        Ok(None)
    }

    fn refused(&self, reason: Reason) -> Verdict {
        Verdict::Refuse(Refusal { command: self.command, reason })
    }
}

/// What was found in place of what was expected; none if it holds.
fn contradiction<R: Rows>(expect: &Expect, rows: &mut R) -> Result<Option<String>, R::Error> {
    let differs = |found: u64, wanted: u64, what: &str| (found != wanted).then(|| format!("{what} {found}"));
    let taken = |taken: bool| taken.then(|| "another".to_owned());
    Ok(match expect {
        Expect::Run { id, state, epoch, journal } => match rows.run(*id)? {
            None => Some("no such run".to_owned()),
            Some(run) => {
                let same = run.state == *state
                    && run.epoch == *epoch
                    && journal.is_none_or(|journal| journal == run.journal);
                (!same).then(|| format!("{:?} in epoch {} at write {}", run.state, run.epoch, run.journal))
            }
        },
        Expect::Ended { run } => match rows.run(*run)? {
            None => Some("no such run".to_owned()),
            Some(at) => (!at.state.is_terminal()).then(|| format!("{:?}", at.state)),
        },
        Expect::Session { id, version } => differs(rows.session_version(*id)?, *version, "version"),
        Expect::Inputs { task, last } => differs(rows.inputs(*task)?.last, *last, "input"),
        Expect::TaskName { namespace, name } => taken(rows.task_name_taken(namespace, name)?),
        Expect::TaskKey { namespace, key } => taken(rows.task_key_taken(namespace, key)?),
        Expect::SessionKey { namespace, subject, key } => {
            taken(rows.session_key_taken(namespace, subject, key)?)
        }
        Expect::Worker { name, incarnation } => differs(rows.incarnation(name)?, *incarnation, "incarnation"),
        Expect::Counter { worker, incarnation, counter } => {
            let restarted = differs(rows.incarnation(worker)?, *incarnation, "incarnation");
            match restarted {
                Some(found) => Some(found),
                None => differs(rows.counter(worker)?, *counter, "counter"),
            }
        }
        Expect::Resource { key, version } => differs(rows.resource_version(key)?, *version, "version"),
    })
}
