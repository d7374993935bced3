//! OpenAI and all that speaks its wires: its own address, compatible servers, Azure. Two wires: chat completions
//! ([`chat`]), which everybody speaks, and responses ([`responses`]), which gives a model its own thinking back. This
//! file says who speaks which, where, and with what key.

mod cache;
mod chat;
mod responses;

use ostler_kernel::{Failure, plan::ModelPlan};
use ostler_net::Client;

use crate::{
    ModelRequest, Secrets,
    call::{Caller, Key, Prepared, Reading, Vendor},
    failure,
    names::ToolNames,
    options::{Known, Options, Shape},
};

/// OpenAI itself.
pub(crate) fn openai(client: Client, secrets: Secrets) -> Caller {
    Caller::new(client, secrets, OpenAi)
}

/// Whoever speaks the same; a key is shown if there is one.
pub(crate) fn compatible(client: Client, secrets: Secrets) -> Caller {
    Caller::new(client, secrets, Compatible)
}

pub(crate) fn azure(client: Client, secrets: Secrets) -> Caller {
    Caller::new(client, secrets, Azure)
}

const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The version of Azure's interface that is asked for unless another is; `v1` is the one without versions.
const AZURE_VERSION: &str = "2024-10-21";

const API: Known = &[("api", Shape::Choice(&["chat", "responses"]))];
const AZURE: Known = &[("api_version", Shape::Text), ("deployment", Shape::Text)];

/// All of them, for who describes them.
#[cfg(test)]
pub(crate) const OPTIONS: [Known; 5] = [API, AZURE, chat::OPTIONS, chat::COMPATIBLE, responses::OPTIONS];

struct OpenAi;
struct Compatible;
struct Azure;

/// Which of the two wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Chat,
    Responses,
}

/// Where a call goes, and as whose.
struct Peerage {
    url: String,
    key: Key,
    /// Marks the native blocks of its chat completions. Those of responses are encrypted by whoever made them, and
    /// are marked as theirs too.
    mark: String,
    /// The model, as it is called there.
    model: String,
    /// Not the vendor: somebody who speaks as it does, more or less.
    is_imitator: bool,
    /// It can be told what of a prompt comes again.
    marks_prompts: bool,
}

impl Vendor for OpenAi {
    fn names(&self) -> &'static [&'static str] {
        &["openai"]
    }

    fn prepare(&self, request: &ModelRequest) -> Result<Prepared, Failure> {
        let (wire, options) = read_options(&request.endpoint, &[])?;
        let base_url = base_url(&request.endpoint).unwrap_or(DEFAULT_BASE_URL);
        let to = Peerage {
            url: format!("{base_url}/{}", wire.path()),
            key: Key::Bearer,
            mark: "openai".to_owned(),
            model: request.endpoint.model.clone(),
            is_imitator: false,
            marks_prompts: cache::has_breakpoints(&request.endpoint.model),
        };
        prepare(wire, request, options, to)
    }
}

impl Vendor for Compatible {
    fn names(&self) -> &'static [&'static str] {
        &["openai-compatible", "openai_compatible"]
    }

    fn prepare(&self, request: &ModelRequest) -> Result<Prepared, Failure> {
        let endpoint = &request.endpoint;
        let (wire, options) = read_options(endpoint, &[chat::COMPATIBLE])?;
        let base_url = base_url(endpoint)
            .ok_or_else(|| failure::no_base_url(&endpoint.endpoint, "http://127.0.0.1:8000/v1"))?;
        let host = base_url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let to = Peerage {
            url: format!("{base_url}/{}", wire.path()),
            key: Key::Bearer,
            // What one of these servers adds, another may refuse.
            mark: format!("openai-compatible/{host}"),
            model: endpoint.model.clone(),
            is_imitator: true,
            marks_prompts: false,
        };
        prepare(wire, request, options, to)
    }
}

impl Vendor for Azure {
    fn names(&self) -> &'static [&'static str] {
        &["azure-openai", "azure_openai", "azure"]
    }

    fn prepare(&self, request: &ModelRequest) -> Result<Prepared, Failure> {
        let endpoint = &request.endpoint;
        let (wire, mut options) = read_options(endpoint, &[AZURE])?;
        let base_url = base_url(endpoint).ok_or_else(|| {
            failure::no_base_url(&endpoint.endpoint, "https://my-resource.openai.azure.com")
        })?;
        let mut text = |name: &str| options.take(name).and_then(|value| value.as_str().map(str::to_owned));
        let deployment = text("deployment").unwrap_or_else(|| endpoint.model.clone());
        let version = text("api_version").unwrap_or_else(|| AZURE_VERSION.to_owned());
        let url = match wire {
            Wire::Chat if version != "v1" => {
                let (deployment, version) = (escaped(&deployment), escaped(&version));
                format!("{base_url}/openai/deployments/{deployment}/chat/completions?api-version={version}")
            }
            Wire::Chat | Wire::Responses => format!("{base_url}/openai/v1/{}", wire.path()),
        };
        let to = Peerage {
            url,
            key: Key::Header("api-key"),
            mark: "azure-openai".to_owned(),
            model: deployment,
            is_imitator: false,
            marks_prompts: false,
        };
        prepare(wire, request, options, to)
    }
}

impl Wire {
    fn path(self) -> &'static str {
        match self {
            Wire::Chat => "chat/completions",
            Wire::Responses => "responses",
        }
    }
}

/// The options of the wire that they choose.
fn read_options(endpoint: &ModelPlan, also: &[Known]) -> Result<(Wire, Options), Failure> {
    let wire = match endpoint.options.get("api").map(String::as_str) {
        Some("responses") => Wire::Responses,
        _ => Wire::Chat,
    };
    let own = match wire {
        Wire::Chat => chat::OPTIONS,
        Wire::Responses => responses::OPTIONS,
    };
    let known: Vec<Known> = also.iter().copied().chain([API, own]).collect();
    let mut options = Options::read(endpoint, &known)?;
    options.take("api");
    Ok((wire, options))
}

fn prepare(
    wire: Wire,
    request: &ModelRequest,
    mut options: Options,
    to: Peerage,
) -> Result<Prepared, Failure> {
    let tools = ToolNames::new(&request.tools);
    let Peerage { url, key, mark, model, is_imitator, marks_prompts } = to;
    let (timeouts, headers) = (options.timeouts, options.headers.clone());
    let (mark, body, reading): (_, _, Box<dyn Reading>) = match wire {
        Wire::Chat => {
            let thinks = [&model, &request.endpoint.model].into_iter().any(|model| responses::thinks(model));
            if thinks && !is_imitator {
                // The older name is refused for a model whose thoughts are bounded with its answer.
                options.rename("max_tokens", "max_completion_tokens");
            }
            let body = chat::body(request, (&model, &mark), &tools, options, marks_prompts)?;
            let answer = if is_imitator { chat::Answer::of_imitator() } else { chat::Answer::default() };
            (mark, body, Box::new(answer))
        }
        Wire::Responses => {
            let mark = format!("{mark}-responses");
            let body = responses::body(request, (&model, &mark), &tools, options, marks_prompts)?;
            (mark, body, Box::new(responses::Answer::default()))
        }
    };
    Ok(Prepared { url, body, headers, key, timeouts, mark, tools, reading })
}

/// The address that was given, without a slash at its end.
pub(crate) fn base_url(endpoint: &ModelPlan) -> Option<&str> {
    Some(endpoint.base_url.trim_end_matches('/')).filter(|base_url| !base_url.is_empty())
}

/// As a part of a path or a query.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte))
            }
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn bound(vendor: &dyn Vendor, model: &str, options: &[(&str, &str)]) -> [Value; 2] {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let endpoint = ModelPlan {
            endpoint: "main".into(),
            base_url: "http://127.0.0.1".into(),
            model: model.into(),
            options: options.iter().map(owned).collect(),
            ..ModelPlan::default()
        };
        let request = ModelRequest {
            endpoint,
            system: String::new(),
            messages: vec![],
            tools: vec![],
            output_schema: None,
            request_id: String::new(),
        };
        let body: Value = serde_json::from_slice(&vendor.prepare(&request).unwrap().body).unwrap();
        ["max_tokens", "max_completion_tokens"].map(|name| body[name].clone())
    }

    #[test]
    fn a_model_that_thinks_is_bounded_in_the_vendors_newer_word() {
        let (older, newer) = ([64.into(), Value::Null], [Value::Null, 64.into()]);
        let options = [("max_tokens", "64")];
        assert_eq!(bound(&OpenAi, "gpt-4o", &options), older);
        assert_eq!(bound(&OpenAi, "o3", &options), newer);
        assert_eq!(bound(&OpenAi, "gpt-5-mini", &options), newer);
        assert_eq!(bound(&Azure, "o3", &[("max_tokens", "64"), ("deployment", "mine")]), newer);
        assert_eq!(bound(&Compatible, "gpt-5", &options), older, "others may not know it");
        let both = [("max_tokens", "64"), ("max_completion_tokens", "32")];
        assert_eq!(bound(&OpenAi, "o3", &both), [Value::Null, 32.into()]);
    }
}
