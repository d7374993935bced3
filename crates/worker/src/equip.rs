//! The equipment of production: every vendor, every way to call a tool, the ReAct loop.

use std::sync::Arc;

use ostler_agent::{
    React,
    llm::{self, Secrets, net, secrets::Redactor},
    tools,
};
use ostler_kernel::Runtime;
use ostler_link::WorkerPort;

use crate::{Equipment, secrets::KeptSecrets};

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
    let registry = llm::Registry::standard(client, runtime, Secrets::new(|_| None))?;
    Ok(registry.names().map(str::to_owned).collect())
}

impl Equipment {
    /// Models and tools share their connections. Secrets come from the server, or else from the environment; what is found
    /// is hidden by the redactor in all that models and tools say.
    pub fn standard(
        port: Arc<dyn WorkerPort>,
        runtime: Arc<dyn Runtime>,
        network: net::NetConfig,
        redactor: Redactor,
    ) -> Result<Self, EquipError> {
        let client = net::Client::configured(runtime.clone(), network)?;
        let kept = KeptSecrets::new(Arc::clone(&port), Arc::clone(&runtime));
        let secrets = Secrets::kept_or_environment(kept, redactor.clone());
        let gateway = llm::Registry::standard(client.clone(), runtime.clone(), secrets.clone())?;
        let toolbox = tools::Registry::standard(client, runtime.clone(), secrets)?;
        Ok(Self {
            port,
            runtime,
            gateway: Arc::new(llm::Redacting::new(gateway, redactor.clone())),
            toolbox: Arc::new(tools::Redacting::new(toolbox, redactor)),
            runner: Arc::new(React),
        })
    }
}
