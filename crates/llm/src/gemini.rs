//! Google's Gemini. What its models think is signed part by part; a signature is kept as a native block right before the
//! part that it belongs to, and goes back on that part.

mod answer;
mod request;

use ostler_kernel::Failure;
use ostler_net::Client;

use self::answer::Answer;
use crate::{
    ModelRequest, Secrets,
    call::{Caller, Key, Prepared, Vendor},
    names::ToolNames,
    openai::{base_url, escaped},
    options::{Known, Options, Shape},
};

pub(crate) fn gemini(client: Client, secrets: Secrets) -> Caller {
    Caller::new(client, secrets, Gemini)
}

const DEFAULT_BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

/// Marks the native blocks that are this vendor's.
const MARK: &str = "gemini";

pub(crate) const OPTIONS: Known = &[
    ("cached_content", Shape::Text),
    ("frequency_penalty", Shape::Number),
    ("include_thoughts", Shape::Flag),
    ("max_tokens", Shape::Integer),
    ("presence_penalty", Shape::Number),
    ("reasoning_effort", Shape::Text),
    ("safety_settings", Shape::List),
    ("seed", Shape::Integer),
    ("stop", Shape::Texts),
    ("temperature", Shape::Number),
    ("thinking_budget", Shape::Integer),
    ("thinking_level", Shape::Text),
    ("top_k", Shape::Integer),
    ("top_p", Shape::Number),
];

struct Gemini;

impl Vendor for Gemini {
    fn names(&self) -> &'static [&'static str] {
        &["gemini", "google"]
    }

    fn prepare(&self, request: &ModelRequest) -> Result<Prepared, Failure> {
        let mut options = Options::read(&request.endpoint, &[OPTIONS])?;
        let tools = ToolNames::new(&request.tools);
        let base_url = base_url(&request.endpoint).unwrap_or(DEFAULT_BASE_URL);
        let model = &request.endpoint.model;
        let model = escaped(model.strip_prefix("models/").unwrap_or(model));
        let (timeouts, headers) = (options.timeouts, std::mem::take(&mut options.headers));
        Ok(Prepared {
            url: format!("{base_url}/models/{model}:streamGenerateContent?alt=sse"),
            body: request::body(request, &tools, options)?,
            headers,
            key: Key::Header("x-goog-api-key"),
            timeouts,
            mark: MARK.to_owned(),
            tools,
            reading: Box::new(Answer::default()),
        })
    }
}
