//! Vendors through the real stack: what is kept in the journal is what goes back to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use ostler_kernel::TaskState;
use ostler_testing::{
    model_server::{ModelServer, Script},
    tool_server::ToolServer,
};
use ostler_worker::{Equipment, WorkerHandle};
use serde_json::{Value, json};

use crate::{
    setup::{self, ALL, PNG, Vendor},
    stack::Stack,
};

struct Ground {
    stack: Stack,
    model: ModelServer,
    _tools: ToolServer,
    worker: WorkerHandle,
}

impl Ground {
    async fn start() -> Self {
        let model = ModelServer::start(Script::Plan).await.expect("a model");
        let tools = ToolServer::start().await.expect("tools");
        let stack = Stack::start(Duration::from_secs(30));
        let gateway = Arc::new(setup::registry(&stack.runtime));
        let equipment = Equipment { gateway, ..stack.equipment(Arc::clone(&stack.control) as _) };
        let worker = Stack::worker_with("all", 4, equipment);
        let tool = json!({
            "type": "http", "endpoint": tools.tool_url("echo"), "allowPrivate": true, "description": "Echoes.",
            "input_schema": { "type": "object", "properties": { "q": { "type": "string" } } },
        });
        stack.apply("Tool", "lookup", tool).await;
        Self { stack, model, _tools: tools, worker }
    }

    /// The agent asks this vendor from now on.
    async fn turn_to(&self, vendor: &Vendor) {
        let mut plan = vendor.plan(&self.model);
        let thinking = vendor.thinking.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        plan.options.extend(thinking);
        let endpoint = json!({
            "provider": plan.provider, "base_url": plan.base_url, "default_model": plan.model,
            "allowPrivate": true, "options": plan.options, "auth": { "secretRef": "model-key" },
        });
        self.stack.apply("ModelEndpoint", "main", endpoint).await;
        let agent = json!({ "model_ref": "main", "prompt": "Do as planned.", "tools": ["lookup"] });
        self.stack.apply("Agent", "worker", agent).await;
    }

    async fn run(&self, name: &str, input: Value) {
        let spec = json!({ "agent": "worker", "session": "one", "input": input });
        let task = self.stack.create(name, spec).await;
        let ended = self.stack.watch(task.id).await.task.task;
        assert_eq!(ended.state, TaskState::Succeeded, "{name}: {:?}", ended.failure);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_session_goes_from_vendor_to_vendor() {
    let ground = Ground::start().await;
    let rounds = ALL.iter().chain(ALL.iter().rev()).enumerate();
    let mut proofs: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (round, vendor) in rounds {
        ground.turn_to(vendor).await;
        let plan = format!(
            "round {round} plan: tool lookup {{\"q\":\"a\"}} + tool lookup {{\"q\":\"b\"}} think=\"hm {round}\", text=\"said {round}\" think=so"
        );
        ground.run(&format!("round-{round}"), json!({ "message": plan })).await;
        let name = vendor.name;
        assert_eq!(ground.model.violations(), [], "{name} was sent what it would refuse");
        let requests = ground.model.requests();
        let body = String::from_utf8_lossy(&requests.last().expect("a request").body).into_owned();
        // On the way back each finds again what only it understands.
        let seen = signatures(&body);
        match proofs.get(name) {
            Some(former) => assert!(former.is_subset(&seen), "{name}: {former:?} is not in {body}"),
            None => drop(proofs.insert(name, seen)),
        }
        for before in 0..round {
            assert!(
                body.contains(&format!("said {before}")),
                "{name} was not told what was said in round {before}"
            );
        }
    }
    for vendor in ALL.iter().filter(|vendor| vendor.thinks && vendor.provider != "ollama") {
        assert!(!proofs[vendor.name].is_empty(), "{} signed nothing", vendor.name);
    }
    ground.worker.stop().await;
}

/// Every signature of the scripted model begins so.
fn signatures(body: &str) -> BTreeSet<String> {
    let ends = |rest: &str| rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
    body.match_indices("c2lnbmVk").map(|(at, _)| body[at..at + ends(&body[at..])].to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_images_of_a_task_are_shown_to_its_model() {
    let ground = Ground::start().await;
    for vendor in ALL {
        ground.turn_to(&vendor).await;
        let photo = format!("data:image/png;base64,{PNG}");
        let input = json!({ "message": "what is this? plan: text=\"a cat\"", "photo": photo });
        ground.run(&format!("look-{}", vendor.name.replace(' ', "-")), input).await;
        let requests = ground.model.requests();
        let body = String::from_utf8_lossy(&requests.last().expect("a request").body).into_owned();
        assert!(body.contains(PNG), "{}", vendor.name);
        assert_eq!(ground.model.violations(), [], "{}", vendor.name);
    }
    ground.worker.stop().await;
}
