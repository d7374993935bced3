//! Server-sent events: a task's log with the text as it comes beside it, watches of resources, and everything that
//! happens. What has an id can be resumed behind it.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, header};
use ostler_control::{
    ControlError, EventWatch, Feed, Follower, Gone, Place, Seen, Sight, Told, Watch, WorkerWatch,
};
use ostler_kernel::{Event, RunId, Runtime, resource::API_VERSION, runtime::BoxFuture};
use ostler_link::Delta;
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;

use crate::{
    gate::App,
    limits::Permit,
    listen::{Phase, reached},
    telemetry,
    wire::{
        event::{EventFilter, EventView, WorkerTurn},
        task::TaskView,
        worker::WorkerView,
    },
};

/// So that both sides notice when the other is gone, and nothing in between thinks that nobody is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What is sent piece by piece.
pub trait Source: Send + 'static {
    /// The next piece, and whether it was the last. Nothing is lost if it is dropped half-way.
    fn next(&mut self) -> impl Future<Output = Result<(Bytes, Last), ControlError>> + Send;

    /// The id behind which one may go on, though nothing that was sent has it.
    fn position(&self) -> Option<u64> {
        None
    }

    /// Nothing was told for a while: perhaps something was missed.
    fn look_again(&mut self) {}
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    Yes,
    No,
}

pub fn stream(app: &App, source: impl Source) -> Response {
    // Whoever is cut off before anything has happened must know behind what to go on as well.
    let first = if source.position().is_some() { Duration::ZERO } else { KEEP_ALIVE };
    let reader = Reader {
        source,
        alive: app.runtime.sleep(first),
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

struct Reader<S> {
    source: S,
    alive: BoxFuture<'static, ()>,
    runtime: Arc<dyn Runtime>,
    phase: watch::Receiver<Phase>,
}

impl<S: Source> Reader<S> {
    /// The next piece, and the reader unless that was the last one.
    async fn next(mut self) -> Option<(Bytes, Option<Self>)> {
        tokio::select! {
            biased;
            () = reached(&mut self.phase, Phase::Draining) => None,
            piece = self.source.next() => match piece {
                Ok((bytes, last)) => Some((bytes, (last == Last::No).then_some(self))),
                // The reader comes back and finds out.
                Err(error) => {
                    telemetry::stream_failed(&error);
                    None
                }
            },
            () = &mut self.alive => {
                self.alive = self.runtime.sleep(KEEP_ALIVE);
                self.source.look_again();
                let alive = match self.source.position() {
                    Some(position) => Bytes::from(format!(": alive\nid: {position}\n\n")),
                    None => Bytes::from_static(b": alive\n\n"),
                };
                Some((alive, Some(self)))
            }
        }
    }
}

/// A task's log. Only events have an id, so a reader that comes back is sent the log behind the last one it saw.
impl Source for Follower {
    async fn next(&mut self) -> Result<(Bytes, Last), ControlError> {
        Ok(match Follower::next(self).await? {
            Feed::Event(shown) => {
                let last = if shown.body.is_last() { Last::Yes } else { Last::No };
                (event(&shown), last)
            }
            Feed::Delta(shown) => (delta(&shown), Last::No),
        })
    }

    fn look_again(&mut self) {
        Follower::look_again(self);
    }
}

/// Resources or tasks as they change.
pub struct ResourceStream {
    watch: Watch,
    _room: Permit,
}

impl ResourceStream {
    pub fn new(watch: Watch, room: Permit) -> Self {
        Self { watch, _room: room }
    }
}

impl Source for ResourceStream {
    async fn next(&mut self) -> Result<(Bytes, Last), ControlError> {
        let bytes = match self.watch.next().await? {
            Told::First(seen) => sight(None, &seen),
            // Sets the id of whoever reads without telling it anything.
            Told::Complete { position } => Bytes::from(format!(": complete\nid: {position}\n\n")),
            Told::Then { position, sight: seen } => sight(Some(position), &seen),
        };
        Ok((bytes, Last::No))
    }

    fn position(&self) -> Option<u64> {
        self.watch.position()
    }
}

/// Everything that happens. That a worker fell silent is in no log: it is told to who watches just then, without an id.
pub struct EventStream {
    watch: EventWatch,
    workers: WorkerWatch,
    filter: EventFilter,
    /// What each event is called.
    name: &'static str,
    /// What is still to be told of an event.
    ready: VecDeque<Bytes>,
    _room: Permit,
}

impl EventStream {
    pub fn new(watch: EventWatch, workers: WorkerWatch, filter: EventFilter, room: Permit) -> Self {
        Self { watch, workers, filter, name: "event", ready: VecDeque::new(), _room: room }
    }

    /// The same under another name.
    #[must_use]
    pub fn called(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// In each of its words that is asked for. The last one has the id: whoever goes on behind it has heard the others.
    fn tell(&mut self, event: &Event, place: Option<&Place>) {
        let mut views = EventView::all(event, place);
        views.retain(|view| self.filter.lets_through(view));
        if let Some(last) = views.last_mut() {
            last.id = Some(event.position);
        }
        for view in &views {
            let id = view.id.map(|id| format!("id: {id}\n")).unwrap_or_default();
            let mut bytes = format!("{id}event: {}\ndata: ", self.name).into_bytes();
            write_json(&mut bytes, view);
            self.ready.push_back(bytes.into());
        }
    }
}

impl Source for EventStream {
    async fn next(&mut self) -> Result<(Bytes, Last), ControlError> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Ok((bytes, Last::No));
            }
            tokio::select! {
                biased;
                next = self.watch.next() => {
                    let (event, place) = next?;
                    self.tell(&event, place.as_ref());
                }
                worker = self.workers.next_turn() => {
                    let turn = WorkerTurn::new(&worker?);
                    if self.filter.lets_turn_through(&turn) {
                        let mut bytes = format!("event: {}\ndata: ", self.name).into_bytes();
                        write_json(&mut bytes, &turn);
                        return Ok((bytes.into(), Last::No));
                    }
                }
            }
        }
    }

    fn position(&self) -> Option<u64> {
        Some(self.watch.position())
    }
}

/// Workers as they come and change. There are few, so whoever comes back is told of all of them.
pub struct WorkerStream {
    watch: WorkerWatch,
    _room: Permit,
}

impl WorkerStream {
    pub fn new(watch: WorkerWatch, room: Permit) -> Self {
        Self { watch, _room: room }
    }
}

impl Source for WorkerStream {
    async fn next(&mut self) -> Result<(Bytes, Last), ControlError> {
        let (is_new, worker) = self.watch.next().await?;
        let kind = if is_new { "added" } else { "updated" };
        let mut bytes = b"event: resource\ndata: ".to_vec();
        write_json(&mut bytes, &json!({ "type": kind, "resource": WorkerView::from(&worker) }));
        Ok((bytes.into(), Last::No))
    }
}

fn sight(id: Option<u64>, sight: &Sight) -> Bytes {
    let mut bytes = id.map(|id| format!("id: {id}\n")).unwrap_or_default().into_bytes();
    bytes.extend_from_slice(b"event: resource\ndata: ");
    match sight {
        Sight::Added(seen) => write_seen(&mut bytes, "added", seen),
        Sight::Updated(seen) => write_seen(&mut bytes, "updated", seen),
        Sight::Deleted(Gone { api_version, kind, namespace, name, version }) => {
            let metadata =
                json!({ "name": name, "namespace": namespace, "resourceVersion": version.to_string() });
            let api_version = api_version.as_deref().unwrap_or(API_VERSION);
            // What it said is not there any more; who reads it as a resource of its kind finds an empty one.
            let resource =
                json!({ "apiVersion": api_version, "kind": kind.name(), "metadata": metadata, "spec": {} });
            write_json(&mut bytes, &json!({ "type": "deleted", "resource": resource }));
        }
    }
    bytes.into()
}

fn write_seen(bytes: &mut Vec<u8>, kind: &'static str, seen: &Seen) {
    #[derive(Serialize)]
    struct Frame<T> {
        r#type: &'static str,
        resource: T,
    }
    match seen {
        Seen::Resource(resource) => write_json(bytes, &Frame { r#type: kind, resource }),
        Seen::Task(row) => {
            write_json(bytes, &Frame { r#type: kind, resource: TaskView::from(&**row) });
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
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        thinking: bool,
    }
    let Delta { run, step, offset, text, thinking, .. } = delta;
    let mut bytes = b"event: delta\ndata: ".to_vec();
    write_json(&mut bytes, &DeltaView { run: *run, step: *step, offset: *offset, text, thinking: *thinking });
    bytes.into()
}

/// JSON has no line ends of its own, so the first one ends the data.
fn write_json<T: Serialize>(bytes: &mut Vec<u8>, value: &T) {
    // Our own types can always be written, and a vector takes everything.
    let _ = serde_json::to_writer(&mut *bytes, value);
    bytes.extend_from_slice(b"\n\n");
}
