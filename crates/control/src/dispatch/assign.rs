//! What a worker needs to go on with a run: its plan, what the model sees, and the steps that are open.

use ostler_kernel::{
    Block, Entry, Role, Session, Step, StepId, StepKind,
    conversation::{Context, Range},
    message::Message,
    run::RunView,
};
use ostler_link::{Assignment, LinkError};
use ostler_store::{Claimed, StoreExt};

use super::unavailable;
use crate::Control;

impl Control {
    pub(super) async fn assignments(&self, claimed: Vec<Claimed>) -> Result<Vec<Assignment>, LinkError> {
        let mut assignments = Vec::with_capacity(claimed.len());
        for claimed in claimed {
            assignments.push(self.assignment(claimed).await?);
        }
        Ok(assignments)
    }

    async fn assignment(&self, claimed: Claimed) -> Result<Assignment, LinkError> {
        let plan = self.stored_plan(claimed.run.plan).await;
        let plan = plan.map_err(|error| LinkError::Unavailable { message: error.to_string() })?;
        let (view, context) = match fresh(&claimed) {
            Some((step, context)) => (begun(claimed, step), context),
            None => self.resumed(claimed).await?,
        };
        if self.leases.put(view.clone()) {
            self.meter.assigned(&view.run);
        }
        Ok(Assignment {
            trace: view.task.request.trace.clone(),
            run: view.run,
            plan: (*plan).clone(),
            context,
            open_steps: view.open_steps,
            consumed_input: view.consumed_input,
            has_inputs: view.last_input > view.consumed_input,
        })
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
