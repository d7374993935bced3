//! Anthropic's messages wire. Its thinking is signed, and goes back as it came; what of the conversation stays the same
//! from call to call is marked for its cache.

mod answer;
mod request;
mod schema;
mod thinking;

use ostler_kernel::Failure;
use ostler_net::{Client, HeaderValue};

use self::answer::Answer;
use crate::{
    ModelRequest, Secrets,
    call::{Caller, Key, Prepared, Vendor},
    names::ToolNames,
    openai::base_url,
    options::{Known, Options, Shape},
};

pub(crate) fn anthropic(client: Client, secrets: Secrets) -> Caller {
    Caller::new(client, secrets, Anthropic)
}

const DEFAULT_BASE_URL: &str = "https://api.anthropic.com/v1";
const VERSION: &str = "2023-06-01";

/// Marks the native blocks that are this vendor's.
const MARK: &str = "anthropic";

pub(crate) const OPTIONS: Known = &[
    ("anthropic_beta", Shape::Text),
    ("anthropic_version", Shape::Text),
    ("cache", Shape::Choice(&["5m", "1h", "off"])),
    ("effort", Shape::Text),
    ("max_tokens", Shape::Integer),
    ("metadata", Shape::Object),
    ("parallel_tool_calls", Shape::Flag),
    ("reasoning_effort", Shape::Text),
    ("service_tier", Shape::Text),
    ("stop", Shape::Texts),
    ("temperature", Shape::Number),
    ("thinking", Shape::Choice(&["adaptive", "disabled"])),
    ("thinking_budget", Shape::Integer),
    ("thinking_display", Shape::Text),
    ("top_k", Shape::Integer),
    ("top_p", Shape::Number),
];

struct Anthropic;

impl Vendor for Anthropic {
    fn names(&self) -> &'static [&'static str] {
        &["anthropic"]
    }

    fn prepare(&self, request: &ModelRequest) -> Result<Prepared, Failure> {
        let mut options = Options::read(&request.endpoint, &[OPTIONS])?;
        let tools = ToolNames::new(&request.tools);
        let base_url = base_url(&request.endpoint).unwrap_or(DEFAULT_BASE_URL);
        let mut headers = std::mem::take(&mut options.headers);
        for (option, name, default) in [
            ("anthropic_version", "anthropic-version", Some(VERSION)),
            ("anthropic_beta", "anthropic-beta", None),
        ] {
            let text = options.take(option);
            if let Some(text) = text.as_ref().and_then(|text| text.as_str()).or(default) {
                let value = HeaderValue::from_str(text);
                headers.insert(name, value.map_err(|_| options.invalid(option, "fit for a header"))?);
            }
        }
        let timeouts = options.timeouts;
        Ok(Prepared {
            url: format!("{base_url}/messages"),
            body: request::body(request, &tools, options)?,
            headers,
            key: Key::Header("x-api-key"),
            timeouts,
            mark: MARK.to_owned(),
            tools,
            reading: Box::new(Answer::default()),
        })
    }
}
