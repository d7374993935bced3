//! A migration that was released is never changed: stores out there have been through it. `fixtures/migrations.txt` holds
//! the hash of each. `WRITE_FIXTURES=1 cargo test -p ostler-store compatibility` adds a new one;
//! `WRITE_FIXTURES=release` writes all of them anew, which is for those that nobody has yet.

use std::{env, fs, path::PathBuf};

use ostler_kernel::BlobId;

use crate::{postgres::schema as postgres, sqlite::schema as sqlite};

#[test]
fn migrations_that_were_released_stay_as_they_are() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/migrations.txt");
    let present =
        hashes("sqlite", sqlite::MIGRATIONS).into_iter().chain(hashes("postgres", postgres::MIGRATIONS));
    let present: Vec<String> = present.collect();
    let known = fs::read_to_string(&file).unwrap_or_default();
    let changed: Vec<&str> =
        known.lines().filter(|line| !present.iter().any(|known| known == line)).collect();
    let added: Vec<&String> =
        present.iter().filter(|line| !known.lines().any(|known| known == *line)).collect();
    match env::var("WRITE_FIXTURES").as_deref() {
        Ok("release") => return fs::write(&file, present.join("\n") + "\n").unwrap(),
        Ok(_) if changed.is_empty() => return fs::write(&file, present.join("\n") + "\n").unwrap(),
        Ok(_) | Err(_) => {}
    }
    assert!(
        changed.is_empty(),
        "{changed:?}: this migration was changed or removed, and stores have been through it as it was. Leave it, and \
         append one that makes the change"
    );
    assert!(
        added.is_empty(),
        "{added:?}: a new migration. Write down what it is (WRITE_FIXTURES=1 cargo test -p ostler-store compatibility), \
         and keep a store of before (testing/tests/old_stores.rs)"
    );
}

/// A line for each: the store, the version, the hash of the text.
fn hashes(store: &str, migrations: &[&str]) -> Vec<String> {
    let line = |(version, text): (u32, &&str)| format!("{store} {version} {}", BlobId::of(text.as_bytes()));
    (1..).zip(migrations).map(line).collect()
}
