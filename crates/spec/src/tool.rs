//! Tool: something an agent may call, how it is reached, how risky it is, how it is tried again.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::choice::choice;
use crate::duration::GoDuration;
use crate::fields::Fields;
use crate::kind::{Kind, KindInfo, Refusals};
use crate::problem::Problem;
use crate::reference::{Reference, SecretRef};
use crate::resource::Spec;
use crate::url;

pub(crate) static INFO: KindInfo = KindInfo {
    kind: Kind::Tool,
    name: "Tool",
    plural: "tools",
    short_names: &["tl"],
    read: |fields| Spec::Tool(read(fields)),
    restore: |json| serde_json::from_value(json).map(Spec::Tool),
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    #[serde(rename = "type")]
    pub tool_type: ToolType,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub endpoint: String,
    /// What the model is told about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON schema the model is given; without one, an object with a string `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server_ref: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_tool_name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    pub operation_classes: Vec<OperationClass>,
    pub risk_level: RiskLevel,
    /// Whether a call of unknown outcome may be made again; see [`ToolSpec::is_idempotent`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    pub runtime: ToolRuntime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<ToolAuth>,
    /// Lets the endpoint live at a private address, as a ModelEndpoint may.
    #[serde(rename = "allowPrivate", default)]
    pub allow_private: bool,
    /// The blocks of tool types to come, kept as they were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cli: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasm: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a2a: Option<Json>,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRuntime {
    /// For each attempt.
    pub timeout: GoDuration,
    pub isolation_mode: IsolationMode,
    pub retry: ToolRetry,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRetry {
    pub max_attempts: u32,
    pub backoff: GoDuration,
    pub max_backoff: GoDuration,
    pub jitter: Jitter,
}

choice! {
    /// How a pause before a retry is spread: not at all, over all of it, over its second half.
    Jitter { #[default] None = "none", Full = "full", Equal = "equal" }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAuth {
    pub profile: AuthProfile,
    pub secret_ref: SecretRef,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_name: Option<String>,
    #[serde(rename = "tokenURL", default, skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

choice! {
    AuthProfile {
        #[default] Bearer = "bearer",
        ApiKeyHeader = "api_key_header",
        Basic = "basic",
        OAuth2ClientCredentials = "oauth2_client_credentials",
    }
}

impl ToolSpec {
    /// Whether a call whose outcome is unknown may simply be made again under the same request id:
    /// as declared; else if it only reads, or if its retry already allows more than one attempt.
    pub fn is_idempotent(&self) -> bool {
        let only_reads = self.operation_classes.iter().all(|class| *class == OperationClass::Read);
        self.idempotent.unwrap_or(only_reads || self.runtime.retry.max_attempts > 1)
    }

    pub(crate) fn unsupported(&self) -> Vec<Problem> {
        let mut refusals = Refusals::none();
        refusals.refuse_if(
            self.tool_type != ToolType::Http,
            "spec.type",
            format!("tool type {}", self.tool_type),
        );
        self.refuse_isolation(&mut refusals);
        refusals.refuse_if(self.auth.is_some(), "spec.auth", "the field auth");
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
        refusals.into_problems()
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

fn read(fields: &mut Fields<'_, '_>) -> ToolSpec {
    let tool_type = fields.optional("type").unwrap_or_default();
    let risk_level = fields.optional("risk_level").unwrap_or_default();
    let mcp_server_ref = fields.optional("mcp_server_ref");
    let mcp_tool_name: Option<String> = fields.optional("mcp_tool_name");
    if tool_type == ToolType::Mcp {
        require(fields, "mcp_server_ref", mcp_server_ref.is_some());
        require(fields, "mcp_tool_name", mcp_tool_name.is_some());
    }
    ToolSpec {
        endpoint: read_endpoint(fields, tool_type),
        description: fields.verbatim("description"),
        input_schema: fields.json_object("input_schema"),
        mcp_server_ref,
        mcp_tool_name,
        capabilities: fields.distinct("capabilities"),
        operation_classes: read_operation_classes(fields, risk_level),
        idempotent: fields.flag("idempotent"),
        runtime: fields.child("runtime", |fields| read_runtime(fields, tool_type, risk_level)),
        auth: fields.optional_child("auth", read_auth).flatten(),
        allow_private: fields.flag("allowPrivate").unwrap_or(false),
        cli: fields.json_object("cli"),
        wasm: fields.json_object("wasm"),
        a2a: fields.json_object("a2a"),
        tool_type,
        risk_level,
    }
}

fn require(fields: &mut Fields<'_, '_>, name: &'static str, present: bool) {
    if !present && !fields.was_written(name) {
        fields.refuse_missing(name);
    }
}

fn read_endpoint(fields: &mut Fields<'_, '_>, tool_type: ToolType) -> String {
    let schemes: &[&str] = match tool_type {
        ToolType::Http | ToolType::External | ToolType::WebhookCallback => &["http", "https"],
        ToolType::Grpc => &["grpc", "grpcs", "http", "https"],
        ToolType::Mcp | ToolType::Wasm | ToolType::Cli | ToolType::A2a => {
            return fields.optional("endpoint").unwrap_or_default();
        }
    };
    let endpoint = fields.checked("endpoint", |text| url::check(text, schemes));
    require(fields, "endpoint", endpoint.is_some());
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

fn read_runtime(fields: &mut Fields<'_, '_>, tool_type: ToolType, risk_level: RiskLevel) -> ToolRuntime {
    let isolation_mode = fields.optional("isolation_mode");
    ToolRuntime {
        timeout: fields.positive_duration("timeout").unwrap_or(GoDuration::from_secs(30)),
        isolation_mode: isolation_mode.unwrap_or_else(|| default_isolation(tool_type, risk_level)),
        retry: fields.child("retry", read_retry),
    }
}

fn default_isolation(tool_type: ToolType, risk_level: RiskLevel) -> IsolationMode {
    match (tool_type, risk_level) {
        (ToolType::Cli, _) => IsolationMode::Container,
        (_, RiskLevel::High | RiskLevel::Critical) => IsolationMode::Sandboxed,
        (_, RiskLevel::Low | RiskLevel::Medium) => IsolationMode::None,
    }
}

fn read_retry(fields: &mut Fields<'_, '_>) -> ToolRetry {
    ToolRetry {
        max_attempts: fields.count("max_attempts", 1).unwrap_or(1),
        backoff: fields.optional("backoff").unwrap_or(GoDuration::ZERO),
        max_backoff: fields.optional("max_backoff").unwrap_or(GoDuration::from_secs(30)),
        jitter: fields.optional("jitter").unwrap_or_default(),
    }
}

/// An empty block is no auth at all.
fn read_auth(fields: &mut Fields<'_, '_>) -> Option<ToolAuth> {
    let profile: Option<AuthProfile> = fields.optional("profile");
    let secret_ref: Option<SecretRef> = fields.optional("secretRef");
    let auth = ToolAuth {
        profile: profile.unwrap_or_default(),
        header_name: fields.optional("headerName"),
        token_url: fields.checked("tokenURL", |text| url::check(text, &["http", "https"])),
        scopes: fields.distinct("scopes"),
        secret_ref: secret_ref.clone().unwrap_or_default(),
    };
    if profile.is_some() {
        require(fields, "secretRef", secret_ref.is_some());
    }
    if auth.profile == AuthProfile::ApiKeyHeader {
        require(fields, "headerName", auth.header_name.is_some());
    }
    if auth.profile == AuthProfile::OAuth2ClientCredentials {
        require(fields, "tokenURL", auth.token_url.is_some());
    }
    secret_ref.map(|_| auth)
}
