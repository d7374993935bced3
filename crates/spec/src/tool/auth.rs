//! How a call shows who makes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::fields::Fields;
use crate::reference::SecretRef;
use crate::url;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolAuth {
    /// In which form it is shown.
    #[serde(default)]
    pub profile: AuthProfile,
    /// What is shown.
    pub secret_ref: SecretRef,
    /// The header that carries it, for api_key_header; with another profile it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_name: Option<String>,
    /// Where a token is had, for oauth2_client_credentials; with another profile it is refused.
    #[serde(rename = "tokenURL", default, skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// What the token is for, for oauth2_client_credentials; with another profile they are refused.
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

/// An empty block is no auth at all.
pub(crate) fn read_auth(fields: &mut Fields<'_, '_>) -> Option<ToolAuth> {
    let profile: Option<AuthProfile> = fields.optional("profile");
    let secret_ref: Option<SecretRef> = fields.optional("secretRef");
    let auth = ToolAuth {
        profile: profile.unwrap_or_default(),
        header_name: fields.optional("headerName"),
        token_url: fields.checked("tokenURL", |text| url::check(text, &["http", "https"])),
        scopes: fields.distinct("scopes"),
        secret_ref: secret_ref.clone().unwrap_or_default(),
    };
    if ["profile", "headerName", "tokenURL", "scopes"].iter().any(|name| fields.was_written(name)) {
        fields.require("secretRef");
    }
    if auth.profile == AuthProfile::ApiKeyHeader {
        fields.require("headerName");
    }
    if auth.profile == AuthProfile::OAuth2ClientCredentials {
        fields.require("tokenURL");
    }
    let auth = secret_ref.map(|_| auth)?;
    refuse_foreign(fields, &auth);
    Some(auth)
}

/// What only another profile would make use of.
fn refuse_foreign(fields: &mut Fields<'_, '_>, auth: &ToolAuth) {
    if fields.is_troubled("profile") {
        return;
    }
    let foreign = [
        ("headerName", auth.header_name.is_some(), AuthProfile::ApiKeyHeader),
        ("tokenURL", auth.token_url.is_some(), AuthProfile::OAuth2ClientCredentials),
        ("scopes", !auth.scopes.is_empty(), AuthProfile::OAuth2ClientCredentials),
    ];
    for (name, is_given, owner) in foreign {
        if is_given && auth.profile != owner {
            let message = format!("has no effect with the profile {}, only with {owner}", auth.profile);
            fields.refuse(name, message);
        }
    }
}
