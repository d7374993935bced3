//! `ostler secret` against the real server: what a person sees, and what they never see.

mod support;

use std::fs;

use support::Up;

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
    up.ostler_with(" \n", ["secret", "set", "a", "--from-stdin"]).failed(2, &["the value of value is empty"]);
    up.ostler(["secret", "set", "a", "k=***"]).failed(2, &["can't be one"]);
    up.ostler(["secret", "set", "a", "--from-file", "nowhere"]).failed(2, &["KEY=PATH"]);
    up.ostler(["secret", "set", "a", "--from-file", "k=/nowhere/at/all"]).failed(1, &["/nowhere/at/all"]);
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
