//! What every command is given: where words go, what time it is, and how the server is reached.

use std::sync::Arc;

use ostler_client::Client;
use ostler_worker::Runtime;

use crate::{config::Written, error::CommandError, output::Output};

pub struct App {
    pub written: Written,
    pub output: Output,
    pub runtime: Arc<dyn Runtime>,
}

impl App {
    /// A client for the server that flags, variables and folders lead to.
    pub fn client(&self) -> Result<Client, CommandError> {
        let connection = self.written.connection()?;
        Ok(Client::new(&connection.url, connection.token)?.in_namespace(connection.namespace))
    }

    /// Calendar time, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.runtime.now().as_millis()
    }
}
