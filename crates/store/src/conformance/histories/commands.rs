//! Which command comes next, and on what it is decided.

use ostler_kernel::{Bundle, RunId, RunTag, run::RunView};

use super::{History, MEMORY};
use crate::{Answer, Query};

impl History<'_> {
    /// Some command; none, if there was nothing to do it to.
    pub(super) async fn command(&mut self) -> Result<Option<Bundle>, String> {
        match self.dice.below(100) {
            0..18 => self.accept().await.map(Some),
            18..38 => self.journal().await,
            38..52 => self.leave().await,
            52..57 => self.stop().await,
            57..64 => self.wake_someone().await,
            64..68 => self.resolve().await,
            68..75 => self.send_input().await,
            75..80 => self.take_over().await,
            80..83 => self.register().await.map(Some),
            83 => self.stand().await.map(Some),
            84 if self.dice.one_in(3) => Ok(Some(self.limit())),
            84 => self.renew().await.map(Some),
            85 => Ok(self.archive()),
            86 if self.dice.one_in(3) => self.forget_worker().await,
            86 if self.dice.one_in(2) => self.forget_session().await,
            86 => self.forget().await,
            87..91 => self.put_resource().await.map(Some),
            91..93 => self.delete_resource().await.map(Some),
            93..95 if self.dice.one_in(4) => Ok(self.forget_blob()),
            93..95 => Ok(Some(self.put_blob())),
            _ => Ok(self.resend()),
        }
    }

    fn resend(&mut self) -> Option<Bundle> {
        let sent = self.sent.make_contiguous();
        self.dice.pick(sent)
    }

    /// A run in this state, if a few tries find one; now and then as it was some time ago.
    pub(super) async fn view_in(&mut self, state: RunTag) -> Result<Option<RunView>, String> {
        for _ in 0..5 {
            let view = self.view().await?;
            if view.as_ref().is_some_and(|view| view.run.tag() == state) {
                return Ok(view);
            }
        }
        Ok(None)
    }

    /// Some run as it is; now and then as it was some time ago.
    pub(super) async fn view(&mut self) -> Result<Option<RunView>, String> {
        if self.dice.one_in(8) {
            let views = self.views.make_contiguous();
            return Ok(self.dice.pick(views));
        }
        let latest = self.known.runs.len().saturating_sub(10);
        let from = if self.dice.one_in(5) { 0 } else { latest };
        match self.dice.pick(&self.known.runs[from..]) {
            Some(run) => self.view_of(run).await,
            None => Ok(None),
        }
    }

    pub(super) async fn view_of(&mut self, run: RunId) -> Result<Option<RunView>, String> {
        let Answer::RunView(Some(view)) = self.ask(Query::RunView(run)).await? else { return Ok(None) };
        self.views.push_back((*view).clone());
        if self.views.len() > MEMORY {
            self.views.pop_front();
        }
        Ok(Some(*view))
    }
}
