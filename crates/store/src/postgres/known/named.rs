//! Which rows a batch looks at or writes.

use std::collections::BTreeSet;

use ostler_kernel::{Bundle, Expect, RunId, SessionId, TaskId, Write, resource::ResourceKey};

#[derive(Default)]
pub struct Named {
    pub runs: BTreeSet<RunId>,
    pub sessions: BTreeSet<SessionId>,
    pub tasks: BTreeSet<TaskId>,
    pub names: BTreeSet<(String, String)>,
    pub keys: BTreeSet<(String, String)>,
    pub session_keys: BTreeSet<(String, String, String)>,
    pub workers: BTreeSet<String>,
    pub resources: BTreeSet<ResourceKey>,
    /// Those that are expected not to be there.
    pub absent: BTreeSet<ResourceKey>,
    pub entries: BTreeSet<SessionId>,
    pub steps: BTreeSet<RunId>,
    pub events: BTreeSet<TaskId>,
}

impl Named {
    pub fn in_bundle(&mut self, bundle: &Bundle) {
        self.runs.extend(bundle.key.map(|key| key.run));
        bundle.expect.iter().for_each(|expect| self.in_expect(expect));
        bundle.writes.iter().for_each(|write| self.in_write(write));
    }

    fn in_expect(&mut self, expect: &Expect) {
        match expect {
            Expect::Run { id, .. } => self.runs.extend([*id]),
            Expect::Ended { run } => self.runs.extend([*run]),
            Expect::Session { id, .. } => self.sessions.extend([*id]),
            Expect::Inputs { task, .. } => self.tasks.extend([*task]),
            Expect::TaskName { namespace, name } => self.names.extend([(namespace.clone(), name.clone())]),
            Expect::TaskKey { namespace, key } => self.keys.extend([(namespace.clone(), key.clone())]),
            Expect::SessionKey { namespace, subject, key } => {
                self.session_keys.insert((namespace.clone(), subject.clone(), key.clone()));
            }
            Expect::Worker { name, .. } => self.workers.extend([name.clone()]),
            Expect::Counter { worker, .. } => self.workers.extend([worker.clone()]),
            Expect::Resource { key, version } => {
                self.resources.insert(key.clone());
                if *version == 0 {
                    self.absent.insert(key.clone());
                }
            }
        }
    }

    pub fn in_write(&mut self, write: &Write) {
        match write {
            Write::Task(task) => self.tasks.extend([task.id]),
            Write::Run(run) | Write::RunProgress(run) => self.runs.extend([run.id]),
            Write::Session(session) => self.sessions.extend([session.id]),
            Write::Step(step) => self.steps.extend([step.id.run]),
            Write::Entry { session, .. } => self.entries.extend([*session]),
            Write::Event { task, .. } => {
                self.tasks.insert(*task);
                self.events.insert(*task);
            }
            Write::Input(input) => self.tasks.extend([input.task]),
            Write::Consume { task, .. } | Write::Archive { task, .. } => self.tasks.extend([*task]),
            Write::Forget(forgotten) => {
                self.tasks.insert(forgotten.task);
                self.sessions.extend(&forgotten.sessions);
            }
            Write::ForgetSession { id, .. } => self.sessions.extend([*id]),
            Write::ForgetWorker { worker } => self.workers.extend([worker.clone()]),
            Write::Worker(worker) => self.workers.extend([worker.name.clone()]),
            Write::Renewal { worker, .. } | Write::Standing { worker, .. } => {
                self.workers.extend([worker.clone()])
            }
            Write::Resource(resource) => self.resources.extend([resource.key.clone()]),
            Write::DeleteResource(key) => self.resources.extend([key.clone()]),
            Write::NewTask(_)
            | Write::NewRun(_)
            | Write::Limit { .. }
            | Write::Blocker(_)
            | Write::Blob { .. }
            | Write::ForgetBlob { .. } => {}
        }
    }
}
