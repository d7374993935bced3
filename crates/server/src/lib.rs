//! HTTP, SSE, the worker link, sign-in.
//!
//! A handler parses and answers; `control` decides. Before a request reaches its route it has passed one gate
//! (`gate`): who asks, from where, and how much they send. What is refused, anywhere, is a problem document.

mod check;
mod config;
mod server;

mod gate;
mod listen;

mod access;
mod auth;
mod body;
mod cors;
mod hosts;
mod limits;
mod request_id;

mod codes;
mod dialect;
mod problem;
mod routes;
mod wire;

mod fields;
mod figures;
mod json;
mod manifest;
mod metrics;
mod openapi;
mod parameters;
mod precondition;
mod sse;

mod data_folder;
mod open_files;
mod secret_keys;
mod store;
mod telemetry;
mod tls;

pub use access::SetupToken;
pub use codes::{ApiCode, CODES};
pub use config::{ServerConfig, TlsFiles};
pub use figures::serve_figures;
pub use limits::Limits;
pub use metrics::{Metric, described as metrics};
pub use openapi::description;
pub use ostler_control::secrets::{Redactor, SecretText};
pub use routes::{Need, Route, table as route_table};
pub use secret_keys::KeyReadError;
pub use server::{Server, StartError, start};
pub use store::{BadStoreAddress, StoreAddress, StoreOpenError};
pub use tls::TlsSetupError;
