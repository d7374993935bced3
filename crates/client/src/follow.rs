//! Follows a task live. A connection that drops is made again behind the last event that came, so that the
//! caller sees each event once and in order, however often that happens.

use std::{collections::VecDeque, time::Duration};

use futures_util::{Stream, stream};
use reqwest::{Method, Response, StatusCode, header};
use serde::de::DeserializeOwned;

use crate::{
    Client, ClientError,
    sse::{Decoder, Message},
    view::{DeltaView, EventView},
};

#[derive(Debug)]
pub enum Followed {
    Event(Box<EventView>),
    /// Text as it comes; not part of the log, and not repeated after a new connection.
    Delta(DeltaView),
    /// The connection dropped; it is made again after `wait`.
    Reconnecting {
        attempt: u32,
        wait: Duration,
        error: ClientError,
    },
}

/// The server says that it is there every 15 seconds; who is silent for three times as long is gone.
const SILENCE: Duration = Duration::from_secs(45);

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl Client {
    /// The task's log behind `after`, then everything that comes, until the task has ended. Ends with an error
    /// if the server can't be reached at first, or refuses. After that it tries again for as long as the
    /// caller listens.
    pub fn follow(
        &self,
        task: &str,
        after: u64,
    ) -> impl Stream<Item = Result<Followed, ClientError>> + Send + Unpin + use<> {
        let follower = Follower {
            client: self.clone(),
            task: task.to_owned(),
            after,
            state: State::Connect,
            attempt: 0,
            had_connection: false,
            ready: VecDeque::new(),
        };
        Box::pin(stream::unfold(follower, |mut follower| async move {
            let item = follower.next().await?;
            Some((item, follower))
        }))
    }
}

struct Follower {
    client: Client,
    task: String,
    after: u64,
    state: State,
    /// Failed ones in a row.
    attempt: u32,
    had_connection: bool,
    ready: VecDeque<Followed>,
}

enum State {
    Connect,
    Wait(Duration),
    Read(Response, Decoder),
    Ended,
}

impl Follower {
    async fn next(&mut self) -> Option<Result<Followed, ClientError>> {
        loop {
            if let Some(followed) = self.ready.pop_front() {
                return Some(Ok(followed));
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
                State::Read(response, decoder) => match self.read(response, decoder).await {
                    Ok(state) => self.state = state,
                    Err(error) => return Some(self.dropped(error)),
                },
            }
        }
    }

    async fn connect(&mut self) -> Result<State, ClientError> {
        let path = ["v1", "tasks", self.task.as_str(), "events"];
        let request = self
            .client
            .request_in_namespace(Method::GET, &path, &[])?
            .header(header::ACCEPT, "text/event-stream")
            .header("last-event-id", self.after);
        let late = |_| ClientError::TimedOut { url: self.client.base_url().to_owned() };
        let answer = tokio::time::timeout(SILENCE, self.client.send(request)).await.map_err(late)??;
        self.had_connection = true;
        // Nothing will come any more: the task's last event is behind us.
        if answer.status() == StatusCode::NO_CONTENT {
            return Ok(State::Ended);
        }
        Ok(State::Read(answer, Decoder::default()))
    }

    /// Takes one piece of the stream. If it ends before the task has, the connection dropped.
    async fn read(&mut self, mut response: Response, mut decoder: Decoder) -> Result<State, ClientError> {
        let late = |_| ClientError::TimedOut { url: self.client.base_url().to_owned() };
        let piece = tokio::time::timeout(SILENCE, response.chunk()).await.map_err(late)?;
        let ended = || ClientError::StreamEnded { url: self.client.base_url().to_owned() };
        let bytes = piece.map_err(|error| self.client.failed(error))?.ok_or_else(ended)?;
        self.attempt = 0;
        for message in decoder.push(&bytes) {
            if self.take(&message)? {
                return Ok(State::Ended);
            }
        }
        Ok(State::Read(response, decoder))
    }

    /// Whether that was the last one.
    fn take(&mut self, message: &Message) -> Result<bool, ClientError> {
        if message.event == "delta" {
            self.ready.push_back(Followed::Delta(from_json(&message.data)?));
            return Ok(false);
        }
        let event: EventView = from_json(&message.data)?;
        if event.seq <= self.after {
            return Ok(false);
        }
        self.after = event.seq;
        let is_last = event.is_last();
        self.ready.push_back(Followed::Event(Box::new(event)));
        Ok(is_last)
    }

    fn dropped(&mut self, error: ClientError) -> Result<Followed, ClientError> {
        if !self.had_connection || !error.may_pass() {
            return Err(error);
        }
        self.attempt += 1;
        let doublings = (self.attempt - 1).min(16);
        let wait = FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT);
        self.state = State::Wait(wait);
        Ok(Followed::Reconnecting { attempt: self.attempt, wait, error })
    }
}

fn from_json<T: DeserializeOwned>(data: &str) -> Result<T, ClientError> {
    serde_json::from_str(data).map_err(ClientError::BadAnswer)
}

async fn pause(wait: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a client is not part of the simulation")]
    tokio::time::sleep(wait).await;
}
