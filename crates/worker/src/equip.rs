//! The equipment of production: every vendor, every way to call a tool, the ReAct loop.

use std::sync::Arc;

use ostler_agent::{
    React,
    llm::{self, Secrets, net, secrets::Redactor},
    tools,
};
use ostler_kernel::Runtime;
use ostler_link::WorkerPort;

use ostler_telemetry::Telemetry;

use crate::{Equipment, ahead::Ahead, observed::Observed, secrets::KeptSecrets};

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
        let gateway = llm::Limited::new(gateway, Arc::clone(&runtime));
        let toolbox = tools::Registry::standard(client, runtime.clone(), secrets.clone())?;
        let gateway = Ahead::new(gateway, secrets.clone(), Arc::clone(&runtime));
        let toolbox = Ahead::new(toolbox, secrets, Arc::clone(&runtime));
        let gateway = llm::Redacting::new(gateway, redactor.clone());
        let toolbox = tools::Redacting::new(toolbox, redactor.clone());
        Ok(Self {
            port,
            gateway: Arc::new(Observed::new(gateway, Arc::clone(&runtime), redactor.clone())),
            toolbox: Arc::new(Observed::new(toolbox, Arc::clone(&runtime), redactor)),
            runtime,
            runner: Arc::new(React::default()),
            telemetry: Telemetry::default(),
        })
    }

    /// Tells of steps to this one.
    #[must_use]
    pub fn telling(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Adds what calls of models cost.
    #[must_use]
    pub fn with_prices(mut self, prices: llm::Prices) -> Self {
        self.gateway = Arc::new(llm::Priced::new(self.gateway, prices));
        self
    }
}
