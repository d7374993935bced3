//! A disk that fills up, fails to sync or to write, and a process that is killed, each in the middle of a commit.
//! Callers get an error or a true answer; when the trouble is over the store serves again by itself, and what is
//! sent again gets its first result.

use std::sync::Arc;

use anyhow::{Context, ensure};
use ostler_kernel::{Bundle, Write};
use ostler_store::{
    Claim, Committed, Store, StoreError, StoreExt,
    conformance::{dice::Dice, world::World},
    sqlite::Synchronous,
};

use super::{
    disk::Fault,
    story::Story,
    witness::{Recording, Witness},
};

/// How many rounds each kind of trouble struck in.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Struck {
    pub full: usize,
    pub sync: usize,
    pub write: usize,
    pub killed: usize,
    /// How many calls got an error.
    pub unanswered: usize,
    /// How often a commit that nobody knew of was there when the store had opened itself again.
    pub there_after_all: usize,
}

/// Goes through so many rounds of trouble. An error says which round ended otherwise than it must.
pub async fn record(n_rounds: usize, seed: u64) -> anyhow::Result<(Recording, Struck)> {
    let witness = Arc::new(Witness::new(Synchronous::Full)?);
    let world = World::new(witness.clone());
    let story = Story::begin(&world, seed).await;
    let mut trouble = Trouble { witness: &witness, story, dice: Dice::new(!seed), struck: Struck::default() };
    for round in 0..n_rounds {
        let fault = trouble.any_fault(round);
        trouble.round(fault).await.with_context(|| format!("round {round} of seed {seed}, {fault:?}"))?;
    }
    let struck = trouble.struck;
    Ok((witness.finish(), struck))
}

struct Trouble<'w> {
    witness: &'w Witness,
    story: Story<'w>,
    dice: Dice,
    struck: Struck,
}

/// What is asked of the store while the disk is broken: it must be able to be asked again.
enum Call {
    Commit(Vec<Bundle>),
    Claim(Claim),
}

impl Trouble<'_> {
    /// Every kind in turn, at some point of the next commit, or of the copying of the log behind it.
    fn any_fault(&mut self, round: usize) -> Fault {
        let far = if self.dice.one_in(3) { 400 } else { 30 };
        let after = self.dice.below(far);
        let times = self.dice.pick(&[1, 2, u64::MAX]).unwrap_or(1);
        match round % 4 {
            0 => Fault::Full { bytes: after * 1500 },
            1 => Fault::Sync { after: self.dice.below(3), times },
            2 => Fault::Write { after, times },
            _ => Fault::Killed { after },
        }
    }

    async fn round(&mut self, fault: Fault) -> anyhow::Result<()> {
        for _ in 0..self.dice.below(4) {
            self.story.go_on().await;
        }
        let call = self.any_call().await;
        if self.dice.one_in(2) {
            self.start_alone().await?;
        }
        self.witness.disk.breaks(fault);
        let mut answered = self.try_it(&call).await?;
        let killed = matches!(fault, Fault::Killed { .. });
        if !killed && self.dice.one_in(2) {
            answered |= self.try_it(&call).await?;
        }
        if killed || self.dice.one_in(3) {
            self.witness.close();
        }
        self.count(fault);
        let restarted = self.witness.is_closed();
        if restarted {
            self.witness.restart()?;
        }
        let was_there = self.ask_again(call).await?;
        self.struck.there_after_all += usize::from(was_there && !answered && !restarted);
        Ok(())
    }

    /// A fresh store that nobody reads: when its writer breaks, nobody stands by who still knows the log.
    async fn start_alone(&mut self) -> anyhow::Result<()> {
        self.witness.restart()?;
        for _ in 0..self.dice.below(3) {
            let counter = self.story.world.fresh();
            self.witness.commit(vec![self.story.hand.renew(counter)]).await?;
        }
        Ok(())
    }

    async fn any_call(&mut self) -> Call {
        if self.dice.one_in(4) {
            self.story.something_to_claim().await;
            return Call::Claim(self.story.next_claim());
        }
        loop {
            let bundles = self.story.work().await;
            if !bundles.is_empty() {
                return Call::Commit(bundles);
            }
        }
    }

    /// An answer is fine, and so is to be told that nobody knows: tells which it was.
    async fn try_it(&mut self, call: &Call) -> anyhow::Result<bool> {
        let error = match call {
            Call::Commit(bundles) => self.witness.commit(bundles.clone()).await.err(),
            Call::Claim(claim) => self.witness.claim(claim.clone()).await.err(),
        };
        match error {
            None => Ok(true),
            Some(StoreError::Unknown(_) | StoreError::Unavailable(_)) => {
                self.struck.unanswered += 1;
                Ok(false)
            }
            Some(error @ StoreError::Read(_)) => Err(error.into()),
        }
    }

    fn count(&mut self, fault: Fault) {
        let struck = usize::from(self.witness.disk.heal() > 0);
        match fault {
            Fault::Full { .. } => self.struck.full += struck,
            Fault::Sync { .. } => self.struck.sync += struck,
            Fault::Write { .. } => self.struck.write += struck,
            Fault::Killed { .. } => self.struck.killed += struck,
        }
    }

    /// The trouble is over: the first call is answered, and as if there had been none. Tells whether a bundle
    /// had been there.
    async fn ask_again(&mut self, call: Call) -> anyhow::Result<bool> {
        let mut was_there = false;
        match call {
            Call::Commit(bundles) => {
                let results = self.witness.commit(bundles.clone()).await?;
                for (bundle, result) in bundles.iter().zip(results) {
                    let committed = result?;
                    was_there |= committed.duplicate;
                    self.stands_at_or_below(bundle, committed).await?;
                }
            }
            Call::Claim(claim) => {
                let claimed = self.witness.claim(claim).await?;
                ensure!(!claimed.is_empty(), "the claim gets nothing");
                claimed.iter().for_each(|claimed| self.story.claimed(claimed.run.id));
            }
        }
        Ok(was_there)
    }

    /// A bundle's events stand at or below the position that its sender was told, also if it had been there.
    async fn stands_at_or_below(&self, bundle: &Bundle, committed: Committed) -> anyhow::Result<()> {
        for write in &bundle.writes {
            if let Write::Event { task, body, .. } = write {
                let events = self.witness.events(*task, 0, 100_000).await?;
                let event = events.iter().find(|event| event.body == *body).context("an event is missing")?;
                let (at, told) = (event.position, committed.position);
                ensure!(at <= told, "an event stands at {at}, and its sender was told {told}");
            }
        }
        Ok(())
    }
}
