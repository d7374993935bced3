//! The API as a typed Rust client.
//!
//! What the server says comes back as the types in [`view`], which are this crate's own: they read what they
//! know and let the rest pass, so that an older client survives a newer server. Where a server and its token
//! are found is the caller's matter.

pub mod view;

mod access;
mod backup;
mod client;
mod error;
mod follow;
mod resources;
mod secret_keys;
mod source;
mod sse;
mod tasks;
mod transport;
mod watch;
mod workers;

pub use access::{GrantView, NewToken, NewUser, TokenView, UserChange, UserView};
pub use client::{Client, Health, Version};
pub use error::{ClientError, FieldProblem, Problem};
pub use follow::Followed;
pub use resources::{Checked, Page, PageRequest, SessionMetadata, SessionStatus, SessionView, Writing};
pub use secret_keys::{SecretKeyView, SecretKeysView};
pub use tasks::{CreatedTask, TaskQuery};
pub use view::{DeltaView, EventBody, EventView, EventsPage, LogView, MessageView, StepView, TaskView};
pub use watch::{Change, ChangeKind, EventQuery, WatchQuery, Watched};
pub use workers::{HeldTask, WorkerDecision, WorkerStatus, WorkerView};
