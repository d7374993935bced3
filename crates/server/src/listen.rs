//! Accepts connections and serves each until it is closed, or until the server stops.

use std::{io, pin::pin, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use ostler_kernel::Runtime;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
};

use crate::{gate::Gate, open_files, telemetry};

/// Where the server is on its way to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// Requests under way may finish; streams end, and nothing new begins.
    Draining,
    /// Connections are cut.
    Stopped,
}

/// Waits until the server is there, or gone altogether.
pub async fn reached(phase: &mut watch::Receiver<Phase>, awaited: Phase) {
    // An error means that nobody will tell any more.
    let _ = phase.wait_for(|phase| *phase >= awaited).await;
}

/// How long a connection may say nothing, or take for the head of a request.
const SILENT_FOR: Duration = Duration::from_secs(75);

/// After a failure to accept: mostly a lack of file descriptors, which others give back.
const PAUSE: Duration = Duration::from_millis(50);

/// Held by everything that serves; when all are gone, nobody is served any more.
pub type Alive = mpsc::Sender<()>;

pub struct Acceptor {
    pub gate: Arc<Gate>,
    pub runtime: Arc<dyn Runtime>,
    pub phase: watch::Receiver<Phase>,
    pub alive: Alive,
}

impl Acceptor {
    pub async fn run(mut self, listener: TcpListener) {
        let room = Arc::new(Semaphore::new(open_files::connections()));
        loop {
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.serve(stream, permit),
                    Err(error) => self.pause(&error).await,
                },
                () = reached(&mut self.phase, Phase::Draining) => return,
            }
        }
    }

    fn serve(&self, stream: TcpStream, permit: OwnedSemaphorePermit) {
        // Answers are written whole, so there is nothing to wait for. Without it they are only slower.
        let _ = stream.set_nodelay(true);
        let (gate, phase, alive) = (Arc::clone(&self.gate), self.phase.clone(), self.alive.clone());
        let connection = async move {
            connection(stream, gate, phase).await;
            drop((permit, alive));
        };
        self.runtime.spawn("connection", Box::pin(connection)).detach();
    }

    async fn pause(&self, error: &io::Error) {
        telemetry::accept_failed(error);
        self.runtime.sleep(PAUSE).await;
    }
}

async fn connection(stream: TcpStream, gate: Arc<Gate>, mut phase: watch::Receiver<Phase>) {
    let service = service_fn(move |request| {
        let gate = Arc::clone(&gate);
        async move { gate.answer(request).await }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(SILENT_FOR);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut told = false;
    loop {
        let awaited = if told { Phase::Stopped } else { Phase::Draining };
        tokio::select! {
            served = connection.as_mut() => {
                if let Err(error) = served {
                    telemetry::connection_failed(&error);
                }
                return;
            }
            () = reached(&mut phase, awaited) => {
                if told {
                    return;
                }
            }
        }
        told = true;
        connection.as_mut().graceful_shutdown();
    }
}
