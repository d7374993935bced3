//! Starts the server and stops it.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ostler_control::{
    Background, Control, ControlConfig,
    store::sqlite::{OpenError, RestoreError},
};
use ostler_kernel::{
    Runtime,
    runtime::{AbortOnDrop, timeout},
};
use ostler_link::WorkerPort;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc, watch},
};

use crate::{
    ServerConfig,
    auth::Token,
    data_folder,
    gate::{App, Gate},
    hosts::Hosts,
    listen::{Acceptor, Phase},
    request_id::RequestIds,
    store::{Opened, StoreOpenError},
    telemetry,
};

/// A server that answers. Dropping it stops it at once; [`Server::shutdown`] does it gently.
pub struct Server {
    address: SocketAddr,
    app: Arc<App>,
    worker_name: String,
    phase: watch::Sender<Phase>,
    alive: mpsc::Receiver<()>,
    _accepting: AbortOnDrop,
    _background: Background,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "{listen} is not an address of this machine's loopback; serving others needs sign-in and TLS, which this version does not have"
    )]
    NotLoopback { listen: SocketAddr },
    #[error("{listen} is in use by another program; choose another port")]
    AddressInUse { listen: SocketAddr },
    #[error("can't listen on {listen}")]
    Listen {
        listen: SocketAddr,
        #[source]
        error: io::Error,
    },
    #[error("the data folder {data:?} is in use by process {holder}")]
    DataInUse { data: PathBuf, holder: String },
    #[error("can't use the data folder {data:?}")]
    Data {
        data: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("can't open the store")]
    Store(#[source] StoreOpenError),
    #[error("can't restore the backup")]
    Restore(#[source] RestoreError),
}

/// How long requests under way may take once the server is told to stop.
const GRACE: Duration = Duration::from_secs(5);

pub async fn start(config: ServerConfig, runtime: Arc<dyn Runtime>) -> Result<Server, StartError> {
    let listener = listen(config.listen).await?;
    let listen = config.listen;
    let address = listener.local_addr().map_err(|error| StartError::Listen { listen, error })?;
    let data = config.data.clone();
    let failed = |error| StartError::Data { data: data.clone(), error };
    data_folder::create(&data).map_err(failed)?;
    let store = Opened::open(&config, &runtime).await.map_err(|error| open_failed(&data, error))?;
    data_folder::sweep(&data);
    let token = data_folder::token(&data, &*runtime).map_err(failed)?;

    let worker_name = match &store {
        Opened::Sqlite(_) => "local".to_owned(),
        Opened::Postgres(_) => data_folder::worker_name(&data, &*runtime).map_err(failed)?,
    };
    let control = Control::new(store.port(), Arc::clone(&runtime), ControlConfig { lease: config.lease });
    let background = control.start();
    let (phase, phases) = watch::channel(Phase::Serving);
    let (alive_sender, alive) = mpsc::channel(1);
    let app = Arc::new(App {
        control,
        store,
        runtime: Arc::clone(&runtime),
        data: data.clone(),
        token: Token::new(token),
        hosts: Hosts::new(address),
        request_ids: RequestIds::new(runtime.random()),
        phase: phases.clone(),
        backups: Semaphore::new(1),
    });
    let gate = Arc::new(Gate::new(Arc::clone(&app)));
    let acceptor = Acceptor { gate, runtime: Arc::clone(&runtime), phase: phases, alive: alive_sender };
    let accepting = runtime.spawn("accept", Box::pin(acceptor.run(listener))).abort_on_drop();
    data_folder::announce(&data, address).map_err(failed)?;
    let server =
        Server { address, app, worker_name, phase, alive, _accepting: accepting, _background: background };
    telemetry::listening(&server.url());
    Ok(server)
}

impl Server {
    /// Where it listens, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn token(&self) -> &str {
        self.app.token.as_str()
    }

    /// Of the worker in the same process: the same after a restart, so that it takes up its runs at once, and unlike
    /// those of others on the same store.
    pub fn worker_name(&self) -> &str {
        &self.worker_name
    }

    /// For a worker in the same process.
    pub fn worker_port(&self) -> Arc<dyn WorkerPort> {
        Arc::clone(&self.app.control) as _
    }

    /// Accepts nobody any more, ends the streams, and lets requests under way finish for a few seconds. When
    /// this returns nobody is served, and unless a worker still holds its port the store is closed.
    pub async fn shutdown(mut self) {
        data_folder::retract(&self.app.data);
        self.phase.send_replace(Phase::Draining);
        let runtime = Arc::clone(&self.app.runtime);
        if timeout(&*runtime, GRACE, self.alive.recv()).await.is_err() {
            self.phase.send_replace(Phase::Stopped);
            self.alive.recv().await;
        }
        let store = self.app.store.clone();
        drop(self);
        close(&*runtime, store).await;
    }
}

/// What works in the background is told to stop, and lets go of the store a moment later. Whoever lets go last
/// closes it, which may take as long as the log takes to be written into the database.
async fn close(runtime: &dyn Runtime, store: Opened) {
    for _ in 0..1000 {
        if store.is_last() {
            break;
        }
        runtime.sleep(Duration::from_millis(1)).await;
    }
    if let Err(error) = tokio::task::spawn_blocking(move || drop(store)).await {
        telemetry::not_closed(&error);
    }
}

async fn listen(listen: SocketAddr) -> Result<TcpListener, StartError> {
    if !listen.ip().is_loopback() {
        return Err(StartError::NotLoopback { listen });
    }
    TcpListener::bind(listen).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => StartError::AddressInUse { listen },
        _ => StartError::Listen { listen, error },
    })
}

fn open_failed(data: &Path, error: StoreOpenError) -> StartError {
    match error {
        StoreOpenError::Sqlite(OpenError::InUse { holder, .. }) => {
            StartError::DataInUse { data: data.to_owned(), holder }
        }
        StoreOpenError::Restore(error) => restore_failed(data, error),
        other @ (StoreOpenError::Sqlite(_)
        | StoreOpenError::Postgres(_)
        | StoreOpenError::RestoreElsewhere) => StartError::Store(other),
    }
}

fn restore_failed(data: &Path, error: RestoreError) -> StartError {
    match error {
        RestoreError::InUse { holder, .. } => StartError::DataInUse { data: data.to_owned(), holder },
        other => StartError::Restore(other),
    }
}
