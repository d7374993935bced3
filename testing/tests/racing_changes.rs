//! Several clients change the same resource at the same time, on each store: of those who replace one version exactly one
//! wins, of those who make one exactly one makes it, and a watch on the other server misses nothing.

#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

mod stack;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use ostler_control::{
    Control, ControlError, Effect, NewTask, Precondition, ResourcePage, Seen, Sight, Told, Watched,
};
use ostler_kernel::{Selector, runtime::timeout};
use ostler_spec::{Kind, Resource};
use ostler_testing::postgres::Place;
use serde_json::json;
use stack::Stack;

const LEASE: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(60);
const ROUNDS: u64 = 100;

fn agent(name: &str, prompt: &str) -> Resource {
    let document =
        json!({"kind": "Agent", "metadata": {"name": name}, "spec": {"model_ref": "m", "prompt": prompt}});
    ostler_spec::from_json(&document).expect("an agent")
}

async fn two_servers() -> (Stack, Stack) {
    let mut stores = Place::fresh().expect("PostgreSQL").servers(2).await.expect("PostgreSQL");
    let (two, one) = (stores.pop().expect("two"), stores.pop().expect("one"));
    (Stack::on(one, LEASE), Stack::on(two, LEASE))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_wins_on_sqlite() {
    let stack = Stack::start(LEASE);
    race(&stack.control, &stack.control).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_wins_on_postgres() {
    let (one, two) = two_servers().await;
    race(&one.control, &two.control).await;
}

async fn race(one: &Arc<Control>, two: &Arc<Control>) {
    one.apply(agent("a", "first")).await.expect("applied");
    for round in 1..=ROUNDS {
        let replace = |control: &Arc<Control>, who: usize| {
            let (control, meant) = (Arc::clone(control), Precondition::Version(round.to_string()));
            async move {
                control.replace("a", agent("a", &format!("{round} by {who}")), &meant, Effect::Real).await
            }
        };
        let answers = join_all([replace(one, 0), replace(two, 1), replace(one, 2)]).await;
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1, "round {round}: {won:?} {lost:?}");
        for answer in lost {
            assert!(matches!(answer, Err(ControlError::Conflict(_))), "{answer:?}");
        }
        let now = two.resource(Kind::Agent, "default", "a").await.expect("answered").expect("there");
        assert_eq!(Some(&now), won[0].as_ref().ok());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_makes_the_same_at_two_servers_makes_it_once() {
    let (one, two) = two_servers().await;
    for round in 0..30 {
        let name = format!("n{round}");
        let (first, second) =
            tokio::join!(one.control.apply(agent(&name, "1")), two.control.apply(agent(&name, "2")));
        let mut versions: Vec<_> = [first, second]
            .into_iter()
            .map(|answer| answer.expect("applied").metadata.resource_version.expect("a version"))
            .collect();
        versions.sort();
        assert_eq!(versions, ["1", "2"], "each change that was acknowledged has its own version");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_never_come_back_on_sqlite() {
    let stack = Stack::start(LEASE);
    make_anew(&stack.control, &stack.control).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_never_come_back_on_postgres() {
    let (one, two) = two_servers().await;
    make_anew(&one.control, &two.control).await;
}

fn version(resource: &Resource) -> u64 {
    resource.metadata.resource_version.as_ref().and_then(|text| text.parse().ok()).expect("a version")
}

/// One deletes it and makes it anew while another replaces the version it has seen: what is new is never replaced by one
/// who means the former.
async fn make_anew(one: &Arc<Control>, two: &Arc<Control>) {
    let mut seen = one.apply(agent("a", "first")).await.expect("applied");
    let mut replaced = 0;
    for round in 0..ROUNDS {
        let meant = Precondition::Version(version(&seen).to_string());
        let anew = async {
            one.delete(Kind::Agent, "default", "a").await.expect("deleted");
            one.apply(agent("a", &format!("new {round}"))).await.expect("made")
        };
        let late = two.replace("a", agent("a", &format!("late {round}")), &meant, Effect::Real);
        let (made, late) = tokio::join!(anew, late);
        assert!(version(&made) > version(&seen), "{made:?} behind {seen:?}");
        replaced += u64::from(late.is_ok());
        let now = two.resource(Kind::Agent, "default", "a").await.expect("answered").expect("there");
        assert_eq!(now, made, "round {round}: {late:?}");
        seen = now;
    }
    assert!(replaced < ROUNDS, "nobody ever came late");
    // Under another name it begins anew as well, behind what had that name before.
    let (named, any) = (agent("b", "renamed"), Precondition::Any);
    let renamed = one.replace("a", named, &any, Effect::Real).await.expect("renamed");
    let back = two.replace("b", agent("a", "back"), &any, Effect::Real).await.expect("renamed");
    assert!(version(&back) > version(&seen), "{back:?} behind {seen:?}");
    let again = one.replace("a", agent("b", "again"), &any, Effect::Real).await.expect("renamed");
    assert!(version(&again) > version(&renamed), "{again:?} behind {renamed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_and_a_template_never_have_one_name() {
    let (one, two) = two_servers().await;
    contend_for_names(&one.control, &two.control).await;
    let stack = Stack::start(LEASE);
    contend_for_names(&stack.control, &stack.control).await;
}

async fn contend_for_names(one: &Arc<Control>, two: &Arc<Control>) {
    let spec = json!({"model_ref": "mock", "prompt": "p"});
    let helper = json!({"kind": "Agent", "metadata": {"name": "helper"}, "spec": spec});
    one.apply(ostler_spec::from_json(&helper).expect("an agent")).await.expect("applied");
    let mut tasks = 0;
    for round in 0..40 {
        let task = |mode: &str| {
            let spec = json!({"agent": "helper", "mode": mode});
            let document = json!({"kind": "Task", "metadata": {"name": format!("n{round}")}, "spec": spec});
            ostler_spec::from_json(&document).expect("a task")
        };
        let new = NewTask::from_resource(task("run")).expect("a task");
        // A little later each time, so that now one is the first and now the other.
        let keep = async {
            for turn in 0..round % 5 {
                two.apply(agent("other", &format!("{round} {turn}"))).await.expect("applied");
            }
            two.apply(task("template")).await
        };
        let (created, kept) = tokio::join!(one.create_task(new), keep);
        assert_ne!(created.is_ok(), kept.is_ok(), "round {round}: {created:?} {kept:?}");
        for refused in [created.as_ref().err(), kept.as_ref().err()].into_iter().flatten() {
            assert_eq!(refused.code(), "conflict", "{refused}");
        }
        tasks += usize::from(created.is_ok());
    }
    assert!((1..40).contains(&tasks), "{tasks} of 40 tasks were the first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_at_the_other_server_ends_up_with_what_is_there() {
    let (one, two) = two_servers().await;
    let watched = Watched {
        kind: Kind::Agent,
        namespace: None,
        name: None,
        labels: Selector::default(),
        mode: None,
        newer_than: 0,
    };
    let mut watch = two.control.watch(watched.clone(), None).await.expect("a watch");
    assert!(matches!(watch.next().await, Ok(Told::Complete { .. })), "nothing is there at first");
    for number in 0..60 {
        one.control.apply(agent(&format!("n{}", number % 20), &number.to_string())).await.expect("applied");
        if number % 3 == 0 {
            let gone = format!("n{}", (number + 7) % 20);
            drop(one.control.delete(Kind::Agent, "default", &gone).await);
        }
    }
    one.control.apply(agent("last", "done")).await.expect("applied");
    let expected: BTreeMap<String, String> = one
        .control
        .page(Kind::Agent, ResourcePage { limit: 100, ..ResourcePage::default() })
        .await
        .expect("answered")
        .into_iter()
        .map(|it| (it.metadata.name, it.metadata.resource_version.unwrap_or_default()))
        .collect();
    let mut known = BTreeMap::new();
    let mut place = 0;
    // It may begin with all that is there, or be told of it one by one.
    while known != expected || place == 0 {
        let told = timeout(&*two.runtime, PATIENCE, watch.next()).await;
        match told.unwrap_or_else(|_| panic!("the watch is silent")).expect("told") {
            Told::First(sight) => see(&mut known, sight),
            Told::Complete { position } => place = position,
            Told::Then { position, sight } => {
                place = position;
                see(&mut known, sight);
            }
        }
    }
    // The same goes on at the first server behind what was told at the second.
    drop(watch);
    one.control.delete(Kind::Agent, "default", "last").await.expect("deleted");
    let mut watch = one.control.watch(watched, Some(place)).await.expect("a watch");
    let told = timeout(&*one.runtime, PATIENCE, watch.next()).await.unwrap_or_else(|_| panic!("silent"));
    assert!(matches!(told, Ok(Told::Then { sight: Sight::Deleted(gone), .. }) if gone.name == "last"));
}

fn see(known: &mut BTreeMap<String, String>, sight: Sight) {
    match sight {
        Sight::Added(Seen::Resource(resource)) | Sight::Updated(Seen::Resource(resource)) => {
            known.insert(resource.metadata.name, resource.metadata.resource_version.unwrap_or_default());
        }
        Sight::Deleted(gone) => drop(known.remove(&gone.name)),
        Sight::Added(Seen::Task(_)) | Sight::Updated(Seen::Task(_)) => panic!("no task is watched"),
    }
}
