//! A stream of server-sent events that outlives its connections: one that drops is made again behind the last event
//! that came.

use std::{collections::VecDeque, time::Duration};

use reqwest::{Method, Response, StatusCode, header};

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
    /// Failed ones in a row.
    attempt: u32,
    had_connection: bool,
    ready: VecDeque<Message>,
}

enum State {
    Connect,
    Wait(Duration),
    Read(Box<(Response, Decoder)>),
    Ended,
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
        self.had_connection = true;
        // Nothing will come any more: the last event is behind us.
        if answer.status() == StatusCode::NO_CONTENT {
            return Ok(State::Ended);
        }
        Ok(State::Read(Box::new((answer, Decoder::default()))))
    }

    /// Takes one piece of the stream. If it ends, the connection dropped.
    async fn read(&mut self, mut reading: Box<(Response, Decoder)>) -> Result<State, ClientError> {
        let (response, decoder) = &mut *reading;
        let late = |_| ClientError::TimedOut { url: self.client.base_url().to_owned() };
        let piece = tokio::time::timeout(SILENCE, response.chunk()).await.map_err(late)?;
        let ended = || ClientError::StreamEnded { url: self.client.base_url().to_owned() };
        let bytes = piece.map_err(|error| self.client.failed(error))?.ok_or_else(ended)?;
        self.attempt = 0;
        for message in decoder.push(&bytes) {
            if !message.id.is_empty() {
                self.last_id = Some(message.id.clone());
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

async fn pause(wait: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a client is not part of the simulation")]
    tokio::time::sleep(wait).await;
}
