//! What people do: ask, send inputs, answer, cancel, declare resources. And workers that come and go.

use std::{collections::BTreeMap, time::Duration};

use ostler_kernel::{
    BlobId, Bundle, Command, ContextId, Expect, InputId, RunId, Session, SessionId, TaskId, TraceContext,
    Worker, Write,
    conversation::Context,
    event::Change,
    queue::{self, Lane, Priority, Requirements},
    resource::{self, ResourceKey, StoredResource},
    retry::{Jitter, RetryPolicy},
    run::{cancel, wake},
    session,
    task::{
        Stage, SystemPlan, TaskRequest,
        accept::{Acceptance, accept},
        forget::forget,
        input::accept_input,
    },
    worker::{self, Offer, Standing},
};
use serde_json::json;

use super::{super::dice::Dice, History};
use crate::{Answer, Query};

/// What some callers send along.
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

pub(super) const NAMESPACES: [&str; 3] = ["default", "Team 'A'", "ü"];
pub(super) const SESSION_KEYS: [&str; 2] = ["chat", "🐎"];
pub(super) const TASK_NAMES: [&str; 3] = ["report", "Report", "naïve"];
pub(super) const TASK_KEYS: [&str; 3] = ["once", "twice", ""];
pub(super) const KINDS: [&str; 2] = ["Agent", "Tool"];
pub(super) const WORKERS: [&str; 3] = ["one", "two", "three"];
const CLASSES: [&str; 2] = ["small", "large"];
const LIMITS: [Option<u32>; 5] = [None, Some(0), Some(1), Some(2), Some(3)];
pub(super) const SUBJECT: &str = "helper";

macro_rules! new_id {
    ($history:ident, $id:ident) => {
        $id::from_parts($history.now, $history.dice.roll(), $history.dice.roll())
    };
}
pub(super) use new_id;

pub(super) const LABELS: [&str; 3] = ["color", "ostler.dev/size", "é"];
pub(super) const LABEL_VALUES: [&str; 3] = ["blue", "", "ü"];

fn some_labels(dice: &mut Dice) -> BTreeMap<String, String> {
    (0..dice.below(3)).map(|_| (dice.word(&LABELS), dice.word(&LABEL_VALUES))).collect()
}

impl History<'_> {
    pub(super) async fn accept(&mut self) -> Result<Bundle, String> {
        let session = match self.dice.below(3) {
            0 => self.old_session().await?,
            _ => None,
        };
        let session = session.unwrap_or_else(|| self.new_session());
        let (task, run) = (new_id!(self, TaskId), new_id!(self, RunId));
        let any_name = format!("task-{}", self.known.tasks.len());
        let name = if self.dice.one_in(8) { self.dice.word(&TASK_NAMES) } else { any_name };
        let class = self.dice.word(&CLASSES);
        let limit = self.dice.pick(&LIMITS).flatten();
        let region = self.dice.pick(&[None, None, None, Some("eu")]).flatten().map(str::to_owned);
        let requires = Requirements { region, ..Requirements::default() };
        let lane = Lane { limit, requires, ..Lane::new(session.namespace.clone(), class) };
        let acceptance = Acceptance {
            task,
            run,
            namespace: session.namespace.clone(),
            name,
            request: self.request(&lane),
            model: "mock".to_owned(),
            lane,
            session,
        };
        self.known.sessions.push(acceptance.session.id);
        self.known.tasks.push(task);
        self.known.runs.push(run);
        Ok(accept(acceptance, self.now).1)
    }

    pub(super) async fn old_session(&mut self) -> Result<Option<Session>, String> {
        let Some(session) = self.dice.pick(&self.known.sessions) else { return Ok(None) };
        match self.ask(Query::Session(session)).await? {
            Answer::Session(found) => Ok(found.map(|session| *session)),
            _ => Ok(None),
        }
    }

    pub(super) fn new_session(&mut self) -> Session {
        let (id, context) = (new_id!(self, SessionId), Context::whole(new_id!(self, ContextId)));
        let key = self.dice.one_in(3).then(|| self.dice.word(&SESSION_KEYS));
        Session::new(id, &self.dice.word(&NAMESPACES), SUBJECT, key, context)
    }

    /// One behind the other, now and then.
    fn system(&mut self, lane: &Lane) -> Option<SystemPlan> {
        let stage = |agent: &str| Stage {
            agent: agent.to_owned(),
            plan: BlobId::of(agent.as_bytes()),
            model: "mock".to_owned(),
            lane: lane.clone(),
        };
        let count = 1 + self.dice.below(3) as usize;
        let line = [SUBJECT, "writer", "ünder"].iter().take(count).map(|agent| stage(agent)).collect();
        self.dice.one_in(3).then(|| SystemPlan { name: "pipeline".to_owned(), line })
    }

    fn request(&mut self, lane: &Lane) -> TaskRequest {
        let (deadline, system) = (self.later(80), self.system(lane));
        let dice = &mut self.dice;
        let deadline = dice.one_in(5).then_some(deadline);
        let jitter = dice.pick(&[Jitter::None, Jitter::Full, Jitter::Equal]).unwrap_or_default();
        let max_attempts = 1 + dice.below(3) as u32;
        let priorities = [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent];
        TaskRequest {
            api_version: None,
            agent: SUBJECT.to_owned(),
            system,
            plan: BlobId::of(b"a plan"),
            message: dice.word(&["hello", "", "several\nlines\u{0}", "ÿ\u{10ffff}"]),
            input: BTreeMap::from([("who".to_owned(), "me".to_owned())]),
            labels: some_labels(dice),
            annotations: BTreeMap::from([("note".to_owned(), "ä\u{1}".to_owned())]),
            priority: dice.pick(&priorities).unwrap_or_default(),
            requires: lane.requires.clone(),
            retry: RetryPolicy { max_attempts, backoff_ms: 500, max_backoff_ms: 4000, jitter },
            whole_retry: (max_attempts == 3)
                .then(|| RetryPolicy { max_attempts: 2, ..RetryPolicy::default() }),
            non_retryable: Vec::new(),
            max_turns: max_attempts,
            session_key: None,
            idempotency_key: dice.one_in(6).then(|| dice.word(&TASK_KEYS)),
            deadline,
            trace: dice.one_in(4).then(|| TraceContext::read(TRACE, Some("vendor=1")).ok()).flatten(),
        }
    }

    pub(super) async fn send_input(&mut self) -> Result<Option<Bundle>, String> {
        let Some(view) = self.view().await? else { return Ok(None) };
        let id = new_id!(self, InputId);
        let text = self.dice.word(&["go on", "", "stop\tthat"]);
        Ok(accept_input(&view, id, &text, self.now).ok())
    }

    pub(super) async fn resolve(&mut self) -> Result<Option<Bundle>, String> {
        let Some(view) = self.view_in(ostler_kernel::RunTag::Waiting).await? else { return Ok(None) };
        let answer = self.dice.word(&["yes", "no"]);
        Ok(wake::resolve(&view, &answer, self.now).ok())
    }

    /// Cancels a run, or lets its time run out.
    pub(super) async fn stop(&mut self) -> Result<Option<Bundle>, String> {
        let Some(view) = self.view().await? else { return Ok(None) };
        let stopped = match self.dice.one_in(4) {
            true => cancel::expire(&view, self.now),
            false => cancel::cancel(&view, "not wanted", self.now),
        };
        Ok(stopped.ok())
    }

    pub(super) fn archive(&mut self) -> Option<Bundle> {
        let task = self.dice.pick(&self.known.tasks)?;
        Some(Bundle::new(Command::Archive).write(Write::Archive { task, at: self.now }))
    }

    /// One that ended, or seemed to. A session that others were in stays.
    pub(super) async fn forget(&mut self) -> Result<Option<Bundle>, String> {
        let Some(mut view) = self.view().await? else { return Ok(None) };
        if view.session.key.is_some() || view.session.runs > 1 || !view.task.past.is_empty() {
            view.task.request.session_key = Some("shared".to_owned());
        }
        if self.dice.one_in(8) {
            view.task.ended_at = Some(self.now);
        }
        // Histories put others into sessions without a key, which only ever serve one task.
        let alone = Expect::Session { id: view.session.id, version: view.session.version };
        Ok(forget(&view.task, self.now).map(|bundle| bundle.expect(alone)))
    }

    pub(super) async fn put_resource(&mut self) -> Result<Bundle, String> {
        let (key, version) = self.some_resource().await?;
        let stored = StoredResource {
            key,
            version: version + 1,
            generation: 1 + self.dice.below(2),
            created_at: self.now,
            document: json!({
                "metadata": {"labels": some_labels(&mut self.dice)},
                "spec": {"z": self.dice.below(1000), "a": [null, -1, "é\u{0}"]},
            }),
        };
        if self.dice.one_in(4) {
            return Ok(resource::put(stored, (version > 0).then_some(version)));
        }
        let former = StoredResource { version, ..stored.clone() };
        let change = if version > 0 { Change::Updated } else { Change::Created };
        Ok(resource::put_and_tell(stored, Some(&former).filter(|_| version > 0), change, self.now))
    }

    pub(super) async fn delete_resource(&mut self) -> Result<Bundle, String> {
        let (key, version) = self.some_resource().await?;
        match self.dice.below(6) {
            0 => Ok(resource::delete(key, None)),
            1 => Ok(resource::delete(key, Some(version))),
            2 => Ok(resource::forget_log(resource::log_of(&key, version))),
            3 => {
                let former = self.bare_resource(key.clone(), version);
                let renamed = ResourceKey { name: self.dice.word(&TASK_NAMES), ..key };
                Ok(resource::rename_and_tell(self.bare_resource(renamed, 1), &former, self.now))
            }
            _ => Ok(resource::delete_and_tell(&self.bare_resource(key, version), self.now)),
        }
    }

    fn bare_resource(&self, key: ResourceKey, version: u64) -> StoredResource {
        StoredResource { key, version, generation: 1, created_at: self.now, document: json!({"spec": {}}) }
    }

    /// The key and version of a resource; now and then a version that it hasn't.
    async fn some_resource(&mut self) -> Result<(ResourceKey, u64), String> {
        let (kind, namespace) = (self.dice.word(&KINDS), self.dice.word(&NAMESPACES));
        let key = ResourceKey { kind, namespace, name: self.dice.word(&TASK_NAMES) };
        let version = match self.ask(Query::Resource(key.clone())).await? {
            Answer::Resource(Some(stored)) => stored.version,
            _ => 0,
        };
        let wrong = self.dice.one_in(6);
        Ok((key, if wrong { version.abs_diff(1) } else { version }))
    }

    pub(super) fn put_blob(&mut self) -> Bundle {
        let length = self.dice.below(40) as usize;
        let (id, bundle) = Bundle::blob(vec![self.dice.below(3) as u8; length], self.now);
        self.known.blobs.push(id);
        bundle
    }

    /// As of now, or of some time ago.
    pub(super) fn forget_blob(&mut self) -> Option<Bundle> {
        let id = self.dice.pick(&self.known.blobs)?;
        let put_by = self.now.before(Duration::from_millis(self.dice.below(5000)));
        Some(Bundle::forget_blob(id, put_by))
    }

    /// A worker starts again; now and then it doesn't know that it did before.
    pub(super) async fn register(&mut self) -> Result<Bundle, String> {
        let name = self.worker_name();
        let former = self.worker_row(&name).await?.filter(|_| !self.dice.one_in(6));
        self.claims.remove(&name);
        let region = self.dice.word(&["eu", "us"]);
        let offer = Offer { region, ..Offer::of_slots(self.dice.below(4) as u32) };
        // No incarnation is given twice, also if the worker was forgotten meanwhile.
        self.known.registered += 1;
        let (instance, highest) = (self.dice.roll(), self.known.registered);
        Ok(match &former {
            Some(former) => worker::register(&name, instance, offer, Some(former), self.now).1,
            None => worker::register_behind(&name, instance, offer, highest, self.now).1,
        })
    }

    /// A worker is forgotten, if it has nothing to do.
    pub(super) async fn forget_worker(&mut self) -> Result<Option<Bundle>, String> {
        let name = self.worker_name();
        let leased = self.ask(Query::Leased { worker: Some(name.clone()) }).await?;
        if !matches!(leased, Answer::Runs(runs) if runs.is_empty()) {
            return Ok(None);
        }
        let Some(mut worker) = self.worker_row(&name).await? else { return Ok(None) };
        if self.dice.one_in(4) {
            worker.counter += 1;
        }
        self.claims.remove(&name);
        Ok(Some(worker::forget(&worker)))
    }

    /// A conversation is forgotten; now and then one that someone goes on with.
    pub(super) async fn forget_session(&mut self) -> Result<Option<Bundle>, String> {
        let Some(mut session) = self.old_session().await? else { return Ok(None) };
        if self.dice.one_in(4) {
            session.version = session.version.saturating_sub(1);
        }
        Ok(session::forget(&session))
    }

    /// Someone decides about a worker.
    pub(super) async fn stand(&mut self) -> Result<Bundle, String> {
        let name = self.worker_name();
        let Some(row) = self.worker_row(&name).await? else { return self.renew().await };
        let standings = [Standing::Open, Standing::Open, Standing::Cordoned, Standing::Draining];
        let standing = self.dice.pick(&standings).unwrap_or_default();
        Ok(worker::stand(&row, standing))
    }

    /// Someone decides about a class.
    pub(super) fn limit(&mut self) -> Bundle {
        let (namespace, class) = (self.dice.word(&NAMESPACES), self.dice.word(&CLASSES));
        queue::limit(&namespace, &class, self.dice.pick(&LIMITS).flatten())
    }

    pub(super) async fn renew(&mut self) -> Result<Bundle, String> {
        let name = self.worker_name();
        let row = self.worker_row(&name).await?;
        let (incarnation, counter) = row.map_or((0, 0), |row| (row.incarnation, row.counter));
        let former = self.dice.one_in(6);
        Ok(worker::renew(
            &name,
            incarnation.saturating_sub(u64::from(former)),
            counter + 1 - self.dice.below(2),
        ))
    }

    pub(super) fn worker_name(&mut self) -> String {
        self.dice.word(&WORKERS)
    }

    pub(super) async fn worker_row(&self, name: &str) -> Result<Option<Worker>, String> {
        match self.ask(Query::Workers).await? {
            Answer::Workers(workers) => Ok(workers.into_iter().find(|worker| worker.name == name)),
            _ => Ok(None),
        }
    }
}
