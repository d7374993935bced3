//! Who comes in: tokens, users and profiles, as the command line asks for them.

mod support;

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::json;
use support::{
    Up,
    fake::{Fake, ok, problem},
    ostler, run, run_with,
};

#[test]
fn a_token_is_told_once_and_alone() {
    let made = json!({"name": "ci", "role": "writer", "namespaces": ["staging"], "token": "ostler_new",
        "created_at": "2026-01-02T03:04:05Z", "expires_at": "2026-02-01T03:04:05Z"});
    let fake = Fake::start(move |_| ok(&made));
    let created = fake.ostler([
        "token",
        "create",
        "ci",
        "--role",
        "writer",
        "--namespaces",
        "staging",
        "--expires",
        "30d",
    ]);
    assert_eq!(created.ok(), "ostler_new\n");
    assert!(
        created.stderr.contains("token ci made: writer in staging; it is not shown again"),
        "{created:?}"
    );
    let asked = fake.asked.recv().unwrap();
    assert_eq!(asked.line, "POST /v1/tokens");
    let sent = asked.json();
    assert_eq!(
        (&sent["name"], &sent["role"], &sent["namespaces"]),
        (&json!("ci"), &json!("writer"), &json!(["staging"]))
    );
    assert!(sent["expires_at"].as_str().unwrap().starts_with("20"));
    fake.ostler(["token", "create", "ci", "--role", "king"]).failed(2, &["king", "reader"]);
    fake.ostler(["token", "create", "ci", "--expires", "soon"]).failed(2, &["30d"]);
}

#[test]
fn tokens_and_users_are_listed_in_every_form() {
    let fake = Fake::start(|asked| match asked.line.contains("users") {
        true => ok(&json!({"items": [{"name": "ada", "role": "admin", "namespaces": ["*"]}]})),
        false => ok(&json!({"items": [{"name": "ci", "role": "reader", "namespaces": ["a", "b"]}]})),
    });
    let listed = fake.ostler(["token", "list"]);
    assert_eq!(
        listed.ok(),
        "NAME   ROLE     NAMESPACES   EXPIRES   USED   AGE\nci     reader   a,b          never     -      -\n"
    );
    assert_eq!(fake.ostler(["token", "list", "-o", "name"]).ok(), "token/ci\n");
    assert_eq!(fake.ostler(["user", "list", "-o", "json"]).json()[0]["role"], "admin");
    assert!(fake.ostler(["user", "list"]).ok().contains("all namespaces"));
}

#[test]
fn all_pages_of_tokens_and_users_are_listed() {
    let fake = Fake::start(|asked| match asked.line.contains("after=ada") {
        true => ok(&json!({"items": [{"name": "bob", "role": "reader"}]})),
        false => ok(&json!({"items": [{"name": "ada", "role": "admin"}], "continue": "ada"})),
    });
    assert_eq!(fake.ostler(["user", "list", "-o", "name"]).ok(), "user/ada\nuser/bob\n");
    assert_eq!(fake.ostler(["token", "list", "-o", "name"]).ok(), "token/ada\ntoken/bob\n");
}

#[test]
fn passwords_come_from_stdin_or_a_terminal_and_from_nowhere_else() {
    let fake = Fake::start(|_| ok(&json!({"name": "ada", "role": "writer", "namespaces": ["*"]})));
    let arguments = ["user", "add", "ada", "--role", "writer", "--password-stdin"];
    assert_eq!(
        fake.ostler_with("correct horse\n", arguments).ok(),
        "user/ada added, writer in all namespaces\n"
    );
    let asked = fake.asked.recv().unwrap();
    assert_eq!(
        (asked.line.as_str(), &asked.json()["password"]),
        ("POST /v1/auth/users", &json!("correct horse"))
    );
    fake.ostler_with("\n", arguments).failed(2, &["the password is empty"]);
    // Without a terminal of one's own there is nobody to ask.
    let mut alone = support::shell(fake.folder(), "setsid -w ostler user password ada < /dev/null");
    run(&mut alone).failed(2, &["--password-stdin"]);
    fake.ostler(["user", "add", "ada", "--password", "x"]).failed(2, &["--password"]);

    fake.ostler_with("new one", ["user", "password", "ada", "--password-stdin"]).ok();
    let asked = fake.asked.recv().unwrap();
    assert_eq!(asked.line, "POST /v1/auth/admin/reset-password");
    assert_eq!(asked.json(), json!({"username": "ada", "new_password": "new one"}));
}

#[test]
fn a_user_is_changed_and_deleted() {
    let fake = Fake::start(|_| ok(&json!({"name": "ada", "role": "reader", "namespaces": ["a"]})));
    assert_eq!(fake.ostler(["user", "set", "ada", "--namespaces", "a"]).ok(), "user/ada is reader in a\n");
    let asked = fake.asked.recv().unwrap();
    assert_eq!(
        (asked.line.as_str(), asked.json()),
        ("PATCH /v1/auth/users/ada", json!({"namespaces": ["a"]}))
    );
    assert_eq!(fake.ostler(["user", "delete", "ada"]).ok(), "user/ada deleted\n");
    fake.ostler(["user", "set", "ada"]).failed(2, &["--role"]);
    let closed = Fake::start(|_| problem(403, "forbidden", "only admin may"));
    closed.ostler(["user", "delete", "ada"]).failed(7, &["only admin may"]);
    assert_eq!(fake.ostler(["token", "delete", "ci"]).ok(), "token/ci deleted\n");
}

#[test]
fn the_real_server_keeps_users_whose_passwords_let_them_in() {
    let up = Up::start();
    let add = ["user", "add", "ada", "--role", "writer", "--namespaces", "staging", "--password-stdin"];
    assert_eq!(up.ostler_with("correct horse battery\n", add).ok(), "user/ada added, writer in staging\n");
    let listed = up.ostler(["user", "list"]);
    let row: Vec<_> = listed.ok().lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..3], ["ada", "writer", "staging"], "{listed:?}");
    assert_eq!(up.ostler(["user", "list", "-o", "name"]).ok(), "user/ada\n");
    let set = up.ostler(["user", "set", "ada", "--role", "reader", "--namespaces", "*"]);
    assert_eq!(set.ok(), "user/ada is reader in all namespaces\n");

    assert!(signs_in(&up, "ada", "correct horse battery"));
    let another = up.ostler_with("another horse battery\n", ["user", "password", "ada", "--password-stdin"]);
    assert_eq!(another.ok(), "user/ada has another password\n");
    assert!(signs_in(&up, "ada", "another horse battery") && !signs_in(&up, "ada", "correct horse battery"));

    up.ostler(["user", "delete", "adda"]).failed(1, &["did you mean ada?"]);
    assert_eq!(up.ostler(["user", "delete", "ada"]).ok(), "user/ada deleted\n");
    assert!(!signs_in(&up, "ada", "another horse battery"));
    let none = up.ostler(["user", "list"]);
    assert!(none.ok().is_empty() && none.stderr.contains("no users"), "{none:?}");
}

#[allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test may dial what it started")]
fn signs_in(up: &Up, name: &str, password: &str) -> bool {
    let url = up.url();
    let address = url.strip_prefix("http://").unwrap();
    let body = json!({"username": name, "password": password}).to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/auth/login HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split_whitespace().nth(1).unwrap();
    assert!(matches!(status, "200" | "401"), "{answer}");
    status == "200"
}

#[test]
fn a_profile_is_kept_only_if_it_can_be_used() {
    let home = tempfile::tempdir().unwrap();
    let here = |arguments: &[&str]| run(ostler(home.path()).args(arguments));
    let set = |more: &[&str]| here(&[&["profile", "set"], more].concat());
    set(&["p"]).failed(2, &["nothing is said of profile \"p\"", "--server"]);
    set(&["p", "--server", "host:1"]).failed(2, &["not the address of a server (from --server)"]);
    set(&["", "--server", "http://h"]).failed(2, &["can't be the name of a profile"]);
    set(&["a b", "--server", "http://h"]).failed(2, &["white space"]);
    set(&["p", "--namespace", "a b"]).failed(2, &["--namespace"]);
    set(&["p", "--ca", "none.pem"]).failed(2, &["--ca none.pem: can't be read: No such file"]);
    fs::write(home.path().join("odd.pem"), "nonsense").unwrap();
    set(&["p", "--ca", "odd.pem"]).failed(2, &["--ca odd.pem", "certificate"]);
    assert!(here(&["profile", "list"]).ok().is_empty(), "nothing was kept");
    for name in ["one", "two", "three"] {
        set(&[name, "--server", "http://127.0.0.1:9"]).ok();
    }
    let told = here(&["profile", "delete", "one", "xyzzy"]);
    told.failed(2, &["there is no profile \"xyzzy\"", "`ostler profile list` lists them"]);
    assert_eq!(told.stdout, "");
    assert_eq!(
        here(&["profile", "delete", "one", "three"]).ok(),
        "profile/one deleted\nprofile/three deleted\n"
    );
    assert_eq!(here(&["profile", "list", "-o", "name"]).ok(), "profile/two\n");
}

#[test]
fn profiles_that_can_not_be_read_stop_only_those_who_need_them() {
    let fake = Fake::start(|_| ok(&json!({"items": []})));
    let place = fake.folder().join(".config/ostler");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("profiles.yaml"), "profiles:\n  a: [\n").unwrap();
    let mending = ["ostler/profiles.yaml:", "mend ", "or remove it"];
    // A profile would have come before the server of this folder.
    fake.ostler(["get", "agents", "-o", "name"]).failed(2, &mending);
    let data = fake.folder().join(".ostler");
    let found = fake.ostler(["get", "agents", "-o", "name", "--data", data.to_str().unwrap()]);
    assert!(found.ok().is_empty() && found.stderr.contains("profiles.yaml:"), "{found:?}");
    fake.ostler(["get", "agents", "--profile", "a"]).failed(2, &mending);
    fake.ostler(["profile", "set", "b", "--server", "http://127.0.0.1:9"]).failed(2, &mending);
    run(ostler(fake.folder())
        .args(["get", "agents", "--server", "http://127.0.0.1:9"])
        .env("OSTLER_TOKEN", "t"))
    .failed(6, &["nothing answers at"]);
}

#[test]
fn the_doctor_looks_at_what_the_token_may_see() {
    let up = Up::start();
    let token = up.ostler(["token", "create", "shop", "--namespaces", "shop"]);
    let told = run(ostler(up.folder()).args(["doctor", "-o", "json"]).env("OSTLER_TOKEN", token.ok().trim()));
    let checks = told.json();
    let verdict = |name: &str| {
        let check = checks.as_array().unwrap().iter().find(|check| check["name"] == name);
        check.map(|check| check["verdict"].as_str().unwrap().to_owned())
    };
    for (name, expected) in
        [("token", "ok"), ("resources", "ok"), ("references", "ok"), ("queue", "ok"), ("workers", "skip")]
    {
        assert_eq!(verdict(name).as_deref(), Some(expected), "{name}: {checks:#}");
    }
    let mut elsewhere = ostler(up.folder());
    let told = run(elsewhere.args(["doctor", "-n", "shop"]).env("OSTLER_TOKEN", token.ok().trim()));
    assert!(told.ok().contains("not for this token"), "{told:?}");
}

#[test]
fn a_profile_leads_to_its_server() {
    let fake = Fake::start(|_| ok(&json!({"items": []})));
    let home = tempfile::tempdir().unwrap();
    let url: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(fake.folder().join(".ostler/server.json")).unwrap())
            .unwrap();
    let url = url["url"].as_str().unwrap();
    let here = |arguments: &[&str]| run(ostler(home.path()).args(arguments));
    here(&["get", "agents"]).failed(6, &["no server found", "profile"]);
    let mut set = ostler(home.path());
    set.args(["profile", "set", "prod", "--server", url, "--namespace", "team", "--token-stdin"]);
    assert_eq!(run_with(&mut set, "ostler_kept\n").ok(), "profile/prod created\n");
    assert_eq!(here(&["get", "agents", "--profile", "prod", "-o", "name"]).ok(), "");
    let asked = fake.asked.recv().unwrap();
    assert_eq!(asked.line, "GET /v1/agents?namespace=team&limit=1000");
    assert!(asked.head.contains("Bearer ostler_kept"), "{}", asked.head);

    here(&["profile", "use", "prod"]).ok();
    let listed = here(&["profile", "list"]);
    assert!(listed.ok().contains("kept here") && !listed.stdout.contains("ostler_kept"), "{listed:?}");
    let shown = here(&["config", "show"]);
    for part in ["client.profile", "ostler profile use", "profile prod", "***", "team"] {
        assert!(shown.ok().contains(part), "no {part:?} in {}", shown.stdout);
    }
    assert!(!shown.stdout.contains("ostler_kept"));
    let mut empty = ostler(home.path());
    empty.args(["profile", "set", "other", "--server", url, "--token-stdin"]);
    run_with(&mut empty, " \n").failed(2, &["there is no token on stdin", "--token-env"]);
    assert!(!here(&["profile", "list"]).ok().contains("other"), "nothing was kept");
    here(&["get", "agents", "--profile", "prd"])
        .failed(2, &["there is no profile \"prd\"", "did you mean prod?"]);
    assert_eq!(here(&["profile", "delete", "prod"]).ok(), "profile/prod deleted\n");
    here(&["get", "agents"]).failed(6, &["no server found"]);
}
