//! What comes back, as it comes: the events or lines of a stream. An answer in one piece, though a stream was asked
//! for, is read as well.

use std::time::Duration;

use ostler_kernel::{Failure, step::Usage};
use ostler_net::Response;
use serde::de::IgnoredAny;

use crate::{
    ModelRequest, Part,
    call::{Peer, Reading},
    draft::Draft,
    estimate, failure,
    lines::LineReader,
    sse::SseReader,
};

/// How long the end of a stream may come behind its last event before the connection is given up.
const END_PATIENCE: Duration = Duration::from_millis(20);

/// How a stream is cut into events.
pub(crate) enum Framing {
    Events(SseReader),
    Lines(LineReader),
}

impl Framing {
    pub(crate) fn events(max: usize) -> Self {
        Framing::Events(SseReader::new(max))
    }

    pub(crate) fn lines(max: usize) -> Self {
        Framing::Lines(LineReader::new(max))
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self {
            Framing::Events(reader) => reader.push(bytes),
            Framing::Lines(reader) => reader.push(bytes),
        }
    }

    /// The next event that is there as a whole; an error if one is too long.
    fn next(&mut self) -> Result<Option<&[u8]>, ()> {
        match self {
            Framing::Events(reader) => reader.next().map_err(|_| ()),
            Framing::Lines(reader) => reader.next().map_err(|_| ()),
        }
    }

    /// What the end of the stream completes.
    fn rest(&mut self) -> Option<&[u8]> {
        match self {
            Framing::Events(_) => None,
            Framing::Lines(reader) => reader.rest(),
        }
    }
}

/// A call as it goes on.
pub(crate) struct Reader {
    peer: Peer,
    /// None once all has been received.
    response: Option<Response>,
    framing: Framing,
    reading: Box<dyn Reading>,
    /// None once the whole answer was given.
    draft: Option<Draft>,
    /// What was asked, in case the vendor doesn't say what that took.
    request: ModelRequest,
    /// Something of an answer has come, so that it is paid for however it goes on.
    has_begun: bool,
}

impl Reader {
    pub(crate) fn streaming(
        (peer, request): (Peer, ModelRequest),
        response: Response,
        draft: Draft,
        reading: Box<dyn Reading>,
        framing: Framing,
    ) -> Self {
        Self {
            peer,
            response: Some(response),
            framing,
            reading,
            draft: Some(draft),
            request,
            has_begun: false,
        }
    }

    /// Reads an answer that comes in one piece: one document, or, where somebody calls lines of JSON simply JSON, several.
    pub(crate) async fn whole(
        (peer, request): (Peer, ModelRequest),
        (mut body, mut response): (Vec<u8>, Response),
        mut draft: Draft,
        mut reading: Box<dyn Reading>,
    ) -> Result<Self, Failure> {
        let rest = response.bytes_up_to(draft.max() as u64).await;
        body.extend_from_slice(&rest.map_err(|error| failure::of_net(&peer.endpoint, &error))?);
        let (first, mut lines) = first_document(&body).unwrap_or((&body, &[]));
        reading.take(&peer, &mut draft, first)?;
        draft.check(&peer)?;
        let is_stream = !lines.is_empty();
        while !lines.is_empty() {
            // A line that breaks off is no bad answer: it is a cut one.
            let document = first_document(lines).ok_or_else(|| failure::stream_cut(&peer.endpoint));
            let (line, rest) = document?;
            reading.take(&peer, &mut draft, line)?;
            draft.check(&peer)?;
            lines = rest;
        }
        match draft.has_ended() {
            false if is_stream => return Err(failure::stream_cut(&peer.endpoint)),
            false if draft.pieces.is_empty() => {
                return Err(failure::bad_answer(&peer.endpoint, "there is no answer in it"));
            }
            false | true => {}
        }
        let framing = Framing::events(0);
        Ok(Self { peer, response: None, framing, reading, draft: Some(draft), request, has_begun: true })
    }

    /// More text or thinking, all that has come at once, or the whole answer at the end.
    pub(crate) async fn next_part(&mut self) -> Result<Part, Failure> {
        let Some(mut draft) = self.draft.take() else { return Err(failure::stream_cut(&self.peer.endpoint)) };
        match self.advance(&mut draft).await {
            Ok(Some(part)) => {
                self.draft = Some(draft);
                Ok(part)
            }
            Ok(None) => {
                self.reading.end(&mut draft);
                let mut completion = draft.complete();
                completion.usage.get_or_insert_with(|| estimate::count(&self.request, &completion.blocks));
                Ok(Part::Done(completion))
            }
            Err(failure) if self.has_begun => Err(failure.with_spent(self.spent(draft))),
            Err(failure) => Err(failure),
        }
    }

    /// More text or thinking; none if the answer is there as a whole.
    async fn advance(&mut self, draft: &mut Draft) -> Result<Option<Part>, Failure> {
        loop {
            self.take_events(draft)?;
            if let Some(part) = draft.take_fresh() {
                return Ok(Some(part));
            }
            let Some(response) = self.response.as_mut() else { return Ok(None) };
            if draft.is_closed {
                response.await_end(END_PATIENCE).await;
                return self.over(draft).map(|()| None);
            }
            match response.next().await {
                Some(Ok(bytes)) => self.framing.push(&bytes),
                Some(Err(error)) => return Err(failure::of_net(&self.peer.endpoint, &error)),
                None => self.take_end(draft)?,
            }
        }
    }

    /// What an answer took that breaks off: what the vendor has reported by now, and what it wrote since.
    fn spent(&mut self, mut draft: Draft) -> Usage {
        self.reading.end(&mut draft);
        let so_far = draft.complete();
        let counted = estimate::count(&self.request, &so_far.blocks);
        match so_far.usage {
            Some(told) if told.output_tokens >= counted.output_tokens => told,
            Some(told) => Usage { output_tokens: counted.output_tokens, estimated: true, ..told },
            None => counted,
        }
    }

    /// Takes the events that are there.
    fn take_events(&mut self, draft: &mut Draft) -> Result<(), Failure> {
        loop {
            match self.framing.next() {
                Ok(None) => return Ok(()),
                Ok(Some(b"[DONE]")) => {
                    self.reading.done(draft);
                    draft.is_closed = true;
                }
                Ok(Some(json)) => {
                    self.reading.take(&self.peer, draft, json)?;
                    self.has_begun = true;
                }
                Err(()) => return Err(failure::too_large(&self.peer.endpoint, draft.max())),
            }
            draft.check(&self.peer)?;
        }
    }

    /// Not every vendor says that its stream is over, but an answer without its reason to end was cut.
    fn take_end(&mut self, draft: &mut Draft) -> Result<(), Failure> {
        if let Some(rest) = self.framing.rest() {
            // A line that breaks off is no bad answer: it is a cut one.
            let taken = self.reading.take(&self.peer, draft, rest);
            taken.map_err(|_| failure::stream_cut(&self.peer.endpoint))?;
        }
        self.over(draft)
    }

    /// A proxy closes its stream in good order behind a vendor that broke off.
    fn over(&mut self, draft: &Draft) -> Result<(), Failure> {
        self.response = None;
        match draft.has_ended() {
            true => Ok(()),
            false => Err(failure::stream_cut(&self.peer.endpoint)),
        }
    }
}

/// The first of several documents of JSON, and what stands behind it; none if it can't be read.
fn first_document(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut documents = serde_json::Deserializer::from_slice(body).into_iter::<IgnoredAny>();
    documents.next()?.ok()?;
    let (first, rest) = body.split_at_checked(documents.byte_offset())?;
    Some((first, rest.trim_ascii()))
}
