//! The ways into the client: the gateway of models, the toolbox, and redirects; and beside them a client that checks
//! nothing.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use anyhow::Result;
use futures_util::StreamExt as _;
use ostler_kernel::{
    Block, Role,
    plan::{ModelPlan, ToolPlan},
    retry::{Jitter, RetryPolicy},
};
use ostler_link::TokioRuntime;
use ostler_llm::{
    self as llm, Gateway as _, Message, ModelRequest, Secrets,
    net::{Client, NetConfig, Redirects, Request, Timeouts},
};
use ostler_tools::{self as tools, ToolRequest, Toolbox as _};
use serde_json::json;

use super::{place::NAMESERVER, trick::Trick};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    Model,
    Tool,
    Redirect,
}

/// Who is asked for addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    System,
    Nameserver,
    /// A client that checks nothing.
    Unchecked,
}

#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) path: Path,
    pub(crate) allow_private: bool,
    asked: Asked,
    /// Of the redirect.
    status: u16,
}

impl Attempt {
    /// Every way that a trick is tried in.
    pub(crate) fn all(trick: &Trick) -> Vec<Attempt> {
        let asked: &[Asked] =
            if trick.has_a_name() { &[Asked::System, Asked::Nameserver] } else { &[Asked::Nameserver] };
        let mut all = Vec::new();
        for (&asked, allow_private) in asked.iter().flat_map(|asked| [(asked, false), (asked, true)]) {
            let attempt = |path, status| Attempt { path, allow_private, asked, status };
            all.extend([attempt(Path::Model, 0), attempt(Path::Tool, 0)]);
            all.extend([301, 302, 303, 307, 308].map(|status| attempt(Path::Redirect, status)));
        }
        all
    }

    pub(crate) fn unchecked() -> Self {
        Attempt { path: Path::Tool, allow_private: true, asked: Asked::Unchecked, status: 0 }
    }

    /// Connections to the host that redirects, which are none of the trick's.
    pub(crate) fn n_redirectors(&self) -> usize {
        usize::from(self.path == Path::Redirect)
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allow = if self.allow_private { " with allowPrivate" } else { "" };
        match self.path {
            Path::Redirect => write!(f, "redirect {}{allow}, {:?}", self.status, self.asked),
            path => write!(f, "{path:?}{allow}, {:?}", self.asked),
        }
    }
}

struct Shipped {
    client: Client,
    gateway: llm::Registry,
    toolbox: tools::Registry,
}

pub(crate) struct Callers {
    system: Shipped,
    nameserver: Shipped,
    unchecked: reqwest::Client,
}

/// Who sends every trick's address as a `Location`. An address of its own: nothing else is there.
pub(crate) const REDIRECTOR: &str = "93.184.216.35";

/// Everybody in the world answers at once.
const PATIENCE: Duration = Duration::from_secs(3);

impl Callers {
    pub(crate) fn new() -> Result<Self> {
        let nameservers = vec![NetConfig::nameserver(NAMESERVER)?];
        #[expect(
            clippy::disallowed_methods,
            reason = "the client that checks nothing, in a world with no way out"
        )]
        let unchecked =
            reqwest::Client::builder().no_proxy().timeout(PATIENCE).pool_max_idle_per_host(0).build()?;
        Ok(Self {
            system: Shipped::new(NetConfig::default())?,
            nameserver: Shipped::new(NetConfig { nameservers, ..NetConfig::default() })?,
            unchecked,
        })
    }

    /// Makes the call. What comes back does not matter: what the hosts saw does.
    pub(crate) async fn call(&self, attempt: &Attempt, url: &str) {
        let shipped = match attempt.asked {
            Asked::System => &self.system,
            Asked::Nameserver => &self.nameserver,
            Asked::Unchecked => {
                let _ = self.unchecked.get(url).send().await;
                return;
            }
        };
        match attempt.path {
            Path::Model => shipped.ask_model(url, attempt.allow_private).await,
            Path::Tool => shipped.call_tool(url, attempt.allow_private).await,
            Path::Redirect => shipped.be_redirected(url, attempt).await,
        }
    }
}

impl Shipped {
    fn new(config: NetConfig) -> Result<Self> {
        let runtime: Arc<TokioRuntime> = Arc::new(TokioRuntime::new(tokio::runtime::Handle::current()));
        let client = Client::configured(runtime.clone(), config)?;
        let secrets = Secrets::new(|_| None);
        let gateway = llm::Registry::standard(client.clone(), runtime.clone(), secrets.clone())?;
        let toolbox = tools::Registry::standard(client.clone(), runtime, secrets)?;
        Ok(Self { client, gateway, toolbox })
    }

    async fn ask_model(&self, url: &str, allow_private: bool) {
        let wait = PATIENCE.as_millis().to_string();
        let endpoint = ModelPlan {
            endpoint: "trick".into(),
            provider: "openai".into(),
            base_url: url.to_owned(),
            model: "m".into(),
            options: BTreeMap::from([("connect_timeout_ms".into(), wait)]),
            secret_ref: None,
            allow_private,
            ..ModelPlan::default()
        };
        let blocks = vec![Block::Text { text: "hi".into() }];
        let messages = vec![Message { role: Role::User, blocks }];
        let request = ModelRequest {
            endpoint,
            system: String::new(),
            messages,
            tools: vec![],
            output_schema: None,
            request_id: "s".into(),
        };
        let mut parts = self.gateway.stream(request);
        while parts.next().await.is_some() {}
    }

    async fn call_tool(&self, url: &str, allow_private: bool) {
        let retry = RetryPolicy { max_attempts: 1, backoff_ms: 1, max_backoff_ms: 1, jitter: Jitter::None };
        let tool = ToolPlan {
            name: "trick".into(),
            way: "http".into(),
            endpoint: url.to_owned(),
            description: String::new(),
            input_schema: None,
            idempotent: false,
            timeout_ms: 3_000,
            retry,
            allow_private,
            auth: None,
        };
        let request = ToolRequest {
            tool,
            request_id: "s".into(),
            namespace: "default".into(),
            agent: "a".into(),
            task: "t".into(),
            arguments: json!({"input": "x"}),
        };
        let _ = self.toolbox.call(request).await;
    }

    async fn be_redirected(&self, url: &str, attempt: &Attempt) {
        let hidden: String = url.bytes().map(|byte| format!("{byte:02x}")).collect();
        let first = format!("http://{REDIRECTOR}/redirect/{}/{hidden}", attempt.status);
        let timeouts =
            Timeouts { connect: PATIENCE, first_byte: PATIENCE, idle: PATIENCE, total: PATIENCE * 2 };
        let request = Request {
            redirects: Redirects::Followed { max: 5 },
            allow_private: attempt.allow_private,
            timeouts,
            ..Request::post(first, "{}")
        };
        let _ = self.client.send(request).await;
    }
}
