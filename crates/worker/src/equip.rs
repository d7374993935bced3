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

impl Equipment {
    /// Models and tools share their connections; secrets come from the environment.
    pub fn standard(
        port: Arc<dyn WorkerPort>,
        runtime: Arc<dyn Runtime>,
        network: net::NetConfig,
    ) -> Result<Self, EquipError> {
        let client = net::Client::configured(runtime.clone(), network)?;
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
