//! Redirects over real connections: what the next server is sent, and who is never dialled.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ostler_net::{AddressKind, Client, HeaderValue, NetError, Redirects, RefusedRedirect, Request, header};

use support::{Act, Server, TokioRuntime, answer};

fn client() -> Client {
    Client::new(TokioRuntime::new()).unwrap()
}

fn request(server: &Server, redirects: Redirects) -> Request {
    let mut request =
        Request { allow_private: true, redirects, ..Request::post(server.url("/first"), "{\"a\":1}") };
    request.headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"));
    request
}

fn to(status: u16, location: &str) -> Vec<Act> {
    answer(&format!("{status} Elsewhere"), &format!("location: {location}\r\n"), "")
}

const ALL: Redirects = Redirects::Followed { max: 3 };

#[tokio::test]
async fn the_same_place_gets_the_request_again() {
    for (status, line, body) in [(302, "GET", ""), (303, "GET", ""), (307, "POST", "{\"a\":1}")] {
        let mut server = Server::start([to(status, "/second?x=1"), answer("200 OK", "", "there")]).await;
        let mut response = client().send(request(&server, ALL)).await.unwrap();
        assert_eq!(response.bytes_up_to(10).await.unwrap(), "there");
        server.request().await;
        let (_, head, received) = next_request(&mut server).await;
        assert!(head.starts_with(&format!("{line} /second?x=1 HTTP/1.1\r\n")), "{head}");
        assert!(head.contains("authorization: Bearer x"), "{head}");
        assert_eq!(received, body);
    }
}

#[tokio::test]
async fn another_private_place_is_not_even_dialled() {
    let mut other = Server::start([]).await;
    let elsewhere = [
        other.url("/"),
        format!("http://localhost:{}/", other.address.port()),
        format!("http://0x7f000001:{}/", other.address.port()),
        format!("//[::ffff:127.0.0.1]:{}/", other.address.port()),
    ];
    for location in elsewhere {
        for status in [301, 302, 303, 307, 308] {
            let server = Server::start([to(status, &location)]).await;
            let error = client().send(request(&server, ALL)).await.unwrap_err();
            let NetError::Redirected { source, .. } = &error else { panic!("{location}: {error:?}") };
            let NetError::RefusedAddress { kind, .. } = **source else { panic!("{location}: {error:?}") };
            assert_eq!(kind, AddressKind::Loopback);
            assert!(!error.is_transient() && error.may_have_been_sent());
        }
    }
    assert_eq!(other.n_connections().await, 0);
}

#[tokio::test]
async fn a_circle_ends() {
    let server = Server::start((0..4).map(|_| to(307, "/first"))).await;
    let error = client().send(request(&server, ALL)).await.unwrap_err();
    let NetError::Redirect { reason, .. } = error else { panic!("{error:?}") };
    assert_eq!(reason, RefusedRedirect::TooMany { max: 3 });
}

#[tokio::test]
async fn a_request_that_would_lose_its_body_can_be_kept_from_it() {
    let server = Server::start([to(301, "/second")]).await;
    let error = client().send(request(&server, Redirects::Unchanged { max: 3 })).await.unwrap_err();
    assert!(error.to_string().contains("redirect to `/second`"), "{error}");
    assert!(matches!(error, NetError::Redirect { reason: RefusedRedirect::LosesBody, .. }), "{error:?}");
}

#[tokio::test]
async fn what_breaks_behind_a_redirect_may_have_been_sent() {
    let server = Server::start([to(307, "/second"), vec![Act::Close]]).await;
    let error = client().send(request(&server, ALL)).await.unwrap_err();
    assert!(error.is_transient() && error.may_have_been_sent(), "{error:?}");
}

/// The connection of a redirect's answer may be closed before.
async fn next_request(server: &mut Server) -> (usize, String, String) {
    loop {
        if let support::Seen::Request { connection, head, body } = server.seen().await {
            return (connection, head, body);
        }
    }
}
