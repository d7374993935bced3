//! Calls against a server that plays bytes: what goes out, what comes back, and every way it can go wrong.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::time::Duration;

use ostler_net::{AddressKind, Client, NetError, Request, Response, StatusCode, Timeouts, Waiting};
use tokio::io::AsyncWriteExt;

use support::{Act, Seen, Server, TokioRuntime, answer, closed_port, write};

fn client() -> Client {
    Client::new(TokioRuntime::new()).unwrap()
}

fn request(url: String) -> Request {
    Request { allow_private: true, ..Request::post(url, "{\"a\":1}") }
}

async fn send(server: &Server) -> Result<Response, NetError> {
    client().send(request(server.url("/x"))).await
}

async fn body(response: &mut Response) -> Result<String, NetError> {
    let bytes = response.bytes_up_to(1000).await?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn a_call_goes_out_and_its_answer_comes_back() {
    let mut server =
        Server::start([answer("201 Created", "x-a: b\r\ncontent-type: text/plain; q=1\r\n", "hello")]).await;
    let mut response = send(&server).await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(response.headers()["x-a"], "b");
    assert_eq!(response.media_type(), Some("text/plain"));
    assert_eq!(body(&mut response).await.unwrap(), "hello");
    let (_, head, body) = server.request().await;
    assert!(head.starts_with("POST /x HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-length: 7\r\n"), "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
    assert_eq!(body, "{\"a\":1}");
}

#[tokio::test]
async fn a_connection_is_used_again_once_its_answer_was_read() {
    let mut server = Server::start([answer("200 OK", "", "1"), answer("200 OK", "", "2")]).await;
    let client = client();
    for expected in ["1", "2"] {
        let mut response = client.send(request(server.url("/"))).await.unwrap();
        assert_eq!(body(&mut response).await.unwrap(), expected);
        let (connection, ..) = server.request().await;
        assert_eq!(connection, 0);
    }
}

#[tokio::test]
async fn a_chunked_answer_comes_piece_by_piece() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let server = Server::start([vec![write(head), write("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")]]).await;
    let mut response = send(&server).await.unwrap();
    let mut whole = Vec::new();
    while let Some(piece) = response.next().await {
        whole.extend_from_slice(&piece.unwrap());
    }
    assert_eq!(whole, b"abcde");
    assert!(response.next().await.is_none());
}

#[tokio::test]
async fn an_empty_body_is_sent_as_such() {
    let mut server = Server::start([answer("200 OK", "", "")]).await;
    client().send(Request { body: Default::default(), ..request(server.url("/")) }).await.unwrap();
    let (_, head, body) = server.request().await;
    assert!(head.contains("\r\ncontent-length: 0\r\n"), "{head}");
    assert_eq!(body, "");
}

#[tokio::test]
async fn a_refused_connection_was_never_sent() {
    let error = client().send(request(format!("http://{}/", closed_port().await))).await.unwrap_err();
    assert!(matches!(error, NetError::Connect { .. }), "{error:?}");
    assert!(error.is_transient() && !error.may_have_been_sent());
    assert!(error.explain().contains("refused"), "{}", error.explain());
}

#[tokio::test]
async fn a_connection_closed_behind_the_request_may_have_been_sent() {
    for body in ["{}", ""] {
        let server = Server::start([vec![Act::Close]]).await;
        let request = Request { body: body.into(), ..request(server.url("/x")) };
        let error = client().send(request).await.unwrap_err();
        assert!(matches!(error, NetError::Cut { sent: true, .. }), "{error:?}");
        assert!(error.is_transient() && error.may_have_been_sent());
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_cut() {
    for beginning in ["content-length: 9\r\n\r\nabc", "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"] {
        let server =
            Server::start([vec![write(format!("HTTP/1.1 200 OK\r\n{beginning}")), Act::Close]]).await;
        let mut response = send(&server).await.unwrap();
        let error = body(&mut response).await.unwrap_err();
        assert!(matches!(error, NetError::Cut { sent: true, .. }), "{error:?}");
        assert!(response.next().await.is_none(), "nothing comes behind an error");
    }
}

#[tokio::test]
async fn gibberish_is_not_http() {
    let server = Server::start([vec![write("SSH-2.0-OpenSSH\r\n\r\n"), Act::Close]]).await;
    let error = send(&server).await.unwrap_err();
    assert!(matches!(error, NetError::NotHttp { .. }), "{error:?}");
}

#[tokio::test]
async fn plain_text_behind_https_is_a_tls_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let greet = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream
    };
    let client = client();
    let (result, _stream) = tokio::join!(client.send(request(url)), greet);
    let error = result.unwrap_err();
    assert!(matches!(error, NetError::Tls { .. }), "{error:?}");
    assert!(!error.is_transient() && !error.may_have_been_sent());
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_a_connection_that_never_came() {
    // The server reads the handshake as the head of a request and waits for more of it.
    for body in ["{}", ""] {
        let mut server = Server::start([]).await;
        let url = server.url("/").replace("http://", "https://");
        let timeouts = Timeouts { connect: Duration::from_millis(50), ..Timeouts::default() };
        let request = Request { timeouts, body: body.into(), ..request(url) };
        let error = client().send(request).await.unwrap_err();
        let expected = matches!(error, NetError::Timeout { waiting: Waiting::Connect, sent: false, .. });
        assert!(expected, "{error:?}");
        assert_eq!(server.seen().await, Seen::Closed { connection: 0 });
    }
}

#[tokio::test]
async fn each_wait_has_its_bound() {
    let silent = || vec![Act::Hang];
    let stalled = || vec![write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"), Act::Hang];
    let short = Duration::from_millis(30);
    let timeouts = Timeouts::default();
    let cases = [
        (silent(), Timeouts { first_byte: short, ..timeouts }, Waiting::FirstByte),
        (silent(), Timeouts { total: short, ..timeouts }, Waiting::Total),
        (silent(), Timeouts { connect: short / 3, first_byte: short, ..timeouts }, Waiting::FirstByte),
        (stalled(), Timeouts { idle: short, ..timeouts }, Waiting::Idle),
        (stalled(), Timeouts { total: short, ..timeouts }, Waiting::Total),
    ];
    for (acts, timeouts, expected) in cases {
        let mut server = Server::start([acts]).await;
        let call = async {
            let mut response = client().send(Request { timeouts, ..request(server.url("/")) }).await?;
            response.bytes_up_to(1000).await
        };
        let error = call.await.unwrap_err();
        let NetError::Timeout { waiting, after, sent: true } = error else { panic!("{error:?}") };
        assert_eq!((waiting, after), (expected, short));
        server.request().await;
        assert_eq!(server.seen().await, Seen::Closed { connection: 0 });
    }
}

#[tokio::test]
async fn one_timer_serves_a_whole_call() {
    let runtime = TokioRuntime::new();
    let server = Server::start([answer("200 OK", "", "hello")]).await;
    let client = Client::new(runtime.clone()).unwrap();
    let mut response = client.send(request(server.url("/"))).await.unwrap();
    response.bytes_up_to(10).await.unwrap();
    assert_eq!(runtime.slept.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_answer_has_a_bound() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n";
    for acts in [answer("200 OK", "", "hello world"), vec![write(chunked)]] {
        let server = Server::start([acts.clone(), acts]).await;
        let mut response = send(&server).await.unwrap();
        let error = response.bytes_up_to(10).await.unwrap_err();
        assert!(matches!(error, NetError::TooLarge { limit: 10 }), "{error:?}");
        let bounded = Request { max_body: 10, ..request(server.url("/")) };
        let mut response = client().send(bounded).await.unwrap();
        let error = response.next().await.unwrap().unwrap_err();
        assert!(matches!(error, NetError::TooLarge { limit: 10 }), "{error:?}");
    }
}

#[tokio::test]
async fn the_beginning_of_a_long_answer_can_be_had() {
    let server = Server::start([answer("500 Oops", "", "hello world")]).await;
    let mut response = send(&server).await.unwrap();
    assert_eq!(response.beginning(5).await, "hello");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut server =
        Server::start([answer("307 Elsewhere", "location: http://10.0.0.1/p?token=hush\r\n", "")]).await;
    let error = send(&server).await.unwrap_err();
    let NetError::Redirect { status, location, .. } = &error else { panic!("{error:?}") };
    assert_eq!((status.as_u16(), location.as_str()), (307, "http://10.0.0.1/p"));
    assert!(!error.is_transient());
    server.request().await;
}

#[tokio::test]
async fn private_addresses_are_refused_however_they_are_written() {
    let urls = [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://localhost/",
        "http://LOCALHOST:80/",
    ];
    for url in urls {
        let error = client().send(Request::post(url, "")).await.unwrap_err();
        let NetError::RefusedAddress { kind, .. } = error else { panic!("{url}: {error:?}") };
        assert_eq!(kind, AddressKind::Loopback, "{url}");
    }
    let error = client().send(request("http://169.254.169.254/latest".into())).await.unwrap_err();
    assert!(matches!(error, NetError::RefusedAddress { kind: AddressKind::Metadata, .. }), "{error:?}");
    assert!(!error.is_transient() && !error.may_have_been_sent());
}

#[tokio::test]
async fn a_connection_to_a_private_address_is_not_lent_to_a_public_call() {
    let mut server = Server::start([answer("200 OK", "", "1")]).await;
    let client = client();
    let url = format!("http://localhost:{}/", server.address.port());
    client.send(request(url.clone())).await.unwrap().bytes_up_to(9).await.unwrap();
    server.request().await;
    let error = client.send(Request { allow_private: false, ..request(url) }).await.unwrap_err();
    assert!(matches!(error, NetError::RefusedAddress { .. }), "{error:?}");
}

#[tokio::test]
async fn a_name_nobody_knows_is_a_dns_error() {
    // Too long a name to be one: it fails without a question to any name server.
    let name = "n".repeat(64);
    let error = client().send(request(format!("http://{name}.test/"))).await.unwrap_err();
    assert!(matches!(error, NetError::Dns { .. }), "{error:?}");
    assert!(error.is_transient() && !error.may_have_been_sent());
}

#[tokio::test]
async fn an_address_that_cannot_be_called_says_why() {
    for url in ["", "/relative", "ftp://example.com/", "http://user:pw@example.com/", "http://"] {
        let error = client().send(request(url.into())).await.unwrap_err();
        assert!(matches!(error, NetError::BadUrl { .. }), "{url}: {error:?}");
        assert!(!error.to_string().contains("pw"));
    }
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let mut server = Server::start([vec![Act::Hang]]).await;
    let client = client();
    let mut call = Box::pin(client.send(request(server.url("/"))));
    tokio::select! {
        _ = &mut call => panic!("nobody answered"),
        _ = server.request() => {}
    }
    drop(call);
    assert_eq!(server.seen().await, Seen::Closed { connection: 0 });
}

#[tokio::test]
async fn dropping_an_answer_closes_its_connection() {
    let mut server =
        Server::start([vec![write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"), Act::Hang]]).await;
    let mut response = send(&server).await.unwrap();
    assert_eq!(response.next().await.unwrap().unwrap(), "abc");
    drop(response);
    server.request().await;
    assert_eq!(server.seen().await, Seen::Closed { connection: 0 });
}
