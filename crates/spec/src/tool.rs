//! Tool: something an agent may call, how it is reached, how risky it is, how it is tried again.

mod auth;
mod ways;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub(crate) use self::auth::read_auth;
pub use self::auth::{AuthProfile, ToolAuth};
pub(crate) use self::ways::read_resources;
pub use self::ways::{A2aTool, CliTool, ToolResources, WasmTool};
use crate::choice::choice;
use crate::duration::GoDuration;
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::problem::{Path, Problem};
use crate::reference::Reference;
use crate::url;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// The way it is called.
    #[serde(rename = "type", default)]
    pub tool_type: ToolType,
    /// Its address, for http, external, grpc and webhook-callback; for grpc also `host:port`. Without it the tool is kept, and
    /// refused when it is used.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub endpoint: String,
    /// What the model is told about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON schema the model is given; without one, an object with a string `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    /// The McpServer whose tool this is, for mcp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server_ref: Option<Reference>,
    /// What it is called there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_tool_name: Option<String>,
    /// What an agent's roles must permit, as `capability:<name>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// What a call does; by default `read`, or `write` for a high or critical risk.
    #[serde(default)]
    pub operation_classes: Vec<OperationClass>,
    /// What can go wrong with a call; decides the defaults of `operation_classes` and isolation.
    #[serde(default)]
    pub risk_level: RiskLevel,
    /// Whether a call of unknown outcome may be made again. By default it may if all its operation
    /// classes are `read`, or its retry allows more than one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// How a call is made.
    #[serde(default)]
    pub runtime: ToolRuntime,
    /// What a call shows; a program (cli) is given its secrets by `cli.env_from` instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::or_nothing::<ToolAuth>")]
    pub auth: Option<ToolAuth>,
    /// Lets the endpoint live at a private address, as a ModelEndpoint may.
    #[serde(rename = "allowPrivate", default)]
    pub allow_private: bool,
    /// The program, for cli.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::or_nothing::<CliTool>")]
    pub cli: Option<CliTool>,
    /// The module, for wasm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::or_nothing::<WasmTool>")]
    pub wasm: Option<WasmTool>,
    /// The agent, for a2a.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::or_nothing::<A2aTool>")]
    pub a2a: Option<A2aTool>,
}

choice! {
    ToolType {
        #[default] Http = "http",
        External = "external",
        Grpc = "grpc",
        WebhookCallback = "webhook-callback" | "webhook_callback",
        Mcp = "mcp",
        Wasm = "wasm",
        Cli = "cli",
        A2a = "a2a",
    }
}

choice! { OperationClass { #[default] Read = "read", Write = "write", Delete = "delete", Admin = "admin" } }

choice! { RiskLevel { #[default] Low = "low", Medium = "medium", High = "high", Critical = "critical" } }

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolRuntime {
    /// For each attempt.
    pub timeout: GoDuration,
    /// By default none; sandboxed for a high or critical risk; container for cli.
    pub isolation_mode: IsolationMode,
    /// How often a call is tried.
    pub retry: ToolRetry,
}

/// The same where each part may be left to someone else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RuntimeOverride {
    /// For each attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation_mode: Option<IsolationMode>,
    /// How often a call is tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<ToolRetry>,
}

impl Default for ToolRuntime {
    fn default() -> Self {
        Self {
            timeout: GoDuration::from_secs(30),
            isolation_mode: IsolationMode::None,
            retry: ToolRetry::default(),
        }
    }
}

choice! {
    IsolationMode {
        #[default] None = "none",
        Sandboxed = "sandboxed",
        Container = "container",
        Wasm = "wasm",
        Kubernetes = "kubernetes",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolRetry {
    /// The first included; 0 is the default.
    pub max_attempts: u32,
    /// The first pause; it doubles with each.
    pub backoff: GoDuration,
    /// The longest pause.
    pub max_backoff: GoDuration,
    /// How pauses are spread: not at all, over all of a pause, over its second half.
    pub jitter: Jitter,
}

impl Default for ToolRetry {
    fn default() -> Self {
        Self {
            max_attempts: 1,
            backoff: GoDuration::ZERO,
            max_backoff: GoDuration::from_secs(30),
            jitter: Jitter::None,
        }
    }
}

choice! {
    /// How a pause before a retry is spread: not at all, over all of it, over its second half.
    Jitter { #[default] None = "none", Full = "full", Equal = "equal" }
}

impl ToolSpec {
    /// Whether a call whose outcome is unknown may simply be made again under the same request id:
    /// as declared; else if it only reads, or if its retry already allows more than one attempt.
    pub fn is_idempotent(&self) -> bool {
        let only_reads = self.operation_classes.iter().all(|class| *class == OperationClass::Read);
        self.idempotent.unwrap_or(only_reads || self.runtime.retry.max_attempts > 1)
    }

    fn refusals(&self) -> Vec<Problem> {
        let mut refusals = Refusals::none();
        refusals.refuse_if(
            self.tool_type != ToolType::Http,
            "spec.type",
            format!("tool type {}", self.tool_type),
        );
        self.refuse_isolation(&mut refusals);
        let profile = self.auth.as_ref().map(|auth| auth.profile);
        refusals.refuse_if(
            profile == Some(AuthProfile::OAuth2ClientCredentials),
            "spec.auth.profile",
            "auth profile oauth2_client_credentials",
        );
        let foreign = [
            ("cli", self.cli.is_some()),
            ("wasm", self.wasm.is_some()),
            ("a2a", self.a2a.is_some()),
            ("mcp_server_ref", self.mcp_server_ref.is_some()),
            ("mcp_tool_name", self.mcp_tool_name.is_some()),
        ];
        for (field, used) in foreign {
            refusals.refuse_if(used, &format!("spec.{field}"), format!("the field {field}"));
        }
        let mut problems = refusals.into_problems();
        problems.extend(self.lacks_endpoint());
        problems
    }

    /// A tool may be kept before it is known where it is called.
    fn lacks_endpoint(&self) -> Option<Problem> {
        let is_lacking = self.tool_type == ToolType::Http && self.endpoint.is_empty();
        let problem = || {
            Problem::new(Path::of("spec.endpoint"), "a tool of type http is called there, and it is not set")
        };
        is_lacking.then(problem)
    }

    /// A risky tool is isolated by default, so the refusal says what asked for it.
    fn refuse_isolation(&self, refusals: &mut Refusals) {
        let (mode, risk) = (self.runtime.isolation_mode, self.risk_level);
        let isolated = mode != IsolationMode::None;
        if mode == IsolationMode::Sandboxed && default_isolation(self.tool_type, risk) == mode {
            let what = format!(
                "isolation mode sandboxed (the default for risk level {risk}; \
                 runtime.isolation_mode none would run it without isolation)"
            );
            refusals.refuse_if(isolated, "spec.risk_level", what);
        } else {
            refusals.refuse_if(isolated, "spec.runtime.isolation_mode", format!("isolation mode {mode}"));
        }
    }
}

impl Declared for ToolSpec {
    const NAME: &'static str = "Tool";
    const PLURAL: &'static str = "tools";
    const SHORT_NAMES: &'static [&'static str] = &["tl"];
    const SUMMARY: &'static str = "Something an agent may call, and how.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let tool_type = fields.optional("type").unwrap_or_default();
        let risk_level = fields.optional("risk_level").unwrap_or_default();
        let (runtime, isolation) =
            fields.child("runtime", |fields| read_runtime(fields, tool_type, risk_level));
        let tool = Self {
            endpoint: read_endpoint(fields, tool_type),
            description: fields.verbatim("description"),
            input_schema: fields.json_object("input_schema"),
            mcp_server_ref: fields.optional("mcp_server_ref"),
            mcp_tool_name: fields.optional("mcp_tool_name"),
            capabilities: fields.distinct_words("capabilities"),
            operation_classes: read_operation_classes(fields, risk_level),
            idempotent: fields.flag("idempotent"),
            runtime,
            auth: fields.optional_child("auth", read_auth).flatten(),
            allow_private: fields.flag("allowPrivate").unwrap_or(false),
            cli: read_way(fields, "cli", tool_type == ToolType::Cli, |fields| {
                ways::read_cli(fields, isolation)
            }),
            wasm: read_way(fields, "wasm", tool_type == ToolType::Wasm, ways::read_wasm),
            a2a: read_way(fields, "a2a", tool_type == ToolType::A2a, ways::read_a2a),
            tool_type,
            risk_level,
        };
        match tool_type {
            _ if fields.is_troubled("type") => {}
            ToolType::Mcp => {
                fields.require("mcp_server_ref");
                fields.require("mcp_tool_name");
            }
            ToolType::Cli => {
                fields.require_block("cli");
                if tool.auth.is_some() {
                    fields.refuse("auth", "has no effect on a program: give it a secret by cli.env_from");
                }
            }
            ToolType::A2a => fields.require_block("a2a"),
            // Without a module it is kept as others write it, and refused when it is used.
            ToolType::Wasm => {}
            ToolType::Http | ToolType::External | ToolType::Grpc | ToolType::WebhookCallback => {}
        }
        tool
    }

    fn unsupported(&self) -> Vec<Problem> {
        self.refusals()
    }
}

/// The block of another type is there only if it says something.
fn read_way<T>(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    is_own: bool,
    read: impl FnOnce(&mut Fields<'_, '_>) -> T,
) -> Option<T> {
    if is_own { fields.optional_child(name, read) } else { fields.meant_child(name, read) }
}

fn read_endpoint(fields: &mut Fields<'_, '_>, tool_type: ToolType) -> String {
    let schemes: &[&str] = match tool_type {
        ToolType::Http | ToolType::External | ToolType::WebhookCallback => &["http", "https"],
        ToolType::Grpc => &["grpc", "grpcs", "http", "https"],
        ToolType::Mcp | ToolType::Wasm | ToolType::Cli | ToolType::A2a => {
            return fields.optional("endpoint").unwrap_or_default();
        }
    };
    let endpoint = fields.checked("endpoint", |text| match tool_type {
        ToolType::Grpc if url::is_host_and_port(text) => Ok(()),
        _ => url::check(text, schemes),
    });
    endpoint.unwrap_or_default()
}

fn read_operation_classes(fields: &mut Fields<'_, '_>, risk_level: RiskLevel) -> Vec<OperationClass> {
    let declared = fields.distinct("operation_classes");
    if !declared.is_empty() {
        return declared;
    }
    match risk_level {
        RiskLevel::Low | RiskLevel::Medium => vec![OperationClass::Read],
        RiskLevel::High | RiskLevel::Critical => vec![OperationClass::Write],
    }
}

/// The isolation mode a second time, if it could be read.
fn read_runtime(
    fields: &mut Fields<'_, '_>,
    tool_type: ToolType,
    risk_level: RiskLevel,
) -> (ToolRuntime, Option<IsolationMode>) {
    let isolation_mode = fields.optional("isolation_mode");
    let runtime = ToolRuntime {
        timeout: fields.positive_duration("timeout").unwrap_or(ToolRuntime::default().timeout),
        isolation_mode: isolation_mode.unwrap_or_else(|| default_isolation(tool_type, risk_level)),
        retry: fields.child("retry", read_retry),
    };
    let known = (!fields.is_troubled("isolation_mode")).then_some(runtime.isolation_mode);
    (runtime, known)
}

fn default_isolation(tool_type: ToolType, risk_level: RiskLevel) -> IsolationMode {
    match (tool_type, risk_level) {
        (ToolType::Cli, _) => IsolationMode::Container,
        (_, RiskLevel::High | RiskLevel::Critical) => IsolationMode::Sandboxed,
        (_, RiskLevel::Low | RiskLevel::Medium) => IsolationMode::None,
    }
}

fn read_retry(fields: &mut Fields<'_, '_>) -> ToolRetry {
    let default = ToolRetry::default();
    ToolRetry {
        max_attempts: fields.count_or_default("max_attempts").unwrap_or(default.max_attempts),
        backoff: fields.optional("backoff").unwrap_or(default.backoff),
        max_backoff: fields.optional("max_backoff").unwrap_or(default.max_backoff),
        jitter: fields.optional("jitter").unwrap_or(default.jitter),
    }
}

pub(crate) fn read_override(fields: &mut Fields<'_, '_>) -> RuntimeOverride {
    RuntimeOverride {
        timeout: fields.positive_duration("timeout"),
        isolation_mode: fields.optional("isolation_mode"),
        retry: fields.meant_child("retry", read_retry),
    }
}
