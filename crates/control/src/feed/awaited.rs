//! Tasks that were accepted here a moment ago, each with a receiver that has been there since before its commit. Whoever
//! begins to follow such a task has missed nothing, and need not ask the store for what it is about to be shown.

use std::{collections::VecDeque, time::Duration};

use ostler_kernel::TaskId;
use tokio::sync::broadcast::Receiver;

use super::Feed;

/// So soon a caller who follows what it has sent begins to.
const WITHIN: Duration = Duration::from_secs(1);

/// So many are kept at once; the oldest goes first.
const ROOM: usize = 256;

#[derive(Default)]
pub struct Awaited {
    tasks: VecDeque<AwaitedTask>,
    /// Rises when part of the log begins to be passed over because nobody watches, and again behind it.
    passed_over: u64,
}

struct AwaitedTask {
    namespace: String,
    task: TaskId,
    receiver: Receiver<Feed>,
    since: Duration,
    /// As it was when the receiver was made.
    passed_over: u64,
}

impl Awaited {
    /// To be called before the task is committed.
    pub fn add(&mut self, namespace: String, task: TaskId, receiver: Receiver<Feed>, now: Duration) {
        self.keep_young(now);
        if self.tasks.len() >= ROOM {
            self.tasks.pop_front();
        }
        let passed_over = self.passed_over;
        self.tasks.push_back(AwaitedTask { namespace, task, receiver, since: now, passed_over });
    }

    /// The receiver of this task, if everything that was ever said of it went there.
    pub fn take(&mut self, namespace: &str, task: TaskId) -> Option<Receiver<Feed>> {
        let place = self.tasks.iter().position(|awaited| awaited.task == task)?;
        let awaited = self.tasks.remove(place)?;
        let has_all = awaited.passed_over == self.passed_over && self.passed_over.is_multiple_of(2);
        (has_all && awaited.namespace == namespace).then_some(awaited.receiver)
    }

    /// It was not accepted, or someone else follows it.
    pub fn forget(&mut self, task: TaskId) {
        self.tasks.retain(|awaited| awaited.task != task);
    }

    /// Forgets the others, and tells how many these are.
    pub fn keep_young(&mut self, now: Duration) -> usize {
        while self.tasks.front().is_some_and(|awaited| awaited.since + WITHIN <= now) {
            self.tasks.pop_front();
        }
        self.tasks.len()
    }

    /// Part of the log begins to be passed over, or has been.
    pub fn pass_over(&mut self) {
        self.passed_over += 1;
    }

    /// It is not passed over after all.
    pub fn stay(&mut self) {
        self.passed_over -= 1;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::*;

    const NOW: Duration = Duration::from_secs(7);

    fn task(number: u8) -> TaskId {
        TaskId::from_bytes([number; 16])
    }

    fn awaited(numbers: impl IntoIterator<Item = u8>) -> Awaited {
        let mut awaited = Awaited::default();
        for number in numbers {
            awaited.add("default".into(), task(number), broadcast::channel(1).1, NOW);
        }
        awaited
    }

    #[test]
    fn a_task_is_given_once_and_only_to_its_namespace() {
        let mut tasks = awaited([1, 2]);
        assert!(tasks.take("default", task(1)).is_some());
        assert!(tasks.take("default", task(1)).is_none(), "one who comes later reads the store");
        assert!(tasks.take("other", task(2)).is_none());
    }

    #[test]
    fn nobody_is_given_what_may_lack_something() {
        let mut tasks = awaited([1]);
        tasks.pass_over();
        assert!(tasks.take("default", task(1)).is_none(), "it may just be passed over");
        let mut tasks = awaited([1]);
        tasks.pass_over();
        tasks.pass_over();
        assert!(tasks.take("default", task(1)).is_none(), "it may have been passed over");
        let mut tasks = awaited([]);
        tasks.pass_over();
        tasks.add("default".into(), task(1), broadcast::channel(1).1, NOW);
        assert!(tasks.take("default", task(1)).is_none(), "that began before it, and may end behind it");
    }

    #[test]
    fn few_are_kept_and_not_for_long() {
        let mut tasks = awaited(0..=255);
        let one_more = TaskId::from_bytes(std::array::from_fn(|place| place as u8));
        tasks.add("default".into(), one_more, broadcast::channel(1).1, NOW);
        assert!(tasks.take("default", task(0)).is_none() && tasks.take("default", task(1)).is_some());
        assert_eq!(tasks.keep_young(NOW + WITHIN), 0);
    }
}
