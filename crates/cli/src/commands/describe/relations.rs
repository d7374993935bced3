//! What hangs together with an object: whom it names, who names it, and what is drawn of it.

use ostler_client::{Client, TaskQuery, TaskView};
use ostler_spec::{Kind, Resource, Spec};
use serde_json::Value;

use super::page::Page;
use crate::{
    app::App,
    clock,
    commands::listing::{self, name_of, namespace_of},
    graph::{Canvas, Graph},
    paint::Tone,
};

/// Of how many tasks the last ones of an agent are looked for, and how many of them are told.
const LOOKED_AT: usize = 200;
const TOLD: usize = 5;

/// A reader who may not see one of these is told the rest.
pub async fn describe(page: &mut Page, app: &App, client: &Client, kind: Kind, object: &Value) {
    let home = client.clone().in_namespace(namespace_of(object));
    match kind {
        Kind::Agent => agent(page, app, &home, object).await,
        Kind::AgentSystem => system(page, app, &home, object).await,
        Kind::ModelEndpoint => {
            let names = |agent: &Value| {
                let fallbacks = references(agent, "/spec/fallback_model_refs");
                references(agent, "/spec/model_ref").into_iter().chain(fallbacks).collect()
            };
            users(page, &home, object, Kind::Agent, "agents that ask it", names).await;
        }
        Kind::Tool => {
            let names = |agent: &Value| references(agent, "/spec/tools");
            users(page, &home, object, Kind::Agent, "agents that may call it", names).await;
            let names = |rule: &Value| references(rule, "/spec/tool_ref");
            users(page, &home, object, Kind::ToolPermission, "permissions about it", names).await;
        }
        Kind::AgentRole => {
            let names = |agent: &Value| references(agent, "/spec/roles");
            users(page, &home, object, Kind::Agent, "agents that bear it", names).await;
        }
        Kind::Memory => {
            let names = |agent: &Value| references(agent, "/spec/memory/ref");
            users(page, &home, object, Kind::Agent, "agents that use it", names).await;
        }
        Kind::McpServer => {
            let names = |tool: &Value| references(tool, "/spec/mcp_server_ref");
            users(page, &home, object, Kind::Tool, "tools of it", names).await;
        }
        _ => {}
    }
}

async fn agent(page: &mut Page, app: &App, client: &Client, object: &Value) {
    let (models, tools) = (references(object, "/spec/model_ref"), references(object, "/spec/tools"));
    page.section("needs");
    let titles = models.iter().map(|name| title(Kind::ModelEndpoint, name));
    page.titles(titles.chain(tools.iter().map(|name| title(Kind::Tool, name))));
    for name in &models {
        needed(page, client, Kind::ModelEndpoint, name, |it| {
            format!("{} {}", text(it, "/spec/provider"), text(it, "/spec/default_model"))
        })
        .await;
    }
    for name in &tools {
        needed(page, client, Kind::Tool, name, |it| {
            format!("{} {}", text(it, "/spec/type"), text(it, "/spec/endpoint"))
        })
        .await;
    }
    let names = |system: &Value| references(system, "/spec/agents");
    users(page, client, object, Kind::AgentSystem, "systems it is in", names).await;
    let name = name_of(object);
    last_tasks(page, app, client, |task| task.spec.agent == name).await;
}

async fn system(page: &mut Page, app: &App, client: &Client, object: &Value) {
    let agents = references(object, "/spec/agents");
    page.section("needs");
    page.titles(agents.iter().map(|name| title(Kind::Agent, name)));
    for name in &agents {
        needed(page, client, Kind::Agent, name, |it| format!("model {}", text(it, "/spec/model_ref"))).await;
    }
    if let Ok(Resource { spec: Spec::AgentSystem(spec), .. }) = serde_json::from_value(object.clone()) {
        page.section("graph");
        let output = page.output();
        let canvas =
            Canvas { columns: page.columns(), paint: output.paint(), is_utf8: output.terminal.is_utf8 };
        for line in Graph::of(&spec).lines(canvas) {
            page.raw(&line);
        }
    }
    let name = name_of(object);
    last_tasks(page, app, client, |task| task.spec.system.as_deref() == Some(name)).await;
}

fn title(kind: Kind, reference: &str) -> String {
    format!("{}/{reference}", kind.singular())
}

/// Something that is named, and whether it is there.
async fn needed(
    page: &mut Page,
    client: &Client,
    kind: Kind,
    reference: &str,
    about: impl Fn(&Value) -> String,
) {
    let (home, name) = match reference.split_once('/') {
        Some((namespace, name)) => (client.clone().in_namespace(namespace), name),
        None => (client.clone(), reference),
    };
    let title = title(kind, reference);
    match home.get(kind, name).await {
        Ok(found) => match text(&found, "/status/lastError") {
            problem if problem.is_empty() => page.line(&title, about(&found).trim()),
            problem => page.toned(&title, &problem, Tone::Bad),
        },
        Err(error) if error.code() == Some("not_found") => {
            if kind == Kind::ModelEndpoint
                && let Some(about) = alias(&home, name).await
            {
                return page.line(&title, &about);
            }
            page.toned(&title, "is not there; whoever needs it fails", Tone::Bad);
        }
        Err(error) => page.toned(&title, &error.to_string(), Tone::Pending),
    }
}

/// Which endpoint has this as an alias, and for what.
async fn alias(client: &Client, name: &str) -> Option<String> {
    let all = listing::all(client, Kind::ModelEndpoint).await.ok()?;
    all.iter().find_map(|endpoint| {
        let model = aliases(endpoint).find(|(alias, _)| *alias == name)?.1.as_str()?;
        Some(format!("{model}, an alias of model-endpoint/{}", name_of(endpoint)))
    })
}

/// Other names of an object that can be named by them, with what they stand for.
pub fn aliases(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let aliases = object.pointer("/spec/aliases").and_then(Value::as_object);
    aliases.into_iter().flatten().map(|(alias, model)| (alias.as_str(), model))
}

/// Those of a kind that name this object.
async fn users(
    page: &mut Page,
    client: &Client,
    object: &Value,
    kind: Kind,
    title: &str,
    names: impl Fn(&Value) -> Vec<String>,
) {
    let Ok(all) = listing::all(client, kind).await else { return };
    let own: Vec<&str> =
        std::iter::once(name_of(object)).chain(aliases(object).map(|(alias, _)| alias)).collect();
    let home = namespace_of(object);
    let is_own = |named: &str| match named.split_once('/') {
        Some((namespace, name)) => namespace == home && own.contains(&name),
        None => own.contains(&named),
    };
    let is_user = |other: &&Value| names(other).iter().any(|named| is_own(named));
    let users: Vec<&str> = all.iter().filter(is_user).map(name_of).collect();
    if !users.is_empty() {
        page.section(title);
        page.remark(Tone::Plain, &users.join(", "));
    }
}

async fn last_tasks(page: &mut Page, app: &App, client: &Client, is_wanted: impl Fn(&TaskView) -> bool) {
    let query = TaskQuery { limit: Some(LOOKED_AT), ..TaskQuery::default() };
    let Ok(tasks) = client.tasks(&query).await else { return };
    let wanted: Vec<TaskView> = tasks.items.into_iter().filter(is_wanted).take(TOLD).collect();
    if wanted.is_empty() {
        return;
    }
    page.section("last tasks");
    page.titles(wanted.iter().map(|task| &task.metadata.name));
    for task in wanted {
        let age = clock::parse(&task.metadata.created_at).map(|at| clock::age(at, app.now_ms()));
        let error = task.status.error.map(|error| format!(", {}", error.code)).unwrap_or_default();
        let line = format!("{}, {} ago{error}", task.status.state, age.unwrap_or_default());
        page.toned(&task.metadata.name, &line, Tone::of_state(&task.status.state));
    }
}

/// What is named there: one reference, or a list of them.
pub fn references(object: &Value, path: &str) -> Vec<String> {
    match object.pointer(path) {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn text(object: &Value, path: &str) -> String {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}
