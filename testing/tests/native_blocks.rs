//! What only a vendor understands survives `kill -9`: the server is killed while a tool runs, and what it kept of the
//! model's thinking goes back to the vendor to the letter. The scripted model proves its own signatures, so that a changed
//! one is refused.

#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "vendors/setup.rs"]
mod setup;

use std::{net::SocketAddr, path::Path, time::Duration};

use ostler_client::Client;
use ostler_testing::{
    model_server::{ModelServer, Script},
    program::{Program, find_binary, free_address},
    tool_server::ToolServer,
};
use serde_json::{Value, json};
use setup::{ALL, Vendor};

/// Long enough to be killed in.
const TOOL_MS: u32 = 1500;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thinking_goes_back_to_the_letter_after_a_kill() {
    for vendor in ALL.into_iter().filter(|vendor| vendor.thinks) {
        try_vendor(vendor).await;
    }
}

async fn try_vendor(vendor: Vendor) {
    let name = vendor.name;
    let folder = tempfile::tempdir().expect("a folder");
    let model = ModelServer::start(Script::Plan).await.expect("a model");
    let tools = ToolServer::start().await.expect("tools");
    let address = free_address().await.expect("a port");
    let mut server = program(folder.path(), address);
    let client = start(&mut server, folder.path(), address).await;
    declare(&client, vendor, &model, &tools).await;
    let plan = "plan: tool lookup {\"q\":\"a\"} think=\"first I look\", text=\"it is done\" think=\"so\"";
    let spec = json!({ "agent": "thinker", "session": "one", "input": { "message": plan } });
    client.create_task(&manifest("Task", "think", spec)).await.expect("a task");

    until(&format!("{name}: the tool is called"), || tools.desk().all().inflight == 1).await;
    server.kill().await.expect("it is killed");
    assert_eq!(model.requests().len(), 1, "{name}: one call was answered before");
    let client = start(&mut server, folder.path(), address).await;
    let ended = wait(&client, "think").await;
    assert_eq!(ended["status"]["state"], "succeeded", "{name}: {ended:#}");
    assert_eq!(model.violations(), [], "{name}: it was sent what its vendor would refuse");
    let requests = model.requests();
    assert_eq!(requests.len(), 2, "{name}: the answered call was not made again");
    let sent = String::from_utf8_lossy(&requests[1].body).into_owned();
    // Every signature of the scripted model begins so; this one vendor has none, and wants the words.
    let proof = if vendor.provider == "ollama" { "\"thinking\":\"first I look\"" } else { "c2lnbmVk" };
    assert!(sent.contains(proof), "{name}: its own thinking was not sent back: {sent}");
    server.kill().await.expect("it is killed");
}

fn program(folder: &Path, address: SocketAddr) -> Program {
    let binary = find_binary().expect("the binary");
    Program::new(&binary, folder.join("server.log"))
        .args(["up", "--quiet", "--lease", "2s", "--listen", &address.to_string(), "--data"])
        .args([folder.join("data")])
        .env("OSTLER_SECRET_MODEL_KEY", setup::KEY)
}

async fn start(server: &mut Program, folder: &Path, address: SocketAddr) -> Client {
    server.start().expect("it starts");
    server.wait_until_ready(address).await.expect("it gets ready");
    let token = std::fs::read_to_string(folder.join("data/token")).expect("a token");
    Client::new(&format!("http://{address}"), token.trim()).expect("a client")
}

async fn declare(client: &Client, vendor: Vendor, model: &ModelServer, tools: &ToolServer) {
    let mut plan = vendor.plan(model);
    plan.options.extend(vendor.thinking.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    let endpoint = json!({
        "provider": plan.provider, "base_url": plan.base_url, "default_model": plan.model, "allowPrivate": true,
        "options": plan.options, "auth": { "secretRef": "model-key" },
    });
    let tool = json!({
        "type": "http", "endpoint": tools.tool_url(&format!("slow-lookup?ms={TOOL_MS}")), "allowPrivate": true,
        "idempotent": true, "description": "Looks it up.",
        "input_schema": { "type": "object", "properties": { "q": { "type": "string" } } },
    });
    let agent = json!({ "model_ref": "main", "prompt": "Do as planned.", "tools": ["lookup"] });
    for (kind, name, spec) in
        [("ModelEndpoint", "main", endpoint), ("Tool", "lookup", tool), ("Agent", "thinker", agent)]
    {
        client.apply(&manifest(kind, name, spec)).await.unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}

fn manifest(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "ostler.dev/v1", "kind": kind, "metadata": { "name": name }, "spec": spec })
}

async fn wait(client: &Client, task: &str) -> Value {
    let ended = async {
        loop {
            let shown = client.get(ostler_spec::Kind::Task, task).await.expect("the task");
            if ["succeeded", "failed", "dead_letter"].iter().any(|state| shown["status"]["state"] == *state) {
                return shown;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("the task ends")
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let holds = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, holds).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}
