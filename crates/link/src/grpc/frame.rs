//! What goes over a stream: parts of numbered messages.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use prost::Message;
use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use super::LARGEST_MESSAGE;
use crate::LinkError;

/// A part of a message, or the wish to drop one. `proto/link.proto` says the same for other languages.
#[derive(Clone, PartialEq, Message)]
pub struct Frame {
    /// Which request it belongs to, or answers.
    #[prost(uint64, tag = "1")]
    pub call: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub part: Bytes,
    /// Further parts of the same message follow.
    #[prost(bool, tag = "3")]
    pub more: bool,
    /// Nobody waits for the answer any more.
    #[prost(bool, tag = "4")]
    pub cancel: bool,
}

/// Small enough that others get their turn in between, and far below what gRPC allows for a message.
const PART: usize = 64 << 10;

/// The message as frames.
pub fn cut(call: u64, mut message: Bytes) -> impl Iterator<Item = Frame> {
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let part = message.split_to(message.len().min(PART));
        is_over = message.is_empty();
        Some(Frame { call, part, more: !is_over, cancel: false })
    })
}

/// Room for messages that go up or down in several parts. The other end keeps all that have begun, so those that are under
/// way at once are together no larger than one may be.
pub struct Room(Semaphore);

impl Default for Room {
    fn default() -> Self {
        Self(Semaphore::new(LARGEST_MESSAGE))
    }
}

impl Room {
    /// Held while a message of so many bytes is sent; none is needed for a single part. Waits for those before it.
    pub async fn enter(&self, bytes: usize) -> Result<Option<SemaphorePermit<'_>>, LinkError> {
        if bytes <= PART {
            return Ok(None);
        }
        let too_large = || LinkError::too_large(bytes);
        let bytes = u32::try_from(bytes).ok().filter(|_| bytes <= LARGEST_MESSAGE).ok_or_else(too_large)?;
        // Nobody closes it.
        Ok(self.0.acquire_many(bytes).await.ok())
    }
}

/// Messages of which not all parts are there yet.
#[derive(Default)]
pub struct Assembly {
    begun: BTreeMap<u64, BytesMut>,
    held: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("a message of more than {} MiB", LARGEST_MESSAGE >> 20)]
pub struct TooLarge;

impl Assembly {
    /// The message, if this was its last part.
    pub fn add(&mut self, frame: Frame) -> Result<Option<Bytes>, TooLarge> {
        let Frame { call, part, more, .. } = frame;
        if !more && !self.begun.contains_key(&call) {
            return Ok(Some(part));
        }
        self.held += part.len();
        if self.held > LARGEST_MESSAGE {
            return Err(TooLarge);
        }
        self.begun.entry(call).or_default().extend_from_slice(&part);
        if more {
            return Ok(None);
        }
        let whole = self.begun.remove(&call).unwrap_or_default();
        self.held -= whole.len();
        Ok(Some(whole.freeze()))
    }

    pub fn forget(&mut self, call: u64) {
        self.held -= self.begun.remove(&call).map_or(0, |part| part.len());
    }
}

/// Frames as protocol buffers, in both directions.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrameCodec;

impl Codec for FrameCodec {
    type Encode = Frame;
    type Decode = Frame;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for FrameCodec {
    type Item = Frame;
    type Error = Status;

    fn encode(&mut self, frame: Frame, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        frame.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for FrameCodec {
    type Item = Frame;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Frame>, Status> {
        Frame::decode(buffer).map(Some).map_err(|error| Status::invalid_argument(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_put_together_again_with_others_in_between() {
        let large: Bytes = (0..PART * 3 + 7).map(|n| n as u8).collect::<Vec<_>>().into();
        let small = Bytes::from_static(b"small");
        let mut assembly = Assembly::default();
        let mut whole = Vec::new();
        for (n, frame) in cut(1, large.clone()).enumerate() {
            whole.extend(assembly.add(frame).unwrap());
            for frame in cut(10 + n as u64, small.clone()) {
                assert_eq!(assembly.add(frame).unwrap(), Some(small.clone()));
            }
        }
        assert_eq!(whole, [large]);
        assert_eq!(assembly.held, 0);
    }

    #[test]
    fn an_empty_message_is_one_frame() {
        let frames: Vec<Frame> = cut(3, Bytes::new()).collect();
        assert_eq!(frames, [Frame { call: 3, part: Bytes::new(), more: false, cancel: false }]);
    }

    #[tokio::test]
    async fn large_messages_wait_for_one_another_and_small_ones_for_nobody() {
        let room = Room::default();
        let first = room.enter(LARGEST_MESSAGE - PART).await.unwrap();
        let mut second = std::pin::pin!(room.enter(PART + 1));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        assert!(room.enter(PART).await.unwrap().is_none());
        let refused = room.enter(LARGEST_MESSAGE + 1).await.err().unwrap();
        assert!(refused.is_too_large(), "{refused}");
        drop(first);
        assert!(second.await.unwrap().is_some());
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let mut assembly = Assembly::default();
        let part = Bytes::from(vec![0; PART]);
        let endless =
            std::iter::repeat_with(|| Frame { call: 1, part: part.clone(), more: true, cancel: false });
        let taken = endless.map(|frame| assembly.add(frame)).take_while(Result::is_ok).count();
        assert_eq!(taken, LARGEST_MESSAGE / PART);
    }
}
