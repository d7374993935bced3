//! Memory: where agents keep what outlasts a conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::model_endpoint::EndpointAuth;
use crate::problem::Problem;
use crate::reference::{Reference, SecretRef};
use crate::url;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemorySpec {
    /// For people to read.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Who keeps it.
    pub provider: MemoryProvider,
    /// The ModelEndpoint that makes embeddings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<Reference>,
    /// An address, or how to reach the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The secret that holds the endpoint, in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_secret_ref: Option<SecretRef>,
    /// How the other side knows us.
    #[serde(skip_serializing_if = "EndpointAuth::is_unset")]
    pub auth: EndpointAuth,
}

choice! {
    MemoryProvider { #[default] InMemory = "in-memory" | "memory" | "in_memory", Http = "http", Pgvector = "pgvector" }
}

impl Declared for MemorySpec {
    const NAME: &'static str = "Memory";
    const PLURAL: &'static str = "memories";
    const SHORT_NAMES: &'static [&'static str] = &["mem"];
    const SUMMARY: &'static str = "Where agents keep what outlasts a conversation.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let provider = fields.optional("provider").unwrap_or_default();
        let memory = Self {
            kind: fields.optional("type"),
            provider,
            embedding_model: fields.optional("embedding_model"),
            endpoint: match provider {
                MemoryProvider::Http => {
                    fields.checked("endpoint", |text| url::check(text, &["http", "https"]))
                }
                MemoryProvider::InMemory | MemoryProvider::Pgvector => fields.optional("endpoint"),
            },
            endpoint_secret_ref: fields.optional("endpoint_secret_ref"),
            auth: fields.child("auth", EndpointAuth::read),
        };
        if memory.endpoint.is_some() && memory.endpoint_secret_ref.is_some() {
            fields.refuse("endpoint_secret_ref", "given beside endpoint: a memory has one of the two");
        }
        let has_endpoint = fields.was_written("endpoint") || fields.was_written("endpoint_secret_ref");
        if memory.provider != MemoryProvider::InMemory && !has_endpoint {
            let message = format!("required field is missing: provider {} is reached by it", memory.provider);
            fields.refuse_absent(&["endpoint", "endpoint_secret_ref"], message);
        }
        if memory.provider == MemoryProvider::Pgvector {
            fields.require("embedding_model");
        }
        memory
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}
