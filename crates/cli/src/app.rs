//! What every command is given: where words go, what time it is, and how the server is reached.

use std::sync::Arc;

use ostler_client::Client;
use ostler_worker::{Redactor, Runtime};

use crate::{
    config::{Connection, Written},
    error::CommandError,
    input,
    output::Output,
};

pub struct App {
    pub written: Written,
    pub output: Output,
    pub runtime: Arc<dyn Runtime>,
    /// Knows what this process must not show.
    pub redactor: Redactor,
}

impl App {
    /// A client for the server that flags, variables and folders lead to.
    pub fn client(&self) -> Result<Client, CommandError> {
        let mut resolved = self.written.resolve()?;
        if let Some(CommandError::Said(unread)) = resolved.unread.take() {
            let why = unread.details.join("; ");
            self.output.note(format!("note: {}, and are left aside: {why}", unread.message));
        }
        let Connection { url, token, namespace, ca } = resolved.connection()?;
        let ca = match &ca {
            Some(path) => Some(input::read_file(path)?),
            None => None,
        };
        let client = Client::trusting(&url, token, ca.as_deref().map(str::as_bytes))?;
        Ok(client.in_namespace(namespace))
    }

    /// Calendar time, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.runtime.now().as_millis()
    }
}
