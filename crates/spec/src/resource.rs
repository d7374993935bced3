//! The envelope every kind shares: apiVersion, kind, metadata, spec, status, and what a name may be.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

use crate::choice::{Loose, choice, expected_one_of};
use crate::fields::{Fields, object};
use crate::kind::{Kind, Spec, kinds};
use crate::node::{Node, Value};
use crate::problem::{Problem, Segment};
use crate::reader::Reader;
use crate::reference::Reference;
use crate::references::Named;
use crate::suggest::nearest;

pub const DEFAULT_NAMESPACE: &str = "default";

/// One declared object. Serialises to the canonical JSON of the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub api_version: ApiVersion,
    pub metadata: Metadata,
    pub spec: Spec,
    /// Whatever its controller reports; not judged here.
    pub status: Option<Json>,
}

choice! {
    /// Our own, and the one whose manifests we accept as they are.
    ApiVersion { #[default] Ostler = "ostler.dev/v1", Orloj = "orloj.dev/v1" }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Given by the server; what a manifest says is of no account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Raised by every write, of spec, status or metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Raised only when the spec changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

impl Resource {
    pub fn kind(&self) -> Kind {
        self.spec.kind()
    }

    /// `namespace/name`, unique within a kind.
    pub fn key(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// What this declares that the running version cannot honour, to be refused when it is used.
    pub fn unsupported(&self) -> Vec<Problem> {
        let mut problems = self.at_home().unsupported();
        problems.extend(self.workers_elsewhere());
        problems
    }

    /// Says of what lives in its own namespace only the name, as others will compare it. For a resource whose namespace won't
    /// change any more.
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.spec.settle(&self.metadata.namespace);
        self
    }

    /// The spec as it will be, to be judged while its text still is what people wrote.
    fn at_home(&self) -> Cow<'_, Spec> {
        match &self.spec {
            Spec::Agent(_) | Spec::AgentSystem(_) => Cow::Owned(self.clone().settled().spec),
            spec => Cow::Borrowed(spec),
        }
    }

    /// A task is worked on where it lives: whose rules, shares and conversations would count is not settled otherwise.
    fn workers_elsewhere(&self) -> Vec<Problem> {
        let own = self.metadata.namespace.as_str();
        let is_elsewhere = |named: &Named<'_>| {
            matches!(named.kind, Kind::Agent | Kind::AgentSystem) && named.reference.namespace_or(own) != own
        };
        let named = match &self.spec {
            Spec::Task(_) | Spec::AgentSystem(_) => self.references(),
            _ => Vec::new(),
        };
        let elsewhere = named.into_iter().filter(is_elsewhere);
        let problem = |named: Named<'_>| {
            let what = if named.kind == Kind::Agent { "an agent" } else { "a system" };
            Problem::new(named.path, format!("{what} of another namespace is not available in this version"))
        };
        elsewhere.map(problem).collect()
    }
}

/// Reads one document; a problem leaves nothing.
pub(crate) fn read(reader: &mut Reader, node: &Node) -> Option<Resource> {
    let before = reader.count();
    if !matches!(node.value, Value::Map(_)) {
        let expected = "expected an object with apiVersion, kind, metadata and spec";
        reader.report(node.at, format!("{expected}, found {}", node.describe()));
        return None;
    }
    let resource = object(reader, node, node.at, |fields| {
        let api_version = fields.optional("apiVersion").unwrap_or_default();
        let kind = read_kind(fields);
        let metadata = fields.child("metadata", read_metadata);
        let spec = match kind {
            Some(kind) => Some(named(fields.child("spec", kind.info().read), &metadata.name)),
            None => {
                fields.raw("spec");
                None
            }
        };
        let status = fields.json_object("status");
        refuse_shortened(fields, status.as_ref());
        Some(Resource { api_version, metadata, spec: spec?, status })
    });
    let resource = resource.filter(|_| reader.count() == before)?;
    for mistake in resource.at_home().mistakes() {
        reader.add(node.locate(&mistake.path), mistake);
    }
    Some(resource).filter(|_| reader.count() == before)
}

/// Lists show of what is long only the beginning, and say so: that is not what was asked for.
fn refuse_shortened(fields: &mut Fields<'_, '_>, status: Option<&Json>) {
    let shortened = status.and_then(|status| status.get("shortened")?.as_array()).into_iter().flatten();
    if let Some(field) = shortened.filter_map(Json::as_str).find(|field| field.starts_with("spec.")) {
        let message =
            format!("only the beginning of {field} is here, as lists show it; get the object by its name");
        fields.refuse("status", message);
    }
}

/// What a spec leaves to the name that stands beside it.
fn named(mut spec: Spec, name: &str) -> Spec {
    if let Spec::ToolPermission(permission) = &mut spec {
        permission.tool_ref.get_or_insert_with(|| Reference::named(name));
    }
    spec
}

fn read_kind(fields: &mut Fields<'_, '_>) -> Option<Kind> {
    let Some(entry) = fields.raw("kind") else {
        fields.refuse_missing("kind");
        return None;
    };
    let (message, suggestion) = match &entry.value.value {
        Value::String(name) => match Kind::from_name(name) {
            Some(kind) => return Some(kind),
            None => unknown_kind(name.trim()),
        },
        _ => (format!("{}, found {}", expected_kind(), entry.value.describe()), None),
    };
    let at = entry.value.at;
    fields
        .reader()
        .within(Segment::Field(entry.key.clone()), |reader| reader.report_with(at, message, suggestion));
    None
}

fn unknown_kind(name: &str) -> (String, Option<String>) {
    match nearest(name, kinds().map(|info| info.name)) {
        Some(near) => (format!("unknown kind {name:?}"), Some(near.to_owned())),
        None => (format!("unknown kind, {}", expected_kind()), None),
    }
}

fn expected_kind() -> String {
    let mut names: Vec<&str> = kinds().map(|info| info.name).collect();
    names.sort_unstable();
    expected_one_of(&names)
}

fn read_metadata(fields: &mut Fields<'_, '_>) -> Metadata {
    let namespace = fields.checked("namespace", check_namespace);
    let metadata = Metadata {
        name: fields.required_checked("name", check_name),
        namespace: namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()),
        labels: fields.strings("labels"),
        annotations: fields.strings("annotations"),
        uid: fields.optional("uid"),
        resource_version: fields.optional("resourceVersion").map(|Loose(text)| text),
        generation: fields.integer("generation", 0..=i64::MAX).and_then(|number| u64::try_from(number).ok()),
        created_at: fields.optional("createdAt"),
    };
    let longest = metadata.name.len().max(metadata.namespace.len());
    if longest <= MAX_KEY && metadata.namespace.len() + 1 + metadata.name.len() > MAX_KEY {
        fields.refuse("name", format!("namespace and name together are longer than {} bytes", MAX_KEY - 1));
    }
    metadata
}

/// The longest `namespace/name`.
const MAX_KEY: usize = 253;

/// Words that stand behind a resource in a route.
const RESERVED_NAMES: &[&str] = &["status", "logs", "exec", "scale", "proxy", "binding", "watch"];

/// Whether a resource may be called this.
pub fn check_name(name: &str) -> Result<(), String> {
    if RESERVED_NAMES.contains(&name) {
        return Err(format!("the name {name:?} is reserved"));
    }
    check_namespace(name)
}

/// Whether a namespace may be called this.
pub fn check_namespace(name: &str) -> Result<(), String> {
    if name.len() > MAX_KEY {
        return Err(format!("expected a name of at most {MAX_KEY} bytes, found one of {}", name.len()));
    }
    if name == "*" {
        return Err("expected a name: \"*\" stands for all of them".to_owned());
    }
    let complaint = if name.is_empty() {
        "is empty"
    } else if name.starts_with('.') {
        "starts with a dot"
    } else if name.contains('/') {
        "contains a slash"
    } else if name.contains(|character: char| character.is_whitespace() || character.is_control()) {
        "contains white space"
    } else if name.contains(is_invisible) {
        "contains an invisible character"
    } else {
        return Ok(());
    };
    Err(format!("expected a name without slashes, white space or a leading dot, found one that {complaint}"))
}

/// With one of these two names look alike: characters without a width, and those that turn the direction of writing.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

impl Serialize for Resource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            api_version: ApiVersion,
            kind: &'static str,
            metadata: &'a Metadata,
            spec: &'a Spec,
            #[serde(skip_serializing_if = "Option::is_none")]
            status: &'a Option<Json>,
        }
        let Self { api_version, metadata, spec, status } = self;
        Wire { api_version: *api_version, kind: spec.kind().name(), metadata, spec, status }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Resource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            api_version: ApiVersion,
            kind: String,
            metadata: Metadata,
            spec: Json,
            #[serde(default)]
            status: Option<Json>,
        }
        let Wire { api_version, kind, metadata, spec, status } = Wire::deserialize(deserializer)?;
        let kind =
            Kind::from_name(&kind).ok_or_else(|| D::Error::custom(format!("unknown kind {kind:?}")))?;
        let spec = (kind.info().restore)(spec).map_err(D::Error::custom)?;
        Ok(Self { api_version, metadata, spec, status })
    }
}
