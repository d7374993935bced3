//! The equipment of production: every vendor, every way to call a tool, the ReAct loop.

use std::sync::Arc;

use ostler_agent::{
    React,
    llm::{self, Secrets, net},
    tools,
};
use ostler_kernel::Runtime;
use ostler_link::WorkerPort;

use crate::Equipment;

#[derive(Debug, thiserror::Error)]
pub enum EquipError {
    #[error("no outbound connections can be made")]
    Net(#[from] net::NetError),
    #[error(transparent)]
    Models(#[from] llm::registry::NameTaken),
    #[error(transparent)]
    Tools(#[from] tools::registry::NameTaken),
}

/// The names of all vendors that a worker can ask.
pub fn model_providers(runtime: Arc<dyn Runtime>) -> Result<Vec<String>, EquipError> {
    let client = net::Client::new(runtime.clone())?;
    let registry = llm::Registry::standard(client, runtime, Secrets::from_environment())?;
    Ok(registry.names().map(str::to_owned).collect())
}

impl Equipment {
    /// Models and tools share their connections; secrets come from the environment.
    pub fn standard(port: Arc<dyn WorkerPort>, runtime: Arc<dyn Runtime>) -> Result<Self, EquipError> {
        let client = net::Client::new(runtime.clone())?;
        let gateway = llm::Registry::standard(client.clone(), runtime.clone(), Secrets::from_environment())?;
        let toolbox = tools::Registry::standard(client, runtime.clone())?;
        Ok(Self {
            port,
            runtime,
            gateway: Arc::new(gateway),
            toolbox: Arc::new(toolbox),
            runner: Arc::new(React),
        })
    }
}
