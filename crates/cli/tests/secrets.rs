//! `ostler secret` against the real server: what a person sees, and what they never see.

mod support;

use std::fs;

use rustix::process::Signal;
use support::{Up, ostler, run};

#[test]
fn a_secret_is_set_listed_found_and_deleted_and_never_shown() {
    let up = Up::start();
    let set = up.ostler_with("hush-hush-123\n", ["secret", "set", "openai-key", "--from-stdin"]);
    assert_eq!(set.ok(), "secret/openai-key set: value\n");
    assert_eq!(set.stderr, "", "nothing to warn of");
    fs::write(up.folder().join("pem"), "-----BEGIN-----\nabcdefghijklmnopqrstuvwxyz\n").unwrap();
    let file = format!("ca={}", up.folder().join("pem").display());
    assert_eq!(
        up.ostler(["secret", "set", "openai-key", "--from-file", &file]).ok(),
        "secret/openai-key set: ca\n"
    );
    assert!(up.ostler(["secret", "list"]).ok().contains("openai-key   ca,value"), "its other value stays");
    let found = "found: kept by the server, as default/openai-key:value\n";
    assert_eq!(up.ostler(["secret", "check", "openai-key"]).ok(), found);
    up.ostler(["secret", "check", "openai-key:token"]).failed(1, &["has no key token", "ca, value"]);
    up.ostler(["secret", "check", "other"])
        .failed(1, &["not found", "OSTLER_SECRET_OTHER", "secret set other"]);
    up.ostler(["secret", "check", "a:b:c"]).failed(2, &["namespace/name:key"]);
    for shown in [["get", "secrets", "-o", "yaml"], ["get", "secret/openai-key", "-o", "json"]] {
        let shown = up.ostler(shown);
        assert!(shown.ok().contains("***") && !shown.stdout.contains("aHVzaC"), "{shown:?}");
    }
    assert_eq!(up.ostler(["secret", "delete", "openai-key"]).ok(), "secret/openai-key deleted\n");
    up.ostler(["secret", "delete", "openai-key"]).failed(1, &["openai-key"]);
}

#[test]
fn what_stands_in_a_command_is_warned_of_and_what_can_t_be_is_refused() {
    let up = Up::start();
    let set = up.ostler(["secret", "set", "a", "token=ab1"]);
    set.ok();
    assert!(
        set.stderr.contains("your shell remembers it") && set.stderr.contains("shorter than 6"),
        "{set:?}"
    );
    up.ostler(["secret", "set", "a", "hush-hush"]).failed(2, &["KEY=VALUE", "--from-stdin"]);
    assert!(!up.ostler(["secret", "set", "a", "hush-hush"]).stderr.contains("hush"), "it is not shown again");
    up.ostler_with(" \n", ["secret", "set", "a", "--from-stdin"]).failed(2, &["the value is empty"]);
    up.ostler(["secret", "set", "a", "k=***"]).failed(2, &["can't be one"]);
    up.ostler(["secret", "set", "a", "--from-file", "nowhere"]).failed(2, &["KEY=PATH"]);
    up.ostler(["secret", "set", "a", "--from-file", "k=/nowhere/at/all"]).failed(1, &["/nowhere/at/all"]);
}

#[test]
fn a_backup_is_put_in_place_once_its_key_is_there() {
    let up = Up::start();
    up.ostler_with("hush-hush-123", ["secret", "set", "a", "--from-stdin"]).ok();
    up.ostler(["backup", "b.db"]).ok();
    let (backup, key) = (up.folder().join("b.db"), up.folder().join(".ostler/secret-key"));
    let fresh = tempfile::tempdir().unwrap();
    let restore = ["--restore", backup.to_str().unwrap()];
    for _ in 0..2 {
        let mut start = ostler(fresh.path());
        run(start.args(["up", "--listen", "127.0.0.1:0"]).args(restore))
            .failed(1, &["is not the one that this store's secrets are sealed with", "--secret-key-file"]);
    }
    let left: Vec<_> =
        fs::read_dir(fresh.path().join(".ostler")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "token" || name == "worker-token"), "{left:?}");
    let with_key = [&restore[..], &["--secret-key-file", key.to_str().unwrap()]].concat();
    let restored = Up::start_in(fresh.path(), &with_key);
    assert!(restored.ostler(["secret", "check", "a"]).ok().starts_with("found"));
    assert_eq!(restored.stop().code(), Some(0));
    // Without the flag again, and then with the key where it is looked for.
    run(ostler(fresh.path()).args(["up", "--listen", "127.0.0.1:0"])).failed(1, &["--secret-key-file"]);
    fs::copy(&key, fresh.path().join(".ostler/secret-key")).unwrap();
    let restored = Up::start_in(fresh.path(), &[]);
    assert!(restored.ostler(["secret", "check", "a"]).ok().starts_with("found"));
}

#[test]
fn keys_are_turned_and_the_old_one_may_go() {
    let up = Up::start();
    up.ostler_with("hush-hush-123", ["secret", "set", "a", "--from-stdin"]).ok();
    let turned = up.ostler(["secret", "rotate"]);
    assert_eq!(turned.ok(), "every secret is sealed with the first key\n");
    assert!(
        turned.stderr.contains("seals from now on") && turned.stderr.contains("may go from"),
        "{turned:?}"
    );
    assert!(up.ostler(["secret", "check", "a"]).ok().starts_with("found"));
}

#[test]
fn a_turn_of_keys_survives_a_server_that_is_killed_again_and_again() {
    const SECRETS: usize = 250;
    let folder = tempfile::tempdir().unwrap();
    let mut up = Up::start_in(folder.path(), &[]);
    let secret = |number: usize| {
        format!(
            "---\nkind: Secret\nmetadata: {{name: s{number}}}\nspec: {{stringData: {{value: hush-{number}-hush}}}}\n"
        )
    };
    up.apply(&(0..SECRETS).map(secret).collect::<String>()).ok();
    for _ in 0..4 {
        // The next key is put before those that have not come to an end.
        let begun = up.ostler(["secret", "rotate", "--no-wait"]);
        assert!(begun.ok().contains("secrets are left to be sealed"), "{begun:?}");
        up.signal(Signal::KILL);
        up.wait();
        up = Up::start_in(folder.path(), &[]);
    }
    assert_eq!(up.ostler(["secret", "rotate"]).ok(), "every secret is sealed with the first key\n");
    up.stop();
    let ring = folder.path().join(".ostler/secret-key");
    let keys = fs::read_to_string(&ring).unwrap();
    assert_eq!(keys.lines().filter(|line| !line.trim().is_empty()).count(), 1 + 5, "one for each turn");
    fs::write(&ring, keys.lines().next().unwrap()).unwrap();
    let up = Up::start_in(folder.path(), &[]);
    // To seal one anew it has to be opened, with the one key that is left.
    assert_eq!(up.ostler(["secret", "rotate"]).ok(), "every secret is sealed with the first key\n");
    assert!(up.ostler(["secret", "check", &format!("s{}", SECRETS - 1)]).ok().starts_with("found"));
}
