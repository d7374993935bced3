//! Ollama: models on a machine of one's own. Its stream is lines of JSON; it knows no ids of calls, and takes arguments
//! as objects.

mod answer;
mod request;

use ostler_kernel::Failure;
use ostler_net::Client;

use self::answer::Answer;
use crate::{
    ModelRequest, Secrets,
    call::{Caller, Key, Prepared, Vendor},
    kind::Kind,
    names::ToolNames,
    openai::base_url,
    options::{Known, Options, Shape},
};

pub(crate) fn ollama(client: Client, secrets: Secrets) -> Caller {
    Caller::new(client, secrets, Ollama)
}

const DEFAULT_BASE_URL: &str = "http://127.0.0.1:11434";

/// Marks the native blocks that are this vendor's.
const MARK: &str = "ollama";

pub(crate) const OPTIONS: Known = &[
    ("keep_alive", Shape::Text),
    ("main_gpu", Shape::Integer),
    ("max_tokens", Shape::Integer),
    ("min_p", Shape::Number),
    ("num_batch", Shape::Integer),
    ("num_ctx", Shape::Integer),
    ("num_gpu", Shape::Integer),
    ("num_keep", Shape::Integer),
    ("num_predict", Shape::Integer),
    ("num_thread", Shape::Integer),
    ("presence_penalty", Shape::Number),
    ("frequency_penalty", Shape::Number),
    ("reasoning_effort", Shape::Text),
    ("repeat_last_n", Shape::Integer),
    ("repeat_penalty", Shape::Number),
    ("seed", Shape::Integer),
    ("stop", Shape::Texts),
    ("temperature", Shape::Number),
    ("think", Shape::Text),
    ("top_k", Shape::Integer),
    ("top_p", Shape::Number),
    ("truncate", Shape::Flag),
    ("typical_p", Shape::Number),
    ("use_mmap", Shape::Flag),
];

struct Ollama;

impl Vendor for Ollama {
    fn names(&self) -> &'static [&'static str] {
        &["ollama"]
    }

    fn streams(&self) -> Kind {
        Kind::Lines
    }

    fn prepare(&self, request: &ModelRequest) -> Result<Prepared, Failure> {
        let mut options = Options::read(&request.endpoint, &[OPTIONS])?;
        let tools = ToolNames::new(&request.tools);
        let base_url = base_url(&request.endpoint).unwrap_or(DEFAULT_BASE_URL);
        let (timeouts, headers) = (options.timeouts, std::mem::take(&mut options.headers));
        Ok(Prepared {
            url: format!("{base_url}/api/chat"),
            body: request::body(request, &tools, options)?,
            headers,
            key: Key::Bearer,
            timeouts,
            mark: MARK.to_owned(),
            tools,
            reading: Box::new(Answer::default()),
        })
    }
}
