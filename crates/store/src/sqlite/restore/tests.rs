//! Restores into a folder of their own, from backups that are whole, foreign, newer and damaged.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ostler_kernel::{
    Timestamp,
    resource::{ResourceKey, StoredResource, put},
};
use rusqlite::Connection;
use tempfile::TempDir;

use super::{RestoreError, restore};
use crate::{ResourceFilter, SqliteStore, Store, StoreExt};

struct Place {
    folder: TempDir,
    store: PathBuf,
    backup: PathBuf,
}

/// A folder with a backup that holds the resource `saved`.
async fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let (store, backup) = (folder.path().join("store.db"), folder.path().join("backup.db"));
    let source = SqliteStore::open_inline(&folder.path().join("source.db")).unwrap();
    put_resource(&source, "saved").await;
    source.backup(&backup).unwrap();
    Place { folder, store, backup }
}

async fn put_resource(store: &SqliteStore, name: &str) {
    let key = ResourceKey { kind: "Agent".into(), namespace: "default".into(), name: name.into() };
    let created_at = Timestamp::from_millis(1);
    let resource =
        StoredResource { key, version: 1, generation: 1, created_at, document: serde_json::json!({}) };
    store.commit(vec![put(resource, None)]).await.unwrap().remove(0).unwrap();
}

/// The names of the resources in a store.
async fn resources(path: &Path) -> Vec<String> {
    let store = SqliteStore::open_inline(path).unwrap();
    let resources = store
        .resources(ResourceFilter { kind: "Agent".into(), limit: 100, ..ResourceFilter::default() })
        .await
        .unwrap();
    resources.into_iter().map(|resource| resource.key.name).collect()
}

/// What lies in the folder beside the backup, its source and the lock.
fn files(place: &Place) -> Vec<String> {
    let names = fs::read_dir(place.folder.path()).unwrap();
    let mut names: Vec<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("store.db"))
        .collect();
    names.retain(|name| !name.ends_with(".lock"));
    names.sort();
    names
}

#[tokio::test]
async fn a_backup_becomes_the_store() {
    let place = place().await;
    restore(&place.backup, &place.store, false).unwrap();
    assert_eq!(files(&place), ["store.db"]);
    assert_eq!(resources(&place.store).await, ["saved"]);
    assert!(place.backup.exists());
}

#[tokio::test]
async fn a_store_is_not_replaced_unless_forced_and_then_kept() {
    let place = place().await;
    for name in ["first", "second"] {
        let _ = fs::remove_file(&place.store);
        let store = SqliteStore::open_inline(&place.store).unwrap();
        put_resource(&store, name).await;
        drop(store);
        let refused = restore(&place.backup, &place.store, false).unwrap_err();
        assert!(matches!(refused, RestoreError::Exists { .. }), "{refused}");
        assert_eq!(resources(&place.store).await, [name]);
        restore(&place.backup, &place.store, true).unwrap();
        assert_eq!(resources(&place.store).await, ["saved"]);
    }
    let kept = |number| place.folder.path().join(format!("store.db.replaced-{number}"));
    assert_eq!(resources(&kept(1)).await, ["first"]);
    assert_eq!(resources(&kept(2)).await, ["second"]);
}

#[tokio::test]
async fn what_a_crash_left_in_the_log_belongs_to_the_old_store_only() {
    let place = place().await;
    let store = SqliteStore::open_inline(&place.store).unwrap();
    put_resource(&store, "in the log").await;
    let log = fs::read(place.folder.path().join("store.db-wal")).unwrap();
    assert!(!log.is_empty());
    let main = fs::read(&place.store).unwrap();
    drop(store);
    // As a crash leaves it: the database, and beside it a log that was never written into it.
    fs::write(&place.store, main).unwrap();
    fs::write(place.folder.path().join("store.db-wal"), &log).unwrap();
    restore(&place.backup, &place.store, true).unwrap();
    assert_eq!(files(&place), ["store.db", "store.db.replaced-1"]);
    assert_eq!(resources(&place.store).await, ["saved"]);
    assert_eq!(resources(&place.folder.path().join("store.db.replaced-1")).await, ["in the log"]);
}

#[tokio::test]
async fn a_copy_of_a_crashed_store_with_its_log_is_a_backup_too() {
    let place = place().await;
    let live = SqliteStore::open_inline(&place.folder.path().join("live.db")).unwrap();
    put_resource(&live, "in the log").await;
    for suffix in ["", "-wal"] {
        let name = |base: &str| place.folder.path().join(format!("{base}{suffix}"));
        fs::copy(name("live.db"), name("copied.db")).unwrap();
    }
    restore(&place.folder.path().join("copied.db"), &place.store, false).unwrap();
    assert_eq!(files(&place), ["store.db"]);
    assert_eq!(resources(&place.store).await, ["in the log"]);
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_is_kept_as_it_was() {
    let place = place().await;
    fs::write(&place.store, "rubbish").unwrap();
    fs::write(place.folder.path().join("store.db-wal"), "more rubbish").unwrap();
    restore(&place.backup, &place.store, true).unwrap();
    assert_eq!(resources(&place.store).await, ["saved"]);
    let kept =
        |suffix: &str| fs::read_to_string(place.folder.path().join(format!("store.db.replaced-1{suffix}")));
    assert_eq!((kept("").unwrap().as_str(), kept("-wal").unwrap().as_str()), ("rubbish", "more rubbish"));
}

#[tokio::test]
async fn stale_files_beside_do_not_get_into_the_new_store() {
    let place = place().await;
    for suffix in super::SIDE_FILES {
        fs::write(place.folder.path().join(format!("store.db{suffix}")), "stale").unwrap();
        fs::write(place.folder.path().join(format!("store.db.restoring{suffix}")), "stale").unwrap();
    }
    restore(&place.backup, &place.store, false).unwrap();
    assert_eq!(files(&place), ["store.db"]);
    assert_eq!(resources(&place.store).await, ["saved"]);
}

#[tokio::test]
async fn a_store_in_use_is_left_alone() {
    let place = place().await;
    let store = SqliteStore::open_inline(&place.store).unwrap();
    put_resource(&store, "live").await;
    let refused = restore(&place.backup, &place.store, true).unwrap_err();
    let own = std::process::id().to_string();
    assert!(matches!(&refused, RestoreError::InUse { holder, .. } if *holder == own), "{refused}");
    drop(store);
    assert_eq!(resources(&place.store).await, ["live"]);
}

/// Restores something that is no good over a store that is, and looks that nothing changed.
async fn check_refused(spoil: impl FnOnce(&Path)) -> RestoreError {
    let place = place().await;
    let store = SqliteStore::open_inline(&place.store).unwrap();
    put_resource(&store, "kept").await;
    drop(store);
    spoil(&place.backup);
    let refused = restore(&place.backup, &place.store, true).unwrap_err();
    assert_eq!(files(&place), ["store.db"], "nothing is left behind");
    assert_eq!(resources(&place.store).await, ["kept"]);
    refused
}

#[tokio::test]
async fn what_is_no_backup_is_refused() {
    let missing = check_refused(|backup| fs::remove_file(backup).unwrap()).await;
    assert!(matches!(missing, RestoreError::Io { .. }), "{missing}");
    for text in ["", "short", "a text that is long enough to be read but is no database"] {
        let refused = check_refused(|backup| fs::write(backup, text).unwrap()).await;
        assert!(matches!(refused, RestoreError::NotAStore { .. }), "{text:?}: {refused}");
    }
    for version in [0, 1] {
        let refused = check_refused(|backup| {
            fs::remove_file(backup).unwrap();
            let other = Connection::open(backup).unwrap();
            other
                .execute_batch(&format!("CREATE TABLE songs (name); PRAGMA user_version = {version}"))
                .unwrap();
        });
        let refused = refused.await;
        assert!(matches!(refused, RestoreError::NotAStore { .. }), "version {version}: {refused}");
    }
}

#[tokio::test]
async fn a_newer_one_is_refused() {
    let refused = check_refused(|backup| {
        Connection::open(backup).unwrap().execute_batch("PRAGMA user_version = 999").unwrap();
    });
    let refused = refused.await;
    assert!(matches!(refused, RestoreError::Outdated(_)), "{refused}");
}

#[tokio::test]
async fn a_damaged_one_is_refused() {
    let cut = check_refused(|backup| {
        let bytes = fs::read(backup).unwrap();
        fs::write(backup, &bytes[..bytes.len() / 2]).unwrap();
    });
    let cut = cut.await;
    assert!(matches!(cut, RestoreError::Damaged { .. }), "{cut}");
    let scribbled = check_refused(|backup| {
        let mut bytes = fs::read(backup).unwrap();
        let page = bytes.len() / 4096 / 2 * 4096;
        bytes[page..page + 4096].fill(0xaa);
        fs::write(backup, bytes).unwrap();
    });
    let scribbled = scribbled.await;
    assert!(matches!(scribbled, RestoreError::Damaged { .. }), "{scribbled}");
}
