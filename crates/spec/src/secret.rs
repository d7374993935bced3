//! Secret and SealedSecret: values that nobody gets to read back.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::Fields;
use crate::kind::{Declared, Refusals};

/// What stands in the place of each value that is shown. Written, it means: leave the value as it is.
pub const KEPT: &str = "***";

#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretSpec {
    /// Values in base64. Shown as `***`, and `***` leaves a value as it is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
    /// Values as they are. Only ever written: they become part of `data`.
    #[serde(default, skip_serializing)]
    pub string_data: BTreeMap<String, String>,
}

/// Only the names: a value must not reach a log by way of a debug print.
impl std::fmt::Debug for SecretSpec {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_set().entries(self.data.keys()).finish()
    }
}

impl Declared for SecretSpec {
    const NAME: &'static str = "Secret";
    const PLURAL: &'static str = "secrets";
    const SHORT_NAMES: &'static [&'static str] = &[];
    const SUMMARY: &'static str = "Values that endpoints, tools and webhooks name and nobody reads back.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        // Encoded text is often wrapped over lines.
        let unwrap = |(key, value): (String, String)| (key, value.split_whitespace().collect::<String>());
        let mut data: BTreeMap<String, String> = fields.secrets("data").into_iter().map(unwrap).collect();
        for (key, value) in data.iter().filter(|(_, value)| *value != KEPT) {
            if let Err(complaint) = check_encoded(value) {
                let hint = if value.is_empty() { "" } else { "; plain values belong into stringData" };
                fields.refuse_in("data", key, format!("{complaint}{hint}"));
            }
        }
        let plain = fields.secrets("stringData");
        for (key, value) in &plain {
            if value.is_empty() {
                fields.refuse_in("stringData", key, "expected a value that is not empty");
            }
        }
        if data.is_empty()
            && plain.is_empty()
            && !fields.was_written("data")
            && !fields.was_written("stringData")
        {
            fields.refuse_absent(
                &["data", "stringData"],
                "required field is missing: a secret has a value in data or stringData",
            );
        }
        let encode = |value: String| if value == KEPT { value } else { STANDARD.encode(value) };
        data.extend(plain.into_iter().map(|(key, value)| (key, encode(value))));
        Self { data, string_data: BTreeMap::new() }
    }

    fn unsupported(&self) -> Vec<crate::Problem> {
        Vec::new()
    }
}

impl SecretSpec {
    /// As it is shown to anybody: the keys, and nothing of their values.
    pub fn shown(&self) -> Self {
        let data = self.data.keys().map(|key| (key.clone(), KEPT.to_owned())).collect();
        Self { data, string_data: BTreeMap::new() }
    }
}

/// Without the value itself: whoever reads the message may not be who wrote it.
fn check_encoded(value: &str) -> Result<(), &'static str> {
    match STANDARD.decode(value.trim()) {
        Ok(bytes) if bytes.is_empty() => Err("expected a value that is not empty"),
        Ok(_) => Ok(()),
        Err(_) => Err("expected base64"),
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SealedSecretSpec {
    /// What only the server can open.
    pub encrypted_data: BTreeMap<String, SealedValue>,
    /// What the Secret made from it carries.
    #[serde(default, skip_serializing_if = "SealedTemplate::is_unset")]
    pub template: SealedTemplate,
}

/// A value encrypted with a key of its own, and that key encrypted for the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SealedValue {
    /// Which of the server's keys.
    pub key_id: String,
    /// The key of the value, encrypted for the server, in base64.
    pub wrapped_key: String,
    /// The value, encrypted with that key, in base64.
    pub ciphertext: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SealedTemplate {
    /// Its labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl SealedTemplate {
    fn is_unset(&self) -> bool {
        *self == Self::default()
    }
}

impl Declared for SealedSecretSpec {
    const NAME: &'static str = "SealedSecret";
    const PLURAL: &'static str = "sealed-secrets";
    const SHORT_NAMES: &'static [&'static str] = &[];
    const SUMMARY: &'static str = "A Secret encrypted for this server, fit to be kept with the manifests.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let spec = Self {
            encrypted_data: fields.map_of("encryptedData", |fields| SealedValue {
                key_id: fields.required("keyId"),
                wrapped_key: fields
                    .required_checked("wrappedKey", |text| check_encoded(text).map_err(str::to_owned)),
                ciphertext: fields
                    .required_checked("ciphertext", |text| check_encoded(text).map_err(str::to_owned)),
            }),
            template: fields.child("template", |fields| SealedTemplate {
                labels: fields.strings("labels"),
                annotations: fields.strings("annotations"),
            }),
        };
        if !fields.was_written("encryptedData") {
            fields.refuse_missing("encryptedData");
        }
        spec
    }

    fn unsupported(&self) -> Vec<crate::Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}
