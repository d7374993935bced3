//! Workers that dial: what they are let do, and what happens when connections come and go.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use ostler_kernel::{RunId, TaskId, runtime::timeout, worker::Offer};
use ostler_link::{
    Caller, ClaimRequest, Delta, DeltasRequest, InputsRequest, LinkError, RegisterRequest, RenewRequest,
    SignalKind, SignalsRequest, WorkerPortExt,
    grpc::client::{Dial, DialError, RemotePort},
};
use ostler_server::{ServerConfig, TlsFiles, start};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::json;

use crate::support::{
    Place, config, raw, runtime,
    sse::Listener,
    start_in,
    worker::{NAME, Worker},
};

const PATIENCE: Duration = Duration::from_secs(30);

fn token_of(place: &Place) -> String {
    fs::read_to_string(place.folder.path().join("worker-token")).unwrap()
}

fn dial(place: &Place) -> Dial {
    Dial {
        servers: vec![place.server.url().parse().unwrap()],
        token: token_of(place),
        worker: NAME.to_owned(),
        ca: None,
    }
}

fn remote(dial: Dial) -> Arc<RemotePort> {
    Arc::new(RemotePort::new(dial, runtime()).unwrap())
}

/// Asks again until it is answered.
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
async fn a_worker_elsewhere_does_a_whole_task() {
    let place = Place::with_agent().await;
    let mut worker = Worker::on(remote(dial(&place))).await;
    let name = place.task().await;
    let mut held = worker.claim().await;
    worker.delta(&held, 0, "hel").await;
    worker.step(&mut held).await;
    worker.finish(held, "hello").await;
    let task = place.get(&format!("/v1/tasks/{name}")).await.json();
    assert_eq!(task["status"]["phase"], "Succeeded", "{task}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_token_for_workers_opens_the_link_and_it_opens_nothing_else() {
    let place = Place::new().await;
    let refused = |token: String| {
        let port = remote(Dial { token, ..dial(&place) });
        async move { port.connect().await.unwrap_err() }
    };
    for token in [String::new(), "wrong".to_owned(), place.server.token().to_owned()] {
        let error = refused(token.clone()).await;
        assert!(matches!(error, DialError::Refused { .. }), "{token:?}: {error}");
    }
    let error = refused("not\na header".to_owned()).await;
    assert!(matches!(error, DialError::Refused { .. }), "{error}");
    remote(dial(&place)).connect().await.unwrap();

    let head = place.head("GET", "/v1/tasks").replace(place.server.token(), &token_of(&place));
    let reply = raw::exchange(place.address(), format!("{head}\r\n").as_bytes()).await;
    assert_eq!(reply.status, 401, "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_speaks_for_itself_alone() {
    let place = Place::with_agent().await;
    let port = remote(dial(&place));
    let mut worker = Worker::on(Arc::clone(&port) as _).await;
    place.task().await;
    let held = worker.claim().await;
    let other = Caller { worker: "other".to_owned(), incarnation: 1 };
    let error = port.signals(SignalsRequest { caller: other.clone(), wait_ms: 0 }).await.unwrap_err();
    assert!(matches!(&error, LinkError::Rejected { message } if message.contains("other")), "{error}");

    // Under its own name another one gets nothing of a run that it does not hold.
    let port = remote(Dial { worker: "other".to_owned(), ..dial(&place) });
    let request =
        RegisterRequest { name: "other".to_owned(), instance: 2, former: 0, offer: Offer::default() };
    port.register(request).await.unwrap();
    let (run, task) = (held.run().id, held.run().task);
    let asked = port.inputs(InputsRequest { caller: other.clone(), run, task, after: 0 }).await;
    assert!(matches!(asked, Err(LinkError::Fenced { .. })), "{asked:?}");
    let mut shown = Listener::open(&place, &task.to_string(), None).await;
    let delta = |text: &str| Delta { task, run, step: 0, offset: 0, text: text.to_owned(), thinking: false };
    port.deltas(DeltasRequest { caller: other, deltas: vec![delta("forged")] }).await.unwrap();
    worker.delta(&held, 0, "real").await;
    let delta = loop {
        let message = shown.next().await.unwrap();
        if message.event == "delta" {
            break message;
        }
    };
    assert_eq!(delta.data["text"], "real");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_larger_than_a_message_of_grpc_goes_through_and_holds_up_nobody() {
    let place = Place::with_agent().await;
    let message = "x".repeat(3 << 20);
    let body = json!({"kind": "Task", "spec": {"agent": "helper", "input": {"message": message}}});
    assert_eq!(place.post("/v1/tasks", &body).await.status, 201);
    let port = remote(dial(&place));
    let mut worker = Worker::on(Arc::clone(&port) as _).await;
    let held = worker.claim().await;
    // Text without end on the one stream, answered or not, and signs of life on the other.
    let (run, task) = (held.run().id, held.run().task);
    let flood = (0..64_u64).map(|n| {
        let (port, caller) = (Arc::clone(&port), worker.caller());
        let delta = Delta { task, run, step: 0, offset: n, text: "y".repeat(1 << 20), thinking: false };
        async move { port.deltas(DeltasRequest { caller, deltas: vec![delta] }).await }
    });
    let mut flood: tokio::task::JoinSet<_> = flood.collect();
    for counter in 1..=5 {
        let request = RenewRequest {
            caller: worker.caller(),
            counter,
            claimed: 1,
            held: vec![(run, 1)],
            lease_ms: None,
        };
        let lost = timeout(&*runtime(), PATIENCE, port.renew(request)).await.unwrap().unwrap();
        assert_eq!(lost.lost, Vec::new());
    }
    while let Some(shown) = flood.join_next().await {
        shown.unwrap().unwrap();
    }
    worker.finish(held, &"z".repeat(5 << 20)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_reaches_the_worker_that_waits_for_it() {
    let place = Place::with_agent().await;
    let port = remote(dial(&place));
    let mut worker = Worker::on(Arc::clone(&port) as _).await;
    let name = place.task().await;
    let held = worker.claim().await;
    let request = SignalsRequest { caller: worker.caller(), wait_ms: 20_000 };
    let (signals, cancelled) = tokio::join!(port.signals(request), async {
        place.post(&format!("/v1/tasks/{name}/cancel"), &json!({})).await
    });
    assert!(cancelled.status < 300, "{cancelled:?}");
    let signals = signals.unwrap();
    assert!(signals.iter().any(|signal| signal.run == held.run().id && signal.kind == SignalKind::Stop));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_over_a_restart_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_in(folder.path()).await.unwrap();
    let address = server.address();
    let place = Place { server, folder };
    place.apply_agent().await;
    let port = remote(dial(&place));
    let mut worker = Worker::on(Arc::clone(&port) as _).await;
    let name = place.task().await;
    let mut held = worker.claim().await;
    // Someone waits at the server that goes away, and is sent away rather than kept.
    let waiting = SignalsRequest { caller: worker.caller(), wait_ms: 600_000 };
    let (sent_away, folder) = tokio::join!(port.signals(waiting), async {
        let Place { server, folder } = place;
        server.shutdown().await;
        folder
    });
    assert!(matches!(sent_away, Err(LinkError::Unavailable { .. })), "{sent_away:?}");
    let claim = ClaimRequest { caller: worker.caller(), number: 2, slots: 1, wait_ms: 0 };
    let nobody = port.claim(claim.clone()).await.unwrap_err();
    assert!(matches!(nobody, LinkError::Unavailable { .. }), "{nobody}");

    let server = start(ServerConfig { listen: address, ..config(folder.path()) }, runtime()).await.unwrap();
    let place = Place { server, folder };
    insist(|| port.claim(claim.clone())).await;
    worker.step(&mut held).await;
    worker.finish(held, "done").await;
    let events = place.get(&format!("/v1/tasks/{name}/events")).await;
    let body = String::from_utf8_lossy(&events.body).into_owned();
    assert_eq!(body.matches("attempt_started").count(), 1, "the same attempt went on: {body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_is_dialled_when_one_is_gone() {
    let place = Place::new().await;
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}", gone.local_addr().unwrap()).parse().unwrap();
    drop(gone);
    let mut both = dial(&place);
    both.servers.insert(0, nobody);
    remote(both).connect().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn with_tls_only_a_server_someone_vouches_for_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let certificate = file("cert.pem", &cert.pem());
    let tls =
        TlsFiles { certificate: certificate.clone(), key: file("key.pem", &signing_key.serialize_pem()) };
    let data = folder.path().join("data");
    let server = start(ServerConfig { tls: Some(tls.clone()), ..config(&data) }, runtime()).await.unwrap();
    assert!(server.url().starts_with("https://"), "{}", server.url());
    let dial = |host: &str, scheme: &str, ca: Option<PathBuf>| Dial {
        servers: vec![format!("{scheme}://{host}:{}", server.address().port()).parse().unwrap()],
        token: fs::read_to_string(data.join("worker-token")).unwrap(),
        worker: NAME.to_owned(),
        ca,
    };
    remote(dial("localhost", "https", Some(certificate.clone()))).connect().await.unwrap();
    let stranger = remote(dial("localhost", "https", None)).connect().await.unwrap_err();
    assert!(matches!(stranger, DialError::Distrusted { .. }), "{stranger}");
    let misnamed = remote(dial("127.0.0.1", "https", Some(certificate.clone()))).connect().await.unwrap_err();
    assert!(matches!(misnamed, DialError::Distrusted { .. }), "{misnamed}");
    let plain = remote(dial("localhost", "http", None)).connect().await.unwrap_err();
    assert!(matches!(plain, DialError::Unreachable { .. }), "{plain}");

    let crossed = TlsFiles { key: certificate, ..tls };
    let error = start(ServerConfig { tls: Some(crossed), ..config(&data) }, runtime()).await.err().unwrap();
    assert!(error.to_string().contains("TLS"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_nobody_or_speaks_otherwise_is_told_so() {
    let place = Place::new().await;
    let token = token_of(&place);
    for (path, versions, worker, code, words) in [
        (
            "Control",
            Some("7-9"),
            Some("w"),
            "9",
            "versions 1 to 1 of the link, the worker 7 to 9; bring the server",
        ),
        ("Control", Some("nonsense"), Some("w"), "3", "ostler-link-versions"),
        ("Control", None, Some("w"), "3", "ostler-link-versions"),
        ("Bulk", Some("1-1"), None, "3", "ostler-worker"),
        ("Elsewhere", Some("1-1"), Some("w"), "12", "Elsewhere"),
    ] {
        let header = |name: &str, value: Option<&str>| {
            value.map_or_else(String::new, |value| format!("{name}: {value}\r\n"))
        };
        let head =
            place.head("POST", &format!("/ostler.link.v1.Link/{path}")).replace(place.server.token(), &token);
        let headers = header("ostler-link-versions", versions) + &header("ostler-worker", worker);
        let request = format!("{head}content-type: application/grpc\r\n{headers}\r\n");
        let reply = raw::exchange(place.address(), request.as_bytes()).await;
        assert_eq!(reply.header("grpc-status"), Some(code), "{path} {versions:?}: {reply:?}");
        assert!(reply.header("grpc-message").unwrap().replace("%20", " ").contains(words), "{reply:?}");
    }
    // Not held by anybody, and no task at all.
    let port = remote(dial(&place));
    let worker = Worker::on(Arc::clone(&port) as _).await;
    let run = RunId::from_parts(runtime().now(), 0, 1);
    let task = TaskId::from_parts(runtime().now(), 0, 1);
    let asked = port.inputs(InputsRequest { caller: worker.caller(), run, task, after: 0 }).await;
    assert!(matches!(asked, Err(LinkError::Fenced { .. })), "{asked:?}");
}
