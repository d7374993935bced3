//! How any vendor is called. A vendor says what goes out ([`Vendor::prepare`]) and reads what comes back ([`Reading`]);
//! the key, the connection, the bounds and the way an answer is shown are the same for all, and stand here.

use std::sync::Arc;

use futures_util::stream::unfold;
use ostler_kernel::{Block, Failure};
use ostler_net::{Client, HeaderMap, HeaderName, HeaderValue, Held, Request, Response, Timeouts, header};
use ostler_secrets::{HIDDEN, Redactor, SHORTEST, SecretText};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Message, ModelRequest, Part, Parts, Provider, Secrets,
    draft::Draft,
    error, failure, fit,
    kind::{self, Kind},
    names::ToolNames,
    stream::{Framing, Reader},
};

/// Of a whole answer, put together; and of any one event in its stream.
pub(crate) const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// Of the bytes of a stream. A token of four letters comes as an event of some two hundred bytes.
const MAX_STREAM: u64 = 64 * MAX_ANSWER as u64;

/// One vendor's wire.
pub(crate) trait Vendor: Send + Sync + 'static {
    /// As [`Provider::names`].
    fn names(&self) -> &'static [&'static str];

    /// All of a call but the key.
    fn prepare(&self, request: &ModelRequest) -> Result<Prepared, Failure>;

    /// What its streams are, where an answer doesn't say.
    fn streams(&self) -> Kind {
        Kind::Events
    }
}

/// A call that is ready to be made.
pub(crate) struct Prepared {
    pub(crate) url: String,
    pub(crate) body: Vec<u8>,
    /// Beside those that every call has.
    pub(crate) headers: HeaderMap,
    pub(crate) key: Key,
    pub(crate) timeouts: Timeouts,
    /// Marks the native blocks of the answer.
    pub(crate) mark: String,
    pub(crate) tools: ToolNames,
    pub(crate) reading: Box<dyn Reading>,
}

/// How a vendor is shown the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Bearer,
    Header(&'static str),
}

/// A body as it goes out.
pub(crate) fn written(body: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(body).map_err(|error| Failure::permanent("model_bad_request", error.to_string()))
}

/// Reads one answer, event by event.
pub(crate) trait Reading: Send {
    /// Takes one event of a stream, or an answer in one piece.
    fn take(&mut self, peer: &Peer, draft: &mut Draft, json: &[u8]) -> Result<(), Failure>;

    /// The stream said `[DONE]`.
    fn done(&mut self, _draft: &mut Draft) {}

    /// Nothing more comes.
    fn end(&mut self, _draft: &mut Draft) {}
}

/// Whom we talk to, for messages: its name, and the secrets that must not be in any.
pub(crate) struct Peer {
    pub(crate) endpoint: String,
    pub(crate) secret: Option<SecretText>,
    pub(crate) redactor: Redactor,
    /// It was shown images, so that a refusal may be about them.
    pub(crate) has_images: bool,
}

impl Peer {
    /// What the vendor said, fit to be shown.
    pub(crate) fn quote(&self, said: &[u8]) -> String {
        let shown = self.redactor.excerpt(said, 300);
        match &self.secret {
            // One that is too short to be looked for everywhere is at home here.
            Some(secret) if secret.expose().len() < SHORTEST => shown.replace(secret.expose(), HIDDEN),
            Some(_) | None => shown,
        }
    }

    /// Reads an event or an answer.
    pub(crate) fn read<T: DeserializeOwned>(&self, json: &[u8]) -> Result<T, Failure> {
        serde_json::from_slice(json).map_err(|error| {
            failure::bad_answer(&self.endpoint, format_args!("{error} in `{}`", self.quote(json)))
        })
    }
}

/// A vendor with what it takes to call it.
pub(crate) struct Caller {
    client: Client,
    secrets: Secrets,
    vendor: Arc<dyn Vendor>,
}

impl Caller {
    pub(crate) fn new(client: Client, secrets: Secrets, vendor: impl Vendor) -> Self {
        Self { client, secrets, vendor: Arc::new(vendor) }
    }
}

impl Provider for Caller {
    fn names(&self) -> &'static [&'static str] {
        self.vendor.names()
    }

    fn stream(&self, request: ModelRequest) -> Parts {
        let call = Call {
            client: self.client.clone(),
            secrets: self.secrets.clone(),
            vendor: Arc::clone(&self.vendor),
            request,
        };
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
    vendor: Arc<dyn Vendor>,
    request: ModelRequest,
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
            Ok(part @ (Part::Text(_) | Part::Thinking(_))) => Some((Ok(part), Phase::Reading(reader))),
            last => Some((last, Phase::Ended)),
        }
    }
}

impl Call {
    async fn begin(mut self: Box<Self>) -> Result<Reader, Failure> {
        let peer = self.peer().await?;
        fit::fit(&mut self.request.messages);
        let Prepared { url, body, headers, key, timeouts, mark, tools, reading } =
            self.vendor.prepare(&self.request)?;
        let outgoing = Request {
            headers: with_usual(headers, &key, &peer, &self.request.request_id)?,
            timeouts,
            max_body: MAX_STREAM,
            allow_private: self.request.endpoint.allow_private,
            ..Request::post(url, body)
        };
        let response = self.client.send(outgoing).await;
        let response = response.map_err(|error| failure::of_net(&peer.endpoint, &error))?;
        if !response.status().is_success() {
            return Err(error::read(&peer, response).await);
        }
        let draft = Draft::new(mark, tools, MAX_ANSWER);
        read((peer, self.request), response, draft, reading, self.vendor.streams()).await
    }

    /// The one place where a secret is looked up.
    async fn peer(&self) -> Result<Peer, Failure> {
        let endpoint = &self.request.endpoint;
        let secret = match &endpoint.secret_ref {
            Some(reference) => {
                let since = self.client.monotonic();
                let found = self.secrets.resolve(reference, &self.request.request_id).await;
                Held::Secret.for_(self.client.monotonic().saturating_sub(since));
                Some(found?)
            }
            None => None,
        };
        Ok(Peer {
            endpoint: endpoint.endpoint.clone(),
            secret,
            redactor: self.secrets.redactor().clone(),
            has_images: self.request.messages.iter().any(shows_images),
        })
    }
}

async fn read(
    (peer, request): (Peer, ModelRequest),
    mut response: Response,
    draft: Draft,
    reading: Box<dyn Reading>,
    usual: Kind,
) -> Result<Reader, Failure> {
    let looked = kind::look(&mut response, usual).await;
    let (kind, begun) = looked.map_err(|error| failure::of_net(&peer.endpoint, &error))?;
    let mut framing = match kind {
        Kind::Events => Framing::events(MAX_ANSWER),
        Kind::Lines => Framing::lines(MAX_ANSWER),
        Kind::Whole => return Reader::whole((peer, request), (begun, response), draft, reading).await,
        Kind::Foreign => return Err(error::not_an_answer(&peer, (begun, response)).await),
    };
    framing.push(&begun);
    Ok(Reader::streaming((peer, request), response, draft, reading, framing))
}

fn shows_images(message: &Message) -> bool {
    message.blocks.iter().any(|block| match block {
        Block::Image(_) => true,
        Block::ToolResult { images, .. } => !images.is_empty(),
        Block::Text { .. } | Block::ToolCall { .. } | Block::Native { .. } => false,
    })
}

fn with_usual(
    mut headers: HeaderMap,
    key: &Key,
    peer: &Peer,
    request_id: &str,
) -> Result<HeaderMap, Failure> {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if let Ok(request_id) = HeaderValue::from_str(request_id) {
        headers.insert("x-request-id", request_id);
    }
    if let Some(secret) = &peer.secret {
        let (name, text) = match key {
            Key::Bearer => (header::AUTHORIZATION, format!("Bearer {}", secret.expose())),
            Key::Header(name) => (HeaderName::from_static(name), secret.expose().to_owned()),
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            let message = format!("the secret of endpoint `{}` can't stand in a header", peer.endpoint);
            Failure::permanent("secret_invalid", message)
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
impl Peer {
    pub(crate) fn for_test() -> Self {
        let (secret, redactor) = (SecretText::new("hush-hush"), Redactor::default());
        redactor.hide(secret.expose());
        Self { endpoint: "main".into(), secret: Some(secret), redactor, has_images: false }
    }
}
