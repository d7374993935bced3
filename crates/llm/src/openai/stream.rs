//! What comes back, as it comes: the events of a stream. An answer in one piece, though a stream was asked
//! for, is read as well.

use std::time::Duration;

use ostler_kernel::Failure;
use ostler_net::Response;

use super::{Peer, answer::Answer};
use crate::{Part, failure, sse::SseReader};

/// How long the end of a stream may come behind its last event before the connection is given up.
const END_PATIENCE: Duration = Duration::from_millis(20);

/// A call as it goes on.
pub(super) struct Reader {
    peer: Peer,
    /// None once all has been received.
    response: Option<Response>,
    events: SseReader,
    answer: Answer,
    /// The vendor said that nothing more will come.
    is_done: bool,
}

impl Reader {
    pub(super) fn streaming(peer: Peer, response: Response, answer: Answer) -> Self {
        let events = SseReader::new(answer.max());
        Self { peer, response: Some(response), events, answer, is_done: false }
    }

    /// Reads an answer that comes in one piece.
    pub(super) async fn whole(peer: Peer, mut response: Response, answer: Answer) -> Result<Self, Failure> {
        let body = response.bytes_up_to(answer.max() as u64).await;
        let body = body.map_err(|error| failure::of_net(&peer.endpoint, &error))?;
        let mut reader = Self { response: None, ..Self::streaming(peer, response, answer) };
        reader.answer.take_json(&reader.peer, &body)?;
        match reader.answer.has_ended() || !reader.answer.is_empty() {
            true => Ok(reader),
            false => Err(failure::bad_answer(&reader.peer.endpoint, "it has no choices")),
        }
    }

    /// More text, all that has come at once, or the whole answer at the end.
    pub(super) async fn next_part(&mut self) -> Result<Part, Failure> {
        loop {
            self.take_events()?;
            if let Some(text) = self.answer.take_new_text() {
                return Ok(Part::Text(text));
            }
            let Some(response) = self.response.as_mut() else {
                return Ok(Part::Done(std::mem::take(&mut self.answer).complete()));
            };
            if self.is_done {
                response.await_end(END_PATIENCE).await;
                self.response = None;
                continue;
            }
            match response.next().await {
                Some(Ok(bytes)) => self.events.push(&bytes),
                Some(Err(error)) => return Err(failure::of_net(&self.peer.endpoint, &error)),
                // Not everybody says `[DONE]`, but an answer without its reason to end was cut.
                None if self.answer.has_ended() => self.response = None,
                None => return Err(failure::stream_cut(&self.peer.endpoint)),
            }
        }
    }

    /// Takes the events that are there.
    fn take_events(&mut self) -> Result<(), Failure> {
        loop {
            match self.events.next() {
                Ok(None) => return Ok(()),
                Ok(Some(b"[DONE]")) => self.is_done = true,
                Ok(Some(data)) => self.answer.take_json(&self.peer, data)?,
                Err(_) => return Err(failure::too_large(&self.peer.endpoint, self.answer.max())),
            }
        }
    }
}
