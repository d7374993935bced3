//! Calls through a proxy on loopback: what it is told, and what it is never asked for.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ostler_net::{Client, NetConfig, NetError, ProxyConfig, Redirects, Request};

use support::{Act, Server, TokioRuntime, answer, closed_port};

/// No nameserver answers: names of the world outside are not known here.
async fn client(proxy: ProxyConfig) -> Client {
    let config = NetConfig { proxy, nameservers: vec![closed_port().await], ..NetConfig::default() };
    Client::configured(TokioRuntime::new(), config).unwrap()
}

async fn through(proxy: &Server, exempt: &str) -> Client {
    client(ProxyConfig::to(&format!("http://user:geheim@{}", proxy.address), exempt).unwrap()).await
}

#[tokio::test]
async fn the_proxy_gets_the_whole_address_of_a_plain_call() {
    let mut proxy = Server::start([answer("200 OK", "", "hello")]).await;
    let request = Request::post("http://public.test/path?q=1", "body");
    let mut response = through(&proxy, "").await.send(request).await.unwrap();
    assert_eq!(response.bytes_up_to(10).await.unwrap(), "hello");
    let (_, head, body) = proxy.request().await;
    assert!(head.starts_with("POST http://public.test/path?q=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("host: public.test\r\n") && head.contains("proxy-authorization: Basic"), "{head}");
    assert_eq!(body, "body");
}

#[tokio::test]
async fn the_proxy_is_asked_for_a_tunnel_by_a_secure_call() {
    let mut proxy = Server::start([answer("403 Forbidden", "", "")]).await;
    let request = Request::post("https://public.test/secret", "");
    let error = through(&proxy, "").await.send(request).await.unwrap_err();
    assert!(matches!(error, NetError::Connect { .. }), "{error:?}");
    assert!(!error.may_have_been_sent() && !error.explain().contains("geheim"), "{}", error.explain());
    let (_, head, _) = proxy.request().await;
    assert!(head.starts_with("CONNECT public.test:443 HTTP/1.1\r\n"), "{head}");
    assert!(!head.contains("secret"), "{head}");
}

#[tokio::test]
async fn what_must_not_be_called_is_not_asked_of_the_proxy_either() {
    let mut proxy = Server::start([]).await;
    let client = through(&proxy, "").await;
    let urls = [
        "http://10.0.0.1/",
        "https://0xa9fea9fe/",
        "http://localhost/",
        "http://a.localhost./",
        "http://[fd00::1]/",
    ];
    for url in urls {
        let error = client.send(Request::post(url, "")).await.unwrap_err();
        assert!(matches!(error, NetError::RefusedAddress { .. }), "{url}: {error:?}");
    }
    let metadata = Request { allow_private: true, ..Request::post("http://169.254.169.254/", "") };
    assert!(matches!(client.send(metadata).await, Err(NetError::RefusedAddress { .. })));
    assert_eq!(proxy.n_connections().await, 0);
}

#[tokio::test]
async fn a_redirect_is_judged_behind_a_proxy_too() {
    let location = "location: http://192.168.0.1/\r\n";
    let mut proxy = Server::start([answer("307 Elsewhere", location, "")]).await;
    let redirects = Redirects::Followed { max: 2 };
    let request = Request { redirects, allow_private: true, ..Request::post("http://public.test/", "") };
    let error = through(&proxy, "").await.send(request).await.unwrap_err();
    assert!(matches!(error, NetError::Redirected { .. }), "{error:?}");
    proxy.request().await;
}

#[tokio::test]
async fn what_is_exempt_and_this_machine_are_called_directly() {
    let mut proxy = Server::start([]).await;
    let mut server = Server::start([answer("200 OK", "", "1")]).await;
    let client = through(&proxy, "spared.test").await;
    let here = Request { allow_private: true, ..Request::post(server.url("/"), "") };
    client.send(here).await.unwrap();
    let (_, head, _) = server.request().await;
    assert!(head.starts_with("POST / HTTP/1.1\r\n"), "{head}");
    let spared = client.send(Request::post("http://spared.test/", "")).await.unwrap_err();
    assert!(matches!(spared, NetError::Dns { .. }), "it was looked up here: {spared:?}");
    assert_eq!(proxy.n_connections().await, 0);
}

#[tokio::test]
async fn a_proxy_that_is_gone_was_never_asked() {
    let proxy = ProxyConfig::to(&closed_port().await.to_string(), "").unwrap();
    let error = client(proxy).await.send(Request::post("http://public.test/", "")).await.unwrap_err();
    assert!(matches!(error, NetError::Connect { .. }), "{error:?}");
    assert!(!error.may_have_been_sent());
}

#[tokio::test]
async fn a_proxy_that_hangs_up_may_have_passed_the_request_on() {
    let proxy = Server::start([vec![Act::Close]]).await;
    let error = through(&proxy, "").await.send(Request::post("http://public.test/", "")).await.unwrap_err();
    assert!(matches!(error, NetError::Cut { sent: true, .. }), "{error:?}");
}
