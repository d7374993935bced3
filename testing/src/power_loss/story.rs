//! The work during which the power goes: people ask, cancel, declare and upload, a worker claims and journals,
//! several bundles to a commit, some of them far larger than a page.

#![allow(clippy::expect_used, reason = "on a healthy disk the store answers")]

use ostler_kernel::{
    Bundle, Refusal, RunId, RunTag, StepKind, Timestamp,
    resource::{self, ResourceKey, StoredResource},
    run::{RunView, end::Leave},
};
use ostler_store::{
    Claim, Committed,
    conformance::{
        dice::Dice,
        world::{Hand, World, answers, asks_for_tools, tools_answer},
    },
};
use serde_json::json;

pub struct Story<'w> {
    pub world: &'w World,
    pub dice: Dice,
    pub hand: Hand<'w>,
    running: Vec<RunId>,
    n_waiting: usize,
    resources: Vec<u64>,
    last_sent: Vec<Bundle>,
}

/// At most so many tasks are under way, so that they also come to their end.
const MOST_AT_ONCE: usize = 12;

impl<'w> Story<'w> {
    pub async fn begin(world: &'w World, seed: u64) -> Self {
        let hand = world.worker("hand").await;
        Self {
            world,
            dice: Dice::new(seed),
            hand,
            running: Vec::new(),
            n_waiting: 0,
            resources: Vec::new(),
            last_sent: Vec::new(),
        }
    }

    /// One thing happens.
    pub async fn go_on(&mut self) {
        self.world.pass(250);
        match self.dice.below(20) {
            0..3 if self.n_waiting + self.running.len() < MOST_AT_ONCE => self.ask().await,
            3..5 => self.declare().await,
            5 => self.upload().await,
            6 => self.cancel().await,
            7 => self.say_something().await,
            8 => self.send_again().await,
            9 => self.renew().await,
            10..12 => self.claim().await,
            _ => {
                let bundles = self.work().await;
                self.must(bundles).await;
            }
        }
    }

    /// What the worker has to write for one to three of its runs. Each bundle has a key.
    pub async fn work(&mut self) -> Vec<Bundle> {
        while self.running.is_empty() {
            self.ask().await;
            self.claim().await;
        }
        let n_bundles = 1 + self.dice.below(3) as usize;
        let mut bundles = Vec::new();
        for place in (0..self.running.len()).rev().take(n_bundles) {
            let view = self.world.view(self.running[place]).await;
            match view.run.tag() == RunTag::Running {
                true => bundles.push(self.next_write(&view)),
                false => drop(self.running.remove(place)),
            }
        }
        // Another one's turn next time.
        if let Some(run) = self.running.pop() {
            self.running.insert(0, run);
        }
        bundles
    }

    /// A claim with something to give, not made yet.
    pub async fn something_to_claim(&mut self) {
        if self.n_waiting == 0 {
            self.ask().await;
        }
    }

    pub fn next_claim(&self) -> Claim {
        let lease = self.hand.lease(self.world.fresh());
        Claim::new(lease, 2, self.world.now())
    }

    pub fn claimed(&mut self, run: RunId) {
        self.n_waiting = self.n_waiting.saturating_sub(1);
        self.running.push(run);
    }

    async fn must(&mut self, bundles: Vec<Bundle>) -> Vec<Committed> {
        self.last_sent.clone_from(&bundles);
        let results = self.world.commit_all(bundles).await;
        results
            .into_iter()
            .map(|result: Result<Committed, Refusal>| result.expect("the bundle counts"))
            .collect()
    }

    async fn ask(&mut self) {
        let n_tasks = 1 + self.dice.below(3) as usize;
        let mut bundles = Vec::new();
        for _ in 0..n_tasks {
            let message = self.text();
            let (_, bundle) = self.world.ask().saying(&message).bundle();
            bundles.push(bundle);
        }
        self.must(bundles).await;
        self.n_waiting += n_tasks;
    }

    async fn claim(&mut self) {
        let slots = 1 + self.dice.below(4) as usize;
        let claim = Claim { slots, ..self.next_claim() };
        for claimed in self.world.store.claim(claim).await.expect("the store answers") {
            self.claimed(claimed.run.id);
        }
    }

    fn next_write(&mut self, view: &RunView) -> Bundle {
        let calls_tools = view.open_steps.iter().any(|step| matches!(step.kind, StepKind::Tool { .. }));
        let ends = self.dice.one_in(3);
        let mut progress = match (calls_tools, ends) {
            (true, _) => tools_answer(view),
            (false, true) => answers(view, &self.text()),
            (false, false) => asks_for_tools(view, &["search", "fetch", "compare"]),
        };
        progress.consumed = (view.last_input > view.consumed_input).then_some(view.last_input);
        match !calls_tools && ends {
            true => self.world.leave(view, &progress, Leave::Ok { output: self.text() }),
            false => self.world.journal(view, &progress),
        }
    }

    /// A resource is made, or written again.
    async fn declare(&mut self) {
        let place = self.dice.below(self.resources.len() as u64 + 1) as usize;
        if place == self.resources.len() {
            self.resources.push(0);
        }
        let version = self.resources[place];
        self.resources[place] += 1;
        let key = ResourceKey {
            kind: "Agent".to_owned(),
            namespace: "default".to_owned(),
            name: format!("agent-{place}"),
        };
        let document = json!({"spec": {"prompt": self.text()}});
        let created_at = Timestamp::from_millis(0);
        let stored = StoredResource { key, version: version + 1, generation: 1, created_at, document };
        self.must(vec![resource::put(stored, (version > 0).then_some(version))]).await;
    }

    async fn upload(&mut self) {
        let text = self.text();
        let (_, bundle) = Bundle::blob(text.into_bytes(), self.world.now());
        self.must(vec![bundle]).await;
    }

    async fn cancel(&mut self) {
        let Some(view) = self.running_view().await else { return };
        self.running.retain(|run| *run != view.run.id);
        self.must(vec![self.world.cancel(&view)]).await;
    }

    async fn say_something(&mut self) {
        let Some(view) = self.running_view().await else { return };
        let text = self.text();
        self.must(vec![self.world.input(&view, &text)]).await;
    }

    /// The last commit again, as if its answer had been lost: known, or refused.
    async fn send_again(&mut self) {
        let bundles = self.last_sent.clone();
        self.world.commit_all(bundles).await;
    }

    async fn renew(&mut self) {
        let counter = self.world.fresh();
        self.must(vec![self.hand.renew(counter)]).await;
    }

    async fn running_view(&mut self) -> Option<RunView> {
        let run = self.dice.pick(&self.running)?;
        let view = self.world.view(run).await;
        (view.run.tag() == RunTag::Running).then_some(view)
    }

    /// Mostly short; now and then it fills a page, or many.
    fn text(&mut self) -> String {
        let words = match self.dice.below(16) {
            0..10 => 2,
            10..13 => 40,
            13..15 => 400,
            _ => 3000,
        };
        (0..words).map(|_| format!("{:016x} ", self.dice.roll())).collect()
    }
}
