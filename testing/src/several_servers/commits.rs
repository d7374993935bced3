//! Commits at several servers at once.

use std::{collections::BTreeSet, sync::Arc};

use ostler_store::{StoreExt, TaskRef};
use tokio::task::JoinSet;

use super::House;
use crate::postgres::Place;

/// The same name, asked for at two servers at once.
pub async fn one_of_two_servers_gives_the_name(place: Place) {
    let House { servers, worlds, .. } = House::at(&place, 2).await;
    for round in 0..30 {
        let name = format!("the one {round}");
        let [(_, left), (_, right)] = [0, 1].map(|server: usize| worlds[server].ask().named(&name).bundle());
        let (left, right) = tokio::join!(worlds[0].commit(left), worlds[1].commit(right));
        assert_eq!(
            [left.is_ok(), right.is_ok()].into_iter().filter(|counts| *counts).count(),
            1,
            "round {round}"
        );
    }
    let all = servers[0].log(0, usize::MAX).await.expect("the store answers");
    assert_eq!(all.iter().map(|event| event.task).collect::<BTreeSet<_>>().len(), 30);
}

/// One server stands still between judging and writing; the other judges the same run meanwhile.
pub async fn what_one_server_changed_the_other_does_not_overwrite(place: Place) {
    let house = House::at(&place, 2).await;
    let world = &house.worlds[0];
    let task = world.ask().accept().await;
    let view = world.view(task.run).await;
    house.visitor.hold("tasks", task.id.as_bytes()).await.expect("PostgreSQL");
    let mut committing = JoinSet::new();
    let bundles = [("cancel", world.cancel(&view)), ("input", world.input(&view, "too late"))];
    for ((server, (name, bundle)), n_waiting) in house.servers.iter().zip(bundles).zip(1..) {
        let store = Arc::clone(server);
        committing.spawn(async move { (name, store.commit(vec![bundle]).await) });
        house.stand_still(n_waiting).await;
    }
    house.visitor.let_go().await.expect("PostgreSQL");
    for (name, result) in committing.join_all().await {
        let counts = result.expect("the store answers")[0].is_ok();
        assert_eq!(counts, name == "cancel", "the {name}");
    }
    assert_eq!(world.store.inputs(task.id, 0).await, Ok(vec![]));
}

/// The database refuses a text with a NUL. Whoever comes along in the same batch has nothing to do with it.
pub async fn what_the_database_can_not_hold_harms_nobody_else(place: Place) {
    let House { servers, worlds, .. } = House::at(&place, 1).await;
    let world = &worlds[0];
    let mut committing = JoinSet::new();
    for number in 0..40 {
        let key = if number % 10 == 5 { format!("key\u{0}{number}") } else { format!("key {number}") };
        let bundle = world.ask().under_key(&key).bundle().1;
        let store = Arc::clone(&servers[0]);
        committing.spawn(async move { (number, store.commit(vec![bundle]).await) });
    }
    for (number, result) in committing.join_all().await {
        let counts = matches!(result.as_deref(), Ok([Ok(_)]));
        assert_eq!(counts, number % 10 != 5, "{number}: {result:?}");
    }
    let key = |key: &str| TaskRef::Key { namespace: "default".into(), key: key.into() };
    assert_eq!(servers[0].task(key("key\u{0}5")).await, Ok(None), "it is not there, and one may ask");
    assert!(servers[0].task(key("key 4")).await.expect("the store answers").is_some());
}
