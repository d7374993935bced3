//! A task's log as server-sent events, with the text as it comes beside it. Only events have an id, so a
//! reader that comes back is sent the log behind the last one it saw.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, header};
use ostler_control::{Feed, Follower};
use ostler_kernel::{Event, RunId, Runtime, runtime::BoxFuture};
use ostler_link::Delta;
use serde::Serialize;
use tokio::sync::watch;

use crate::{
    gate::App,
    listen::{Phase, reached},
    telemetry,
};

/// So that both sides notice when the other is gone, and nothing in between thinks that nobody is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub fn stream(app: &App, follower: Follower) -> Response {
    let reader = Reader {
        follower,
        alive: app.runtime.sleep(KEEP_ALIVE),
        runtime: Arc::clone(&app.runtime),
        phase: app.phase.clone(),
    };
    let body = Body::from_stream(stream::unfold(Some(reader), |reader| async move {
        let (bytes, reader) = reader?.next().await?;
        Some((Ok::<_, Infallible>(bytes), reader))
    }));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // A proxy that gathers the answer before it passes it on would defeat the purpose.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}

struct Reader {
    follower: Follower,
    alive: BoxFuture<'static, ()>,
    runtime: Arc<dyn Runtime>,
    phase: watch::Receiver<Phase>,
}

impl Reader {
    /// The next piece, and the reader unless that was the last one.
    async fn next(mut self) -> Option<(Bytes, Option<Self>)> {
        tokio::select! {
            biased;
            () = reached(&mut self.phase, Phase::Draining) => None,
            shown = self.follower.next() => match shown {
                Ok(Feed::Event(shown)) => {
                    let is_last = shown.body.is_last();
                    Some((event(&shown), (!is_last).then_some(self)))
                }
                Ok(Feed::Delta(shown)) => Some((delta(&shown), Some(self))),
                // The reader comes back and finds out.
                Err(error) => {
                    telemetry::store_failed(&error);
                    None
                }
            },
            () = &mut self.alive => {
                self.alive = self.runtime.sleep(KEEP_ALIVE);
                Some((Bytes::from_static(b": alive\n\n"), Some(self)))
            }
        }
    }
}

fn event(event: &Event) -> Bytes {
    let mut text = format!("id: {}\nevent: {}\ndata: ", event.seq, event.body.name()).into_bytes();
    write_json(&mut text, event);
    text.into()
}

fn delta(delta: &Delta) -> Bytes {
    #[derive(Serialize)]
    struct DeltaView<'a> {
        run: RunId,
        step: u32,
        offset: u64,
        text: &'a str,
    }
    let Delta { run, step, offset, text, .. } = delta;
    let mut bytes = b"event: delta\ndata: ".to_vec();
    write_json(&mut bytes, &DeltaView { run: *run, step: *step, offset: *offset, text });
    bytes.into()
}

/// JSON has no line ends of its own, so the first one ends the data.
fn write_json<T: Serialize>(bytes: &mut Vec<u8>, value: &T) {
    // Our own types can always be written, and a vector takes everything.
    let _ = serde_json::to_writer(&mut *bytes, value);
    bytes.extend_from_slice(b"\n\n");
}
