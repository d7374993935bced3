//! Servers that let a worker in and can do nothing for it: it turns to another one.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use hyper::{server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use ostler_kernel::{runtime::timeout, worker::Offer};
use ostler_link::{
    Caller, LinkError, RegisterRequest, Registered, RenewRequest, Request, Response, WorkerPort,
    WorkerPortExt,
    grpc::{
        client::{Dial, DialError, RemotePort},
        server::LinkServer,
    },
};
use tokio::net::{TcpListener, TcpStream};
use tonic::Status;

use crate::support::{Place, runtime};

const PATIENCE: Duration = Duration::from_secs(30);

/// The worker port of a server whose database can be away.
struct Flaky {
    inner: Arc<dyn WorkerPort>,
    is_away: AtomicBool,
}

impl Flaky {
    fn of(place: &Place) -> Arc<Self> {
        Arc::new(Self { inner: place.server.worker_port(), is_away: AtomicBool::new(false) })
    }
}

#[async_trait]
impl WorkerPort for Flaky {
    async fn call(&self, request: Request) -> Result<Response, LinkError> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(LinkError::Unavailable { message: "the database is away".to_owned() });
        }
        self.inner.call(request).await
    }
}

/// Serves the link alone, and lets everybody in.
async fn serve(port: Arc<dyn WorkerPort>) -> SocketAddr {
    let link = LinkServer::new(port, runtime());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let link = link.clone();
            let answering = service_fn(move |request| {
                let link = link.clone();
                async move { Ok::<_, hyper::Error>(link.answer(request, std::future::pending().boxed()).await) }
            });
            let serving = http2::Builder::new(TokioExecutor::new());
            tokio::spawn(async move { serving.serve_connection(TokioIo::new(stream), answering).await });
        }
    });
    address
}

/// One address for several servers: the first connection goes to the first of them, and so on.
async fn balance(servers: Vec<SocketAddr>) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let n_connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_connections);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let place = counted.fetch_add(1, Ordering::SeqCst).min(servers.len() - 1);
            let mut server = TcpStream::connect(servers[place]).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
        }
    });
    (address, n_connections)
}

fn remote(servers: &[SocketAddr]) -> RemotePort {
    let servers = servers.iter().map(|server| format!("http://{server}").parse().unwrap()).collect();
    let dial = Dial { servers, token: "any".to_owned(), worker: "w".to_owned(), ca: None };
    RemotePort::new(dial, runtime()).unwrap()
}

async fn register(port: &RemotePort) -> Result<Caller, LinkError> {
    let request = RegisterRequest { name: "w".to_owned(), instance: 1, former: 0, offer: Offer::of_slots(1) };
    match port.register(request).await? {
        Registered::As { incarnation, .. } => Ok(Caller { worker: "w".to_owned(), incarnation }),
        Registered::Present { incarnation } => panic!("{incarnation} is there"),
    }
}

/// As a worker does: asks until it is answered.
async fn insist<T, F: Future<Output = Result<T, LinkError>>>(mut ask: impl FnMut() -> F) -> T {
    let asking = async {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(LinkError::Unavailable { .. }) => runtime().sleep(Duration::from_millis(5)).await,
                Err(error) => panic!("{error}"),
            }
        }
    };
    timeout(&*runtime(), PATIENCE, asking).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_registered_turns_to_the_next_server() {
    let place = Place::new().await;
    let (lame, well) = (Flaky::of(&place), Flaky::of(&place));
    lame.is_away.store(true, Ordering::SeqCst);
    let port = remote(&[serve(lame).await, serve(well).await]);
    insist(|| register(&port)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_registered_behind_a_balancer_dials_anew() {
    let place = Place::new().await;
    let (lame, well) = (Flaky::of(&place), Flaky::of(&place));
    lame.is_away.store(true, Ordering::SeqCst);
    let (balancer, _) = balance(vec![serve(lame).await, serve(well).await]).await;
    let port = remote(&[balancer]);
    insist(|| register(&port)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_renewals_that_fail_lead_elsewhere_behind_a_balancer() {
    let place = Place::new().await;
    let (first, second) = (Flaky::of(&place), Flaky::of(&place));
    let servers = vec![serve(Arc::clone(&first) as _).await, serve(second).await];
    let (balancer, n_connections) = balance(servers).await;
    let port = remote(&[balancer]);
    let caller = register(&port).await.unwrap();
    let mut counter = 0;
    let mut renew = || {
        counter += 1;
        port.renew(RenewRequest {
            caller: caller.clone(),
            counter,
            claimed: 0,
            held: Vec::new(),
            lease_ms: None,
        })
    };
    let set_away = |is_away| first.is_away.store(is_away, Ordering::SeqCst);
    // One failure may pass by itself, however often.
    for _ in 0..3 {
        set_away(true);
        assert!(matches!(renew().await, Err(LinkError::Unavailable { .. })));
        set_away(false);
        renew().await.unwrap();
    }
    assert_eq!(n_connections.load(Ordering::SeqCst), 1);
    set_away(true);
    for _ in 0..2 {
        assert!(matches!(renew().await, Err(LinkError::Unavailable { .. })));
    }
    insist(renew).await;
    assert_eq!(n_connections.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_other_versions_is_told_which() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let newer = service_fn(|_: http::Request<hyper::body::Incoming>| async {
            let refusal = Status::failed_precondition("this server speaks versions 7 to 9 of the link");
            Ok::<_, hyper::Error>(refusal.into_http::<tonic::body::Body>())
        });
        let serving = http2::Builder::new(TokioExecutor::new());
        serving.serve_connection(TokioIo::new(stream), newer).await
    });
    let error = remote(&[address]).connect().await.unwrap_err();
    assert!(matches!(&error, DialError::OtherVersion { .. }), "{error:?}");
    assert!(error.to_string().contains("versions 7 to 9"), "{error}");
}
