use futures_util::{FutureExt as _, poll};
use ostler_kernel::{Bundle, Lease, Timestamp, Write, bundle::Command, runtime::Spawned, worker::Standing};

use super::*;

/// Time passes when it is told to.
#[derive(Default)]
struct Clock(watch::Sender<Duration>);

impl Clock {
    fn pass(&self, time: Duration) {
        self.0.send_modify(|now| *now += time);
    }
}

impl Runtime for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        *self.0.borrow()
    }

    fn random(&self) -> u64 {
        0
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        let (mut time, until) = (self.0.subscribe(), self.monotonic() + delay);
        Box::pin(async move { drop(time.wait_for(|now| *now >= until).await) })
    }

    fn spawn(&self, _name: &'static str, _future: BoxFuture<'static, ()>) -> Spawned {
        Spawned::new(|| ())
    }
}

fn commit(writes: Vec<Write>) -> Job {
    let bundle = Bundle { command: Command::Accept, key: None, expect: Vec::new(), writes };
    Job::Commit(Prepared::all(vec![bundle]).expect("it can be written"), oneshot::channel().0)
}

fn step() -> Job {
    commit(Vec::new())
}

/// Something that a claim may be given becomes ready.
fn accept() -> Job {
    commit(vec![Write::Standing { worker: "w".into(), standing: Standing::Open }])
}

fn claim() -> Job {
    let lease = Lease { worker: "w".into(), incarnation: 1, claim: 1 };
    let claim = Claim { lease, slots: 1, shares: Default::default(), now: Timestamp::from_millis(0) };
    Job::Claim(claim, oneshot::channel().0)
}

fn sizes(batch: Option<Batch>) -> (usize, usize) {
    let batch = batch.expect("the store is open");
    (batch.commits.len(), batch.claims.len())
}

fn set_up() -> (Arc<Clock>, mpsc::Sender<Job>, Gatherer) {
    let (clock, (jobs, waiting)) = (Arc::new(Clock::default()), mpsc::channel(MAX_BATCH));
    (Arc::clone(&clock), jobs, Gatherer::new(clock, waiting))
}

/// What can be written at once.
fn at_once(gatherer: &Gatherer) -> (usize, usize) {
    sizes(gatherer.next().now_or_never().expect("nothing to wait for"))
}

#[tokio::test]
async fn who_is_alone_never_waits() {
    let (_clock, jobs, gatherer) = set_up();
    for _ in 0..3 {
        for job in [accept(), claim(), step()] {
            jobs.try_send(job).expect("room");
            at_once(&gatherer);
            gatherer.written(false);
        }
    }
}

#[tokio::test]
async fn while_others_write_more_is_waited_for() {
    let (clock, jobs, gatherer) = set_up();
    jobs.try_send(step()).expect("room");
    at_once(&gatherer);
    let mut next = pin!(gatherer.next());
    jobs.try_send(step()).expect("room");
    assert!(poll!(&mut next).is_pending(), "somebody writes");
    jobs.try_send(step()).expect("room");
    gatherer.written(false);
    assert_eq!(sizes(next.now_or_never().expect("nobody writes")), (2, 0));
    // Not for ever, and not if there is enough.
    jobs.try_send(step()).expect("room");
    let mut next = pin!(gatherer.next());
    assert!(poll!(&mut next).is_pending());
    clock.pass(GATHERING);
    assert_eq!(sizes(next.now_or_never().expect("long enough")), (1, 0));
    (0..ENOUGH).for_each(|_| jobs.try_send(step()).expect("room"));
    assert_eq!(at_once(&gatherer), (ENOUGH, 0));
}

#[tokio::test]
async fn where_many_write_batches_keep_a_pace() {
    let (clock, jobs, gatherer) = set_up();
    (0..MANY).for_each(|_| jobs.try_send(step()).expect("room"));
    assert_eq!(at_once(&gatherer), (MANY, 0));
    gatherer.written(false);
    jobs.try_send(step()).expect("room");
    let mut next = pin!(gatherer.next());
    assert!(poll!(&mut next).is_pending(), "it would be one of many small ones");
    clock.pass(PACE);
    assert_eq!(sizes(next.now_or_never().expect("it is time")), (1, 0));
    gatherer.written(false);
    jobs.try_send(step()).expect("room");
    assert_eq!(at_once(&gatherer), (1, 0), "the last one held few");
}

#[tokio::test]
async fn what_becomes_ready_waits_for_the_claim_of_a_worker_that_was_just_served() {
    let (clock, jobs, gatherer) = set_up();
    let serve = || {
        [accept(), claim()].into_iter().for_each(|job| jobs.try_send(job).expect("room"));
        assert_eq!(at_once(&gatherer), (1, 1));
        gatherer.written(true);
    };
    serve();
    jobs.try_send(accept()).expect("room");
    let mut next = pin!(gatherer.next());
    assert!(poll!(&mut next).is_pending(), "the claim is on its way");
    jobs.try_send(claim()).expect("room");
    assert_eq!(sizes(next.now_or_never().expect("it is here")), (1, 1));
    gatherer.written(true);

    jobs.try_send(step()).expect("room");
    assert_eq!(at_once(&gatherer), (1, 0), "a claim is nothing to it");
    gatherer.written(false);

    jobs.try_send(accept()).expect("room");
    let mut next = pin!(gatherer.next());
    assert!(poll!(&mut next).is_pending());
    clock.pass(BACK_WITHIN);
    assert_eq!(sizes(next.now_or_never().expect("no claim comes")), (1, 0));
}
