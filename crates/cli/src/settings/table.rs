//! Every setting there is: its name in the file, its flag, its variable, its default, and how it is checked.

use std::{fs, fs::File, net::SocketAddr, path::Path, time::Duration};

use ostler_server::StoreAddress;
use ostler_spec::GoDuration;
use ostler_worker::{Prices, ServerAddress};

use super::network;
use crate::error::with_causes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Server,
    Worker,
    /// Of a worker of its own: how it finds its server, and what it shows.
    Link,
    /// What both ends of the link need.
    Shared,
    /// How models and tools are called.
    Network,
    Log,
}

impl Group {
    pub const ALL: &[Group] =
        &[Group::Server, Group::Worker, Group::Link, Group::Shared, Group::Network, Group::Log];
}

#[derive(Debug)]
pub struct Setting {
    pub group: Group,
    /// In the file, with a dot for each level.
    pub key: &'static str,
    pub flag: &'static str,
    pub variable: &'static str,
    /// What its value is called in `--help`; empty for a switch.
    pub value: &'static str,
    pub default: Option<&'static str>,
    pub help: &'static str,
    pub check: fn(&str) -> Result<(), String>,
}

impl Setting {
    pub fn is_switch(&self) -> bool {
        self.value.is_empty()
    }

    /// The value without a password in it. The last `@` counts: a password may have one, too.
    pub fn shown(&self, text: &str) -> String {
        if self.is_store() {
            return StoreAddress::shown(text);
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (format!("{scheme}://"), rest),
            None if self.is_proxy() => (String::new(), text),
            None => return text.to_owned(),
        };
        match rest.rsplit_once('@').map(|(who, host)| (who.split_once(':'), host)) {
            Some((Some((name, _)), host)) => format!("{scheme}{name}:***@{host}"),
            // Who shows a proxy one word shows a token.
            Some((None, host)) if self.is_proxy() => format!("{scheme}***@{host}"),
            Some((None, _)) | None => text.to_owned(),
        }
    }

    /// What is wrong with saying this in a flag: others on the machine see it.
    pub fn unfit_for_flag(&self, text: &str) -> Option<String> {
        let what = if self.is_proxy() && text.contains('@') {
            "who you are to the proxy"
        } else if self.is_store() && self.shown(text) != text {
            "an address with a password"
        } else {
            return None;
        };
        Some(format!(
            "others on this machine see what a command is called with: say {what} in {}, or in `{}` of the \
             configuration file",
            self.variable, self.key
        ))
    }

    fn is_store(&self) -> bool {
        self.key == STORE.key
    }

    fn is_proxy(&self) -> bool {
        self.key == PROXY.key
    }
}

macro_rules! settings {
    ($($group:ident { $($name:ident: $key:literal, $flag:literal, $variable:literal, $value:literal, $default:expr, $check:expr, $help:literal;)* })*) => {
        $($(pub static $name: Setting = Setting {
            group: Group::$group,
            key: $key,
            flag: $flag,
            variable: $variable,
            value: $value,
            default: $default,
            help: $help,
            check: $check,
        };)*)*

        pub fn all() -> impl Iterator<Item = &'static Setting> {
            [$($(&$name),*),*].into_iter()
        }
    };
}

settings! {
    Server {
        LISTEN: "listen", "listen", "OSTLER_LISTEN", "ADDRESS", Some("127.0.0.1:7070"), address,
            "Where to listen; port 0 takes a free one";
        STORE: "store", "store", "OSTLER_STORE", "ADDRESS", None, store,
            "Where tasks are kept: sqlite:PATH, or postgres://USER@HOST/DATABASE, which several servers may share (without it, store.db in the data folder). A password only in the variable or the file";
        LEASE: "lease", "lease", "OSTLER_LEASE", "DURATION", Some("30s"), lease,
            "A worker that is silent for so long has lost its runs";
        KEEP: "keep", "keep", "OSTLER_KEEP", "DURATION", Some("90d"), keep,
            "How long a task is kept after its end, in days as 30d, or a duration as 36h; `forever` keeps them all";
        KEEP_TASKS: "keep_tasks", "keep-tasks", "OSTLER_KEEP_TASKS", "N", Some("1000000"), keep_tasks,
            "How many tasks of a namespace are kept, the newest and those that have not ended; `all` keeps any number";
        KEEP_SESSIONS: "keep_sessions", "keep-sessions", "OSTLER_KEEP_SESSIONS", "DURATION", Some("365d"), keep,
            "How long a conversation that has a name is kept after its last use, in days as 365d, or a duration; `forever` keeps them all";
        KEEP_WORKERS: "keep_workers", "keep-workers", "OSTLER_KEEP_WORKERS", "DURATION", Some("24h"), keep,
            "How long a worker that gives no sign of life stays in the list, by the server's own clock; `forever` keeps them all";
        ARCHIVE_AFTER: "archive_after", "archive-after", "OSTLER_ARCHIVE_AFTER", "DURATION", Some("never"), archive_after,
            "How long after its end a task is archived: out of lists, and still there by its name; `never` leaves that to people";
        TLS_CERTIFICATE: "tls.certificate", "tls-certificate", "OSTLER_TLS_CERTIFICATE", "FILE", None, pem_file,
            "Serve TLS with this certificate, in PEM, those that vouch for it behind it";
        TLS_KEY: "tls.key", "tls-key", "OSTLER_TLS_KEY", "FILE", None, pem_file,
            "The key of the certificate, in PEM";
        INSECURE: "insecure", "insecure", "OSTLER_INSECURE", "", Some("false"), switch,
            "Serve other machines without TLS, because something in front of the server sees to it";
        ALLOW_ORIGIN: "allow_origin", "allow-origin", "OSTLER_ALLOW_ORIGIN", "ORIGIN,...", None, origins,
            "Other sites whose pages may call with a token, each as https://app.example; cookies count only from pages of the server's own";
        TOKEN_FILE: "tokens.api", "token-file", "OSTLER_TOKEN_FILE", "FILE", None, token_file,
            "Holds the token that clients show, the same for servers that share a store (without it, one in the data folder)";
        SETUP_TOKEN_FILE: "tokens.setup", "setup-token-file", "OSTLER_SETUP_TOKEN_FILE", "FILE", None, token_file,
            "Holds a token that makes the first user and nothing else; OSTLER_SETUP_TOKEN is the token itself (without either, it takes the token of clients)";
        SECRET_KEY_FILE: "secret_key_file", "secret-key-file", "OSTLER_SECRET_KEY_FILE", "FILE", None, key_file,
            "Holds the keys that secrets are sealed with, one to a line, the same for servers that share a store; OSTLER_SECRET_KEY is a key itself (without either, one in the data folder)";
        SESSION_TTL: "session_ttl", "session-ttl", "OSTLER_SESSION_TTL", "DURATION", Some("24h"), session_ttl,
            "A user who asks for nothing for so long has to sign in again";
        REQUESTS_PER_SECOND: "limits.requests_per_second", "requests-per-second", "OSTLER_REQUESTS_PER_SECOND", "N", Some("20000"), at_least_one,
            "Requests that are answered in a second, with room for twice as many in a row; health checks don't count";
        REQUESTS_PER_CALLER: "limits.requests_per_caller", "requests-per-caller", "OSTLER_REQUESTS_PER_CALLER", "N", Some("20000"), at_least_one,
            "The same of each token, user or, where nobody is known, address";
        STREAMS: "limits.streams", "streams", "OSTLER_STREAMS", "N", Some("8000"), at_least_one,
            "Readers who follow something live at once";
        STREAMS_PER_CALLER: "limits.streams_per_caller", "streams-per-caller", "OSTLER_STREAMS_PER_CALLER", "N", Some("4000"), at_least_one,
            "The same of each token or user";
        WATCHES: "limits.watches", "watches", "OSTLER_WATCHES", "N", Some("512"), at_least_one,
            "Watches at once, of resources, of tasks or of all events (/watch): each reads the log of everything for itself";
        WATCHES_PER_CALLER: "limits.watches_per_caller", "watches-per-caller", "OSTLER_WATCHES_PER_CALLER", "N", Some("128"), at_least_one,
            "The same of each token or user";
        CONNECTIONS: "limits.connections", "connections", "OSTLER_CONNECTIONS", "N", Some("16384"), at_least_one,
            "Connections at once; further ones wait (fewer, if the limit of open files leaves no room for them)";
    }
    Worker {
        WORKER_NAME: "worker.name", "worker-name", "OSTLER_WORKER_NAME", "NAME", None, name,
            "What the worker is called: unique, and the same after a restart, so that it takes up its runs at once";
        SLOTS: "worker.slots", "slots", "OSTLER_WORKER_SLOTS", "N", Some("64"), at_least_one,
            "Runs at once";
        REGION: "worker.region", "region", "OSTLER_WORKER_REGION", "NAME", Some("default"), name,
            "Where the worker is, for tasks that ask for it";
        LABELS: "worker.labels", "labels", "OSTLER_WORKER_LABELS", "KEY=VALUE,...", None, labels,
            "What the worker is like, to be seen in lists";
        CAPABILITIES: "worker.capabilities", "capabilities", "OSTLER_WORKER_CAPABILITIES", "NAME,...", None, names,
            "What the worker can do, for tasks that ask for it, such as gpu";
        MODELS: "worker.models", "models", "OSTLER_WORKER_MODELS", "NAME,...", None, names,
            "The models that the worker reaches, for tasks that ask for one (without it, any)";
        PRICES: "worker.prices", "prices", "OSTLER_PRICES", "FILE", None, prices,
            "What models cost, as JSON: prices that go before those that come along";
    }
    Link {
        SERVERS: "worker.servers", "servers", "OSTLER_WORKER_SERVERS", "URL,...", None, servers,
            "The servers to dial, any of which will do; --server names one";
        CA: "worker.ca", "ca", "OSTLER_WORKER_CA", "FILE", None, pem_file,
            "Who vouches for the servers, in PEM (without it, whoever this machine believes)";
        METRICS_LISTEN: "worker.metrics_listen", "metrics-listen", "OSTLER_WORKER_METRICS_LISTEN", "ADDRESS", None, address,
            "Where the worker shows its own figures, at /metrics and without a token, and at /healthz that it is there (without it, nowhere)";
    }
    Shared {
        WORKER_TOKEN_FILE: "tokens.worker", "worker-token-file", "OSTLER_WORKER_TOKEN_FILE", "FILE", None, token_file,
            "Holds the token that workers show; a worker reads it from there too (without it, one in the data folder)";
    }
    Network {
        PROXY: "network.proxy", "proxy", "OSTLER_PROXY", "PROXY", Some("off"), network::check_proxy,
            "Who dials models and tools: off, environment for what HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY say, or http://HOST:PORT. A user and a password before the host only in the variable or the file. The proxy has to refuse private addresses itself";
        NO_PROXY: "network.no_proxy", "no-proxy", "OSTLER_NO_PROXY", "HOST,...", None, network::check_no_proxy,
            "What is dialled without the proxy: domains with all below them, addresses, ranges as 10.0.0.0/8";
        NAMESERVERS: "network.nameservers", "nameservers", "OSTLER_NAMESERVERS", "ADDRESS,...", None, network::check_nameservers,
            "Who is asked for the addresses of models and tools, at most three (without it, the system)";
        CONNECT_TIMEOUT: "network.connect_timeout", "connect-timeout", "OSTLER_CONNECT_TIMEOUT", "DURATION", Some("10s"), network::check_wait,
            "No call of a model or a tool waits longer for a connection";
        IDLE_TIMEOUT: "network.idle_timeout", "idle-timeout", "OSTLER_IDLE_TIMEOUT", "DURATION", Some("55s"), network::check_wait,
            "How long a connection is kept that no call uses";
        IDLE_PER_HOST: "network.idle_per_host", "idle-per-host", "OSTLER_IDLE_PER_HOST", "N", Some("1024"), at_least_one,
            "Connections to one host that are kept for the next call";
    }
    Log {
        LOG_FORMAT: "log.format", "log-format", "OSTLER_LOG_FORMAT", "FORMAT", Some("text"), log_format,
            "How to log, to stderr: text, or json for one object per line";
        LOG: "log.filter", "log", "OSTLER_LOG", "FILTER", None, log_filter,
            "What to log, such as `debug` or `warn,ostler_worker=trace`";
    }
}

/// The parts of a list, without blanks around them.
pub fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// `key=value`.
pub fn label(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once('=')?;
    (!key.trim().is_empty()).then(|| (key.trim(), value.trim()))
}

fn address(text: &str) -> Result<(), String> {
    text.parse::<SocketAddr>()
        .map(drop)
        .map_err(|_| "expected an address and a port, such as 127.0.0.1:7070".to_owned())
}

fn store(text: &str) -> Result<(), String> {
    text.parse::<StoreAddress>().map(drop).map_err(|error| with_causes(&error))
}

fn lease(text: &str) -> Result<(), String> {
    let lease = text.parse::<GoDuration>().map_err(|error| error.to_string())?;
    // Renewing every few milliseconds would be all that a worker does.
    if lease < GoDuration::from_secs(1) { Err("expected at least 1s".to_owned()) } else { Ok(()) }
}

fn session_ttl(text: &str) -> Result<(), String> {
    let lasts = text.parse::<GoDuration>().map_err(|error| error.to_string())?;
    // Nobody could type that fast.
    if lasts < GoDuration::from_secs(60) { Err("expected at least 1m".to_owned()) } else { Ok(()) }
}

/// How long tasks are kept; none is for ever.
pub fn kept(text: &str) -> Option<Duration> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    match days {
        Some(days) => Some(Duration::from_secs(days.saturating_mul(24 * 60 * 60))),
        None => text.parse::<GoDuration>().ok().map(GoDuration::get),
    }
}

fn keep(text: &str) -> Result<(), String> {
    match kept(text) {
        None if text == "forever" => Ok(()),
        // Or a task might be gone before its caller has seen how it ended.
        Some(kept) if kept >= Duration::from_secs(60) => Ok(()),
        Some(_) => Err("expected at least 1m".to_owned()),
        None => Err("expected days such as 30d, a duration such as 36h, or forever".to_owned()),
    }
}

fn keep_tasks(text: &str) -> Result<(), String> {
    if text == "all" || tasks_kept(text).is_some() {
        Ok(())
    } else {
        Err("expected a number from 1 on, or all".to_owned())
    }
}

/// None keeps them all.
pub fn tasks_kept(text: &str) -> Option<usize> {
    text.parse().ok().filter(|count| *count > 0)
}

fn archive_after(text: &str) -> Result<(), String> {
    match kept(text) {
        None if text == "never" => Ok(()),
        Some(age) if age >= Duration::from_secs(60) => Ok(()),
        Some(_) => Err("expected at least 1m".to_owned()),
        None => Err("expected days such as 7d, a duration such as 36h, or never".to_owned()),
    }
}

fn token_file(text: &str) -> Result<(), String> {
    can_be_read(text, "that holds a token")
}

fn key_file(text: &str) -> Result<(), String> {
    can_be_read(text, "that holds keys, one to a line")
}

fn pem_file(text: &str) -> Result<(), String> {
    can_be_read(text, "in PEM")
}

fn can_be_read(path: &str, what: &str) -> Result<(), String> {
    // It may be there and not for us to read.
    File::open(Path::new(path)).map(drop).map_err(|error| format!("expected a file {what}: {error}"))
}

fn prices(path: &str) -> Result<(), String> {
    read_prices(Some(path)).map(drop)
}

/// The table that comes along, under the one of this file.
pub fn read_prices(path: Option<&str>) -> Result<Prices, String> {
    let Some(path) = path else { return Ok(Prices::standard()) };
    let text = fs::read_to_string(path).map_err(|error| format!("can't be read: {error}"))?;
    Prices::standard().under(&text).map_err(|error| error.to_string())
}

fn switch(text: &str) -> Result<(), String> {
    if matches!(text, "true" | "false") { Ok(()) } else { Err("expected true or false".to_owned()) }
}

fn at_least_one(text: &str) -> Result<(), String> {
    match text.parse::<u32>() {
        Ok(0) | Err(_) => Err("expected a number from 1 on".to_owned()),
        Ok(_) => Ok(()),
    }
}

/// Names go into headers and labels: letters, digits, and what usually stands between them.
fn name(text: &str) -> Result<(), String> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b':');
    if !text.is_empty() && text.len() <= 253 && text.bytes().all(is_plain) {
        return Ok(());
    }
    Err("expected letters, digits, and - _ . / : between them".to_owned())
}

fn names(text: &str) -> Result<(), String> {
    parts(text).try_for_each(name)
}

fn labels(text: &str) -> Result<(), String> {
    parts(text).try_for_each(|part| {
        let (key, value) = label(part).ok_or("expected KEY=VALUE, with commas between them")?;
        name(key)?;
        if value.is_empty() { Ok(()) } else { name(value) }
    })
}

fn servers(text: &str) -> Result<(), String> {
    parts(text)
        .try_for_each(|part| part.parse::<ServerAddress>().map(drop).map_err(|error| error.to_string()))
}

fn origins(text: &str) -> Result<(), String> {
    parts(text).try_for_each(origin)
}

/// As a browser names the site of a page: nothing that stands for many, and no path.
fn origin(text: &str) -> Result<(), String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':' | b'[' | b']');
    if host.is_some_and(|host| !host.is_empty() && host.bytes().all(is_plain)) {
        return Ok(());
    }
    Err(format!("expected sites such as https://app.example, without a path or a *, found {text:?}"))
}

fn log_format(text: &str) -> Result<(), String> {
    if matches!(text, "text" | "json") { Ok(()) } else { Err("expected text or json".to_owned()) }
}

fn log_filter(text: &str) -> Result<(), String> {
    let filter = tracing_subscriber::EnvFilter::try_new(text);
    filter.map(drop).map_err(|error| format!("{error}; such as `info`, or `warn,ostler_worker=debug`"))
}
