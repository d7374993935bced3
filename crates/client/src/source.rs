//! A stream of server-sent events that outlives its connections: one that drops is made again behind the last event
//! that came.

use std::{collections::VecDeque, time::Duration};

use reqwest::{Method, Response, StatusCode, header};
use tokio::time::Instant;

use crate::{
    Client, ClientError,
    sse::{Decoder, Message},
};

pub(crate) enum Heard {
    Message(Message),
    /// The connection dropped; it is made again after `wait`.
    Dropped {
        attempt: u32,
        wait: Duration,
        error: ClientError,
    },
}

/// The server says that it is there every 15 seconds; who is silent for three times as long is gone.
const SILENCE: Duration = Duration::from_secs(45);

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

pub(crate) struct Source {
    client: Client,
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    /// What the next connection goes on behind.
    last_id: Option<String>,
    state: State,
    /// Connections in a row that failed, or ended at once and brought nothing new.
    attempt: u32,
    had_connection: bool,
    ready: VecDeque<Message>,
}

enum State {
    Connect,
    Wait(Duration),
    Read(Box<Reading>),
    Ended,
}

struct Reading {
    response: Response,
    decoder: Decoder,
    since: Instant,
}

impl Source {
    /// Connects to nothing yet.
    pub(crate) fn new(
        client: &Client,
        path: &[&str],
        query: Vec<(&'static str, String)>,
        last_id: Option<String>,
    ) -> Self {
        Self {
            client: client.clone(),
            path: path.iter().map(|segment| (*segment).to_owned()).collect(),
            query,
            last_id,
            state: State::Connect,
            attempt: 0,
            had_connection: false,
            ready: VecDeque::new(),
        }
    }

    /// Ends with an error if the server can't be reached at first, or refuses. After that it tries again for as long as
    /// someone asks.
    pub(crate) async fn next(&mut self) -> Option<Result<Heard, ClientError>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(Ok(Heard::Message(message)));
            }
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return None,
                State::Wait(wait) => {
                    pause(wait).await;
                    self.state = State::Connect;
                }
                State::Connect => match self.connect().await {
                    Ok(state) => self.state = state,
                    Err(error) => return Some(self.dropped(error)),
                },
                State::Read(reading) => match self.read(reading).await {
                    Ok(state) => self.state = state,
                    Err(error) => return Some(self.dropped(error)),
                },
            }
        }
    }

    async fn connect(&mut self) -> Result<State, ClientError> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let query: Vec<(&str, &str)> =
            self.query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut request = self
            .client
            .request_in_namespace(Method::GET, &path, &query)?
            .header(header::ACCEPT, "text/event-stream");
        if let Some(id) = &self.last_id {
            request = request.header("last-event-id", id);
        }
        let late = |_| ClientError::TimedOut { url: self.client.base_url().to_owned() };
        let answer = tokio::time::timeout(SILENCE, self.client.send(request)).await.map_err(late)??;
        // Nothing will come any more: the last event is behind us.
        if answer.status() == StatusCode::NO_CONTENT {
            return Ok(State::Ended);
        }
        if !is_event_stream(&answer) {
            return Err(self.of_somebody_else(answer).await);
        }
        self.had_connection = true;
        let (decoder, since) = (Decoder::default(), Instant::now());
        Ok(State::Read(Box::new(Reading { response: answer, decoder, since })))
    }

    /// What answers so is no server of ours: a page to sign in at, perhaps. Its first piece tells.
    async fn of_somebody_else(&self, mut answer: Response) -> ClientError {
        let status = answer.status().as_u16();
        let start = tokio::time::timeout(LONGEST_WAIT, answer.chunk()).await;
        let start = start.ok().and_then(Result::ok).flatten().unwrap_or_default();
        ClientError::Unexpected { status, body: String::from_utf8_lossy(&start).into_owned() }
    }

    /// Takes one piece of the stream. If it ends, the connection dropped.
    async fn read(&mut self, mut reading: Box<Reading>) -> Result<State, ClientError> {
        let Reading { response, decoder, since } = &mut *reading;
        let late = |_| ClientError::TimedOut { url: self.client.base_url().to_owned() };
        let piece = tokio::time::timeout(SILENCE, response.chunk()).await.map_err(late)?;
        let ended = || ClientError::StreamEnded { url: self.client.base_url().to_owned() };
        let bytes = piece.map_err(|error| self.client.failed(error))?.ok_or_else(ended)?;
        if since.elapsed() > LONGEST_WAIT {
            self.attempt = 0;
        }
        for message in decoder.push(&bytes) {
            if !message.id.is_empty() && self.last_id.as_ref() != Some(&message.id) {
                self.last_id = Some(message.id.clone());
                self.attempt = 0;
            }
            if !message.data.is_empty() {
                self.ready.push_back(message);
            }
        }
        Ok(State::Read(reading))
    }

    fn dropped(&mut self, error: ClientError) -> Result<Heard, ClientError> {
        if !self.had_connection || !error.may_pass() {
            return Err(error);
        }
        self.attempt += 1;
        let doublings = (self.attempt - 1).min(16);
        let wait = FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT);
        self.state = State::Wait(wait);
        Ok(Heard::Dropped { attempt: self.attempt, wait, error })
    }
}

fn is_event_stream(answer: &Response) -> bool {
    let content_type = answer.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    content_type.is_some_and(|it| it.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

async fn pause(wait: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a client is not part of the simulation")]
    tokio::time::sleep(wait).await;
}
