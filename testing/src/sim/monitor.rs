//! Watches every commit and every effect, and says which promise was broken. It keeps its own picture of
//! what is on disk, made only from the rows that were written, and so notices what no row may do.

mod sessions;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ostler_kernel::{
    BlockerId, Bundle, Command, Event, EventBody, Run, RunId, RunTag, Step, StepId, StepOutcome, TaskId,
    Write,
    run::{
        AttemptEnd,
        blocker::{Blocker, BlockerState},
    },
    step::StepState,
};
use ostler_store::Claimed;

use self::sessions::Sessions;

pub struct Monitor {
    lease: Duration,
    runs: BTreeMap<RunId, Run>,
    sessions: Sessions,
    /// Whether it was answered, or is void.
    blockers: BTreeMap<BlockerId, bool>,
    open_steps: BTreeSet<StepId>,
    closed_steps: BTreeSet<StepId>,
    /// Steps whose effect is done and journaled.
    finished: BTreeSet<String>,
    finished_in_log: BTreeSet<StepId>,
    log: BTreeMap<TaskId, (u64, bool)>,
    /// The last input of each task, and the last that was consumed.
    inputs: BTreeMap<TaskId, (u64, u64)>,
    position: u64,
    workers: BTreeMap<String, Alive>,
    effects: BTreeMap<String, Effect>,
    violations: Vec<String>,
}

/// A worker's present incarnation, and when its counter last moved.
struct Alive {
    incarnation: u64,
    counter: u64,
    seen_at: Duration,
}

struct Effect {
    calls: u32,
    repeatable: bool,
}

impl Monitor {
    pub fn new(lease: Duration) -> Self {
        Self {
            lease,
            runs: BTreeMap::new(),
            sessions: Sessions::default(),
            blockers: BTreeMap::new(),
            open_steps: BTreeSet::new(),
            closed_steps: BTreeSet::new(),
            finished: BTreeSet::new(),
            finished_in_log: BTreeSet::new(),
            log: BTreeMap::new(),
            inputs: BTreeMap::new(),
            position: 0,
            workers: BTreeMap::new(),
            effects: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    pub fn violate(&mut self, what: String) {
        self.violations.push(what);
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// A bundle was applied.
    pub fn committed(&mut self, bundle: &Bundle, now: Duration) {
        if bundle.writes.iter().any(|write| matches!(write, Write::Consume { .. })) && !ends_a_step(bundle) {
            self.violate("promise 4: an input was consumed without the step that used it".into());
        }
        if let Some(key) = bundle.key {
            self.check_holder(bundle.command, key);
        }
        for write in &bundle.writes {
            match write {
                Write::NewRun(run) | Write::Run(run) | Write::RunProgress(run) => {
                    self.run_written(bundle.command, run);
                }
                Write::Step(step) => self.step_written(step),
                Write::Session(session) => {
                    let problem = self.sessions.written(session);
                    self.violations.extend(problem);
                }
                Write::Blocker(blocker) => self.blocker_written(blocker),
                Write::Input(input) => self.inputs.entry(input.task).or_default().0 = input.number,
                Write::Consume { task, upto, .. } => self.inputs.entry(*task).or_default().1 = *upto,
                Write::Worker(worker) => self.registered(&worker.name, worker.incarnation, now),
                Write::Event { body: EventBody::AttemptEnded { run, end: AttemptEnd::Lost, .. }, .. } => {
                    self.check_was_silent(*run, now);
                }
                _ => {}
            }
        }
        for write in &bundle.writes {
            if let Write::NewRun(run) | Write::Run(run) = write {
                self.check_settled(run);
                self.check_alone(run);
                self.check_inputs_taken(bundle.command, run);
            }
        }
    }

    pub fn claimed(&mut self, claimed: &Claimed) {
        if let Some(before) = self.runs.get(&claimed.run.id) {
            // Asked again: the same answer, nothing new.
            if before.epoch == claimed.run.epoch {
                return;
            }
            if before.rank().is_none() {
                let (id, state) = (before.id, before.tag());
                self.violate(format!("promise 3: {id} was claimed while it was {state:?} and not ready"));
            }
        }
        if claimed.run.attempt == 1 {
            self.open_steps.insert(StepId { run: claimed.run.id, index: 0 });
        }
        self.run_written(Command::Accept, &claimed.run);
        self.check_settled(&claimed.run);
    }

    /// Only the lease holder writes.
    fn check_holder(&mut self, command: Command, key: ostler_kernel::bundle::WriteKey) {
        let holds = self.runs.get(&key.run).is_some_and(|run| {
            run.tag() == RunTag::Running && run.epoch == key.epoch && run.journal + 1 == key.number
        });
        if !holds {
            self.violate(format!(
                "promise 3: {command:?} was written by someone who didn't hold {}",
                key.run
            ));
        }
    }

    fn run_written(&mut self, command: Command, run: &Run) {
        if let Some(before) = self.runs.get(&run.id) {
            let changed_hands = before.tag() == RunTag::Running && before.lease() != run.lease();
            let problem = if before.is_terminal() {
                Some(format!("{} had ended as {:?} and became {:?}", run.id, before.tag(), run.tag()))
            } else if run.epoch < before.epoch || (changed_hands && run.epoch == before.epoch) {
                Some(format!("{} changed hands and its epoch did not rise", run.id))
            } else if has_forgotten(run, before) {
                Some(format!("{} forgot what it had done", run.id))
            } else if matches!(command, Command::TakeOver | Command::Yield | Command::Wake)
                && run.failures != before.failures
            {
                Some(format!("promise 5: {command:?} used the retry budget of {}", run.id))
            } else {
                None
            };
            self.violations.extend(problem);
        }
        self.sessions.run_written(run);
        self.runs.insert(run.id, run.clone());
    }

    /// What must be true of a run and its session once the whole bundle is written.
    fn check_settled(&mut self, run: &Run) {
        let problem = self.sessions.problem(run.session, &self.runs);
        self.violations.extend(problem);
        let steps = StepId { run: run.id, index: 0 }..=StepId { run: run.id, index: u32::MAX };
        if run.is_terminal()
            && let Some(step) = self.open_steps.range(steps).next()
        {
            self.violations.push(format!("{} ended as {:?} and left {step} open", run.id, run.tag()));
        }
    }

    /// A task has one run that has not ended, and its agents follow each other as they were declared.
    fn check_alone(&mut self, run: &Run) {
        let others = self.runs.values().filter(|other| other.task == run.task && other.id != run.id);
        let (live, ended): (Vec<&Run>, Vec<&Run>) = others.partition(|other| !other.is_terminal());
        let hop = |run: &Run| run.message.as_ref().map_or(1, |message| message.hop as usize);
        let problem = if !run.is_terminal() && !live.is_empty() {
            Some(format!("{} has two runs that have not ended", run.task))
        } else if !run.is_terminal() && hop(run) != ended.len() + 1 {
            Some(format!("promise 2: {} is hop {} of {}, behind {}", run.id, hop(run), run.task, ended.len()))
        } else {
            None
        };
        self.violations.extend(problem);
    }

    /// A worker doesn't leave a run to wait, to sleep or as done while there is something it was told.
    fn check_inputs_taken(&mut self, command: Command, run: &Run) {
        let left = match run.tag() {
            RunTag::Waiting | RunTag::Sleeping => command == Command::Yield,
            RunTag::Ok => true,
            RunTag::Queued | RunTag::Running | RunTag::Error | RunTag::Timeout | RunTag::Cancelled => false,
        };
        let (last, consumed) = self.inputs.get(&run.task).copied().unwrap_or_default();
        if left && consumed < last {
            let (id, tag) = (run.id, run.tag());
            self.violate(format!("promise 4: {id} was left as {tag:?}, and input {last} was not taken"));
        }
    }

    fn blocker_written(&mut self, blocker: &Blocker) {
        let closed = !matches!(blocker.state, BlockerState::Open);
        let before = self.blockers.insert(blocker.id, closed);
        // Opened by the one that begins to wait; then answered, or void because its run ended: once.
        if before != closed.then_some(false) {
            let id = blocker.id;
            self.violate(format!("{id} was {} twice", if closed { "closed" } else { "opened" }));
        }
    }

    fn step_written(&mut self, step: &Step) {
        let (id, open) = (step.id, step.is_open());
        let fine = if open {
            self.open_steps.insert(id) && !self.closed_steps.contains(&id)
        } else {
            self.open_steps.remove(&id) && self.closed_steps.insert(id)
        };
        if !fine {
            self.violate(format!("promise 2: {id} was {} twice", if open { "opened" } else { "finished" }));
        }
        // One that was interrupted may still be under way: it ended without being done.
        if !matches!(step.state, StepState::Open | StepState::Done { outcome: StepOutcome::Interrupted, .. })
        {
            self.finished.insert(id.to_string());
        }
    }

    fn registered(&mut self, name: &str, incarnation: u64, now: Duration) {
        let worker = Alive { incarnation, counter: 0, seen_at: now };
        let former = self.workers.insert(name.to_owned(), worker);
        if former.is_some_and(|former| former.incarnation >= incarnation) {
            self.violate(format!("incarnation {incarnation} of worker {name} was given twice"));
        }
    }

    /// A renewal of this incarnation counted.
    pub fn renewed(&mut self, name: &str, incarnation: u64, counter: u64, now: Duration) {
        let Some(worker) = self.workers.get_mut(name) else { return };
        if incarnation == worker.incarnation {
            // The same counter again is a message that was repeated, not a sign of life.
            if counter > worker.counter {
                (worker.counter, worker.seen_at) = (counter, now);
            }
        } else {
            let present = worker.incarnation;
            self.violate(format!(
                "promise 3: incarnation {incarnation} of {name} was renewed, {present} is present"
            ));
        }
    }

    fn check_was_silent(&mut self, run: RunId, now: Duration) {
        let holder = self.runs.get(&run).and_then(Run::lease).cloned();
        let Some(holder) = holder else { return };
        let Some(worker) = self.workers.get(&holder.worker) else { return };
        let silent = now.saturating_sub(worker.seen_at);
        if worker.incarnation != holder.incarnation {
            let name = holder.worker;
            self.violate(format!("promise 5: {run} counts as lost, and {name} had started again before"));
        } else if silent < self.lease {
            self.violate(format!(
                "promise 3: {run} was taken from {}, which was silent for only {silent:?}",
                holder.worker
            ));
        }
    }

    /// New entries of the store's log.
    pub fn logged(&mut self, event: &Event) {
        if event.position <= self.position {
            self.violate(format!("promise 7: position {} came after {}", event.position, self.position));
        }
        self.position = self.position.max(event.position);
        let (seq, ended) = self.log.get(&event.task).copied().unwrap_or((0, false));
        if event.seq != seq + 1 {
            self.violate(format!("promise 7: the log of {} goes from {seq} to {}", event.task, event.seq));
        }
        if ended {
            self.violate(format!("the log of {} goes on behind its end", event.task));
        }
        self.log.insert(event.task, (event.seq, event.body.is_last()));
        if let EventBody::StepFinished(step) = &event.body {
            let id = StepId { run: step.run, index: step.step };
            if !self.finished_in_log.insert(id) {
                self.violate(format!("promise 7: the log says twice that {id} finished"));
            }
        }
    }

    /// A model or a tool is called.
    pub fn effect_began(&mut self, step: &str, repeatable: bool) {
        let done = self.finished.contains(step);
        let effect = self.effects.entry(step.to_owned()).or_insert(Effect { calls: 0, repeatable });
        effect.calls += 1;
        let twice = effect.calls > 1 && !effect.repeatable;
        if done {
            self.violate(format!("promise 2: {step} was finished, and was done again"));
        }
        if twice {
            self.violate(format!("promise 2: {step} is not idempotent, and was called twice"));
        }
    }
}

/// What of a run only ever grows.
fn has_forgotten(run: &Run, before: &Run) -> bool {
    run.journal < before.journal
        || run.attempt < before.attempt
        || run.next_step < before.next_step
        || run.next_entry < before.next_entry
}

fn ends_a_step(bundle: &Bundle) -> bool {
    bundle.writes.iter().any(|write| matches!(write, Write::Step(step) if !step.is_open()))
}
