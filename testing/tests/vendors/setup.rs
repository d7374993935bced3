//! The vendors under test, and one call of one of them.

#![allow(dead_code, reason = "each test uses its own part of this")]
#![allow(clippy::expect_used, clippy::panic, reason = "test support: it fails by panicking")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ostler_kernel::{Block, Role, Runtime, plan::ModelPlan, runtime::timeout};
use ostler_link::TokioRuntime;
use ostler_llm::{
    Completion, Finish, Message, ModelRequest, Registry, Secrets, ToolOffer, complete, net::Client,
};
use ostler_testing::model_server::{ModelServer, Script, Turn};
use serde_json::json;

/// A picture of one pixel.
pub const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub const KEY: &str = "k3y-0f-the-h0use";

/// A provider on one of its wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vendor {
    pub name: &'static str,
    pub provider: &'static str,
    pub model: &'static str,
    /// Behind the server's address.
    pub path: &'static str,
    pub options: &'static [(&'static str, &'static str)],
    /// Beside those where it shall think.
    pub thinking: &'static [(&'static str, &'static str)],
    /// It shows what it thinks.
    pub thinks: bool,
    /// What it counts of 60 tokens from its cache, 20 into it, and 10 of thinking.
    pub counts: [u64; 3],
}

pub const ALL: [Vendor; 8] = [CHAT, RESPONSES, COMPATIBLE, ANTHROPIC, AZURE, AZURE_RESPONSES, GEMINI, OLLAMA];

const PLAIN: Vendor = Vendor {
    name: "openai chat",
    provider: "openai",
    model: "scripted",
    path: "/v1",
    options: &[],
    thinking: &[],
    thinks: false,
    counts: [60, 20, 10],
};

pub const CHAT: Vendor = PLAIN;
pub const COMPATIBLE: Vendor = Vendor { name: "openai-compatible", provider: "openai-compatible", ..PLAIN };
pub const ANTHROPIC: Vendor = Vendor {
    name: "anthropic",
    provider: "anthropic",
    thinking: &[("thinking_budget", "2000")],
    thinks: true,
    counts: [60, 20, 10],
    ..PLAIN
};

pub const RESPONSES: Vendor = Vendor {
    name: "openai responses",
    options: &[("api", "responses"), ("encrypted_reasoning", "true")],
    thinking: &[("reasoning_summary", "auto")],
    thinks: true,
    ..PLAIN
};
pub const AZURE: Vendor = Vendor { name: "azure chat", provider: "azure", path: "", ..PLAIN };
pub const AZURE_RESPONSES: Vendor =
    Vendor { name: "azure responses", provider: "azure-openai", path: "", ..RESPONSES };
pub const GEMINI: Vendor = Vendor {
    name: "gemini",
    provider: "gemini",
    model: "gemini-3-pro-preview",
    path: "/v1beta",
    thinking: &[("reasoning_effort", "low")],
    thinks: true,
    counts: [60, 0, 10],
    ..PLAIN
};
pub const OLLAMA: Vendor = Vendor {
    name: "ollama",
    provider: "ollama",
    path: "",
    thinking: &[("think", "true")],
    thinks: true,
    counts: [0, 0, 0],
    ..PLAIN
};

impl Vendor {
    /// The reason that this vendor has for another's: not each of them has all.
    pub fn finish(&self, finish: Finish) -> Finish {
        match (self.provider, finish) {
            // It refuses, and has no filter that stops in the middle.
            ("anthropic", Finish::ContentFilter) => Finish::Refusal,
            ("gemini", Finish::Refusal) => Finish::ContentFilter,
            // It has neither: a refusal is only words.
            ("ollama", Finish::ContentFilter | Finish::Refusal) => Finish::Stop,
            (_, finish) => finish,
        }
    }

    /// Arguments of a call stand on its wire as text, so that they may be no object.
    pub fn writes_arguments(&self) -> bool {
        !matches!(self.provider, "gemini" | "ollama")
    }

    pub fn plan(&self, server: &ModelServer) -> ModelPlan {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        ModelPlan {
            endpoint: "main".into(),
            provider: self.provider.into(),
            base_url: format!("{}{}", server.root_url(), self.path),
            model: self.model.into(),
            options: self.options.iter().map(owned).collect::<BTreeMap<_, _>>(),
            secret_ref: Some("model-key".into()),
            allow_private: true,
            ..ModelPlan::default()
        }
    }
}

/// A registry that knows the key.
pub fn registry(runtime: &Arc<dyn Runtime>) -> Registry {
    let secrets = Secrets::new(|name| (name == "OSTLER_SECRET_MODEL_KEY").then(|| KEY.to_owned()));
    Registry::standard(Client::new(runtime.clone()).expect("a client"), runtime.clone(), secrets)
        .expect("a registry")
}

pub struct Ground {
    pub vendor: Vendor,
    pub server: ModelServer,
    pub registry: Registry,
    runtime: Arc<dyn Runtime>,
}

impl Ground {
    pub async fn start(vendor: Vendor, turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::with(vendor, Script::turns(turns)).await
    }

    pub async fn with(vendor: Vendor, script: Script) -> Self {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::new(tokio::runtime::Handle::current()));
        let server = ModelServer::start(script).await.expect("a server");
        Self { vendor, server, registry: registry(&runtime), runtime }
    }

    pub fn request(&self, messages: Vec<Message>) -> ModelRequest {
        ModelRequest {
            endpoint: self.vendor.plan(&self.server),
            system: "Be kind.".into(),
            messages,
            tools: vec![],
            output_schema: None,
            request_id: "run_1.0".into(),
        }
    }

    pub fn thinking_request(&self, messages: Vec<Message>) -> ModelRequest {
        let mut request = self.request(messages);
        for (name, value) in self.vendor.thinking {
            request.endpoint.options.insert((*name).to_owned(), (*value).to_owned());
        }
        request
    }

    pub async fn complete(&self, request: &ModelRequest) -> Completion {
        let completion = complete(&self.registry, request.clone(), |_| {}).await;
        completion.unwrap_or_else(|failure| panic!("{}: {failure}", self.vendor.name))
    }

    /// Nothing was sent that the vendor would have refused, and the key only where it belongs.
    pub fn check(&self) {
        assert_eq!(self.server.violations(), [], "{}", self.vendor.name);
        for request in self.server.requests() {
            let body = String::from_utf8_lossy(&request.body);
            assert!(!body.contains(KEY) && !request.path.contains(KEY), "{}", self.vendor.name);
        }
    }

    pub fn last_body(&self) -> String {
        let requests = self.server.requests();
        String::from_utf8(requests.last().expect("a request").body.to_vec()).expect("text")
    }

    pub async fn until(&self, is_so: impl Fn(&ModelServer) -> bool) {
        let waiting = async {
            while !is_so(&self.server) {
                self.runtime.sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = timeout(&*self.runtime, Duration::from_secs(20), waiting).await;
        assert!(waited.is_ok(), "{}: waited in vain", self.vendor.name);
    }
}

pub fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

pub fn user(said: &str) -> Message {
    Message { role: Role::User, blocks: vec![text(said)] }
}

pub fn offer(name: &str) -> ToolOffer {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    ToolOffer { name: name.into(), description: "Looks.".into(), schema }
}

/// What a tool gave for a call.
pub fn result_of(block: &Block) -> Option<Block> {
    let Block::ToolCall { id, name, .. } = block else { return None };
    let (call_id, name, content) = (id.clone(), name.clone(), "it rains".to_owned());
    Some(Block::ToolResult { call_id, name, content, is_error: false, images: vec![] })
}

/// An answer, and what its calls gave, as they stand in a conversation: written to a journal and read back.
pub fn answered(completion: &Completion) -> Vec<Message> {
    let written = serde_json::to_string(&completion.blocks).expect("JSON");
    let blocks: Vec<Block> = serde_json::from_str(&written).expect("blocks");
    let results: Vec<Block> = blocks.iter().filter_map(result_of).collect();
    let mut messages = vec![Message { role: Role::Assistant, blocks }];
    if !results.is_empty() {
        messages.push(Message { role: Role::Tool, blocks: results });
    }
    messages
}
