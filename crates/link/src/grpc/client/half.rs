//! One stream of a connection: requests up, answers down, in whatever order they come.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use ostler_kernel::{Runtime, runtime::AbortOnDrop};
use tokio::sync::{mpsc, oneshot};
use tonic::Streaming;

use crate::{
    LinkError, Request, Response,
    grpc::{
        Answer,
        frame::{Assembly, Frame, Room, cut},
    },
};

pub struct Half {
    frames: mpsc::Sender<Frame>,
    room: Room,
    pending: Arc<Pending>,
    next: AtomicU64,
    _reading: AbortOnDrop,
}

impl Half {
    pub fn new(frames: mpsc::Sender<Frame>, answers: Streaming<Frame>, runtime: &dyn Runtime) -> Self {
        let pending = Arc::new(Pending::default());
        let reading = read(answers, Arc::clone(&pending));
        let reading = runtime.spawn("link answers", Box::pin(reading)).abort_on_drop();
        Self { frames, room: Room::default(), pending, next: AtomicU64::new(1), _reading: reading }
    }

    pub fn is_open(&self) -> bool {
        self.pending.is_open()
    }

    /// Whoever waits for an answer is told that there will be none.
    pub fn close(&self) {
        self.pending.close();
    }

    pub async fn call(&self, request: &Request) -> Result<Response, LinkError> {
        let message = serde_json::to_vec(request)
            .map_err(|error| LinkError::Rejected { message: format!("can't be written down: {error}") })?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let answer = self.pending.expect(number).ok_or_else(lost)?;
        let _awaiting = Awaiting { half: self, number };
        let held = self.room.enter(message.len()).await?;
        for frame in cut(number, message.into()) {
            self.frames.send(frame).await.map_err(|_| lost())?;
        }
        drop(held);
        let answer = answer.await.map_err(|_| lost())?;
        serde_json::from_slice::<Answer>(&answer)
            .map_err(|error| LinkError::Rejected {
                message: format!("the answer is not understood: {error}"),
            })?
            .into()
    }
}

fn lost() -> LinkError {
    LinkError::Unavailable { message: "the connection was lost".to_owned() }
}

/// Whoever stops waiting tells the server, which then need not go on.
struct Awaiting<'a> {
    half: &'a Half,
    number: u64,
}

impl Drop for Awaiting<'_> {
    fn drop(&mut self) {
        if self.half.pending.take(self.number).is_some() {
            // No room: then it will answer nobody.
            let _ = self.half.frames.try_send(Frame { call: self.number, cancel: true, ..Frame::default() });
        }
    }
}

/// Who waits for which answer. None once the stream is over.
struct Pending(Mutex<Option<BTreeMap<u64, oneshot::Sender<Bytes>>>>);

impl Default for Pending {
    fn default() -> Self {
        Self(Mutex::new(Some(BTreeMap::new())))
    }
}

impl Pending {
    fn expect(&self, number: u64) -> Option<oneshot::Receiver<Bytes>> {
        let (sender, receiver) = oneshot::channel();
        self.lock().as_mut()?.insert(number, sender);
        Some(receiver)
    }

    fn take(&self, number: u64) -> Option<oneshot::Sender<Bytes>> {
        self.lock().as_mut()?.remove(&number)
    }

    fn awaits(&self, number: u64) -> bool {
        self.lock().as_ref().is_some_and(|pending| pending.contains_key(&number))
    }

    fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    fn close(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<u64, oneshot::Sender<Bytes>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands answers to those who wait for them, until the stream is over.
async fn read(mut answers: Streaming<Frame>, pending: Arc<Pending>) {
    // However this ends, nobody is to wait in vain.
    let _closing = Closing(&pending);
    let mut assembly = Assembly::default();
    loop {
        let frame = match answers.message().await {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(status) => {
                tracing::debug!(%status, "the stream of answers broke off");
                return;
            }
        };
        let number = frame.call;
        if !pending.awaits(number) {
            // Whoever waited is gone, and the rest of it may never come.
            assembly.forget(number);
            continue;
        }
        match assembly.add(frame) {
            Ok(None) => {}
            // They may be gone by now.
            Ok(Some(answer)) => drop(pending.take(number).map(|waiting| waiting.send(answer))),
            Err(error) => {
                tracing::warn!(%error, "the server sends what makes no sense");
                return;
            }
        }
    }
}

struct Closing<'a>(&'a Pending);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
