//! Tasks, runs, attempts, sessions, inputs, blockers: ids, states and transitions.
//!
//! Pure: nothing here does I/O, reads a clock or draws a random number. A command takes what was read and
//! returns a [`Bundle`]: the rows to write, the events to append, and what must still be true for it to count.
//! Whoever holds a store commits it.

pub mod bundle;
pub mod conversation;
pub mod error_code;
pub mod event;
pub mod failure;
pub mod ids;
pub mod message;
pub mod plan;
pub mod price;
pub mod queue;
pub mod resource;
pub mod retry;
pub mod run;
pub mod runtime;
pub mod selector;
pub mod session;
pub mod step;
pub mod task;
pub mod time;
pub mod trace;
pub mod worker;

pub use bundle::{Bundle, Command, Expect, Refusal, Write};
pub use conversation::{Block, Entry, Role};
pub use event::{Event, EventBody};
pub use failure::{ErrorClass, Failure};
pub use ids::{BlobId, BlockerId, ContextId, InputId, ResourceId, RunId, SessionId, StepId, TaskId};
pub use price::Price;
pub use run::{Run, RunState, RunTag};
pub use runtime::Runtime;
pub use selector::Selector;
pub use session::Session;
pub use step::{Step, StepKind, StepOutcome, Usage};
pub use task::{Task, TaskState};
pub use time::Timestamp;
pub use trace::{SpanId, TraceContext, TraceId, TraceParent};
pub use worker::{Lease, Worker};
