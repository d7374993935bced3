//! Follows a task live. A connection that drops is made again behind the last event that came, so that the
//! caller sees each event once and in order, however often that happens.

use std::time::Duration;

use futures_util::{Stream, stream};
use serde::de::DeserializeOwned;

use crate::{
    Client, ClientError,
    source::{Heard, Source},
    sse::Message,
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

impl Client {
    /// The task's log behind `after`, then everything that comes, until the task has ended. Ends with an error
    /// if the server can't be reached at first, or refuses. After that it tries again for as long as the
    /// caller listens.
    pub fn follow(
        &self,
        task: &str,
        after: u64,
    ) -> impl Stream<Item = Result<Followed, ClientError>> + Send + Unpin + use<> {
        let source = Source::new(self, &["v1", "tasks", task, "events"], Vec::new(), Some(after.to_string()));
        let follower = Follower { source, after, has_ended: false };
        Box::pin(stream::unfold(follower, |mut follower| async move {
            let item = follower.next().await?;
            Some((item, follower))
        }))
    }
}

struct Follower {
    source: Source,
    /// The sequence number of the last event that was told.
    after: u64,
    has_ended: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<Result<Followed, ClientError>> {
        while !self.has_ended {
            match self.source.next().await? {
                Ok(Heard::Dropped { attempt, wait, error }) => {
                    return Some(Ok(Followed::Reconnecting { attempt, wait, error }));
                }
                Ok(Heard::Message(message)) => match self.take(&message) {
                    Ok(None) => {}
                    Ok(Some(followed)) => return Some(Ok(followed)),
                    Err(error) => return Some(Err(self.given_up(error))),
                },
                Err(error) => return Some(Err(self.given_up(error))),
            }
        }
        None
    }

    fn given_up(&mut self, error: ClientError) -> ClientError {
        self.has_ended = true;
        error
    }

    /// None for an event that was told before.
    fn take(&mut self, message: &Message) -> Result<Option<Followed>, ClientError> {
        if message.event == "delta" {
            return Ok(Some(Followed::Delta(from_json(&message.data)?)));
        }
        let event: EventView = from_json(&message.data)?;
        if event.seq <= self.after {
            return Ok(None);
        }
        self.after = event.seq;
        self.has_ended = event.is_last();
        Ok(Some(Followed::Event(Box::new(event))))
    }
}

fn from_json<T: DeserializeOwned>(data: &str) -> Result<T, ClientError> {
    serde_json::from_str(data).map_err(ClientError::BadAnswer)
}
