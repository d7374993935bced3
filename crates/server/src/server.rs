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
    store::{
        SqliteStore, Store,
        sqlite::{OpenError, RestoreError, restore},
    },
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
    telemetry,
};

/// A server that answers. Dropping it stops it at once; [`Server::shutdown`] does it gently.
pub struct Server {
    address: SocketAddr,
    app: Arc<App>,
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
    Store(#[source] OpenError),
    #[error("can't restore the backup")]
    Restore(#[source] RestoreError),
}

/// How long requests under way may take once the server is told to stop.
const GRACE: Duration = Duration::from_secs(5);

pub async fn start(config: ServerConfig, runtime: Arc<dyn Runtime>) -> Result<Server, StartError> {
    let listener = listen(config.listen).await?;
    let listen = config.listen;
    let address = listener.local_addr().map_err(|error| StartError::Listen { listen, error })?;
    let (config, store) = blocking(move || open(config)).await?;
    let data = config.data;
    let failed = |error| StartError::Data { data: data.clone(), error };
    data_folder::sweep(&data);
    let token = data_folder::token(&data, &*runtime).map_err(failed)?;

    let shared: Arc<dyn Store> = Arc::clone(&store) as _;
    let control = Control::new(shared, Arc::clone(&runtime), ControlConfig { lease: config.lease });
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
    let server = Server { address, app, phase, alive, _accepting: accepting, _background: background };
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
        let store = Arc::clone(&self.app.store);
        drop(self);
        close(&*runtime, store).await;
    }
}

/// What works in the background is told to stop, and lets go of the store a moment later. Whoever lets go last
/// closes it, which may take as long as the log takes to be written into the database.
async fn close(runtime: &dyn Runtime, store: Arc<SqliteStore>) {
    for _ in 0..1000 {
        if Arc::strong_count(&store) == 1 {
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

/// Makes the folder, puts a backup in place if there is one to be put, and opens the store.
fn open(config: ServerConfig) -> Result<(ServerConfig, Arc<SqliteStore>), StartError> {
    let data = &config.data;
    data_folder::create(data).map_err(|error| StartError::Data { data: data.clone(), error })?;
    let path = data_folder::store_file(data);
    if let Some(backup) = &config.restore {
        restore(backup, &path, config.force_restore).map_err(|error| restore_failed(data, error))?;
    }
    let store = SqliteStore::open(&path).map_err(|error| open_failed(data, error))?;
    Ok((config, Arc::new(store)))
}

/// Checking a large backup takes its time; others on this thread should not have to wait for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StartError> + Send + 'static,
) -> Result<T, StartError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(StartError::Data { data: PathBuf::new(), error: io::Error::other(error) }),
    }
}

fn open_failed(data: &Path, error: OpenError) -> StartError {
    match error {
        OpenError::InUse { holder, .. } => StartError::DataInUse { data: data.to_owned(), holder },
        other @ (OpenError::Io { .. } | OpenError::Sqlite(_) | OpenError::Migrate(_)) => {
            StartError::Store(other)
        }
    }
}

fn restore_failed(data: &Path, error: RestoreError) -> StartError {
    match error {
        RestoreError::InUse { holder, .. } => StartError::DataInUse { data: data.to_owned(), holder },
        other => StartError::Restore(other),
    }
}
