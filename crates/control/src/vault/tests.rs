//! Keys that differ, are turned, or are left in the middle.

use std::path::Path;

use ostler_link::TokioRuntime;
use ostler_store::SqliteStore;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Handle;

use super::*;
use crate::ControlConfig;

fn ring(bytes: &[&str]) -> KeyRing {
    let lines: Vec<String> = bytes.iter().map(|byte| byte.repeat(32)).collect();
    KeyRing::parse(&lines.join("\n")).unwrap()
}

fn store(folder: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(&folder.join("store.db")).unwrap())
}

/// One server on a store that others may share.
fn server(store: &Arc<SqliteStore>, keys: &[&str]) -> Arc<Control> {
    let config = ControlConfig { keys: Some(ring(keys)), ..ControlConfig::default() };
    let store = Arc::clone(store) as Arc<dyn ostler_store::Store>;
    Control::new(store, Arc::new(TokioRuntime::new(Handle::current())), config)
}

async fn set(control: &Control, name: &str) -> Result<(), ControlError> {
    let data = json!({"stringData": {"value": format!("value-of-{name}")}});
    let secret = json!({"kind": "Secret", "metadata": {"name": name}, "spec": data});
    control.apply(ostler_spec::from_json(&secret).unwrap()).await.map(drop)
}

/// What a worker would be given.
async fn opened(control: &Control, name: &str) -> Result<String, String> {
    let found = control.kept_secret("default", name, "value").await.unwrap();
    found.expect("it is kept").map(|value| value.as_str().to_owned())
}

async fn all_open(control: &Control, names: &[&str]) {
    for name in names {
        assert_eq!(opened(control, name).await, Ok(format!("value-of-{name}")), "{name}");
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[tokio::test]
async fn keys_that_lack_the_one_in_use_are_not_turned_to() {
    let folder = folder();
    let shared = store(folder.path());
    let control = server(&shared, &["0a"]);
    set(&control, "one").await.unwrap();
    let old = ring(&["0a"]).first().id().to_string();
    for lacking in [ring(&["0b"]), ring(&["0b", "0c"])] {
        let refused = control.fit_keys(lacking).await.err().expect("it is refused");
        assert_eq!(refused.code(), "secret_key_in_use");
        assert!(refused.to_string().contains(&format!("{old}, which seals 1 value")), "{refused}");
    }
    set(&control, "two").await.unwrap();
    all_open(&control, &["one", "two"]).await;
    let again = server(&shared, &["0a"]);
    again.check_secret_keys().await.unwrap();
    all_open(&again, &["one", "two"]).await;
}

#[tokio::test]
async fn a_key_may_go_once_nothing_is_sealed_with_it() {
    let folder = folder();
    let control = server(&store(folder.path()), &["0a"]);
    set(&control, "one").await.unwrap();
    let both = control.fit_keys(ring(&["0b", "0a"])).await.unwrap();
    control.turn_keys(both);
    let refused = control.fit_keys(ring(&["0b"])).await.err().expect("values are left");
    assert_eq!(refused.code(), "secret_key_in_use");
    control.reseal_once().await.unwrap();
    let alone = control.fit_keys(ring(&["0b"])).await.unwrap();
    control.turn_keys(alone);
    all_open(&control, &["one"]).await;
    let foreign = control.fit_keys(ring(&["0c"])).await.err().expect("what seals now may be on its way");
    assert_eq!(foreign.code(), "secret_key_in_use");
}

#[tokio::test]
async fn the_oldest_of_many_keys_does_not_make_room_while_it_is_needed() {
    let folder = folder();
    let bytes: Vec<String> = (1..=16).map(|byte| format!("{byte:02x}")).collect();
    let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
    let shared = store(folder.path());
    let control = server(&shared, &bytes[15..]);
    set(&control, "one").await.unwrap();
    let control = server(&shared, &bytes);
    let next = ring(&bytes).with_first(ring(&["ff"]).first().clone());
    let refused = control.fit_keys(next.clone()).await.err().expect("a value is left");
    assert_eq!(refused.code(), "secret_key_in_use");
    all_open(&control, &["one"]).await;
    control.reseal_once().await.unwrap();
    control.turn_keys(control.fit_keys(next).await.unwrap());
    all_open(&control, &["one"]).await;
}

#[tokio::test]
async fn a_crash_amid_sealing_anew_loses_nothing() {
    let folder = folder();
    let names = ["a", "b", "c", "d", "e"];
    let shared = store(folder.path());
    let control = server(&shared, &["0a"]);
    for name in names {
        set(&control, name).await.unwrap();
    }
    control.turn_keys(control.fit_keys(ring(&["0b", "0a"])).await.unwrap());
    let both = ring(&["0b", "0a"]);
    for name in ["a", "b"] {
        let key = crate::resources::key(Kind::Secret, "default", name);
        let stored = ostler_store::StoreExt::resource(&*control.store, key).await.unwrap().unwrap();
        assert!(control.reseal(&both, &stored).await.unwrap());
    }
    drop(control);
    for half in [["0a"], ["0b"]] {
        let control = server(&shared, &half);
        let starts = control.check_secret_keys().await;
        assert_eq!(starts.is_ok(), half == ["0a"], "the check is sealed anew when all else is: {starts:?}");
    }
    let control = server(&shared, &["0b", "0a"]);
    control.check_secret_keys().await.unwrap();
    all_open(&control, &names).await;
    assert_eq!(control.secret_keys().await.unwrap().left, 3);
    control.reseal_once().await.unwrap();
    assert_eq!(control.secret_keys().await.unwrap().left, 0);
    let control = server(&shared, &["0b"]);
    control.check_secret_keys().await.unwrap();
    all_open(&control, &names).await;
}

#[tokio::test]
async fn of_two_servers_with_keys_of_their_own_the_second_to_seal_is_refused() {
    let folder = folder();
    let shared = store(folder.path());
    let (one, other) = (server(&shared, &["0a"]), server(&shared, &["0b"]));
    for control in [&one, &other] {
        control.check_secret_keys().await.expect("there is nothing yet that it could not open");
    }
    // At the same moment: one of them wins.
    let (by_one, by_other) = tokio::join!(set(&one, "one"), set(&other, "other"));
    let (winner, loser, refused) = match (by_one, by_other) {
        (Ok(()), Err(refused)) => ((&one, "one"), (&other, "other"), refused),
        (Err(refused), Ok(())) => ((&other, "other"), (&one, "one"), refused),
        both => panic!("one and only one may seal: {both:?}"),
    };
    assert_eq!(refused.code(), "secret_key_wrong");
    assert!(refused.to_string().contains("can't be opened with the keys of this server"), "{refused}");
    all_open(winner.0, &[winner.1]).await;
    let again = set(loser.0, loser.1).await.unwrap_err();
    assert_eq!(again.code(), "secret_key_wrong");
    let turned = loser.0.fit_keys(ring(&["0c", "0a", "0b"])).await;
    assert!(turned.is_ok(), "with the other's keys it may");
    assert!(loser.0.fit_keys(ring(&["0c"])).await.is_err());
}

#[tokio::test]
async fn a_server_that_was_left_behind_seals_nothing() {
    let folder = folder();
    let shared = store(folder.path());
    let (one, behind) = (server(&shared, &["0a"]), server(&shared, &["0a"]));
    set(&one, "one").await.unwrap();
    set(&behind, "two").await.unwrap();
    one.turn_keys(one.fit_keys(ring(&["0b", "0a"])).await.unwrap());
    one.reseal_once().await.unwrap();
    let refused = set(&behind, "three").await.unwrap_err();
    assert_eq!(refused.code(), "secret_key_wrong", "the old key may be gone by now: {refused}");
    all_open(&one, &["one", "two"]).await;
}

#[tokio::test]
async fn what_is_put_is_hidden_from_then_on_and_what_is_tried_is_not() {
    let folder = folder();
    let control = server(&store(folder.path()), &["0a"]);
    let secret = |value: &str| {
        let spec = json!({"stringData": {"value": value}});
        ostler_spec::from_json(&json!({"kind": "Secret", "metadata": {"name": "one"}, "spec": spec})).unwrap()
    };
    control.apply(secret("geheim-wort-1")).await.unwrap();
    assert_eq!(control.config.redactor.hidden("it is geheim-wort-1"), "it is [REDACTED]");
    control.apply_if(secret("geheim-wort-2"), &crate::Precondition::Any, Effect::DryRun).await.unwrap();
    assert_eq!(control.config.redactor.hidden("it is geheim-wort-2"), "it is geheim-wort-2");
}
