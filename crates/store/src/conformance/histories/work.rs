//! What workers do to runs, and what is done to the runs of workers.

use std::time::Duration;

use ostler_kernel::{
    Block, BlockerId, Bundle, Entry, ErrorClass, Failure, Role, RunId, RunTag, Step, StepKind, StepOutcome,
    Usage,
    bundle::WriteKey,
    conversation::ToolCallRef,
    run::{
        RunView,
        blocker::BlockerKind,
        cancel,
        end::{self, Leave},
        hand_on::{self, Next},
        journal::{self, Progress, StepDone},
        take_over::{self, Cause},
        wake,
    },
    step::{Fallback, StepState},
};
use serde_json::json;

use super::{History, people::new_id};
use crate::{Answer, DuePlace, Query};

impl History<'_> {
    pub(super) async fn journal(&mut self) -> Result<Option<Bundle>, String> {
        let Some(view) = self.view_in(RunTag::Running).await? else { return Ok(None) };
        let (key, progress) = (self.write_key(&view), self.progress(&view).await?);
        Ok(Some(journal::journal(&view.run, key, &progress, self.now)))
    }

    pub(super) async fn leave(&mut self) -> Result<Option<Bundle>, String> {
        let Some(view) = self.view_in(RunTag::Running).await? else { return Ok(None) };
        let (key, mut progress) = (self.write_key(&view), self.progress(&view).await?);
        if self.dice.one_in(2) && view.last_input > 0 {
            progress.consumed = Some(view.last_input);
        }
        let leave = self.way_to_leave();
        if let (Leave::Ok { output }, true) = (&leave, view.next_stage().is_some()) {
            let next = self.next(&view).await?;
            return Ok(hand_on::hand_on(&view, key, &progress, output, next, self.now));
        }
        Ok(Some(end::leave(&view, key, &progress, leave, self.now, self.dice.roll())))
    }

    /// Where the next agent of a system works: in a conversation of its own, or one that is there already.
    async fn next(&mut self, view: &RunView) -> Result<Next, String> {
        let old = match self.dice.below(3) {
            0 => self.old_session().await?,
            _ => None,
        };
        let old = old.filter(|old| old.id != view.session.id && old.namespace == view.task.namespace);
        let session = old.unwrap_or_else(|| {
            let mut session = self.new_session();
            session.namespace.clone_from(&view.task.namespace);
            session
        });
        let run = new_id!(self, RunId);
        self.known.runs.push(run);
        self.known.sessions.push(session.id);
        let stage = view.next_stage().map(|(stage, _)| stage);
        let lane = stage.ok_or("nobody comes next")?.lane.clone();
        Ok(Next { run, session, lane })
    }

    /// The key of the next write; now and then one of a former or a later holder, of a write that was made
    /// before, or of one that comes too early.
    fn write_key(&mut self, view: &RunView) -> WriteKey {
        let (mut epoch, mut number) = (view.run.epoch, view.run.journal + 1);
        match self.dice.below(30) {
            0 => epoch -= 1,
            1 => epoch += 1,
            2 => number = view.run.journal.max(1),
            3 => number = 1 + self.dice.below(number),
            4 => number += 1 + self.dice.below(2),
            _ => {}
        }
        WriteKey { run: view.run.id, epoch, number }
    }

    async fn progress(&mut self, view: &RunView) -> Result<Progress, String> {
        let mut done = Vec::new();
        for step in &view.open_steps {
            if !self.dice.one_in(3) {
                done.push(self.finished(step.clone()));
            }
        }
        if self.dice.one_in(30) {
            done.extend(self.step_not_open(view).await?);
        }
        let (n_entries, n_open) = (self.dice.below(3), self.dice.below(3));
        Ok(Progress {
            done,
            entries: (0..n_entries).map(|_| self.entry(view)).collect(),
            open: (0..n_open).map(|_| self.step_kind()).collect(),
            consumed: self.consumed(view),
            worked_ms: self.dice.below(500),
        })
    }

    /// How many inputs it took; now and then more than there are, or fewer than were taken.
    fn consumed(&mut self, view: &RunView) -> Option<u64> {
        let (last, taken) = (view.last_input, view.consumed_input);
        let untaken = last.saturating_sub(taken);
        match self.dice.below(20) {
            0 => Some(last + 1 + self.dice.below(2)),
            1 if taken > 0 => Some(self.dice.below(taken)),
            _ if untaken > 0 && self.dice.one_in(2) => Some(taken + 1 + self.dice.below(untaken)),
            _ => None,
        }
    }

    /// A step that can't be done any more, because it is.
    async fn step_not_open(&mut self, view: &RunView) -> Result<Option<StepDone>, String> {
        let Answer::Steps(mut steps) = self.ask(Query::Steps(view.run.id)).await? else { return Ok(None) };
        steps.retain(|step| !step.is_open());
        Ok(self.dice.pick(&steps).map(|step| self.finished(step)))
    }

    fn finished(&mut self, step: Step) -> StepDone {
        let outcome = match self.dice.below(4) {
            0 => StepOutcome::Failed { failure: self.failure() },
            _ => StepOutcome::Ok,
        };
        let usage = Usage {
            input_tokens: self.dice.below(99),
            output_tokens: 1,
            estimated: self.dice.one_in(2),
            ..Usage::default()
        };
        let state = StepState::Done { outcome, at: self.now, took_ms: self.dice.below(999), usage };
        let preview = self.dice.word(&["", "it said…"]);
        StepDone::new(Step { state, ..step }, preview)
    }

    fn entry(&mut self, view: &RunView) -> Entry {
        let block = match self.dice.below(3) {
            0 => Block::Text { text: self.dice.word(&["", "words", "\"quoted\" \\ \u{1}"]) },
            1 => Block::ToolCall { id: "c".into(), name: "search".into(), arguments: "{not json".into() },
            _ => Block::Native {
                vendor: "v".into(),
                value: json!({"sig": "=", "n": [1, {"b": null, "a": 2}]}),
            },
        };
        let step = self.dice.one_in(2).then(|| self.dice.below(4) as u32);
        Entry { role: Role::Assistant, blocks: vec![block], run: view.run.id, step }
    }

    fn step_kind(&mut self) -> StepKind {
        let name = self.dice.word(&["search", "fetch"]);
        match self.dice.below(5) {
            0 => StepKind::model("mock"),
            1 => StepKind::Model { model: "spare".to_owned(), fallback: Some(self.fallback()) },
            2 => StepKind::Wait,
            _ => {
                let call = ToolCallRef { id: format!("call-{}", self.dice.below(99)), name };
                StepKind::tool(call, "{}", self.dice.one_in(2))
            }
        }
    }

    fn fallback(&mut self) -> Fallback {
        let place = 1 + self.dice.below(2) as u32;
        Fallback { place, endpoint: format!("spare-{place}"), may_pass: self.dice.one_in(2) }
    }

    fn way_to_leave(&mut self) -> Leave {
        match self.dice.below(10) {
            0..3 => Leave::Ok { output: self.dice.word(&["done", "", "ø"]) },
            3..6 => Leave::Failed { failure: self.failure() },
            6 => self.wait(),
            7 | 8 => Leave::Sleep { until: self.later(18), delay_ms: None, why: None },
            _ => Leave::GiveBack,
        }
    }

    fn wait(&mut self) -> Leave {
        let blocker = new_id!(self, BlockerId);
        self.known.blockers.push(blocker);
        let kind = self.dice.pick(&[BlockerKind::Input, BlockerKind::Approval]).unwrap_or(BlockerKind::Input);
        Leave::Wait { blocker, kind, summary: "may I?".to_owned() }
    }

    fn failure(&mut self) -> Failure {
        let classes = [
            ErrorClass::Transient,
            ErrorClass::Transient,
            ErrorClass::Permanent,
            ErrorClass::Limit,
            ErrorClass::Timeout,
            ErrorClass::OutcomeUnknown,
        ];
        let class = self.dice.pick(&classes).unwrap_or(ErrorClass::Transient);
        let asked = self.dice.one_in(4).then(|| Duration::from_millis(self.dice.below(5000)));
        Failure::new(class, "broken", "it broke").with_retry_after(asked)
    }

    /// Someone whose time has come wakes or expires; now and then someone else is tried.
    pub(super) async fn wake_someone(&mut self) -> Result<Option<Bundle>, String> {
        let limit = 1 + self.dice.below(3) as usize;
        let due = Query::Due { after: DuePlace::FIRST, now: self.now, limit };
        let Answer::Runs(due) = self.ask(due).await? else { return Ok(None) };
        let view = match self.dice.pick(&due) {
            Some(run) if !self.dice.one_in(8) => self.view_of(run.id).await?,
            _ => self.view().await?,
        };
        let Some(view) = view else { return Ok(None) };
        match view.run.deadline {
            Some(deadline) if deadline <= self.now => Ok(cancel::expire(&view, self.now).ok()),
            _ => Ok(wake::wake(&view, self.now).ok()),
        }
    }

    pub(super) async fn take_over(&mut self) -> Result<Option<Bundle>, String> {
        let Some(mut view) = self.view_in(RunTag::Running).await? else { return Ok(None) };
        if self.dice.one_in(4) {
            // So many in a row would never come by chance.
            view.run.lost_in_row = take_over::QUARANTINE_AFTER - 1;
            view.run.restarted_in_row = take_over::QUARANTINE_AFTER_RESTARTS - 1;
        }
        let causes = [Cause::Silent, Cause::Restarted, Cause::Untold];
        let cause = self.dice.pick(&causes).unwrap_or(Cause::Silent);
        let quarantine = new_id!(self, BlockerId);
        self.known.blockers.push(quarantine);
        Ok(take_over::take_over(&view, cause, quarantine, self.now).ok())
    }
}
