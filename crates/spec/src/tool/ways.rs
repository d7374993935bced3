//! What a tool says that is a program, a WASM module or another system's agent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::IsolationMode;
use crate::choice::choice;
use crate::fields::Fields;
use crate::reference::SecretRef;
use crate::url;

/// A program that is started for each call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CliTool {
    /// The program.
    pub command: String,
    /// Each may hold templates over the call's input, such as `{{ .query }}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The image it runs in; required unless the tool is not isolated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What the image's registry wants to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secret: Option<SecretRef>,
    /// The network it may reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Gives the call's input on standard input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stdin_from_input: bool,
    /// What of its output is the result.
    #[serde(default)]
    pub output: CliOutput,
    /// The folder it is started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Its variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables whose values are secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFrom>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ToolResources>,
}

choice! { CliOutput { #[default] Stdout = "stdout", Stderr = "stderr", Both = "both" } }

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvFrom {
    /// The variable.
    pub name: String,
    /// The secret that holds its value.
    pub secret_ref: SecretRef,
    /// The value in the secret, in place of one named in `secretRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// What a program may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolResources {
    /// Such as `256m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::loose_text")]
    pub memory: Option<String>,
    /// Such as `0.5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::loose_text")]
    pub cpus: Option<String>,
    /// Processes at once; 0 is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_limit: Option<u32>,
}

/// A module that follows the WASM contract.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WasmTool {
    /// A path, an https:// address or an oci:// reference.
    pub module: String,
    /// The function that is called.
    #[serde(default = "run")]
    pub entrypoint: String,
    /// Memory a call may use; 0 is the default.
    #[serde(default = "memory")]
    pub max_memory_bytes: u64,
    /// How many instructions it may spend; 0 is the default.
    #[serde(default = "fuel")]
    pub fuel: u64,
    /// Lets it use WASI.
    #[serde(default)]
    pub enable_wasi: bool,
    /// What the module's registry wants to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secret: Option<SecretRef>,
}

fn run() -> String {
    "run".to_owned()
}

fn memory() -> u64 {
    64 << 20
}

fn fuel() -> u64 {
    1_000_000
}

/// An agent of another system, over A2A.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct A2aTool {
    /// Where the agent is.
    pub agent_url: String,
    /// The version of A2A it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::loose_text")]
    pub protocol_version: Option<String>,
    /// Follows its answer as it comes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prefer_streaming: bool,
}

pub(super) fn read_cli(fields: &mut Fields<'_, '_>, isolation: Option<IsolationMode>) -> CliTool {
    let cli = CliTool {
        command: fields.required("command"),
        args: fields.texts("args"),
        image: fields.optional("image"),
        image_pull_secret: fields.optional("image_pull_secret"),
        network: fields.optional("network"),
        stdin_from_input: fields.flag("stdin_from_input").unwrap_or(false),
        output: fields.optional("output").unwrap_or_default(),
        working_dir: fields.optional("working_dir"),
        env: fields.strings("env"),
        env_from: fields.objects("env_from", |fields| EnvFrom {
            name: fields.required("name"),
            secret_ref: fields.required("secretRef"),
            key: fields.optional("key"),
        }),
        resources: fields.optional_child("resources", read_resources),
    };
    if let Some(isolation) = isolation.filter(|mode| *mode != IsolationMode::None)
        && !fields.was_written("image")
    {
        let message =
            format!("required field is missing: with isolation mode {isolation} it runs in an image");
        fields.refuse_absent(&["image"], message);
    }
    cli
}

pub(crate) fn read_resources(fields: &mut Fields<'_, '_>) -> ToolResources {
    ToolResources {
        memory: fields.loose_checked("memory", check_memory),
        cpus: fields.loose_checked("cpus", check_cpus),
        pids_limit: fields.count_or_default("pids_limit"),
    }
}

fn check_memory(text: &str) -> Result<(), String> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let known = ["", "b", "k", "kb", "ki", "kib", "m", "mb", "mi", "mib", "g", "gb", "gi", "gib"];
    let is_number = digits.parse::<u64>().is_ok_and(|number| number > 0);
    if is_number && known.contains(&unit.as_str()) {
        Ok(())
    } else {
        Err(format!("expected an amount of memory such as \"256m\" or \"1g\", found {text:?}"))
    }
}

fn check_cpus(text: &str) -> Result<(), String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain && text.parse::<f64>().is_ok_and(|number| number > 0.0) {
        Ok(())
    } else {
        Err(format!("expected a number of cores such as \"0.5\" or \"2\", found {text:?}"))
    }
}

pub(super) fn read_wasm(fields: &mut Fields<'_, '_>) -> WasmTool {
    WasmTool {
        module: fields.required("module"),
        entrypoint: fields.optional("entrypoint").unwrap_or_else(run),
        max_memory_bytes: fields.positive_or_default("max_memory_bytes").unwrap_or_else(memory),
        fuel: fields.positive_or_default("fuel").unwrap_or_else(fuel),
        enable_wasi: fields.flag("enable_wasi").unwrap_or(false),
        image_pull_secret: fields.optional("image_pull_secret"),
    }
}

pub(super) fn read_a2a(fields: &mut Fields<'_, '_>) -> A2aTool {
    A2aTool {
        agent_url: fields.required_checked("agent_url", |text| url::check(text, &["http", "https"])),
        protocol_version: fields.loose_checked("protocol_version", |_| Ok(())),
        prefer_streaming: fields.flag("prefer_streaming").unwrap_or(false),
    }
}
