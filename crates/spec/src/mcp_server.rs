//! McpServer: a server whose tools become tools of ours.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::duration::GoDuration;
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::problem::{Path, Problem};
use crate::reference::SecretRef;
use crate::tool::{self, RuntimeOverride, ToolAuth, ToolResources};
use crate::url;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpServerSpec {
    /// How it is spoken to.
    pub transport: McpTransport,
    /// The program, for stdio; by default the one that the image starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What the program is started with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<McpVariable>,
    /// The address, for http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// How the other side knows us, for http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::or_nothing::<ToolAuth>")]
    pub auth: Option<ToolAuth>,
    /// Which of its tools are offered.
    #[serde(default, skip_serializing_if = "ToolFilter::is_unset")]
    pub tool_filter: ToolFilter,
    /// How often a lost connection is made again.
    #[serde(default)]
    pub reconnect: Reconnect,
    /// The image that the program runs in, for stdio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What the image's registry wants to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secret: Option<SecretRef>,
    /// Stopped when nobody has called it for so long; 0 is never.
    #[serde(default)]
    pub idle_timeout: GoDuration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ToolResources>,
    /// What holds for its tools unless they say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_tool_runtime: Option<RuntimeOverride>,
    /// Lets the endpoint live at a private address.
    #[serde(rename = "allowPrivate", default)]
    pub allow_private: bool,
}

choice! { McpTransport { #[default] Stdio = "stdio", Http = "http" } }

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpVariable {
    /// What it is called.
    pub name: String,
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The secret that holds the value, in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// A file in the image that gets the value instead of a variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_path: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolFilter {
    /// Only these; none named is all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
}

impl ToolFilter {
    fn is_unset(&self) -> bool {
        self.include.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reconnect {
    /// The first included; 0 is the default.
    pub max_attempts: u32,
    /// The pause before each.
    pub backoff: GoDuration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self { max_attempts: 3, backoff: GoDuration::from_secs(2) }
    }
}

impl Declared for McpServerSpec {
    const NAME: &'static str = "McpServer";
    const PLURAL: &'static str = "mcp-servers";
    const SHORT_NAMES: &'static [&'static str] = &["mcp"];
    const SUMMARY: &'static str = "A server that speaks MCP and whose tools agents may call.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let transport = fields.required("transport");
        let server = Self {
            transport,
            command: fields.optional("command"),
            args: fields.texts("args"),
            env: fields.objects("env", read_variable),
            endpoint: fields.checked("endpoint", |text| url::check(text, &["http", "https"])),
            auth: fields.optional_child("auth", tool::read_auth).flatten(),
            tool_filter: fields
                .child("tool_filter", |fields| ToolFilter { include: fields.distinct("include") }),
            reconnect: fields.child("reconnect", read_reconnect),
            image: fields.optional("image"),
            image_pull_secret: fields.optional("image_pull_secret"),
            idle_timeout: fields.optional("idle_timeout").unwrap_or_default(),
            resources: fields.optional_child("resources", tool::read_resources),
            default_tool_runtime: fields.optional_child("default_tool_runtime", tool::read_override),
            allow_private: fields.flag("allowPrivate").unwrap_or(false),
        };
        if fields.was_written("transport") && !fields.is_troubled("transport") {
            match transport {
                McpTransport::Stdio if fields.was_written("command") || fields.was_written("image") => {}
                McpTransport::Stdio => fields.refuse_absent(
                    &["command", "image"],
                    "required field is missing: what is started is a command, or an image",
                ),
                McpTransport::Http => fields.require("endpoint"),
            }
        }
        refuse_without_image(fields, &server);
        server
    }

    fn mistakes(&self) -> Vec<Problem> {
        let mut seen = BTreeMap::new();
        let mut problems = Vec::new();
        for (at, variable) in self.env.iter().enumerate() {
            if variable.mount_path.is_some() && self.image.is_none() {
                let path = Path::of("spec.env").index(at).field("mountPath");
                problems.push(Problem::new(path, "a file is put into an image, and there is none"));
            }
            if let Some(first) = seen.insert(variable.name.as_str(), at) {
                let path = Path::of("spec.env").index(at).field("name");
                let message = format!("{:?} is given already, as env[{first}]", variable.name);
                problems.push(Problem::new(path, message));
            }
        }
        problems
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}

/// What only an image makes use of, and an image where nothing is started.
fn refuse_without_image(fields: &mut Fields<'_, '_>, server: &McpServerSpec) {
    if fields.is_troubled("transport") || fields.is_troubled("image") {
        return;
    }
    if server.image.is_some() {
        if server.transport == McpTransport::Http {
            fields.refuse("image", "has no effect with the transport http, which starts nothing");
        }
    } else if server.image_pull_secret.is_some() {
        fields.refuse("image_pull_secret", "has no effect without an image to pull");
    }
}

fn check_absolute(path: &str) -> Result<(), String> {
    match path.starts_with('/') {
        true => Ok(()),
        false => Err(format!("expected an absolute path such as \"/run/secrets/token\", found {path:?}")),
    }
}

fn read_variable(fields: &mut Fields<'_, '_>) -> McpVariable {
    let variable = McpVariable {
        name: fields.required("name"),
        value: fields.letters("value"),
        secret_ref: fields.optional("secretRef"),
        mount_path: fields.checked("mountPath", check_absolute),
    };
    if variable.value.is_some() && variable.secret_ref.is_some() {
        fields.refuse("secretRef", "given beside value: a variable has one of the two");
    } else if !fields.has("value") && !fields.was_written("secretRef") {
        fields.refuse_absent(
            &["value", "secretRef"],
            "required field is missing: a variable has a value or a secretRef",
        );
    }
    variable
}

fn read_reconnect(fields: &mut Fields<'_, '_>) -> Reconnect {
    let default = Reconnect::default();
    Reconnect {
        max_attempts: fields.count_or_default("max_attempts").unwrap_or(default.max_attempts),
        backoff: fields.optional("backoff").unwrap_or(default.backoff),
    }
}
