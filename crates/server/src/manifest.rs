//! From a request's body to what it declares: JSON or YAML, one object, of the kind that the route takes.

mod yaml;

use std::collections::BTreeMap;

use http::{HeaderMap, StatusCode, header};
use ostler_control::NewTask;
use ostler_kernel::TraceContext;
use ostler_spec::{ApiVersion, Kind, Parsed, Path, Resource};
use serde_json::{Map, Value, json};

use crate::{json, parameters::Parameters, problem::Problem};

/// How problems name what was sent.
const SOURCE: &str = "body";

/// The longest idempotency key, in a manifest too.
pub const MAX_KEY: usize = 256;

/// Stands for the name that the control plane will make up.
const PLACEHOLDER: &str = "unnamed";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
}

/// The object that a body declares, in a namespace that the caller is let into, with nothing in it that leads elsewhere.
/// The address may say the namespace too.
pub fn resource(
    kind: Kind,
    headers: &HeaderMap,
    body: &[u8],
    parameters: &Parameters,
) -> Result<Resource, Problem> {
    let namespace = parameters.namespace()?;
    let (format, text) = read(headers, body)?;
    if format == Format::Json {
        json::check(text)?;
    }
    let resource = match parse_all(format, text) {
        Ok(parsed) => the_one(parsed, namespace)?,
        Err(problem) => match of_kind(kind, format, text, namespace)? {
            Some(resource) => resource,
            None => return Err(problem),
        },
    };
    check_kind(kind, &resource)?;
    parameters.caller()?.check_resource(&resource)?;
    Ok(resource.settled())
}

fn the_one(parsed: Parsed, namespace: Option<&str>) -> Result<Resource, Problem> {
    let Parsed { resources, origins, .. } = parsed;
    let (mut resource, origin) = only_one(resources.into_iter().zip(origins).collect())?;
    if let Some(namespace) = namespace
        && namespace != resource.metadata.namespace
    {
        if origin.says(&Path::of("metadata.namespace")) {
            return Err(two_namespaces(&resource.metadata.namespace, namespace));
        }
        namespace.clone_into(&mut resource.metadata.namespace);
    }
    Ok(resource)
}

/// An object that doesn't say of which kind it is: of the one that the address names. None if it says so, or is no object.
fn of_kind(
    kind: Kind,
    format: Format,
    text: &str,
    namespace: Option<&str>,
) -> Result<Option<Resource>, Problem> {
    let Ok(mut document) = value(format, text) else { return Ok(None) };
    if !fill_in_kind(kind, &mut document) {
        return Ok(None);
    }
    if let (Some(namespace), Some(Value::Object(metadata))) = (namespace, document.get_mut("metadata")) {
        settle_namespace(metadata, namespace)?;
    }
    let read = ostler_spec::from_json(&document);
    read.map(Some).map_err(|problems| Problem::invalid_manifest(&problems))
}

/// Whether it had to be. An object with nothing in it is no manifest.
fn fill_in_kind(kind: Kind, document: &mut Value) -> bool {
    let Some(members) = document.as_object_mut().filter(|members| !members.is_empty()) else { return false };
    let is_said = match members.get("kind") {
        None | Some(Value::Null) => false,
        Some(Value::String(written)) => !written.trim().is_empty(),
        Some(_) => true,
    };
    if !is_said {
        members.insert("kind".to_owned(), json!(kind.name()));
    }
    !is_said
}

/// So many are looked at together.
const MOST: usize = 5000;

/// All objects that a body declares. Whether the caller may is not looked at here.
pub fn many(headers: &HeaderMap, body: &[u8]) -> Result<Parsed, Problem> {
    let (format, text) = read(headers, body)?;
    if format == Format::Json {
        json::check(text)?;
    }
    let mut parsed = parse_all(format, text)?;
    parsed.resources = parsed.resources.into_iter().map(Resource::settled).collect();
    if parsed.resources.len() > MOST {
        let message = format!("expected at most {MOST} objects, found {}", parsed.resources.len());
        return Err(Problem::invalid_manifest(&[ostler_spec::Problem::new(Path::default(), message)]));
    }
    Ok(parsed)
}

/// The task that a body asks for; its name may be missing.
pub fn task(headers: &HeaderMap, body: &[u8], parameters: &Parameters) -> Result<NewTask, Problem> {
    let namespace = parameters.namespace()?;
    let (format, text) = read(headers, body)?;
    let mut document = value(format, text)?;
    let is_kind_filled_in = fill_in_kind(Kind::Task, &mut document);
    let metadata = document
        .as_object_mut()
        .and_then(|document| document.entry("metadata").or_insert_with(|| Map::new().into()).as_object_mut());
    let mut is_named = true;
    if let Some(metadata) = metadata {
        is_named = metadata.get("name").is_some_and(|name| !name.is_null());
        if !is_named {
            metadata.insert("name".to_owned(), json!(PLACEHOLDER));
        }
        if let Some(namespace) = namespace {
            settle_namespace(metadata, namespace)?;
        }
    }
    let resource = match format {
        // With the lines that people know it by.
        Format::Yaml if is_named && namespace.is_none() && !is_kind_filled_in => {
            only_one(parse(format, text)?)?
        }
        _ => ostler_spec::from_json(&document).map_err(|problems| Problem::invalid_manifest(&problems))?,
    };
    check_kind(Kind::Task, &resource)?;
    parameters.caller()?.check_resource(&resource)?;
    let trace = trace(headers, &resource)?;
    let mut task =
        NewTask::from_resource(resource).ok_or_else(|| wrong_kind(Kind::Task, "something else"))?;
    if !is_named {
        task.name = None;
    }
    task.trace = trace;
    Ok(task)
}

/// Where the task belongs in its caller's trace: as its annotations say, on purpose, or else as the request does. A header
/// that can't be read is as good as none: programs send it by themselves.
fn trace(headers: &HeaderMap, resource: &Resource) -> Result<Option<TraceContext>, Problem> {
    let annotated = ostler_control::annotated_trace(&resource.metadata.annotations).map_err(|error| {
        let problem = ostler_spec::Problem::new(Path::of("metadata.annotations"), error.to_string());
        Problem::invalid_manifest(&[problem])
    })?;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let sent = || TraceContext::read(header("traceparent")?, header("tracestate")).ok();
    Ok(annotated.or_else(sent))
}

/// Whether a body says what is there already, in the words that it was told in.
pub fn says_the_same(headers: &HeaderMap, body: &[u8], there: &Value) -> bool {
    let Ok(sent) = read(headers, body).and_then(|(format, text)| value(format, text)) else { return false };
    let parts = ["/spec", "/metadata/name", "/metadata/labels", "/metadata/annotations"];
    parts.iter().all(|part| sent.pointer(part) == there.pointer(part))
}

/// The namespace that a request is about: as its address says, or else its body, which must not say another.
pub fn namespace(headers: &HeaderMap, body: &[u8], parameters: &Parameters) -> Result<String, Problem> {
    let (format, text) = read(headers, body)?;
    let mut document = value(format, text)?;
    namespace_of(&mut document, parameters)
}

fn namespace_of(document: &mut Value, parameters: &Parameters) -> Result<String, Problem> {
    let mut none = Map::new();
    let metadata = document.get_mut("metadata").and_then(Value::as_object_mut).unwrap_or(&mut none);
    settle_namespace(metadata, parameters.namespace()?.unwrap_or_default())?;
    let said = metadata.get("namespace").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    let namespace = if said.is_empty() { ostler_spec::DEFAULT_NAMESPACE } else { said };
    parameters.caller()?.check_namespace(namespace)?;
    Ok(namespace.to_owned())
}

/// What someone found out about a resource.
pub struct StatusReport {
    pub namespace: String,
    /// The version that was looked at, if the body says so.
    pub version: Option<String>,
    pub status: Value,
}

/// `{"metadata": {"resourceVersion": ...}, "status": {...}}`, or what would be the status by itself, as some clients send it.
/// It may say which object it is about, as whoever read it sends it back, and no other than the address does.
pub fn status(
    (kind, name): (Kind, &str),
    headers: &HeaderMap,
    body: &[u8],
    parameters: &Parameters,
) -> Result<StatusReport, Problem> {
    let (format, text) = read(headers, body)?;
    let mut document = value(format, text)?;
    let refuse = |path: &str, message: &str| {
        let path = if path.is_empty() { Path::default() } else { Path::of(path) };
        Err(Problem::invalid_manifest(&[ostler_spec::Problem::new(path, message)]))
    };
    let namespace = namespace_of(&mut document, parameters)?;
    let said =
        |pointer: &str| document.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(other) = said("/kind").filter(|said| Kind::from_name(said) != Some(kind)) {
        return Err(wrong_kind(kind, other));
    }
    // A task may be addressed by its uid.
    if let Some(other) = said("/metadata/name").filter(|said| kind != Kind::Task && *said != name) {
        return Err(Problem::bad_parameter(format!("the address says {name:?}, the body {other:?}")));
    }
    let Value::Object(mut document) = document else { return refuse("", "expected an object with a status") };
    let version = match document.get("metadata").and_then(|metadata| metadata.get("resourceVersion")) {
        None | Some(Value::Null) => None,
        Some(Value::String(version)) => Some(version.clone()),
        Some(Value::Number(version)) => Some(version.to_string()),
        Some(_) => return refuse("metadata.resourceVersion", "expected the version as it was read"),
    };
    match document.remove("status") {
        Some(status @ Value::Object(_)) => Ok(StatusReport { namespace, version, status }),
        Some(_) => refuse("status", "expected an object"),
        None if document.contains_key("phase") && !document.contains_key("metadata") => {
            Ok(StatusReport { namespace, version, status: Value::Object(document) })
        }
        None => refuse("status", "required field is missing"),
    }
}

/// The task that is asked for again.
pub struct Rerun {
    pub namespace: String,
    pub name: String,
    /// The system its manifests are written for.
    pub api_version: ApiVersion,
    /// `spec.idempotency_key`
    pub key: Option<String>,
    /// What is wanted, if the body says by whom.
    pub wanted: Option<NewTask>,
    /// What of the former request is to be otherwise, if the body doesn't say by whom.
    pub otherwise: Map<String, Value>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

pub fn rerun(headers: &HeaderMap, body: &[u8], parameters: &Parameters) -> Result<Rerun, Problem> {
    let namespace = parameters.namespace()?;
    let (format, text) = read(headers, body)?;
    let mut document = value(format, text)?;
    let refuse = |path: &str, message: &str| {
        Problem::invalid_manifest(&[ostler_spec::Problem::new(Path::of(path), message)])
    };
    let api_version = match document.get("apiVersion").and_then(Value::as_str) {
        Some(text) if text == ApiVersion::Orloj.as_str() => ApiVersion::Orloj,
        _ => ApiVersion::Ostler,
    };
    let mut otherwise = match document.get_mut("spec").map(Value::take) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(refuse("spec", "expected an object")),
    };
    otherwise.retain(|_, value| !value.is_null());
    let written = otherwise.remove("idempotency_key").or_else(|| otherwise.remove("idempotencyKey"));
    let key = match &written {
        None => None,
        Some(Value::String(key)) if is_key(key) => Some(key.clone()),
        Some(_) => {
            let expected = format!("expected 1 to {MAX_KEY} bytes of text");
            return Err(refuse("spec.idempotency_key", &expected));
        }
    };
    let metadata = document.get_mut("metadata").and_then(Value::as_object_mut);
    let metadata =
        metadata.ok_or_else(|| refuse("metadata", "expected the name of the task to ask for again"))?;
    if let Some(namespace) = namespace {
        settle_namespace(metadata, namespace)?;
    }
    let text =
        |key: &str| Some(metadata.get(key)?.as_str()?.trim().to_owned()).filter(|text| !text.is_empty());
    let name = text("name").ok_or_else(|| refuse("metadata.name", "required field is missing"))?;
    let namespace = text("namespace").unwrap_or_else(|| ostler_spec::DEFAULT_NAMESPACE.to_owned());
    parameters.caller()?.check_namespace(&namespace)?;
    let (labels, annotations) = (texts(metadata, "labels")?, texts(metadata, "annotations")?);
    let is_wanted = ["agent", "system"].iter().any(|field| otherwise.contains_key(*field));
    let wanted = is_wanted.then(|| task(headers, body, parameters)).transpose()?;
    Ok(Rerun { namespace, name, api_version, key, wanted, otherwise, labels, annotations })
}

fn texts(metadata: &Map<String, Value>, field: &str) -> Result<BTreeMap<String, String>, Problem> {
    let found = metadata.get(field).filter(|value| !value.is_null()).cloned().unwrap_or_else(|| json!({}));
    serde_json::from_value(found).map_err(|_| {
        let path = Path::of("metadata").field(field);
        Problem::invalid_manifest(&[ostler_spec::Problem::new(path, "expected an object of strings")])
    })
}

fn is_key(key: &str) -> bool {
    (1..=MAX_KEY).contains(&key.len()) && !key.chars().any(char::is_control)
}

fn settle_namespace(metadata: &mut Map<String, Value>, namespace: &str) -> Result<(), Problem> {
    let is_blank = |written: &Value| written.as_str().is_some_and(|written| written.trim().is_empty());
    match metadata.get("namespace").filter(|written| !is_blank(written)) {
        None | Some(Value::Null) => {
            metadata.insert("namespace".to_owned(), json!(namespace));
            Ok(())
        }
        Some(Value::String(written)) if !namespace.is_empty() && written.trim() != namespace => {
            Err(two_namespaces(written.trim(), namespace))
        }
        // The same one, or no namespace at all, which the manifest's reader will say.
        Some(_) => Ok(()),
    }
}

/// A body with the format it is in. Without a type, and as plain text, it is told by its first letter, as a file is.
fn read<'b>(headers: &HeaderMap, body: &'b [u8]) -> Result<(Format, &'b str), Problem> {
    let (declared, text) = (declared_format(headers)?, text(body)?);
    let looks_like_json = || text.trim_start().is_empty() || text.trim_start().starts_with(['{', '[']);
    let format = declared.unwrap_or_else(|| if looks_like_json() { Format::Json } else { Format::Yaml });
    Ok((format, text))
}

/// A body's type, if it says which of those it is.
fn declared_format(headers: &HeaderMap) -> Result<Option<Format>, Problem> {
    check_encoding(headers)?;
    let Some(essence) = essence(headers) else { return Ok(None) };
    let is = |names: &[&str]| names.iter().any(|name| essence.eq_ignore_ascii_case(name.as_bytes()));
    if is(&["application/json"]) {
        Ok(Some(Format::Json))
    } else if is(&["application/yaml", "text/yaml", "application/x-yaml"]) {
        Ok(Some(Format::Yaml))
    } else if is(&["text/plain"]) {
        Ok(None)
    } else {
        let detail = format!("a body of type {:?} is not read here", String::from_utf8_lossy(essence));
        Err(unread(detail).remedy("send `Content-Type: application/json` or `application/yaml`"))
    }
}

/// Refuses a body that is not JSON by its type, where only JSON is read. Most callers who name none send JSON.
pub fn expect_json(headers: &HeaderMap) -> Result<(), Problem> {
    check_encoding(headers)?;
    match essence(headers) {
        None => Ok(()),
        Some(other) if other.eq_ignore_ascii_case(b"application/json") => Ok(()),
        Some(_) => Err(unread("this route reads only JSON").remedy("send `Content-Type: application/json`")),
    }
}

/// Nothing is unpacked here.
fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            let found = String::from_utf8_lossy(encoding.as_bytes());
            Err(unread(format!("a body in the encoding {found:?} is not read here"))
                .remedy("send it as it is"))
        }
        Some(_) | None => Ok(()),
    }
}

fn essence(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::CONTENT_TYPE)?;
    Some(value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii())
}

fn unread(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
}

pub fn text(body: &[u8]) -> Result<&str, Problem> {
    let text = std::str::from_utf8(body).map_err(|error| {
        let detail = format!("the body is not valid UTF-8 behind byte {}", error.valid_up_to());
        Problem::new(StatusCode::BAD_REQUEST, "bad_utf8", detail)
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn value(format: Format, text: &str) -> Result<Value, Problem> {
    match format {
        Format::Json => json::read(text),
        Format::Yaml => yaml::read(text).or_else(|error| {
            // The manifest's reader says it better, if it finds something.
            parse(format, text)?;
            let detail = format!("the body can't be read: {error}");
            Err(Problem::new(StatusCode::BAD_REQUEST, "invalid_manifest", detail))
        }),
    }
}

fn parse(format: Format, text: &str) -> Result<Vec<Resource>, Problem> {
    parse_all(format, text).map(|parsed| parsed.resources)
}

fn parse_all(format: Format, text: &str) -> Result<Parsed, Problem> {
    // What is JSON by its type but not by its first letter would be read as YAML.
    if format == Format::Json && !text.trim_start().starts_with(['{', '[']) {
        let problem = ostler_spec::Problem::new(
            Path::default(),
            "expected an object with apiVersion, kind, metadata and spec",
        );
        return Err(Problem::invalid_manifest(&[problem]));
    }
    ostler_spec::parse_with_notices(SOURCE, text).map_err(|problems| Problem::invalid_manifest(&problems))
}

fn only_one<T>(mut resources: Vec<T>) -> Result<T, Problem> {
    let count = resources.len();
    match resources.pop() {
        Some(resource) if count == 1 => Ok(resource),
        _ => {
            let message = format!("expected one object, found {count}; send each in a request of its own");
            Err(Problem::invalid_manifest(&[ostler_spec::Problem::new(Path::default(), message)]))
        }
    }
}

fn check_kind(kind: Kind, resource: &Resource) -> Result<(), Problem> {
    if resource.kind() == kind { Ok(()) } else { Err(wrong_kind(kind, resource.kind().name())) }
}

fn wrong_kind(kind: Kind, found: &str) -> Problem {
    let message = format!("expected {kind}, as the address says, found {found}");
    Problem::invalid_manifest(&[ostler_spec::Problem::new(Path::of("kind"), message)])
}

fn two_namespaces(written: &str, namespace: &str) -> Problem {
    Problem::bad_parameter(format!("the address says namespace {namespace:?}, the body {written:?}"))
}
