//! Claims runs, keeps leases, drives agents.
//!
//! A worker registers and so gets an *incarnation*. Under it three loops run side by side: claim, renew and
//! signals. If renewing fails for the length of a lease, everything it runs is stopped before anybody else
//! may start it, and the worker registers anew.

mod ahead;
mod claim;
mod codes;
mod content;
mod deltas;
mod equip;
mod held;
mod observed;
mod renew;
mod run_port;
mod run_trace;
mod secrets;
mod signals;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ostler_agent::{Runner, llm::Gateway, tools::Toolbox};
use ostler_kernel::runtime::timeout;
use ostler_link::{
    Caller, Delta, LinkError, RegisterRequest, Registered, RenewRequest, WorkerPort, WorkerPortExt,
};
use tokio::sync::{Mutex, mpsc, watch};

use crate::held::Held;

pub use codes::codes;
pub use equip::{EquipError, model_providers};
pub use ostler_agent::llm::net::{NetConfig, NetError, ProxyConfig};
pub use ostler_agent::llm::secrets::{Redactor, SHORTEST as SHORTEST_SECRET, variable as secret_variable};
pub use ostler_agent::llm::{BadPrices, Prices};
/// What whoever starts a worker needs besides.
pub use ostler_kernel::{Runtime, worker::Offer};
pub use ostler_link::{
    TokioRuntime,
    grpc::client::{Dial, DialError, RemotePort, ServerAddress},
};
pub use ostler_telemetry as telemetry;
pub use secrets::KeptSecrets;

/// How long steps under way may take to finish once the worker is told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// A server that has not registered a worker for so long hangs: another may be there.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a stopping worker tries to give back what is left. Where nobody hears of it, others take it over when the lease ends.
const GIVING_BACK: Duration = Duration::from_secs(10);

/// How long a stopping worker waits for its last words to be heard.
const PARTING: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Unique among the workers of a store. The same name again means: it was restarted.
    pub name: String,
    pub offer: Offer,
}

/// What a worker works with.
#[derive(Clone)]
pub struct Equipment {
    pub port: Arc<dyn WorkerPort>,
    pub runtime: Arc<dyn Runtime>,
    pub gateway: Arc<dyn Gateway>,
    pub toolbox: Arc<dyn Toolbox>,
    pub runner: Arc<dyn Runner>,
    /// Told of the steps that are finished.
    pub telemetry: telemetry::Telemetry,
}

/// Starts the worker in the background.
pub fn start(config: WorkerConfig, equipment: Equipment) -> WorkerHandle {
    let stopping = Arc::new(AtomicBool::new(false));
    let (stop, stop_asked) = watch::channel(false);
    let (ended, has_ended) = watch::channel(None);
    let (registered, is_registered) = watch::channel(false);
    let runtime = Arc::clone(&equipment.runtime);
    let worker = Worker { config, equipment, stopping: Arc::clone(&stopping), stop_asked, registered };
    let spawned = runtime.spawn(
        "worker",
        Box::pin(async move {
            let end = worker.run().await;
            ended.send_replace(Some(end));
        }),
    );
    WorkerHandle { stopping, stop, has_ended, is_registered, spawned }
}

pub struct WorkerHandle {
    stopping: Arc<AtomicBool>,
    stop: watch::Sender<bool>,
    has_ended: watch::Receiver<Option<End>>,
    is_registered: watch::Receiver<bool>,
    spawned: ostler_kernel::runtime::Spawned,
}

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was asked to, and gave back what it held.
    Stopped,
    /// Another one registered under its name.
    Superseded,
}

impl WorkerHandle {
    /// Claims nothing more, lets steps under way finish for a while, gives the rest back.
    pub async fn stop(mut self) -> Option<End> {
        self.stopping.store(true, Ordering::SeqCst);
        self.stop.send_replace(true);
        self.has_ended.wait_for(Option::is_some).await.ok().and_then(|end| *end)
    }

    /// Waits until it ends by itself.
    pub async fn ended(&mut self) -> Option<End> {
        self.has_ended.wait_for(Option::is_some).await.ok().and_then(|end| *end)
    }

    /// Waits until a server has registered it; false if it ended before.
    pub fn registered(&self) -> impl Future<Output = bool> + Send + use<> {
        let mut is_registered = self.is_registered.clone();
        async move { is_registered.wait_for(|registered| *registered).await.is_ok() }
    }

    /// As if the process were killed.
    pub fn abort(&self) {
        self.spawned.abort();
    }
}

struct Worker {
    config: WorkerConfig,
    equipment: Equipment,
    stopping: Arc<AtomicBool>,
    stop_asked: watch::Receiver<bool>,
    registered: watch::Sender<bool>,
}

/// What a worker has and does between one registration and the next.
struct Incarnation {
    caller: Caller,
    slots: usize,
    equipment: Equipment,
    stopping: Arc<AtomicBool>,
    draining: Arc<AtomicBool>,
    held: Arc<Held>,
    deltas: mpsc::Sender<Delta>,
    emitted: Mutex<mpsc::Receiver<Delta>>,
}

/// Why an incarnation is over.
enum Over {
    /// Not renewed for the length of a lease.
    Expired,
    Superseded,
}

impl Worker {
    async fn run(mut self) -> End {
        let mut last = None;
        loop {
            let incarnation = match self.register(last).await {
                Ok(incarnation) => incarnation,
                Err(end) => return end,
            };
            last = Some(incarnation.caller.incarnation);
            self.registered.send_replace(true);
            let over = {
                let mut stop_asked = self.stop_asked.clone();
                tokio::select! {
                    biased;
                    over = incarnation.work() => Some(over),
                    _ = stop_asked.wait_for(|stop| *stop) => None,
                }
            };
            match over {
                None => {
                    incarnation.wind_down().await;
                    return End::Stopped;
                }
                Some(Over::Superseded) => {
                    incarnation.held.abort_all();
                    return End::Superseded;
                }
                Some(Over::Expired) => {
                    tracing::warn!(
                        worker = self.config.name,
                        "lost touch for the length of a lease; starting over"
                    );
                    incarnation.held.abort_all();
                }
            }
        }
    }

    /// Asks until it is answered. A process that starts takes over from whoever had its name; one that lost
    /// touch (`last` is what it was) may have been replaced meanwhile, and then it ends.
    async fn register(&mut self, last: Option<u64>) -> Result<Incarnation, End> {
        let runtime = Arc::clone(&self.equipment.runtime);
        let instance = runtime.random() >> 1;
        let mut request = RegisterRequest {
            name: self.config.name.clone(),
            instance,
            former: last.unwrap_or(0),
            offer: self.config.offer.clone(),
        };
        let mut delay = Backoff::new();
        loop {
            if *self.stop_asked.borrow() {
                return Err(End::Stopped);
            }
            let sent_at = runtime.monotonic();
            let asking = timeout(&*runtime, PATIENCE, self.equipment.port.register(request.clone()));
            let answer = tokio::select! {
                biased;
                answer = asking => answer,
                _ = self.stop_asked.wait_for(|stop| *stop) => return Err(End::Stopped),
            };
            let answer =
                answer.unwrap_or_else(|error| Err(LinkError::Unavailable { message: error.to_string() }));
            match answer {
                Ok(Registered::As { incarnation, lease_ms }) => {
                    return Ok(self.incarnation(incarnation, Duration::from_millis(lease_ms), sent_at));
                }
                Ok(Registered::Present { .. }) if last.is_some() => return Err(End::Superseded),
                Ok(Registered::Present { incarnation }) => request.former = incarnation,
                Err(error) => {
                    tracing::warn!(%error, "can't register; trying again");
                    tokio::select! {
                        biased;
                        _ = self.stop_asked.wait_for(|stop| *stop) => {}
                        () = delay.wait(&*runtime) => {}
                    }
                }
            }
        }
    }

    fn incarnation(&self, incarnation: u64, lease: Duration, sent_at: Duration) -> Incarnation {
        let held = Arc::new(Held::new(sent_at, lease));
        let (deltas, emitted) = mpsc::channel(deltas::ROOM);
        let caller = Caller { worker: self.config.name.clone(), incarnation };
        Incarnation {
            caller,
            slots: self.config.offer.slots as usize,
            equipment: self.equipment.clone(),
            stopping: Arc::clone(&self.stopping),
            draining: Arc::default(),
            held,
            deltas,
            emitted: Mutex::new(emitted),
        }
    }
}

impl Incarnation {
    async fn work(&self) -> Over {
        tokio::select! {
            biased;
            over = self.keep_renewed() => over,
            over = self.claim_runs() => over,
            over = self.follow_signals() => over,
            () = self.show_deltas() => Over::Expired,
        }
    }

    /// Runs under way end at their next step, or are cut off and given back. The lease is kept meanwhile: once it is over there
    /// is nothing to give back.
    async fn wind_down(&self) {
        let runtime = &*self.equipment.runtime;
        let ending = async {
            // Whoever writes to a server that can't be reached does not end.
            if timeout(runtime, GRACE, self.held.wait_until_empty()).await.is_err() {
                let _: Result<(), _> = timeout(runtime, GIVING_BACK, self.held.give_all_back()).await;
            }
        };
        tokio::select! {
            biased;
            () = ending => {}
            _ = self.keep_renewed() => {}
        }
        self.held.abort_all();
        self.say_farewell().await;
    }

    /// The last claim may have been given something that nobody waited for any more: it is not held, and whoever
    /// is told so need not wait until the lease is over. If nobody is told, that is all it costs.
    async fn say_farewell(&self) {
        let counter = self.held.next_counter();
        let claimed = self.held.claim_sent();
        let held = Vec::new();
        let farewell = RenewRequest { caller: self.caller.clone(), counter, claimed, held, lease_ms: None };
        let told = timeout(&*self.equipment.runtime, PARTING, self.equipment.port.renew(farewell)).await;
        if let Ok(Err(error)) = told {
            tracing::debug!(%error, "left without a farewell");
        }
    }
}

/// Waits a little longer each time, up to a second.
struct Backoff(Duration);

impl Backoff {
    fn new() -> Self {
        Self(Duration::from_millis(20))
    }

    async fn wait(&mut self, runtime: &dyn Runtime) {
        runtime.sleep(self.0).await;
        self.0 = (self.0 * 2).min(Duration::from_secs(1));
    }
}

/// Sends a request again until it is answered, one way or the other.
async fn insist<T, F: Future<Output = Result<T, LinkError>>>(
    runtime: &dyn Runtime,
    mut request: impl FnMut() -> F,
) -> Result<T, LinkError> {
    let mut delay = Backoff::new();
    loop {
        match request().await {
            Err(LinkError::Unavailable { message }) => {
                tracing::debug!(message, "no answer; sending it again");
                delay.wait(runtime).await;
            }
            answer => return answer,
        }
    }
}
