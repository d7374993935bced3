//! TaskWebhook: makes a task from a delivery of another system.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::problem::Problem;
use crate::reference::{Reference, SecretRef};
use crate::task::TaskSpec;
use crate::task_schedule::read_template;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskWebhookSpec {
    /// The Task of mode template that tasks are made from; exactly one of this and `task_template`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_ref: Option<Reference>,
    /// The same, written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_template: Option<Box<TaskSpec>>,
    /// Answers deliveries with 409 while this is set.
    #[serde(default)]
    pub suspend: bool,
    pub auth: WebhookAuth,
    #[serde(default)]
    pub idempotency: WebhookIdempotency,
    /// What the task gets of the delivery.
    #[serde(default)]
    pub payload: WebhookPayload,
}

/// How a delivery proves who sent it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookAuth {
    /// Whose way of signing it is; decides the defaults of the rest.
    #[serde(default)]
    pub profile: WebhookProfile,
    /// The secret that sender and receiver share.
    pub secret_ref: SecretRef,
    /// The header that carries the signature or the token; the profiles hmac and shared_token have none by default.
    #[serde(default)]
    pub signature_header: String,
    /// What stands before the signature.
    #[serde(default)]
    pub signature_prefix: String,
    /// The header that says when it was signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_header: Option<String>,
    /// How far that may lie off; 0 is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_skew_seconds: Option<u32>,
    /// How it is signed.
    #[serde(default)]
    pub algorithm: SignatureAlgorithm,
    /// What is signed: by default the body, and of the generic profile what stands in front of it with the timestamp.
    #[serde(default)]
    pub payload_format: PayloadFormat,
    /// What stands before what is signed, for prefix_timestamp_body.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub payload_prefix: String,
    /// What stands between the parts of what is signed.
    #[serde(default = "dot")]
    pub payload_separator: String,
    /// How the signature is written.
    #[serde(default)]
    pub signature_encoding: SignatureEncoding,
    /// Whether the header holds the signature alone, or pairs.
    #[serde(default)]
    pub header_format: HeaderFormat,
    /// The key of the signature, where the header holds pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature_key: Option<String>,
    /// The key of the time, where the header holds pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_key: Option<String>,
}

choice! {
    WebhookProfile {
        #[default] Generic = "generic",
        Github = "github",
        Hmac = "hmac",
        SharedToken = "shared_token",
    }
}

choice! { SignatureAlgorithm { #[default] Sha256 = "sha256", Sha1 = "sha1", Sha512 = "sha512" } }

choice! {
    PayloadFormat {
        #[default] Body = "body",
        TimestampDotBody = "timestamp_dot_body",
        PrefixTimestampBody = "prefix_timestamp_body",
    }
}

choice! { SignatureEncoding { #[default] Hex = "hex", Base64 = "base64" } }

choice! { HeaderFormat { #[default] Plain = "plain", KvPairs = "kv_pairs" } }

/// How a delivery that comes twice is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebhookIdempotency {
    /// The header that names the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id_header: Option<String>,
    /// The place in a JSON body that names it, in the header's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id_from_body: Option<String>,
    /// For how long a delivery is remembered; 0 is the default, which is three days of the profile github.
    pub dedupe_window_seconds: u32,
}

impl Default for WebhookIdempotency {
    fn default() -> Self {
        Self { event_id_header: None, event_id_from_body: None, dedupe_window_seconds: DAY }
    }
}

const DAY: u32 = 86_400;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebhookPayload {
    /// How the body is given to the task.
    pub mode: PayloadMode,
    /// The input of the task that gets the body.
    pub input_key: String,
}

choice! { PayloadMode { #[default] Raw = "raw" } }

impl Default for WebhookPayload {
    fn default() -> Self {
        Self { mode: PayloadMode::Raw, input_key: "webhook_payload".to_owned() }
    }
}

fn dot() -> String {
    ".".to_owned()
}

impl Declared for TaskWebhookSpec {
    const NAME: &'static str = "TaskWebhook";
    const PLURAL: &'static str = "task-webhooks";
    const SHORT_NAMES: &'static [&'static str] = &["hook", "webhook", "webhooks"];
    const SUMMARY: &'static str = "Makes a task from a delivery of another system.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let (task_ref, task_template) = read_template(fields);
        let auth = fields.child("auth", read_auth);
        Self {
            task_ref,
            task_template,
            suspend: fields.flag("suspend").unwrap_or(false),
            idempotency: fields.child("idempotency", |fields| read_idempotency(fields, auth.profile)),
            payload: fields.child("payload", read_payload),
            auth,
        }
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}

fn read_auth(fields: &mut Fields<'_, '_>) -> WebhookAuth {
    let profile = fields.optional("profile").unwrap_or_default();
    let (header, prefix, is_dated) = match profile {
        WebhookProfile::Generic => (Some("X-Signature"), "sha256=", true),
        WebhookProfile::Github => (Some("X-Hub-Signature-256"), "sha256=", false),
        WebhookProfile::Hmac | WebhookProfile::SharedToken => (None, "", false),
    };
    let may_be_dated = is_dated || profile == WebhookProfile::Hmac;
    let auth = WebhookAuth {
        profile,
        secret_ref: fields.required("secret_ref"),
        signature_header: fields
            .checked("signature_header", check_header)
            .unwrap_or_else(|| header.unwrap_or_default().to_owned()),
        signature_prefix: fields
            .letters("signature_prefix")
            .filter(|text| is_visible(text))
            .unwrap_or_else(|| prefix.to_owned()),
        timestamp_header: fields
            .checked("timestamp_header", check_header)
            .or_else(|| is_dated.then(|| "X-Timestamp".to_owned())),
        max_skew_seconds: fields.count("max_skew_seconds", 0).filter(is_set).or(may_be_dated.then_some(300)),
        algorithm: fields.optional("algorithm").unwrap_or_default(),
        payload_format: fields.optional("payload_format").unwrap_or(match is_dated {
            true => PayloadFormat::TimestampDotBody,
            false => PayloadFormat::Body,
        }),
        payload_prefix: fields.verbatim("payload_prefix"),
        payload_separator: fields
            .letters("payload_separator")
            .filter(|text| is_visible(text))
            .unwrap_or_else(dot),
        signature_encoding: fields.optional("signature_encoding").unwrap_or_default(),
        header_format: fields.optional("header_format").unwrap_or_default(),
        signature_key: fields.optional("signature_key"),
        timestamp_key: fields.optional("timestamp_key"),
    };
    if header.is_none() && !fields.is_troubled("profile") {
        fields.require("signature_header");
    }
    if auth.header_format == HeaderFormat::KvPairs {
        fields.require("signature_key");
    }
    let is_timed = auth.timestamp_header.is_some() || auth.timestamp_key.is_some();
    if auth.payload_format != PayloadFormat::Body && !is_timed && !fields.is_troubled("timestamp_header") {
        fields.refuse(
            "payload_format",
            "signs a time that nothing names: give timestamp_header or timestamp_key",
        );
    }
    auth
}

fn read_idempotency(fields: &mut Fields<'_, '_>, profile: WebhookProfile) -> WebhookIdempotency {
    let (header, window) = match profile {
        WebhookProfile::Github => ("X-GitHub-Delivery", 3 * DAY),
        WebhookProfile::Generic | WebhookProfile::Hmac | WebhookProfile::SharedToken => ("X-Event-Id", DAY),
    };
    let from_body: Option<String> = fields.optional("event_id_from_body");
    let named = fields.checked("event_id_header", check_header);
    if named.is_some() && from_body.is_some() {
        fields.refuse("event_id_from_body", "given beside event_id_header: an event has one name");
    }
    WebhookIdempotency {
        event_id_header: named.or_else(|| from_body.is_none().then(|| header.to_owned())),
        event_id_from_body: from_body,
        dedupe_window_seconds: fields.count("dedupe_window_seconds", 0).filter(is_set).unwrap_or(window),
    }
}

fn read_payload(fields: &mut Fields<'_, '_>) -> WebhookPayload {
    let default = WebhookPayload::default();
    WebhookPayload {
        mode: fields.optional("mode").unwrap_or_default(),
        input_key: fields.optional("input_key").unwrap_or(default.input_key),
    }
}

/// Other systems write a 0 where nothing was said.
fn is_set(seconds: &u32) -> bool {
    *seconds > 0
}

fn is_visible(text: &str) -> bool {
    !text.trim().is_empty()
}

/// As RFC 9110 wants the name of a header.
fn check_header(name: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.bytes().all(is_token) {
        Ok(())
    } else {
        Err(format!("expected the name of a header, found {name:?}"))
    }
}
