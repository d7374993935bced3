//! A worker's end: dials a server, keeps the connection, and dials again when it is lost.

mod address;
mod connection;
mod half;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use ostler_kernel::Runtime;
use tokio::sync::Mutex;

pub use address::{BadServerAddress, ServerAddress};
use connection::Connection;

use super::tls::{TlsError, client_config};
use crate::{LinkError, Request, Response, WorkerPort};

/// What a worker needs to know to find a server and to be let in.
#[derive(Clone)]
pub struct Dial {
    /// Any of them will do; the next one is tried when one can't be reached.
    pub servers: Vec<ServerAddress>,
    pub token: String,
    /// The name it registers under.
    pub worker: String,
    /// Who vouches for the servers, as a file in PEM; without it, whoever this machine believes.
    pub ca: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    #[error("{server} can't be reached: {reason}")]
    Unreachable { server: String, reason: String },
    /// It is there, and nobody that we believe vouches for it.
    #[error("{server} is not believed: {reason}")]
    Distrusted { server: String, reason: String },
    /// It is there, and no version of the link is spoken by both.
    #[error("{server} speaks another version: {reason}")]
    OtherVersion { server: String, reason: String },
    /// It is there, and won't have us. Waiting does not help.
    #[error("{server} refused: {reason}")]
    Refused { server: String, reason: String },
}

/// How soon after a failure the servers are dialled again. Whoever asks meanwhile is told of that failure.
const PAUSE: Duration = Duration::from_millis(100);

/// The worker port of a server somewhere else.
pub struct RemotePort {
    dial: Dial,
    tls: Arc<rustls::ClientConfig>,
    runtime: Arc<dyn Runtime>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Connection>>,
    /// Which of the servers is up next.
    next: usize,
    failed: Option<(Duration, DialError)>,
}

impl RemotePort {
    pub fn new(dial: Dial, runtime: Arc<dyn Runtime>) -> Result<Self, TlsError> {
        let tls = client_config(dial.ca.as_deref())?;
        Ok(Self { dial, tls, runtime, state: Mutex::default() })
    }

    /// Whether a file can say who vouches for servers.
    pub fn check_ca(ca: &Path) -> Result<(), TlsError> {
        client_config(Some(ca)).map(drop)
    }

    /// Dials, unless there is a connection. For who wants to know whether it can work at all.
    pub async fn connect(&self) -> Result<(), DialError> {
        self.connection().await.map(drop)
    }

    async fn connection(&self) -> Result<Arc<Connection>, DialError> {
        let mut state = self.state.lock().await;
        if let Some(current) = state.current.as_ref().filter(|current| current.is_open()) {
            return Ok(Arc::clone(current));
        }
        state.current = None;
        let now = self.runtime.monotonic();
        if let Some((at, error)) = state.failed.as_ref().filter(|(at, _)| now.saturating_sub(*at) < PAUSE) {
            tracing::trace!(?at, "dialled a moment ago");
            return Err(error.clone());
        }
        let dialled = self.dial_any(&mut state.next).await;
        match dialled {
            Ok(connection) => {
                state.current = Some(Arc::clone(&connection));
                state.failed = None;
                Ok(connection)
            }
            Err(error) => {
                state.failed = Some((self.runtime.monotonic(), error.clone()));
                Err(error)
            }
        }
    }

    /// Tries each server once, beginning with the next one.
    async fn dial_any(&self, next: &mut usize) -> Result<Arc<Connection>, DialError> {
        let reason = "no server was named".to_owned();
        let mut failure = DialError::Unreachable { server: String::new(), reason };
        for _ in 0..self.dial.servers.len() {
            let server = &self.dial.servers[*next % self.dial.servers.len()];
            *next += 1;
            match Connection::open(server, &self.dial, &self.tls, &self.runtime).await {
                Ok(connection) => {
                    tracing::info!(%server, version = connection.version(), "linked");
                    return Ok(Arc::new(connection));
                }
                Err(error) => {
                    tracing::debug!(%error, "can't link");
                    failure = error;
                }
            }
        }
        Err(failure)
    }
}

#[async_trait]
impl WorkerPort for RemotePort {
    async fn call(&self, request: Request) -> Result<Response, LinkError> {
        let connection = self.connection().await;
        // Refused or not, there may be another server tomorrow: whoever asks goes on asking.
        let connection = connection.map_err(|error| LinkError::Unavailable { message: error.to_string() })?;
        let trial = is_trial(&request).then(|| Trial {
            connection: &connection,
            // With nobody else to turn to, a single failure may pass by itself.
            bearable: if self.dial.servers.len() > 1 { 0 } else { 1 },
            failed: true,
        });
        let answer = connection.call(&request).await;
        if let Some(trial) = trial {
            trial.ended(matches!(answer, Err(LinkError::Unavailable { .. })));
        }
        answer
    }
}

/// Registering and renewing is what a server is judged by: it lets workers in without its database, and one that can do
/// no more than that, or does not answer, is of no use to a worker, however well it can be reached.
fn is_trial(request: &Request) -> bool {
    match request {
        Request::Register(_) | Request::Renew(_) => true,
        Request::Claim(_)
        | Request::Journal(_)
        | Request::Leave(_)
        | Request::Signals(_)
        | Request::Inputs(_)
        | Request::Deltas(_)
        | Request::Secret(_) => false,
    }
}

/// A request that a server is judged by. If it fails, the next one is dialled, and what was asked of this one is asked
/// there. Where only one was named, that may lead elsewhere too: a balancer chooses anew for each connection.
struct Trial<'a> {
    connection: &'a Connection,
    /// How many failures in a row are put up with.
    bearable: u32,
    /// Unless it is told otherwise: who stops waiting got no answer.
    failed: bool,
}

impl Trial<'_> {
    fn ended(mut self, failed: bool) {
        self.failed = failed;
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        let in_row = self.connection.tried(self.failed);
        if in_row > self.bearable {
            tracing::info!("the server does not serve workers; dialling anew");
            self.connection.abandon();
        }
    }
}
