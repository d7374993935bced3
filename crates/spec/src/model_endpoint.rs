//! ModelEndpoint: a vendor, an address, a model, a credential.

mod terms;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::problem::Problem;
use crate::reference::SecretRef;
use crate::resource::check_name;
use crate::url;

pub use terms::{Dollars, EndpointBreaker, EndpointLimits, EndpointPrice};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelEndpointSpec {
    /// `openai`, `anthropic`, `azure-openai`, `gemini`, `ollama`, `openai-compatible` or `mock`; one that nobody knows is refused
    /// when it is applied.
    #[serde(default = "openai")]
    pub provider: String,
    /// The vendor's own by default. Empty where the provider has no address of its own and none was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_url: String,
    /// The model that is asked.
    pub default_model: String,
    /// Other names that agents may give as their `model_ref`, each with the model of this endpoint that is asked then. An
    /// endpoint of that name goes before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
    /// How the model is asked; keys in lower case. One that the provider doesn't know fails when it is used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// How the other side knows us.
    #[serde(default, skip_serializing_if = "EndpointAuth::is_unset")]
    pub auth: EndpointAuth,
    /// Lets the endpoint live at a private address; one of `ollama` may anyway.
    #[serde(rename = "allowPrivate", default)]
    pub allow_private: bool,
    /// How much is asked of it at most.
    #[serde(default, skip_serializing_if = "EndpointLimits::is_unset")]
    pub limits: EndpointLimits,
    /// When it is left alone because it fails.
    #[serde(default, skip_serializing_if = "EndpointBreaker::is_unset")]
    pub breaker: EndpointBreaker,
    /// What it costs; without it, what the table of prices says of its models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<EndpointPrice>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointAuth {
    /// What is shown to the other side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
}

/// Vendors that manifests name. Not every version can ask each of them; that is told when it is used.
pub const PROVIDERS: &[&str] = &[
    "openai",
    "openai-compatible",
    "openai_compatible",
    "anthropic",
    "azure-openai",
    "azure_openai",
    "azure",
    "ollama",
    "bedrock",
    "aws-bedrock",
    "mock",
];

impl EndpointAuth {
    pub(crate) fn is_unset(&self) -> bool {
        self.secret_ref.is_none()
    }

    pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self { secret_ref: fields.optional("secretRef") }
    }
}

impl ModelEndpointSpec {
    /// Whether a call may go to an address that is not public: where that is said, and to a model that people run
    /// themselves, mostly on the machine they sit at.
    pub fn may_be_private(&self) -> bool {
        self.allow_private || self.provider == "ollama"
    }
}

fn openai() -> String {
    "openai".to_owned()
}

impl Declared for ModelEndpointSpec {
    const NAME: &'static str = "ModelEndpoint";
    const PLURAL: &'static str = "model-endpoints";
    const SHORT_NAMES: &'static [&'static str] = &["mep", "model", "models"];
    const SUMMARY: &'static str = "A model: vendor, address, name, credential.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let provider = fields.optional::<String>("provider").map(|provider| provider.to_lowercase());
        let provider = provider.unwrap_or_else(openai);
        let base_url = fields.checked("base_url", |text| url::check(text, &["http", "https"]));
        Self {
            base_url: base_url.unwrap_or_else(|| default_base_url(&provider).to_owned()),
            default_model: fields.required("default_model"),
            aliases: read_aliases(fields),
            options: read_options(fields),
            auth: fields.child("auth", EndpointAuth::read),
            allow_private: fields.flag("allowPrivate").unwrap_or(false),
            limits: fields.child("limits", EndpointLimits::read),
            breaker: fields.child("breaker", EndpointBreaker::read),
            price: fields.optional_child("price", EndpointPrice::read),
            provider,
        }
    }

    fn unsupported(&self) -> Vec<Problem> {
        let mut refusals = Refusals::none();
        let provider = self.provider.trim();
        let is_bedrock = matches!(provider, "bedrock" | "aws-bedrock");
        refusals.refuse_if(is_bedrock, "spec.provider", format!("provider {provider}"));
        refusals.into_problems()
    }
}

/// They are named as resources are.
fn read_aliases(fields: &mut Fields<'_, '_>) -> BTreeMap<String, String> {
    let aliases = fields.strings("aliases");
    for (alias, model) in &aliases {
        if let Err(error) = check_name(alias) {
            fields.refuse_in("aliases", alias, error.to_string());
        }
        if model.trim().is_empty() {
            fields.refuse_in("aliases", alias, "expected the name of a model");
        }
    }
    aliases
}

fn read_options(fields: &mut Fields<'_, '_>) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    for (written, value) in fields.strings("options") {
        let key = written.trim().to_lowercase();
        if options.insert(key.clone(), value).is_some() {
            fields.refuse_in(
                "options",
                &written,
                format!("given twice: the case of {key:?} makes no difference"),
            );
        }
    }
    options
}

fn default_base_url(provider: &str) -> &'static str {
    match provider {
        "openai" => "https://api.openai.com/v1",
        "anthropic" => "https://api.anthropic.com/v1",
        "gemini" | "google" => "https://generativelanguage.googleapis.com/v1beta",
        "ollama" => "http://127.0.0.1:11434",
        _ => "",
    }
}
