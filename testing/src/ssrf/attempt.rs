//! The ways into the client: the gateway of models, the toolbox, and the client itself, each called by its address and by a
//! redirect; and beside them a client that checks nothing.

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
use ostler_spec::Spec;
use ostler_tools::{self as tools, ToolRequest, Toolbox as _};
use serde_json::json;

use super::{place::NAMESERVER, trick::Trick};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    Model,
    /// A model that people run themselves: it may be private without a word.
    Ollama,
    Tool,
    /// The client as nobody uses it: it goes wherever it is sent.
    Client,
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
    path: Path,
    allow_private: bool,
    asked: Asked,
    /// The status of the redirect that leads there, if one does.
    redirect: Option<u16>,
}

impl Attempt {
    /// Every way that a trick is tried in.
    pub(crate) fn all(trick: &Trick) -> Vec<Attempt> {
        let asked: &[Asked] =
            if trick.has_a_name() { &[Asked::System, Asked::Nameserver] } else { &[Asked::Nameserver] };
        let mut all = Vec::new();
        for (&asked, allow_private) in asked.iter().flat_map(|asked| [(asked, false), (asked, true)]) {
            let attempt = |path, redirect| Attempt { path, allow_private, asked, redirect };
            all.extend([Path::Model, Path::Tool].map(|path| attempt(path, None)));
            if !allow_private {
                all.push(attempt(Path::Ollama, None));
            }
            for path in [Path::Client, Path::Tool, Path::Model] {
                all.extend([301, 302, 303, 307, 308].map(|status| attempt(path, Some(status))));
            }
        }
        all
    }

    pub(crate) fn unchecked() -> Self {
        Attempt { path: Path::Tool, allow_private: true, asked: Asked::Unchecked, redirect: None }
    }

    /// Connections to the host that redirects, which are none of the trick's.
    pub(crate) fn n_redirectors(&self) -> usize {
        usize::from(self.redirect.is_some())
    }

    /// Whether it gets as far as the trick's address at all: no model is followed elsewhere, and no tool where its call would
    /// become another.
    pub(crate) fn gets_there(&self) -> bool {
        match (self.path, self.redirect) {
            (_, None) | (Path::Client, Some(_)) | (Path::Tool, Some(303 | 307 | 308)) => true,
            (Path::Tool | Path::Model | Path::Ollama, Some(_)) => false,
        }
    }

    /// Nobody is redirected to what is private, whatever was declared.
    pub(crate) fn may_be_private(&self) -> bool {
        let is_said = self.allow_private || self.path == Path::Ollama;
        is_said && self.redirect.is_none()
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allow = if self.allow_private { " with allowPrivate" } else { "" };
        let redirect = self.redirect.map(|status| format!(" redirected with {status}")).unwrap_or_default();
        write!(f, "{:?}{redirect}{allow}, {:?}", self.path, self.asked)
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
        let redirecting = attempt.redirect.map(|status| redirecting(status, url));
        let url = redirecting.as_deref().unwrap_or(url);
        match attempt.path {
            Path::Model => shipped.ask_model("openai", url, attempt.allow_private).await,
            Path::Ollama => shipped.ask_model("ollama", url, attempt.allow_private).await,
            Path::Tool => shipped.call_tool(url, attempt.allow_private).await,
            Path::Client => shipped.send(url, attempt.allow_private).await,
        }
    }
}

/// Where one is sent on to `url`.
fn redirecting(status: u16, url: &str) -> String {
    let hidden: String = url.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("http://{REDIRECTOR}/redirect/{status}/{hidden}")
}

/// What an endpoint comes to that says this and no more.
fn may_be_private(provider: &str, allow_private: bool) -> bool {
    let spec = json!({"provider": provider, "default_model": "m", "allowPrivate": allow_private});
    let endpoint = json!({"kind": "ModelEndpoint", "metadata": {"name": "trick"}, "spec": spec});
    match ostler_spec::from_json(&endpoint).map(|resource| resource.spec) {
        Ok(Spec::ModelEndpoint(spec)) => spec.may_be_private(),
        other => unreachable!("it is an endpoint: {other:?}"),
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

    async fn ask_model(&self, provider: &str, url: &str, allow_private: bool) {
        let wait = PATIENCE.as_millis().to_string();
        let endpoint = ModelPlan {
            endpoint: "trick".into(),
            provider: provider.into(),
            base_url: url.to_owned(),
            model: "m".into(),
            options: BTreeMap::from([("connect_timeout_ms".into(), wait)]),
            secret_ref: None,
            allow_private: may_be_private(provider, allow_private),
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

    async fn send(&self, url: &str, allow_private: bool) {
        let timeouts =
            Timeouts { connect: PATIENCE, first_byte: PATIENCE, idle: PATIENCE, total: PATIENCE * 2 };
        let redirects = Redirects::Followed { max: 5 };
        let request = Request { redirects, allow_private, timeouts, ..Request::post(url, "{}") };
        let _ = self.client.send(request).await;
    }
}
