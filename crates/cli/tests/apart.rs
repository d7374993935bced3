//! Server and worker as processes of their own, and their settings.

mod support;

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
};

use rcgen::CertifiedKey;
use rustix::process::Signal;
use support::{Up, example, ostler, run, slow_agent};

#[test]
fn a_worker_that_dials_runs_what_the_server_takes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Up::server(folder.path(), "127.0.0.1:0");
    let worker = Up::worker(folder.path(), &[]);
    server.ostler(["apply", "-f", &example("hello/agent.yaml")]).ok();
    let ran = server.ostler(["run", "hello", "hi", "--name", "one"]);
    assert!(ran.ok().contains("hi"), "{ran:?}");
    assert!(server.ostler(["logs", "one"]).ok().contains("hi"));
    run(ostler(folder.path()).arg("worker")).failed(1, &["another worker runs in", "--worker-name"]);
    assert_eq!(worker.stop().code(), Some(0));
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_worker_shows_its_figures_where_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let server = Up::server(folder.path(), "127.0.0.1:0");
    let worker = Up::dialling(folder.path(), &["--metrics-listen", "127.0.0.1:0"]);
    let line = worker.wait_for_line("showing figures").pop().unwrap();
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    server.ostler(["apply", "-f", &example("hello/agent.yaml")]).ok();
    server.ostler(["run", "hello", "hi"]).ok();
    let (status, figures) = get(&address, "/metrics");
    let calls = "gen_ai_client_operation_duration_seconds_count";
    assert!(status.ends_with("200 OK") && figures.contains(calls), "{status} {figures}");
    assert!(figures.contains("ostler_spans_dropped_total 0"), "{figures}");
    assert!(get(&address, "/healthz").0.ends_with("200 OK"));
    assert!(get(&address, "/v1/tasks").0.ends_with("404 Not Found"), "and nothing else");
    run(ostler(folder.path()).args(["worker", "--worker-name", "other", "--metrics-listen", &address]))
        .failed(1, &["can't listen at", "--metrics-listen"]);
    assert_eq!(worker.stop().code(), Some(0));
}

/// The first line of the answer, and all of it.
#[allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may dial what it started, and stop at once"
)]
fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.lines().next().unwrap_or_default().to_owned(), answer)
}

#[test]
fn a_killed_server_costs_its_workers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Up::server(folder.path(), "127.0.0.1:0");
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let worker = Up::worker(folder.path(), &[]);
    server.apply(&slow_agent()).ok();
    let name = server.ostler(["run", "-d", "slow", "hi"]).ok().trim().to_owned();
    let mut follow = ostler(folder.path());
    let mut follow =
        follow.args(["events", &name, "-f"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let events = support::lines_of(follow.stdout.take().unwrap());
    assert!(events.iter().any(|line| line.contains("attempt_started")));
    server.signal(Signal::KILL);
    drop(server);
    follow.kill().unwrap();
    follow.wait().unwrap();

    let server = Up::server(folder.path(), &address);
    worker.wait_for_line("linked");
    let events = server.ostler(["events", &name]);
    assert_eq!(events.ok().matches("attempt_started").count(), 1, "the same attempt goes on: {events:?}");
    assert_eq!(events.stdout.matches("attempt_ended").count(), 0, "{events:?}");
    server.ostler(["cancel", &name]).ok();
    assert_eq!(worker.stop().code(), Some(0));
}

#[test]
fn a_worker_says_what_keeps_it_out() {
    let folder = tempfile::tempdir().unwrap();
    let worker = |arguments: &[&str]| run(ostler(folder.path()).arg("worker").args(arguments));
    worker(&[]).failed(6, &["no server found", "ostler up"]);
    worker(&["--server", "http://127.0.0.1:9"]).failed(7, &["no token", "OSTLER_WORKER_TOKEN"]);
    worker(&["--server", "nonsense", "--token", "x"]).failed(2, &["nonsense", "http://HOST:PORT"]);
    let server = Up::server(folder.path(), "127.0.0.1:0");
    worker(&["--token", "wrong"]).failed(7, &["refused", "worker-token"]);
    drop(server);
}

#[test]
fn a_worker_is_ready_once_a_server_knows_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Up::server(folder.path(), "127.0.0.1:0");
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let token = fs::read_to_string(folder.path().join(".ostler/worker-token")).unwrap();
    assert_eq!(server.stop().code(), Some(0));
    let elsewhere = tempfile::tempdir().unwrap();
    let url = format!("http://{address}");
    let worker = Up::dialling(elsewhere.path(), &["--server", &url, "--token", token.trim()]);
    let told = worker.wait_for_line("dialling on");
    assert!(!told.iter().any(|line| line.contains("ready")), "{told:?}");
    let server = Up::server(folder.path(), &address);
    worker.wait_for_line("ready");
    let listed = server.ostler(["workers", "-o", "name"]);
    assert_eq!(listed.ok().lines().count(), 1, "{listed:?}");
    assert_eq!(worker.stop().code(), Some(0));
}

#[test]
fn flags_go_before_variables_for_servers_and_tokens_too() {
    let folder = tempfile::tempdir().unwrap();
    let server = Up::server(folder.path(), "127.0.0.1:0");
    let wrong = folder.path().join("wrong");
    fs::write(&wrong, "wrong").unwrap();
    let right = fs::read_to_string(folder.path().join(".ostler/worker-token")).unwrap();
    let worker = |arguments: &[&str]| {
        let variables = [("OSTLER_SERVER", "http://127.0.0.1:9"), ("OSTLER_WORKER_TOKEN", right.trim())];
        run(ostler(folder.path()).arg("worker").args(arguments).envs(variables))
    };
    let (url, wrong) = (server.url(), wrong.to_str().unwrap());
    // Whoever is refused has come to the server of the flag, with the token of the flag.
    worker(&["--servers", &url, "--worker-token-file", wrong]).failed(7, &["refused", &url]);
    worker(&["--servers", &url, "--token", "wrong"]).failed(7, &["refused", &url]);
    drop(server);
}

#[test]
fn who_loses_its_name_to_another_worker_stays_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let server = Up::server(folder.path(), "127.0.0.1:0");
    let named = ["--worker-name", "same"];
    let mut first = Up::worker(folder.path(), &named);
    // Whoever registers last has the name.
    let is_there = |_| server.ostler(["workers"]).ok().contains("same");
    assert!((0..1000).any(is_there), "the first never registered");
    let elsewhere = tempfile::tempdir().unwrap();
    let token = folder.path().join(".ostler/worker-token");
    let (url, token) = (server.url(), token.to_str().unwrap());
    let reached = ["--server", &url, "--worker-token-file", token];
    let second = Up::worker(elsewhere.path(), &[&named[..], &reached].concat());
    let told = first.wait_for_line("a name of its own");
    assert!(told.iter().any(|line| line.contains("another one has registered under its name")), "{told:?}");
    assert_eq!(first.wait().code(), Some(9));
    assert_eq!(second.stop().code(), Some(0));
    // Started again it would take the name back, and so on.
    for unit in ["ostler.service", "ostler-worker.service"] {
        let unit = fs::read_to_string(example(&format!("../deploy/systemd/{unit}"))).unwrap();
        assert!(unit.contains("\nRestartPreventExitStatus=2 9\n"), "{unit}");
    }
}

#[test]
fn a_stranger_who_takes_the_name_of_the_worker_of_up_takes_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start_in(folder.path(), &[]);
    up.ostler(["apply", "-f", &example("hello/agent.yaml")]).ok();
    let is_there = |_| up.ostler(["workers", "-o", "name"]).ok() == "worker/local\n";
    assert!((0..1000).any(is_there), "its own never registered");
    let elsewhere = tempfile::tempdir().unwrap();
    let token = folder.path().join(".ostler/worker-token");
    let (url, token) = (up.url(), token.to_str().unwrap());
    let reached = ["--server", &url, "--worker-token-file", token, "--worker-name", "local", "--slots", "7"];
    let stranger = Up::worker(elsewhere.path(), &reached);
    let told = up.wait_for_line("another worker has registered under the name of this one").pop().unwrap();
    assert!(told.contains("taken=\"local\"") && told.contains("name=\"local-"), "{told}");
    let is_back = |_| up.ostler(["workers", "-o", "name"]).ok().contains("worker/local-");
    assert!((0..1000).any(is_back), "it never came back");
    assert_eq!(stranger.stop().code(), Some(0));
    let ran = up.ostler(["run", "hello", "hi", "--name", "one"]);
    assert!(ran.ok().contains("hi"), "{ran:?}");
    let log = up.ostler(["logs", "one"]);
    assert!(log.ok().contains("started on local-"), "{log:?}");
    assert_eq!(up.stop().code(), Some(0));
}

#[test]
fn settings_come_from_flags_variables_and_a_file_and_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".ostler")).unwrap();
    let file = folder.path().join(".ostler/config.yaml");
    fs::write(&file, "lease: 9s\nstore: postgres://me:geheim@db/ostler\nworker:\n  labels: {disk: ssd}\n")
        .unwrap();
    let shown = run(ostler(folder.path())
        .args(["config", "show", "--slots", "3"])
        .env("OSTLER_LISTEN", "127.0.0.1:1"));
    let row = |setting: &str| -> Vec<String> {
        let line = shown.ok().lines().find(|line| line.starts_with(setting)).unwrap();
        line.split_whitespace().map(ToOwned::to_owned).collect()
    };
    assert_eq!(row("listen"), ["listen", "127.0.0.1:1", "OSTLER_LISTEN"]);
    assert_eq!(row("lease"), ["lease", "9s", ".ostler/config.yaml:1:1"]);
    assert_eq!(row("store"), ["store", "postgres://me:***@db/ostler", ".ostler/config.yaml:2:1"]);
    assert_eq!(row("worker.slots"), ["worker.slots", "3", "--slots"]);
    assert_eq!(row("worker.labels"), ["worker.labels", "disk=ssd", ".ostler/config.yaml:4:12"]);
    assert_eq!(row("insecure"), ["insecure", "false", "default"]);
    assert_eq!(row("worker.ca")[1..], ["-", "not", "set"]);
    let json = run(ostler(folder.path()).args(["config", "show", "-o", "json"]));
    let settings: serde_json::Value = serde_json::from_str(json.ok()).unwrap();
    assert!(!json.stdout.contains("geheim") && settings.as_array().unwrap().len() > 10);

    fs::write(&file, "lease: soon\nlisten: 127.0.0.1\nwroker: {slots: 1}\n").unwrap();
    run(ostler(folder.path()).args(["up", "--slots", "none"])).failed(
        2,
        &[
            "config.yaml:1:1",
            "config.yaml:2:1",
            "wroker.slots is no setting, did you mean \"worker.slots\"?",
            "--slots",
        ],
    );
}

#[test]
fn a_server_tells_all_that_its_settings_get_wrong_together() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".ostler")).unwrap();
    fs::write(folder.path().join("api.token"), "short").unwrap();
    fs::write(folder.path().join("tls.key"), "no key").unwrap();
    let mistaken = |command: &[&str]| {
        run(ostler(folder.path())
            .args(command)
            .env("OSTLER_LISTEN", "0.0.0.0:7070")
            .env("OSTLER_STORE", "postgres://me:geheim@h:x/d")
            .env("OSTLER_TLS_KEY", "tls.key")
            .env("OSTLER_SECRET_KEY", "geheimer-schluessel")
            .env("OSTLER_TOKEN_FILE", "api.token")
            .env("OSTLER_PROXY", "environment")
            .env("HTTPS_PROXY", "socks5://h:1")
            .env("OTEL_TRACES_SAMPLER", "nonsense"))
    };
    let told = [
        "OSTLER_STORE: \"postgres://me:***@h:x/d\" can't be used",
        "port",
        "OSTLER_TLS_KEY: TLS takes a certificate and its key: give --tls-certificate too",
        "OSTLER_TOKEN_FILE: can't read the token in \"api.token\"",
        "secret key of OSTLER_SECRET_KEY",
        "OTEL_TRACES_SAMPLER",
    ];
    let server = mistaken(&["server"]);
    server.failed(2, &told);
    server.failed(2, &["ostler config show"]);
    assert_eq!(server.stderr.lines().count(), 7, "{}", server.stderr);
    let up = mistaken(&["up"]);
    up.failed(2, &told);
    up.failed(2, &["OSTLER_PROXY: "]);

    let shown = mistaken(&["config", "show"]);
    shown.failed(2, &told);
    for row in ["store (!) ", "tls.key (!) ", "tokens.api (!) ", "network.proxy (!) ", "listen ", "lease "] {
        assert!(shown.stdout.lines().any(|line| line.starts_with(row)), "{row}: {}", shown.stdout);
    }
    for said in [&server, &up, &shown] {
        assert!(!format!("{said:?}").contains("geheim"), "{said:?}");
    }
    let rows: serde_json::Value =
        serde_json::from_str(mistaken(&["config", "show", "-o", "json"]).ended(2)).unwrap();
    let row = |setting| rows.as_array().unwrap().iter().find(|row| row["setting"] == setting).unwrap();
    assert!(row("store")["mistake"].as_str().unwrap().contains("port"), "{rows}");
    assert_eq!(row("lease").get("mistake"), None);
    assert_eq!(
        (&row("OSTLER_SECRET_KEY")["value"], &row("data")["value"]),
        (&"***".into(), &".ostler".into())
    );
    assert_eq!(row("OSTLER_WORKER_TOKEN")["from"], "not set");
}

#[test]
fn what_settings_name_is_read_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("nonsense"), "nonsense\n").unwrap();
    let started = |command: &str, setting: &str, value: &str| {
        run(ostler(folder.path()).args([command, "--data", "data"]).env(setting, value))
    };
    started("server", "OSTLER_LISTEN", "0.0.0.0:0").failed(2, &["OSTLER_LISTEN: 0.0.0.0:0", "--insecure"]);
    started("server", "OSTLER_SECRET_KEY_FILE", "nonsense")
        .failed(2, &["OSTLER_SECRET_KEY_FILE: ", "openssl"]);
    started("server", "OSTLER_SETUP_TOKEN", "short").failed(2, &["OSTLER_SETUP_TOKEN"]);
    started("server", "OSTLER_STORE", "postgres://h/d?sslmode=bogus")
        .failed(2, &["OSTLER_STORE: ", "verify-full"]);
    started("server", "OSTLER_STORE", "postgres://h/d?sslmode=verify-ca&sslrootcert=nonsense")
        .failed(2, &["OSTLER_STORE: ", "nonsense"]);
    started("worker", "OSTLER_WORKER_CA", "nonsense").failed(2, &["OSTLER_WORKER_CA: "]);
    assert!(!folder.path().join("data").exists(), "something was begun");
    let both = run(ostler(folder.path())
        .args(["server", "--data", "data", "--tls-certificate", "nonsense", "--tls-key", "nonsense"])
        .args(["--listen", "0.0.0.0:0"]));
    both.failed(2, &["--tls-certificate: can't offer TLS"]);
    assert!(!both.stderr.contains("loopback"), "{}", both.stderr);
}

#[test]
fn a_password_for_the_database_is_taken_from_no_flag() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["server", "up"] {
        let refused =
            run(ostler(folder.path()).args([command, "--store", "postgres://me:geheim@127.0.0.1:1/d"]));
        refused.failed(2, &["OSTLER_STORE", "configuration file"]);
        assert!(!refused.stderr.contains("geheim"), "{}", refused.stderr);
    }
}

/// The example that is shipped: as it stands it changes nothing, and with its lines taken in it sets everything.
#[test]
fn the_example_of_a_file_names_every_setting() {
    let folder = tempfile::tempdir().unwrap();
    let example = fs::read_to_string(example("../deploy/config.example.yaml")).unwrap();
    let file = folder.path().join("config.yaml");
    let show = |arguments: &[&str]| -> Vec<serde_json::Value> {
        let shown = run(ostler(folder.path()).args(["config", "show", "-o", "json"]).args(arguments)).json();
        // Where commands go is not a setting of servers and workers, and no file says where it is itself.
        let is_setting = |row: &&serde_json::Value| {
            let name = row["setting"].as_str().unwrap();
            !["client.", "OSTLER_"].iter().any(|prefix| name.starts_with(prefix))
                && !["data", "config"].contains(&name)
        };
        shown.as_array().unwrap().iter().filter(is_setting).cloned().collect()
    };
    let values = |shown: &[serde_json::Value]| -> Vec<serde_json::Value> {
        shown.iter().map(|setting| setting["value"].clone()).collect()
    };

    let defaults = show(&[]);
    fs::write(&file, &example).unwrap();
    assert_eq!(values(&show(&["--config", "config.yaml"])), values(&defaults));

    // A # without a blank behind it is in front of a setting.
    let taken_in = example.lines().map(|line| {
        let begins = line.len() - line.trim_start().len();
        match line[begins..].strip_prefix('#') {
            Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => {
                format!("{}{rest}\n", &line[..begins])
            }
            _ => format!("{line}\n"),
        }
    });
    let taken_in = taken_in.collect::<String>().replace("/etc/ostler/", "");
    fs::write(&file, taken_in).unwrap();
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for (name, text) in [
        ("server.pem", cert.pem()),
        ("server.key", signing_key.serialize_pem()),
        ("ca.pem", cert.pem()),
        ("api.token", "a".repeat(16)),
        ("worker.token", "w".repeat(16)),
        ("setup.token", "s".repeat(16)),
        ("secret.key", "A".repeat(43) + "="),
        ("prices.json", r#"{"prices": []}"#.to_owned()),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    for setting in show(&["--config", "config.yaml"]) {
        assert!(
            setting["from"].as_str().unwrap().starts_with("config.yaml:"),
            "not in the example: {setting}"
        );
    }

    let help = run(ostler(folder.path()).args(["config", "show", "--help"]));
    let words = help.ok().split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    // Where a command works is not told by a file.
    let elsewhere = ["OSTLER_DATA", "OSTLER_NAMESPACE", "OSTLER_PROFILE"];
    for variable in words.filter(|word| word.starts_with("OSTLER_") && !elsewhere.contains(word)) {
        assert!(example.contains(variable), "{variable} is not in the example");
    }
}
