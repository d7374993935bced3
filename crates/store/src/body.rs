//! Rows as text: what every store that keeps text writes into a row besides the columns it searches by.

use ostler_kernel::{
    Bundle, Run, RunId, SessionId, Task, TaskId, Timestamp, Write,
    task::{PastRun, TaskRequest},
};
use serde::Serialize;

use crate::StoreError;

/// What the row of a write says. Empty where there is nothing.
pub fn text_of(write: &Write) -> serde_json::Result<String> {
    match write {
        Write::NewTask(task) | Write::Task(task) => text(&TaskBody::of(task)),
        Write::NewRun(run) | Write::Run(run) | Write::RunProgress(run) => text(run),
        Write::Session(session) => text(session),
        Write::Step(step) => text(step),
        Write::Entry { entry, .. } => text(entry),
        Write::Event { body, .. } => text(body),
        Write::Input(input) => text(input),
        Write::Blocker(blocker) => text(blocker),
        Write::Resource(resource) => text(&resource.document),
        Write::Consume { .. }
        | Write::Archive { .. }
        | Write::Forget(_)
        | Write::ForgetSession { .. }
        | Write::Worker(_)
        | Write::ForgetWorker { .. }
        | Write::Renewal { .. }
        | Write::Standing { .. }
        | Write::Limit { .. }
        | Write::DeleteResource(_)
        | Write::Blob { .. }
        | Write::ForgetBlob { .. } => Ok(String::new()),
    }
}

/// A bundle with the texts of its rows, made by who brings it: while one writes, many can do that.
pub struct Prepared {
    pub bundle: Bundle,
    pub texts: Vec<String>,
}

impl Prepared {
    pub fn of(bundle: Bundle) -> serde_json::Result<Self> {
        let texts = bundle.writes.iter().map(text_of).collect::<Result<_, _>>()?;
        Ok(Self { bundle, texts })
    }

    /// Of each of them; it can't be written otherwise.
    pub fn all(bundles: Vec<Bundle>) -> Result<Vec<Self>, StoreError> {
        let prepared: serde_json::Result<_> = bundles.into_iter().map(Self::of).collect();
        prepared.map_err(|error| StoreError::Unavailable(error.to_string()))
    }
}

fn text<T: Serialize>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string(value)
}

/// Whether there may be something to claim once the run is as it is: itself, or one that it made room for.
pub fn makes_claimable(run: &Run) -> bool {
    run.rank().is_some() || (run.lease().is_none() && run.lane.is_limited())
}

/// When something must happen to the run by itself: it wakes, or its deadline passes.
pub fn due(run: &Run) -> Option<Timestamp> {
    let deadline = run.deadline.filter(|_| !run.is_terminal());
    [run.wake_at(), deadline].into_iter().flatten().min()
}

/// A task without its request, which has a column of its own and is written once.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct TaskBody {
    id: TaskId,
    namespace: String,
    name: String,
    session: SessionId,
    run: RunId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    past: Vec<PastRun>,
    #[serde(flatten)]
    state: ostler_kernel::TaskState,
    version: u64,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<ostler_kernel::Failure>,
    usage: ostler_kernel::Usage,
}

impl TaskBody {
    pub fn of(task: &Task) -> Self {
        Self {
            id: task.id,
            namespace: task.namespace.clone(),
            name: task.name.clone(),
            session: task.session,
            run: task.run,
            past: task.past.clone(),
            state: task.state.clone(),
            version: task.version,
            created_at: task.created_at,
            started_at: task.started_at,
            ended_at: task.ended_at,
            output: task.output.clone(),
            failure: task.failure.clone(),
            usage: task.usage,
        }
    }

    pub fn with(self, request: TaskRequest) -> Task {
        Task {
            id: self.id,
            namespace: self.namespace,
            name: self.name,
            session: self.session,
            run: self.run,
            past: self.past,
            request,
            state: self.state,
            version: self.version,
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            output: self.output,
            failure: self.failure,
            usage: self.usage,
        }
    }
}
