//! OpenAI chat completions, and everything that speaks the same wire. This file makes the call; what goes out
//! is built in `request`, what comes back is read in `stream`.

mod answer;
mod chunk;
mod error;
mod names;
mod options;
mod request;
mod stream;

use futures_util::stream::unfold;
use ostler_kernel::Failure;
use ostler_net::{Client, HeaderMap, HeaderValue, Request, header};
use ostler_secrets::SecretText;

use self::{answer::Answer, names::ToolNames, options::Options, stream::Reader};
use crate::{ModelRequest, Part, Parts, Provider, Secrets, failure};

pub struct OpenAi {
    client: Client,
    secrets: Secrets,
}

/// Of a whole answer, put together; and of any one event in its stream.
const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// Of the bytes of a stream. A token of four letters comes as an event of some two hundred bytes.
const MAX_STREAM: u64 = 64 * MAX_ANSWER as u64;

const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

impl OpenAi {
    pub fn new(client: Client, secrets: Secrets) -> Self {
        Self { client, secrets }
    }
}

impl Provider for OpenAi {
    fn names(&self) -> &'static [&'static str] {
        &["openai", "openai-compatible", "openai_compatible"]
    }

    fn stream(&self, request: ModelRequest) -> Parts {
        let call = Call { client: self.client.clone(), secrets: self.secrets.clone(), request };
        Box::pin(unfold(Phase::Begin(Box::new(call)), Phase::advance))
    }
}

/// Where a call stands.
enum Phase {
    Begin(Box<Call>),
    Reading(Box<Reader>),
    Ended,
}

struct Call {
    client: Client,
    secrets: Secrets,
    request: ModelRequest,
}

/// Whom we talk to, for messages: its name, and the key that must not be in any.
struct Peer {
    endpoint: String,
    secret: Option<SecretText>,
}

impl Phase {
    async fn advance(self) -> Option<(Result<Part, Failure>, Phase)> {
        let mut reader = match self {
            Phase::Ended => return None,
            Phase::Reading(reader) => reader,
            Phase::Begin(call) => match call.begin().await {
                Ok(reader) => Box::new(reader),
                Err(failure) => return Some((Err(failure), Phase::Ended)),
            },
        };
        match reader.next_part().await {
            Ok(Part::Text(text)) => Some((Ok(Part::Text(text)), Phase::Reading(reader))),
            last => Some((last, Phase::Ended)),
        }
    }
}

impl Call {
    async fn begin(self: Box<Self>) -> Result<Reader, Failure> {
        let endpoint = &self.request.endpoint;
        let secret = match &endpoint.secret_ref {
            Some(reference) => Some(self.secrets.resolve(reference, &self.request.request_id).await?),
            None => None,
        };
        let peer = Peer { endpoint: endpoint.endpoint.clone(), secret };
        let names = ToolNames::new(&self.request.tools);
        let outgoing = self.outgoing(&peer, &names)?;
        let response = self.client.send(outgoing).await;
        let response = response.map_err(|error| failure::of_net(&peer.endpoint, &error))?;
        let answer = Answer::new(names, MAX_ANSWER);
        if !response.status().is_success() {
            return Err(error::read(&peer, response).await);
        }
        let media_type = response.media_type().map(str::to_ascii_lowercase);
        match media_type.as_deref() {
            None | Some("text/event-stream") => Ok(Reader::streaming(peer, response, answer)),
            Some("application/json") => Reader::whole(peer, response, answer).await,
            Some(_) => Err(error::not_an_answer(&peer, response).await),
        }
    }

    fn outgoing(&self, peer: &Peer, names: &ToolNames) -> Result<Request, Failure> {
        let endpoint = &self.request.endpoint;
        let options = Options::read(endpoint)?;
        let body = request::body(&self.request, names, &options)
            .map_err(|error| Failure::permanent("model_bad_request", error.to_string()))?;
        let base_url = match endpoint.base_url.trim_end_matches('/') {
            "" => DEFAULT_BASE_URL,
            base_url => base_url,
        };
        Ok(Request {
            headers: headers(peer, &self.request.request_id)?,
            timeouts: options.timeouts,
            max_body: MAX_STREAM,
            allow_private: endpoint.allow_private,
            ..Request::post(format!("{base_url}/chat/completions"), body)
        })
    }
}

fn headers(peer: &Peer, request_id: &str) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if let Ok(request_id) = HeaderValue::from_str(request_id) {
        headers.insert("x-request-id", request_id);
    }
    if let Some(secret) = &peer.secret {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", secret.expose())).map_err(|_| {
            let message = format!("the secret of endpoint `{}` can't stand in a header", peer.endpoint);
            Failure::permanent("secret_invalid", message)
        })?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(headers)
}

impl Peer {
    /// What the vendor said, fit to be shown.
    fn quote(&self, said: &[u8]) -> String {
        let shown = ostler_net::excerpt(said, 300);
        match &self.secret {
            Some(secret) => shown.replace(secret.expose(), "[REDACTED]"),
            None => shown,
        }
    }
}
