//! What is asked of both stores: a few questions now and then, and everything at the end.

use std::time::Duration;

use ostler_kernel::{Selector, resource::ResourceKey};

use super::{
    super::dice::Dice,
    History,
    people::{
        KINDS, LABEL_VALUES, LABELS, NAMESPACES, SESSION_KEYS, SUBJECT, TASK_KEYS, TASK_NAMES, WORKERS,
    },
};
use crate::{DuePlace, Query, ResourceFilter, SessionPlace, TaskFilter, TaskRef};

const STATES: [&str; 5] = ["queued", "running", "waiting", "succeeded", "dead_letter"];

impl History<'_> {
    pub(super) async fn look_around(&mut self) -> Result<(), String> {
        for _ in 0..4 {
            if let Some(query) = self.some_question() {
                self.ask(query).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn look_at_everything(&mut self) -> Result<(), String> {
        for query in self.by_id().into_iter().chain(self.by_name()).chain(self.lists()) {
            self.ask(query).await?;
        }
        Ok(())
    }

    /// A question about a part: a page, a range, a filter.
    fn some_question(&mut self) -> Option<Query> {
        let limit = self.dice.below(6) as usize;
        let after = self.dice.below(12);
        Some(match self.dice.below(12) {
            0 => Query::Events { task: self.dice.pick(&self.known.tasks)?, after, limit },
            1 => Query::Log { after: self.dice.below(100), limit },
            2 => Query::Inputs { task: self.dice.pick(&self.known.tasks)?, after: self.dice.below(3) },
            3 => {
                let to = self.dice.one_in(2).then(|| self.dice.below(12));
                Query::Entries {
                    session: self.dice.pick(&self.known.sessions)?,
                    from: self.dice.below(6),
                    to,
                }
            }
            4 => Query::Due { after: self.some_due_place(), now: self.later(40), limit },
            5 => Query::NextDue,
            6 => self.some_resources(limit),
            7 => {
                let after = self.dice.one_in(2).then(|| self.dice.pick(&self.known.tasks)).flatten();
                Query::OldTasks { before: self.later(2), after, limit }
            }
            8 => Query::NthTask { namespace: self.dice.word(&NAMESPACES), nth: limit },
            9 => Query::Sessions {
                namespace: self.dice.one_in(2).then(|| self.dice.word(&NAMESPACES)),
                after: self.dice.one_in(2).then(|| SessionPlace {
                    namespace: self.dice.word(&NAMESPACES),
                    subject: SUBJECT.to_owned(),
                    key: self.dice.word(&SESSION_KEYS),
                }),
                limit,
            },
            10 => Query::Accepted {
                namespace: self.dice.word(&NAMESPACES),
                class: self.dice.one_in(2).then(|| self.dice.word(&["small", "large"])),
                since: self.now.before(Duration::from_millis(self.dice.below(60_000))),
                upto: self.later(20).before(Duration::from_secs(19)),
                most: limit,
            },
            _ => Query::Tasks(self.some_filter(limit)),
        })
    }

    fn some_due_place(&mut self) -> DuePlace {
        match self.dice.below(3) {
            0 => DuePlace::FIRST,
            1 => DuePlace::behind(self.later(20)),
            _ => {
                let run = self.dice.pick(&self.known.runs).unwrap_or(DuePlace::FIRST.run);
                DuePlace { at: self.later(20), run }
            }
        }
    }

    fn some_resources(&mut self, limit: usize) -> Query {
        let dice = &mut self.dice;
        Query::Resources(ResourceFilter {
            kind: dice.word(&KINDS),
            namespace: dice.one_in(2).then(|| dice.word(&NAMESPACES)),
            after: dice.one_in(2).then(|| (dice.word(&NAMESPACES), dice.word(&TASK_NAMES))),
            labels: some_selector(dice),
            limit,
        })
    }

    fn some_filter(&mut self, limit: usize) -> TaskFilter {
        let dice = &mut self.dice;
        let n_states = dice.below(3);
        TaskFilter {
            namespace: dice.one_in(2).then(|| dice.word(&NAMESPACES)),
            states: (0..n_states).map(|_| dice.word(&STATES)).collect(),
            archived: dice.one_in(2),
            before: dice.pick(&self.known.tasks).filter(|_| dice.one_in(2)),
            labels: some_selector(dice),
            agent: dice.one_in(4).then(|| SUBJECT.to_owned()),
            system: None,
            limit,
            look_at: dice.one_in(2).then(|| 1 + dice.below(6) as usize),
        }
    }

    fn by_id(&self) -> Vec<Query> {
        let known = &self.known;
        let mut queries = Vec::new();
        for task in &known.tasks {
            queries.push(Query::Task(TaskRef::Id(*task)));
            queries.push(Query::Events { task: *task, after: 0, limit: 10_000 });
            queries.push(Query::Inputs { task: *task, after: 0 });
        }
        for run in &known.runs {
            queries.extend([Query::Run(*run), Query::RunView(*run), Query::Steps(*run)]);
        }
        for session in &known.sessions {
            queries.push(Query::Session(*session));
            queries.push(Query::Entries { session: *session, from: 0, to: None });
        }
        queries.extend(known.blockers.iter().map(|blocker| Query::Blocker(*blocker)));
        queries.extend(known.blobs.iter().map(|blob| Query::Blob(*blob)));
        queries.push(Query::OldBlobs { put_by: self.now });
        queries
    }

    fn by_name(&self) -> Vec<Query> {
        let mut queries = Vec::new();
        for namespace in NAMESPACES.map(str::to_owned) {
            for name in TASK_NAMES.map(str::to_owned) {
                queries.push(Query::Task(TaskRef::Name { namespace: namespace.clone(), name: name.clone() }));
                let keys = KINDS.map(|kind| (kind.to_owned(), namespace.clone(), name.clone()));
                queries.extend(
                    keys.map(|(kind, namespace, name)| {
                        Query::Resource(ResourceKey { kind, namespace, name })
                    }),
                );
            }
            for key in TASK_KEYS.map(str::to_owned) {
                queries.push(Query::Task(TaskRef::Key { namespace: namespace.clone(), key }));
            }
            for key in SESSION_KEYS.map(str::to_owned) {
                let subject = SUBJECT.to_owned();
                queries.push(Query::SessionByKey { namespace: namespace.clone(), subject, key });
            }
        }
        queries
    }

    fn lists(&self) -> Vec<Query> {
        let limit = 10_000;
        let all_tasks = TaskFilter { archived: true, limit, ..TaskFilter::default() };
        let mut queries = vec![
            Query::Tasks(TaskFilter { archived: false, ..all_tasks.clone() }),
            Query::Tasks(all_tasks),
            Query::Log { after: 0, limit },
            Query::Leased { worker: None },
            Query::Workers,
            Query::Namespaces,
            Query::Due { after: DuePlace::FIRST, now: self.now, limit },
            Query::NextDue,
        ];
        queries.extend(WORKERS.map(|worker| Query::Leased { worker: Some(worker.to_owned()) }));
        queries.extend(KINDS.map(|kind| {
            let kind = kind.to_owned();
            Query::Resources(ResourceFilter { kind, limit, ..ResourceFilter::default() })
        }));
        queries
    }
}

fn some_selector(dice: &mut Dice) -> Selector {
    let parts = (0..dice.below(3)).map(|_| {
        let (key, value) = (dice.word(&LABELS), dice.word(&LABEL_VALUES));
        match dice.below(4) {
            0 => format!("{key}={value}"),
            1 => format!("{key}!={value}"),
            2 => key,
            _ => format!("!{key}"),
        }
    });
    // What is made up here can always be read.
    parts.collect::<Vec<_>>().join(",").parse().unwrap_or_default()
}
