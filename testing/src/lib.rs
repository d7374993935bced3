//! The testing ground.

pub mod chaos;
pub mod class_limit;
pub mod collector;
pub mod crash;
pub mod load;
pub mod loopback;
pub mod model_server;
pub mod postgres;
pub mod power_loss;
pub mod program;
pub mod proxy;
pub mod reference_store;
pub mod several_servers;
pub mod sim;
pub mod ssrf;
pub mod tool_server;
