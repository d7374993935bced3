//! Queries: each a look through the rows.

use std::collections::BTreeSet;

use ostler_kernel::{
    Event, Run, RunId, RunState, Session, Step, StepId, Task, TaskId, Timestamp,
    resource::StoredResource,
    run::{RunView, blocker::Blocker},
};
use ostler_store::{
    Accepted, Answer, DuePlace, FirmLog, Query, ResourceFilter, SessionPlace, TaskFilter, TaskPage, TaskRef,
    TaskRow,
};

use super::tables::Tables;

impl Tables {
    pub fn read(&self, query: Query) -> Answer {
        match query {
            Query::Task(reference) => Answer::Task(self.task(&reference).cloned()),
            Query::Tasks(filter) => Answer::TaskPage(self.tasks(&filter)),
            Query::OldTasks { before, after, limit } => {
                let end = TaskId::from_parts(before, 0, 0);
                let old = self.tasks.range(..end).map(|(_, row)| row);
                let wanted = old.filter(|row| after.is_none_or(|after| row.task.id > after));
                Answer::Tasks(wanted.take(limit).cloned().collect())
            }
            Query::NthTask { namespace, nth } => {
                let newest_first = self.tasks.values().rev().filter(|row| row.task.namespace == namespace);
                Answer::TaskId(newest_first.map(|row| row.task.id).nth(nth))
            }
            Query::RunView(run) => Answer::RunView(self.run_view(run).map(Box::new)),
            Query::Run(run) => Answer::Run(self.runs.get(&run).cloned().map(Box::new)),
            Query::Steps(run) => Answer::Steps(self.steps_of(run)),
            Query::Session(session) => Answer::Session(self.sessions.get(&session).cloned().map(Box::new)),
            Query::SessionByKey { namespace, subject, key } => {
                Answer::Session(self.session_by_key(&namespace, &subject, &key).cloned().map(Box::new))
            }
            Query::Sessions { namespace, after, limit } => {
                let place = |session: &Session| {
                    let Session { namespace, subject, key, .. } = session.clone();
                    SessionPlace { namespace, subject, key: key.unwrap_or_default() }
                };
                let is_meant = |session: &&Session| {
                    session.key.is_some()
                        && namespace.as_ref().is_none_or(|namespace| *namespace == session.namespace)
                        && place(session) > after.clone().unwrap_or_default()
                };
                let mut found: Vec<Session> = self.sessions.values().filter(is_meant).cloned().collect();
                found.sort_by_key(place);
                found.truncate(limit);
                Answer::Sessions(found)
            }
            Query::Entries { session, from, to } => {
                let wanted = |seq: u64| seq >= from && to.is_none_or(|to| seq < to);
                let entries =
                    self.entries.iter().filter(|((owner, seq), _)| *owner == session && wanted(*seq));
                Answer::Entries(entries.map(|((_, seq), entry)| (*seq, entry.clone())).collect())
            }
            Query::Inputs { task, after } => {
                let inputs = self.inputs.values().filter(|input| input.task == task && input.number > after);
                Answer::Inputs(inputs.cloned().collect())
            }
            Query::Blocker(blocker) => Answer::Blocker(self.blockers.get(&blocker).cloned()),
            Query::Events { task, after, limit } => {
                Answer::Events(self.log(limit, |event| event.task == task && event.seq > after))
            }
            Query::Log { after, limit } => Answer::Events(self.log(limit, |event| event.position > after)),
            Query::FirmLog { after, limit } => {
                let events = self.log(limit, |event| event.position > after);
                Answer::FirmLog(FirmLog::whole(events, limit))
            }
            Query::Leased { worker } => Answer::Runs(self.leased(worker.as_deref())),
            Query::Workers => Answer::Workers(self.workers.values().cloned().collect()),
            Query::Ready { namespace, class, most } => {
                let ready = self.of_lane(&namespace, class.as_deref()).filter(|run| run.rank().is_some());
                Answer::Count(ready.count().min(most))
            }
            Query::Accepted { namespace, class, since, upto, most } => {
                let end = TaskId::from_parts(upto, u64::MAX, u64::MAX);
                let first = TaskId::from_parts(since, u64::MAX, u64::MAX);
                let lately = RunId::from_parts(since, u64::MAX, u64::MAX);
                let of_class: BTreeSet<TaskId> = self
                    .of_lane(&namespace, class.as_deref())
                    .filter(|run| run.id > lately)
                    .map(|run| run.task)
                    .collect();
                let is_meant = |row: &&TaskRow| {
                    row.task.namespace == namespace && (class.is_none() || of_class.contains(&row.task.id))
                };
                let within = |task: &TaskId| (first..=end).contains(task);
                let last = self
                    .tasks
                    .iter()
                    .rev()
                    .filter(|(task, _)| within(task))
                    .map(|(_, row)| row)
                    .filter(is_meant);
                let last: Vec<TaskId> = last.take(most).map(|row| row.task.id).collect();
                Answer::Accepted(Accepted::of(last.len(), last.last().copied()))
            }
            Query::Due { after, now, limit } => Answer::Runs(self.due(after, now, limit)),
            Query::NextDue => Answer::Time(self.runs.values().filter_map(due_at).min()),
            Query::Resource(key) => Answer::Resource(self.resources.get(&key).cloned()),
            Query::Resources(filter) => Answer::Resources(self.resources(&filter)),
            Query::Namespaces => {
                let of_tasks = self.tasks.values().map(|row| row.task.namespace.clone());
                let of_resources = self.resources.keys().map(|key| key.namespace.clone());
                let all: BTreeSet<String> = of_tasks.chain(of_resources).collect();
                Answer::Names(all.into_iter().collect())
            }
            Query::Blob(blob) => Answer::Blob(self.blobs.get(&blob).map(|(bytes, _)| bytes.clone())),
            Query::OldBlobs { put_by } => {
                let old = self.blobs.iter().filter(|(_, (_, put_at))| *put_at <= put_by);
                Answer::Blobs(old.map(|(id, _)| *id).collect())
            }
        }
    }

    fn of_lane<'a>(&'a self, namespace: &'a str, class: Option<&'a str>) -> impl Iterator<Item = &'a Run> {
        let is_meant = move |run: &&Run| {
            run.lane.namespace == namespace && class.is_none_or(|class| run.lane.class == class)
        };
        self.runs.values().filter(is_meant)
    }

    pub fn task_by_name(&self, namespace: &str, name: &str) -> Option<&TaskRow> {
        self.find_task(|task| task.namespace == namespace && task.name == name)
    }

    pub fn task_by_key(&self, namespace: &str, key: &str) -> Option<&TaskRow> {
        let has_key = |task: &Task| task.request.idempotency_key.as_deref() == Some(key);
        self.find_task(|task| task.namespace == namespace && has_key(task))
    }

    pub fn session_by_key(&self, namespace: &str, subject: &str, key: &str) -> Option<&Session> {
        self.sessions.values().find(|session| {
            session.namespace == namespace
                && session.subject == subject
                && session.key.as_deref() == Some(key)
        })
    }

    fn task(&self, reference: &TaskRef) -> Option<&TaskRow> {
        match reference {
            TaskRef::Id(id) => self.tasks.get(id),
            TaskRef::Name { namespace, name } => self.task_by_name(namespace, name),
            TaskRef::Key { namespace, key } => self.task_by_key(namespace, key),
        }
    }

    fn find_task(&self, wanted: impl Fn(&Task) -> bool) -> Option<&TaskRow> {
        self.tasks.values().find(|row| wanted(&row.task))
    }

    fn resources(&self, filter: &ResourceFilter) -> Vec<StoredResource> {
        let ResourceFilter { kind, namespace, after, labels, limit } = filter;
        let wanted = self.resources.values().filter(|resource| {
            let key = &resource.key;
            let place = (key.namespace.clone(), key.name.clone());
            key.kind == *kind
                && namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
                && after.as_ref().is_none_or(|after| place > *after)
                && labels.matches(&resource.labels())
        });
        wanted.take(*limit).cloned().collect()
    }

    fn tasks(&self, filter: &TaskFilter) -> TaskPage {
        let TaskFilter { namespace, states, archived, before, limit, .. } = filter;
        let wanted = |row: &&TaskRow| {
            namespace.as_ref().is_none_or(|namespace| *namespace == row.task.namespace)
                && (states.is_empty() || states.iter().any(|state| state == row.task.state.name()))
                && (*archived || row.archived_at.is_none())
                && before.is_none_or(|before: TaskId| row.task.id < before)
        };
        let candidates: Vec<&TaskRow> = self.tasks.values().rev().filter(wanted).collect();
        let is_bounded = filter.is_selective();
        let bound = filter.look_at.filter(|_| is_bounded).unwrap_or(usize::MAX).min(candidates.len());
        let (looked_at, beyond) = candidates.split_at(bound);
        let mut found: Vec<&TaskRow> =
            looked_at.iter().copied().filter(|row| filter.selects(&row.task.request)).collect();
        let is_full = found.len() >= *limit;
        found.truncate(*limit);
        let last = looked_at.last().map(|row| row.task.id);
        TaskPage {
            rows: found.into_iter().cloned().collect(),
            stopped_at: last.filter(|_| !is_full && !beyond.is_empty()),
        }
    }

    fn run_view(&self, run: RunId) -> Option<RunView> {
        let run = self.runs.get(&run)?;
        let row = self.tasks.get(&run.task)?;
        let behind = self
            .runs
            .values()
            .filter(|other| other.session == run.session && other.order > run.order && !other.is_terminal());
        Some(RunView {
            task: row.task.clone(),
            run: run.clone(),
            session: self.sessions.get(&run.session)?.clone(),
            open_steps: self.steps_of(run.id).into_iter().filter(Step::is_open).collect(),
            blocker: self.waited_for(run).cloned(),
            next: behind.min_by_key(|other| other.order).cloned(),
            last_input: row.last_input,
            consumed_input: row.consumed_input,
        })
    }

    fn waited_for(&self, run: &Run) -> Option<&Blocker> {
        match &run.state {
            RunState::Waiting { on } => self.blockers.get(on),
            _ => None,
        }
    }

    fn steps_of(&self, run: RunId) -> Vec<Step> {
        let all = StepId { run, index: 0 }..=StepId { run, index: u32::MAX };
        self.steps.range(all).map(|(_, step)| step.clone()).collect()
    }

    fn log(&self, limit: usize, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        self.events.iter().filter(|event| wanted(event)).take(limit).cloned().collect()
    }

    fn leased(&self, worker: Option<&str>) -> Vec<Run> {
        let under =
            |run: &&Run| run.lease().is_some_and(|lease| worker.is_none_or(|name| name == lease.worker));
        self.runs.values().filter(under).cloned().collect()
    }

    fn due(&self, after: DuePlace, now: Timestamp, limit: usize) -> Vec<Run> {
        let mut due: Vec<_> = self.runs.values().filter_map(|run| Some((due_at(run)?, run))).collect();
        due.retain(|(at, run)| *at <= now && DuePlace { at: *at, run: run.id } > after);
        due.sort_by_key(|(at, run)| (*at, run.id));
        due.into_iter().take(limit).map(|(_, run)| run.clone()).collect()
    }
}

/// When the run wakes or expires, whichever is first.
pub(super) fn due_at(run: &Run) -> Option<Timestamp> {
    let deadline = run.deadline.filter(|_| !run.is_terminal());
    [run.wake_at(), deadline].into_iter().flatten().min()
}
