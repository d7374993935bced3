//! Spans and figures as the OpenTelemetry protocol writes them. Only what we send is described here; field numbers are the
//! protocol's.

mod encode;
mod proto;

pub use encode::{Resource, metrics, traces};
pub use proto::PartialAnswer;
