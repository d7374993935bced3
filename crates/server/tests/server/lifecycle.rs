//! Start, stop, restart, backup, restore: and what is in the data folder meanwhile.

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt};

use ostler_server::{ServerConfig, StartError, start};
use serde_json::Value;
use tokio::net::TcpStream;

use super::support::{Hasty, Place, config, runtime, sse::Listener, start_in};

#[tokio::test]
async fn the_folder_says_where_the_server_is_while_it_runs() {
    let place = Place::new().await;
    let token = fs::read_to_string(place.folder.path().join("token")).unwrap();
    assert_eq!(token.trim(), place.server.token());
    let letters = token.trim().strip_prefix("ostler_").unwrap();
    assert!(letters.len() == 52 && letters.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{letters}");
    let mode = fs::metadata(place.folder.path().join("token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let file = place.folder.path().join("server.json");
    let announced: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(announced["url"], place.server.url());
    assert_eq!(announced["pid"], std::process::id());
    let version = place.get("/v1/version").await.json();
    assert_eq!((&version["name"], version["version"].is_string()), (&"ostler".into(), true));
    let address = place.address();
    place.server.shutdown().await;
    assert!(!file.exists());
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn what_was_accepted_is_there_after_a_restart() {
    let place = Place::with_agent().await;
    let (name, token) = (place.task().await, place.server.token().to_owned());
    let Place { server, folder } = place;
    server.shutdown().await;
    let log = fs::metadata(folder.path().join("store.db-wal"));
    assert_eq!(log.map_or(0, |log| log.len()), 0, "all is in the one file of the store");
    let server = start_in(folder.path()).await.unwrap();
    assert_eq!(server.token(), token, "the token stays");
    let place = Place { server, folder };
    assert_eq!(place.get(&format!("/v1/tasks/{name}")).await.status, 200);
}

#[tokio::test]
async fn a_request_under_way_is_finished() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let place = Place::with_agent().await;
    let body = super::support::task().to_string();
    let mut stream = TcpStream::connect(place.address()).await.unwrap();
    let head = format!("{}content-length: {}\r\n\r\n", place.head("POST", "/v1/tasks"), body.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    // Answered behind the first request, so the first one has been taken up.
    assert_eq!(place.get("/v1/version").await.status, 200);
    let asking = async {
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let ((), answer) = tokio::join!(place.server.shutdown(), asking);
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
}

#[tokio::test]
async fn who_does_not_finish_is_cut_off() {
    use tokio::io::AsyncWriteExt;
    let place = Place::with(Hasty::new()).await;
    let mut stream = TcpStream::connect(place.address()).await.unwrap();
    let head = format!("{}content-length: 100\r\n\r\n", place.head("POST", "/v1/tasks"));
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(place.get("/v1/version").await.status, 200);
    place.server.shutdown().await;
    // The store is closed: the folder can be used again.
    start_in(place.folder.path()).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn a_folder_serves_one_server() {
    let place = Place::new().await;
    let own = std::process::id().to_string();
    let refused = start_in(place.folder.path()).await.err().unwrap();
    assert!(matches!(&refused, StartError::DataInUse { holder, .. } if *holder == own), "{refused}");
    assert_eq!(place.get("/v1/version").await.status, 200, "the first one is not disturbed");
    assert!(place.folder.path().join("server.json").exists());
}

#[tokio::test]
async fn an_address_serves_one_server() {
    let place = Place::new().await;
    let other = tempfile::tempdir().unwrap();
    let config = ServerConfig { listen: place.address(), ..config(other.path()) };
    let refused = start(config, runtime()).await.err().unwrap();
    assert!(matches!(refused, StartError::AddressInUse { .. }), "{refused}");
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0, "nothing was begun");
}

#[tokio::test]
async fn only_loopback_is_served() {
    let folder = tempfile::tempdir().unwrap();
    for listen in ["0.0.0.0:0", "192.0.2.1:7070", "[::]:0"] {
        let listen: SocketAddr = listen.parse().unwrap();
        let refused = start(ServerConfig { listen, ..config(folder.path()) }, runtime()).await.err().unwrap();
        assert!(matches!(refused, StartError::NotLoopback { .. }), "{refused}");
    }
}

#[tokio::test]
async fn a_backup_of_a_living_server_can_be_restored() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let mut reader = Listener::open(&place, &name, None).await;
    let copy = place.send("POST", "/v1/backup", "", b"").await;
    assert_eq!((copy.status, copy.header("content-type")), (200, Some("application/octet-stream")));
    assert_eq!(copy.header("content-length"), Some(copy.body.len().to_string().as_str()));
    let later = place.task().await;
    assert_eq!(reader.next().await.unwrap().id, Some(1), "others go on meanwhile");
    let left: Vec<_> =
        fs::read_dir(place.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("backup-")), "{left:?}");

    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("copy.db");
    fs::write(&backup, &copy.body).unwrap();
    let data = folder.path().join("data");
    let restoring = ServerConfig { restore: Some(backup), ..config(&data) };
    let server = start(restoring.clone(), runtime()).await.unwrap();
    let restored = Place { server, folder };
    assert_eq!(restored.get(&format!("/v1/tasks/{name}")).await.status, 200);
    assert_eq!(restored.get(&format!("/v1/tasks/{later}")).await.status, 404, "it came after the backup");
    assert_eq!(restored.get("/v1/agents/helper").await.status, 200);
    let newest = restored.task().await;
    restored.server.shutdown().await;

    let refused = start(restoring.clone(), runtime()).await.err().unwrap();
    assert!(matches!(refused, StartError::Restore(_)), "{refused}");
    let forced = ServerConfig { force_restore: true, ..restoring };
    let server = start(forced, runtime()).await.unwrap();
    let restored = Place { server, folder: restored.folder };
    assert_eq!(restored.get(&format!("/v1/tasks/{newest}")).await.status, 404);
    assert!(data.join("store.db.replaced-1").exists());
}

#[tokio::test]
async fn what_is_no_backup_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("copy.db");
    fs::write(&backup, "this is no database, however long it is made").unwrap();
    let data = folder.path().join("data");
    let refused =
        start(ServerConfig { restore: Some(backup), ..config(&data) }, runtime()).await.err().unwrap();
    assert!(matches!(refused, StartError::Restore(_)), "{refused}");
    start_in(&data).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn copies_that_a_crash_left_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("backup-0123.part"), "half").unwrap();
    let server = start_in(folder.path()).await.unwrap();
    assert!(!folder.path().join("backup-0123.part").exists());
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_can_work_says_so_without_a_token() {
    let place = Place::new().await;
    for path in ["/healthz", "/readyz"] {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", place.address());
        assert_eq!(
            crate::support::raw::exchange(place.address(), request.as_bytes()).await.status,
            200,
            "{path}"
        );
    }
}
