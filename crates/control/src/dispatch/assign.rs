//! What a worker needs to go on with a run: its plan, what the model sees, and the steps that are open. What it can't be
//! given, and what is too much for one answer, does not stay in its hands.

use ostler_kernel::{
    Block, BlockerId, Entry, Failure, Lease, Role, Run, RunId, Session, Step, StepId, StepKind,
    bundle::WriteKey,
    conversation::{Context, Range},
    message::Message,
    run::{
        RunView,
        end::Leave,
        journal::Progress,
        take_over::{Cause, hold_back},
    },
};
use ostler_link::{Assignment, Caller, LARGEST_MESSAGE, LeaveRequest, LinkError};
use ostler_store::{Claimed, StoreExt};

use super::{
    portions::{PORTION, n_bytes},
    unavailable,
};
use crate::{Control, ControlError};

/// What stands around an assignment in the message that carries it, amply.
const ENVELOPE: usize = 4 << 10;

/// Why nobody can be given a run as it stands.
enum Unfit {
    /// Its plan is not there, or was written by a newer server.
    Plan(String),
    /// Of so many bytes.
    TooLarge(usize),
}

impl Control {
    /// Hands out what was claimed, up to a portion. The rest is given back at once: this worker, which will ask again,
    /// or another one that has room gets it from its old place. A run that nobody can be given is put aside, and keeps
    /// the others from nothing.
    pub(super) async fn assignments(
        &self,
        lease: &Lease,
        claimed: Vec<Claimed>,
    ) -> Result<Vec<Assignment>, LinkError> {
        let mut assignments = Vec::with_capacity(claimed.len());
        let (mut size, mut left_over) = (0, Vec::new());
        for claimed in claimed {
            if size >= PORTION {
                left_over.extend((!is_at_work(&claimed.run)).then_some(claimed.run.id));
                continue;
            }
            let (id, is_at_work) = (claimed.run.id, is_at_work(&claimed.run));
            let (view, assignment) = match self.assignment(claimed).await? {
                Ok(found) => found,
                Err(unfit) if !is_at_work => {
                    self.put_aside(lease, id, unfit).await?;
                    continue;
                }
                Err(_) => continue,
            };
            let bytes = n_bytes(&assignment);
            if bytes + ENVELOPE > LARGEST_MESSAGE && !is_at_work {
                self.put_aside(lease, id, Unfit::TooLarge(bytes)).await?;
                continue;
            }
            size += bytes;
            if size > PORTION && !assignments.is_empty() && !is_at_work {
                left_over.push(id);
                continue;
            }
            if self.leases.put(view) {
                self.meter.assigned(&assignment.run);
            }
            assignments.push(assignment);
        }
        self.portions.handed_out(lease, assignments.len(), !left_over.is_empty());
        self.take_all(left_over.into_iter().map(|run| (run, lease)), Cause::Untold).await?;
        Ok(assignments)
    }

    async fn assignment(&self, claimed: Claimed) -> Result<Result<(RunView, Assignment), Unfit>, LinkError> {
        let plan = match self.stored_plan(claimed.run.plan).await {
            Ok(plan) => plan,
            Err(ControlError::Store(error)) => return Err(unavailable(error)),
            Err(error) => return Ok(Err(Unfit::Plan(error.to_string()))),
        };
        let (view, context) = match fresh(&claimed) {
            Some((step, context)) => (begun(claimed, step), context),
            None => self.resumed(claimed).await?,
        };
        let assignment = Assignment {
            trace: view.task.request.trace.clone(),
            run: view.run.clone(),
            plan: (*plan).clone(),
            context,
            open_steps: view.open_steps.clone(),
            consumed_input: view.consumed_input,
            has_inputs: view.last_input > view.consumed_input,
        };
        Ok(Ok((view, assignment)))
    }

    /// Takes a run that its worker has not been told of out of the queue: whoever claims it next could not be given it
    /// either. What brought others in between finds it as it is then.
    async fn put_aside(&self, lease: &Lease, run: RunId, unfit: Unfit) -> Result<(), LinkError> {
        let view = self.store.run_view(run).await.map_err(unavailable)?;
        let Some(view) = view.filter(|view| view.run.lease() == Some(lease)) else { return Ok(()) };
        match unfit {
            Unfit::Plan(why) => {
                tracing::error!(%run, why, "a run can't be handed out, and is quarantined");
                let quarantine = BlockerId::new(&*self.runtime);
                let why = format!("its agent's plan can't be used: {why}");
                if let Ok(bundle) = hold_back(&view, &why, quarantine, self.runtime.now()) {
                    // Refused, it is no longer that worker's.
                    drop(self.commit(bundle).await.map_err(unavailable)?);
                }
                Ok(())
            }
            Unfit::TooLarge(bytes) => self.fail(lease, &view.run, too_large(bytes)).await,
        }
    }

    /// In the place of its worker.
    async fn fail(&self, lease: &Lease, run: &Run, failure: Failure) -> Result<(), LinkError> {
        tracing::warn!(run = %run.id, %failure, "a run can't be handed out");
        let request = LeaveRequest {
            caller: Caller { worker: lease.worker.clone(), incarnation: lease.incarnation },
            key: WriteKey { run: run.id, epoch: run.epoch, number: run.journal + 1 },
            progress: Progress::default(),
            leave: Leave::Failed { failure },
        };
        match self.leave(request).await {
            // Someone was quicker: it was cancelled, say.
            Err(LinkError::Fenced { .. }) => Ok(()),
            answer => answer,
        }
    }

    async fn resumed(&self, claimed: Claimed) -> Result<(RunView, Vec<Entry>), LinkError> {
        let id = claimed.run.id;
        let view = self.store.run_view(id).await.map_err(unavailable)?;
        let view = view.ok_or_else(|| LinkError::Unavailable { message: format!("{id} is not there") })?;
        let context = self.context(&view.session).await?;
        Ok((*view, context))
    }

    /// Reads what the context shows, and no more.
    async fn context(&self, session: &Session) -> Result<Vec<Entry>, LinkError> {
        let Context { ranges, .. } = &session.context;
        let mut entries = Vec::new();
        for range in ranges {
            match range {
                Range::Entries { from, to } => {
                    let read = self.store.entries(session.id, *from, *to).await.map_err(unavailable)?;
                    entries.extend(read.into_iter().map(|(_, entry)| entry));
                }
                Range::Summary { text, .. } => entries.extend(summary(&entries, text)),
            }
        }
        Ok(entries)
    }
}

fn too_large(bytes: usize) -> Failure {
    let (has, most) = (bytes.div_ceil(1 << 20), LARGEST_MESSAGE >> 20);
    Failure::limit(
        "run_too_large",
        format!("its conversation and its plan are {has} MiB, and a worker can be sent {most} MiB"),
    )
}

/// Its worker has written under this lease, so it knows of the run: the claim is an old one that comes again.
fn is_at_work(run: &Run) -> bool {
    run.last_write.is_some_and(|(epoch, _)| epoch == run.epoch)
}

/// A summary is told as something the user said; whose run it belongs to doesn't matter to anybody.
fn summary(entries: &[Entry], text: &str) -> Option<Entry> {
    let run = entries.last()?.run;
    Some(Entry { role: Role::User, blocks: vec![Block::Text { text: text.to_owned() }], run, step: None })
}

/// A first attempt in a new session that nobody else waits in, at its very beginning (a claim that is sent again
/// may come later): the claim itself wrote all there is.
fn fresh(claimed: &Claimed) -> Option<(Step, Vec<Entry>)> {
    let Claimed { task, run, session } = claimed;
    if run.attempt != 1 || run.journal != 0 || session.next_entry != 0 || session.runs != run.order + 1 {
        return None;
    }
    // Given a second time, it comes without what has entered the conversation.
    if run.message.as_ref().is_some_and(|message| message.content.is_empty()) {
        return None;
    }
    let kind = StepKind::model(&run.model);
    // The first run began when its task did; what follows in a system is taken as soon as it is there.
    let began = task.started_at.filter(|_| task.past.is_empty()).unwrap_or(run.created_at);
    let step = Step::open(StepId { run: run.id, index: 0 }, kind, run.attempt, began);
    Some((step, vec![run.opening(task)]))
}

fn begun(claimed: Claimed, step: Step) -> RunView {
    let Claimed { task, mut run, session } = claimed;
    run.message = run.message.map(Message::begun);
    // An input may have come before; then the leaving worker is told, and takes it.
    RunView {
        task,
        run,
        session,
        open_steps: vec![step],
        blocker: None,
        next: None,
        last_input: 0,
        consumed_input: 0,
    }
}
