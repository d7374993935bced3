//! What only a server can tell: whether it answers, what it lacks, and what is stuck in it.

use std::{collections::BTreeSet, fs, path::Path};

use ostler_client::{Client, TaskQuery, TaskView};
use ostler_spec::Kind;
use serde_json::Value;

use super::{Check, references};
use crate::{
    app::App,
    clock,
    commands::listing::{self, name_of, namespace_of},
    config::{self, Resolved},
    error::CommandError,
    exit::Exit,
};

/// More than this, and deadlines and ages are not what they seem.
const CLOCK_MS: i64 = 5_000;

/// Who has waited for so long while workers are free waits for something else.
const STUCK_MS: i64 = 60_000;

const LOOKED_AT: usize = 500;

pub async fn checks(app: &App) -> Vec<Check> {
    let resolved = match app.written.resolve() {
        Ok(resolved) => resolved,
        Err(error) => return vec![Check::of_error("server", error)],
    };
    let data = resolved.data.clone();
    let named = resolved.namespace.text.clone();
    let from = match &resolved.server {
        Ok(server) => format!("{} (from {})", server.text, server.from),
        Err(_) => String::new(),
    };
    let client = match client_of(resolved, app) {
        Ok(client) => client,
        Err(error) => return vec![Check::of_error("server", error)],
    };
    if let Err(error) = client.health().await {
        return vec![Check::of_error("server", error.into())];
    }
    let mut checks = vec![Check::ok("server", from)];
    checks.extend(clock(&client, app).await);
    match client.version().await {
        Ok(version) => checks.push(version_of(&version.version)),
        Err(error) => {
            checks.push(Check::of_error("token", error.into()));
            return checks;
        }
    }
    let (namespace, token) = within(&client, named).await;
    checks.push(token);
    checks.push(match client.ready().await {
        Ok(()) => Check::ok("store", "answers"),
        Err(error) => {
            Check::fail("store", error.to_string(), "the server's log says why; it tries again by itself")
        }
    });
    let client = client.in_namespace(namespace);
    checks.push(secrets(&client, data.as_deref()).await);
    checks.push(troubled(&client).await);
    checks.push(references::check(&client).await);
    let workers = workers(&client).await;
    checks.push(workers.0);
    checks.extend(tasks(&client, app, workers.1).await);
    checks
}

/// The namespaces that our token lets us look at: all of them, or else the one that was named, or the first.
async fn within(client: &Client, named: String) -> (String, Check) {
    let taken = "the server takes it";
    let grant = match client.grant().await {
        Ok(grant) if !grant.is_everywhere() => grant,
        _ => return ("*".to_owned(), Check::ok("token", taken)),
    };
    let own = grant.namespaces.join(", ");
    if grant.namespaces.contains(&named) {
        return (named, Check::ok("token", format!("{taken}; it is let into {own} alone")));
    }
    let first = grant.namespaces.into_iter().next().unwrap_or(named);
    let found = format!("{taken}; it is let into {own} alone, and {first} is looked at");
    (first, Check::ok("token", found))
}

fn client_of(resolved: Resolved, app: &App) -> Result<Client, CommandError> {
    drop(resolved.connection()?);
    app.client()
}

fn version_of(server: &str) -> Check {
    let own = env!("CARGO_PKG_VERSION");
    if server == own {
        return Check::ok("version", own);
    }
    Check::warn("version", format!("the server is {server}, this is {own}"), "use the same version for both")
}

async fn clock(client: &Client, app: &App) -> Option<Check> {
    let date = client.server_date().await.ok()??;
    let theirs = jiff::fmt::rfc2822::parse(&date).ok()?.timestamp().as_millisecond();
    // Theirs is cut to whole seconds.
    let apart = app.now_ms().saturating_sub(theirs).abs();
    if apart < CLOCK_MS {
        return Some(Check::ok("clock", "the server's and ours agree"));
    }
    let found = format!("the server's clock and ours are {} apart", clock::took_ms(apart));
    Some(Check::warn("clock", found, "set both by NTP; deadlines go by the server's"))
}

/// Each key that a model endpoint names has to be where the server finds it.
async fn secrets(client: &Client, data: Option<&Path>) -> Check {
    let endpoints = match listing::all(client, Kind::ModelEndpoint).await {
        Ok(endpoints) => endpoints,
        Err(error) => return Check::unseen("model secrets", error),
    };
    let named = |endpoint: &Value| {
        let secret = endpoint.pointer("/spec/auth/secretRef")?.as_str()?;
        let home = namespace_of(endpoint);
        let secret = if secret.contains('/') { secret.to_owned() } else { format!("{home}/{secret}") };
        Some((name_of(endpoint).to_owned(), secret))
    };
    let named: Vec<(String, String)> = endpoints.iter().filter_map(named).collect();
    let kept: BTreeSet<String> = match listing::all(client, Kind::Secret).await {
        Ok(secrets) => secrets.iter().map(|secret| name_of(secret).to_owned()).collect(),
        Err(_) => BTreeSet::new(),
    };
    let variables = data.and_then(variables_of_server);
    let missing = |(_, secret): &&(String, String)| {
        let name = secret.rsplit('/').next().unwrap_or(secret).split(':').next().unwrap_or(secret);
        !kept.contains(name) && !variables.as_ref().is_some_and(|set| is_set(set, secret))
    };
    let missing: Vec<String> =
        named.iter().filter(missing).map(|(one, key)| format!("{one}: {key}")).collect();
    if missing.is_empty() {
        return Check::ok(
            "model secrets",
            format!("none is missing, {} model endpoints name one", named.len()),
        );
    }
    let remedy = "`ostler secret set NAME` keeps one; or set each in the worker's environment, as OSTLER_SECRET_OPENAI_KEY for \
         openai-key, and restart it";
    match variables {
        Some(_) => Check::fail("model secrets", format!("not there: {}", missing.join(", ")), remedy),
        None => {
            let found = format!("can't be seen from here: {}", missing.join(", "));
            Check::warn("model secrets", found, remedy)
        }
    }
}

/// The names of the variables that the server of this folder was started with, if it is ours to look at.
pub fn variables_of_server(data: &Path) -> Option<BTreeSet<String>> {
    let pid = config::read_server(data).ok()?.pid?;
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let name = |variable: &[u8]| {
        let name = variable.split(|byte| *byte == b'=').next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    };
    Some(bytes.split(|byte| *byte == 0).filter_map(name).collect())
}

/// The server looks for a secret under this name.
pub fn is_set(variables: &BTreeSet<String>, secret: &str) -> bool {
    ostler_worker::secret_variable(secret).is_some_and(|name| variables.contains(&name))
}

/// Declared objects that say of themselves that something is wrong.
async fn troubled(client: &Client) -> Check {
    let mut found = Vec::new();
    for kind in Kind::ALL.iter().filter(|kind| !matches!(kind, Kind::Task | Kind::Worker)) {
        let objects = match listing::all(client, *kind).await {
            Ok(objects) => objects,
            Err(error) if error.exit() == Exit::Unauthorized => return Check::skip("resources"),
            Err(_) => continue,
        };
        let is_wrong =
            |object: &&Value| object.pointer("/status/phase").and_then(Value::as_str) == Some("Error");
        let title =
            |object: &Value| format!("{}/{} ({})", kind.singular(), name_of(object), namespace_of(object));
        found.extend(objects.iter().filter(is_wrong).map(title));
    }
    if found.is_empty() {
        return Check::ok("resources", "none is in error");
    }
    Check::warn(
        "resources",
        format!("in error: {}", found.join(", ")),
        "`ostler describe KIND/NAME` tells why",
    )
}

/// And whether one of them has room, if that can be seen.
async fn workers(client: &Client) -> (Check, Option<bool>) {
    let workers = match client.workers().await {
        Ok(workers) => workers,
        Err(error) => return (Check::unseen("workers", error.into()), None),
    };
    let is_ready = |phase: &str, standing: &str| phase == "Ready" && standing == "open";
    let ready: Vec<_> =
        workers.iter().filter(|worker| is_ready(&worker.status.phase, &worker.status.standing)).collect();
    let has_room = |slots: u32, runs: usize| runs < usize::try_from(slots).unwrap_or(usize::MAX);
    let free =
        ready.iter().any(|worker| has_room(worker.spec.max_concurrent_tasks, worker.status.current_tasks));
    let silent: Vec<&str> = workers
        .iter()
        .filter(|worker| worker.status.phase == "NotReady")
        .map(|worker| worker.metadata.name.as_str())
        .collect();
    let check = match (ready.len(), free) {
        (0, _) => Check::fail(
            "workers",
            format!("none of {} takes runs", workers.len()),
            "`ostler up` has one, `ostler worker` starts one, `ostler uncordon NAME` opens one",
        ),
        (count, false) => Check::warn(
            "workers",
            format!("{count} ready, every slot taken"),
            "more slots (--slots) or another `ostler worker`",
        ),
        (count, true) if !silent.is_empty() => Check::warn(
            "workers",
            format!("{count} ready, silent: {}", silent.join(", ")),
            "their runs went to others; start them again if they should be there",
        ),
        (count, true) => Check::ok("workers", format!("{count} ready")),
    };
    (check, Some(free))
}

async fn tasks(client: &Client, app: &App, has_room: Option<bool>) -> Vec<Check> {
    let list = |states: &'static [&'static str]| async move {
        let states = states.iter().map(|state| (*state).to_owned()).collect();
        let query = TaskQuery { states, limit: Some(LOOKED_AT), ..TaskQuery::default() };
        client.tasks(&query).await.map(|page| page.items)
    };
    let (queued, waiting) = (list(&["queued"]).await, list(&["waiting"]).await);
    let mut checks = Vec::new();
    match queued {
        Ok(queued) => checks.push(stuck(&queued, app, has_room)),
        Err(error) => checks.push(Check::unseen("queue", error.into())),
    }
    if let Ok(waiting) = waiting {
        checks.push(quarantined(client, &waiting).await);
    }
    checks
}

fn stuck(queued: &[TaskView], app: &App, has_room: Option<bool>) -> Check {
    let is_old = |task: &&TaskView| {
        let created = clock::parse(&task.metadata.created_at);
        created.is_some_and(|at| app.now_ms().saturating_sub(at) > STUCK_MS)
    };
    let old: Vec<&str> = queued.iter().filter(is_old).map(|task| task.metadata.name.as_str()).collect();
    match (old.is_empty(), has_room) {
        (true, _) if queued.len() == 1 => Check::ok("queue", "1 task waits"),
        (true, _) => Check::ok("queue", format!("{} tasks wait", queued.len())),
        (false, Some(true)) => Check::warn(
            "queue",
            format!("queued for over a minute while workers are free: {}", some(&old)),
            "do they ask for a region, a GPU or a model that no worker has, or wait for a session? `ostler describe task/NAME`",
        ),
        (false, Some(false)) => Check::warn(
            "queue",
            format!("queued for over a minute: {}", some(&old)),
            "no worker has room; start another `ostler worker`",
        ),
        (false, None) => Check::warn(
            "queue",
            format!("queued for over a minute: {}", some(&old)),
            "`ostler workers` tells whether one has room, to those who may see workers",
        ),
    }
}

async fn quarantined(client: &Client, waiting: &[TaskView]) -> Check {
    let mut held = Vec::new();
    for task in waiting {
        let home = client.clone().in_namespace(&task.metadata.namespace);
        let Ok(task) = home.task(&task.metadata.uid).await else { continue };
        if task.status.waiting_for.is_some_and(|waiting| waiting.kind == "quarantine") {
            held.push(task.metadata.name);
        }
    }
    let held: Vec<&str> = held.iter().map(String::as_str).collect();
    if held.is_empty() {
        return Check::ok("quarantine", "empty");
    }
    Check::warn(
        "quarantine",
        format!("lost their workers again and again: {}", some(&held)),
        "`ostler logs NAME` shows how; `ostler release NAME` lets it go on, `ostler cancel NAME` ends it",
    )
}

/// The first few, and how many more.
fn some(names: &[&str]) -> String {
    const TOLD: usize = 5;
    let told = names.iter().take(TOLD).copied().collect::<Vec<_>>().join(", ");
    if names.len() > TOLD { format!("{told} and {} more", names.len() - TOLD) } else { told }
}
