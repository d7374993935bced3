//! Starts the server and stops it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use ostler_control::{
    Background, Control, ControlConfig, ControlError,
    secrets::KeyRing,
    store::{
        StoreError,
        sqlite::{OpenError, RestoreError},
    },
    telemetry::{Family, Source},
};
use ostler_kernel::{
    Runtime,
    runtime::{AbortOnDrop, BoxFuture, timeout},
};
use ostler_link::WorkerPort;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc, watch},
};

use crate::{
    ServerConfig, SetupToken,
    access::{Caller, SignIns},
    auth::Token,
    check::given_token,
    cors::Origins,
    data_folder,
    gate::{App, Gate},
    hosts::Hosts,
    limits::{Rates, Streams},
    listen::{Acceptor, Phase},
    metrics::Requests,
    request_id::RequestIds,
    secret_keys::{KeyReadError, KeySource},
    store::{Opened, StoreOpenError},
    telemetry,
    tls::{self, TlsSetupError},
};

/// A server that answers. Dropping it stops it at once; [`Server::shutdown`] does it gently.
pub struct Server {
    address: SocketAddr,
    url: String,
    app: Arc<App>,
    worker_name: String,
    phase: watch::Sender<Phase>,
    alive: mpsc::Receiver<()>,
    _activities: Vec<AbortOnDrop>,
    _background: Background,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "{listen} is not an address of this machine's loopback, and others are not to be served without TLS"
    )]
    NotLoopback { listen: SocketAddr },
    #[error("can't offer TLS")]
    Tls(#[source] TlsSetupError),
    #[error("can't read the token in {path:?}")]
    Token {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("can't use the secret key of {place}")]
    SecretKey {
        place: String,
        #[source]
        error: KeyReadError,
    },
    /// Others on the same store, or this one before, have sealed with other keys.
    #[error("the secret key of {place} is not the one that this store's secrets are sealed with")]
    WrongSecretKey {
        place: String,
        #[source]
        error: Box<ControlError>,
    },
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
    #[error("can't read the store")]
    Read(#[source] StoreError),
    /// Nobody is served without the limits that hold.
    #[error("can't read the quotas")]
    Quotas(#[source] Box<ControlError>),
    #[error("can't restore the backup")]
    Restore(#[source] RestoreError),
}

/// How long requests under way may take once the server is told to stop.
const GRACE: Duration = Duration::from_secs(5);

pub async fn start(config: ServerConfig, runtime: Arc<dyn Runtime>) -> Result<Server, StartError> {
    let tls = config.tls.as_ref().map(tls::acceptor).transpose().map_err(StartError::Tls)?;
    let listener = listen(&config).await?;
    let listen = config.listen;
    let address = listener.local_addr().map_err(|error| StartError::Listen { listen, error })?;
    let data = config.data.clone();
    let failed = |error| StartError::Data { data: data.clone(), error };
    data_folder::create(&data).map_err(failed)?;
    let (token, worker_token) = tokens(&config, &*runtime)?;
    let key_source = KeySource::of(&config);
    let keys_are_new = key_source.is_to_be_made();
    let keys = key_source.read(&config, &*runtime);
    let keys = keys.map_err(|error| StartError::SecretKey { place: key_source.to_string(), error })?;
    // One that was made just now opens nothing that was there before.
    let wrong_keys = |error| {
        if keys_are_new {
            key_source.unmake();
        }
        wrong_keys(&key_source, error)
    };
    let sign_ins = SignIns::new(tls.is_some(), config.session_ttl, setup_token(&config)?, &*runtime);
    // Before anything is put in place: whoever comes back with the right keys restores it then.
    let rehearsed = Opened::rehearsed(&config, &*runtime).await.map_err(|error| open_failed(&data, error))?;
    if let Some(rehearsal) = rehearsed {
        let store = Arc::clone(&rehearsal.store) as _;
        let control = Control::new(store, Arc::clone(&runtime), of_control(&config, keys.clone()));
        control.check_secret_keys().await.map_err(&wrong_keys)?;
    }
    let store = Opened::open(&config, &runtime).await.map_err(|error| open_failed(&data, error))?;
    data_folder::sweep(&data);
    let worker_name = worker_name(&store, &data, &*runtime).map_err(failed)?;
    let control = Control::new(store.port(), Arc::clone(&runtime), of_control(&config, keys));
    control.check_secret_keys().await.map_err(&wrong_keys)?;
    control.prepare().await.map_err(no_quotas)?;
    let background = control.start();
    let (phase, phases) = watch::channel(Phase::Serving);
    let (alive_sender, alive) = mpsc::channel(1);
    let app = Arc::new(App {
        control,
        store,
        runtime: Arc::clone(&runtime),
        data: data.clone(),
        token,
        itself: Caller::server(),
        worker_token,
        sign_ins,
        rates: Rates::new(&config.limits),
        streams: Streams::new(config.limits.of_streams()),
        hosts: Hosts::new(address, tls.is_some(), config.insecure),
        origins: Origins::new(&config.allow_origins),
        request_ids: RequestIds::new(runtime.random()),
        phase: phases.clone(),
        backups: Semaphore::new(1),
        watches: Streams::new(config.limits.of_watches()),
        requests: Requests::default(),
        description: OnceLock::new(),
        redactor: config.redactor.clone(),
        key_source,
        turning: Semaphore::new(1),
        telemetry: config.telemetry.clone(),
    });
    let acceptor = Acceptor {
        gate: Arc::new(Gate::new(Arc::clone(&app), config.limits)),
        tls: tls.clone(),
        connections: config.limits.connections,
        runtime: Arc::clone(&runtime),
        phase: phases,
        alive: alive_sender,
    };
    let activities = activities(acceptor, listener, &app);
    let url = url(address, tls.is_some());
    data_folder::announce(&data, &url).map_err(failed)?;
    let server = Server {
        address,
        url,
        app,
        worker_name,
        phase,
        alive,
        _activities: activities,
        _background: background,
    };
    telemetry::listening(server.url());
    Ok(server)
}

fn worker_name(store: &Opened, data: &Path, runtime: &dyn Runtime) -> io::Result<String> {
    match store {
        Opened::Sqlite(_) => Ok("local".to_owned()),
        Opened::Postgres(_) => data_folder::worker_name(data, runtime),
    }
}

/// What goes on as long as the server does.
fn activities(acceptor: Acceptor, listener: TcpListener, app: &App) -> Vec<AbortOnDrop> {
    let (sweeper, follower) = (Arc::clone(&app.control), Arc::clone(&app.control));
    let spawn = |name, future| app.runtime.spawn(name, future).abort_on_drop();
    vec![
        spawn("accept", Box::pin(acceptor.run(listener))),
        spawn("sign-ins", Box::pin(async move { sweeper.sweep_sign_ins().await })),
        spawn("credentials", Box::pin(async move { follower.follow_credentials().await })),
    ]
}

impl Server {
    /// Where it listens, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// As it is reached from this machine.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn token(&self) -> &str {
        self.app.token.as_str()
    }

    /// Of the worker in the same process: the same after a restart, so that it takes up its runs at once, and unlike
    /// those of others on the same store.
    pub fn worker_name(&self) -> &str {
        &self.worker_name
    }

    /// What stands behind the routes, for who is in the same process.
    pub fn control(&self) -> &Arc<Control> {
        &self.app.control
    }

    /// Gives all figures of this process whenever it is asked, as long as the server is there.
    pub fn figures(&self) -> Source {
        let (app, telemetry) = (Arc::downgrade(&self.app), self.app.telemetry.clone());
        Arc::new(move || -> BoxFuture<'static, Vec<Family>> {
            let (app, telemetry) = (app.upgrade(), telemetry.clone());
            Box::pin(async move {
                let figures = match app {
                    Some(app) => app.figures().await.ok(),
                    None => None,
                };
                figures.unwrap_or_else(|| telemetry.families())
            })
        })
    }

    /// For a worker in the same process.
    pub fn worker_port(&self) -> Arc<dyn WorkerPort> {
        Arc::clone(&self.app.control) as _
    }

    /// Says that it is going: balancers send nobody here any more, and whoever comes is still served.
    pub fn leave(&self) {
        self.phase.send_replace(Phase::Leaving);
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

fn wrong_keys(source: &KeySource, error: ControlError) -> StartError {
    match error {
        ControlError::Store(error) => StartError::Read(error),
        error => StartError::WrongSecretKey { place: source.to_string(), error: Box::new(error) },
    }
}

fn no_quotas(error: ControlError) -> StartError {
    match error {
        ControlError::Store(error) => StartError::Read(error),
        error => StartError::Quotas(Box::new(error)),
    }
}

fn of_control(config: &ServerConfig, keys: KeyRing) -> ControlConfig {
    ControlConfig {
        lease: config.lease,
        keep: config.keep,
        keep_tasks: config.keep_tasks,
        archive_after: config.archive_after,
        keys: Some(keys),
        redactor: config.redactor.clone(),
        keep_sessions: config.keep_sessions,
        keep_workers: config.keep_workers,
        keep_plans: config.keep_plans,
        providers: config.providers.clone(),
        telemetry: config.telemetry.clone(),
    }
}

fn url(address: SocketAddr, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

/// What clients have to show, and what workers have to: as given, or else the data folder's own.
fn tokens(config: &ServerConfig, runtime: &dyn Runtime) -> Result<(Token, Token), StartError> {
    let data = &config.data;
    let own =
        |token: io::Result<String>| token.map_err(|error| StartError::Data { data: data.clone(), error });
    let token = match &config.token_file {
        Some(path) => given_token(path)?,
        None => own(data_folder::token(data, runtime))?,
    };
    let worker_token = match &config.worker_token_file {
        Some(path) => given_token(path)?,
        None => own(data_folder::worker_token(data, runtime))?,
    };
    for hidden in config.store.hidden().iter().chain([&token, &worker_token]) {
        config.redactor.hide_for_good(hidden);
    }
    Ok((Token::new(token), Token::new(worker_token)))
}

fn setup_token(config: &ServerConfig) -> Result<Option<SetupToken>, StartError> {
    let token = config.setup_token()?;
    token.iter().for_each(|token| config.redactor.hide_for_good(token));
    Ok(token.map(SetupToken::new))
}

async fn listen(config: &ServerConfig) -> Result<TcpListener, StartError> {
    config.may_listen()?;
    let listen = config.listen;
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
