//! The testing ground.

pub mod loopback;
pub mod model_server;
pub mod reference_store;
pub mod sim;
pub mod tool_server;
