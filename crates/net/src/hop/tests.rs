//! Where answers lead a request, without anybody being called.

use http::HeaderValue;

use super::*;
use crate::AddressKind;

const ALL: Redirects = Redirects::Followed { max: 3 };

fn hop(method: Method, url: &str, redirects: Redirects, allow_private: bool) -> Hop {
    let mut request = Request { method, redirects, allow_private, ..Request::post(url, "body") };
    for (name, value) in [
        ("authorization", "Bearer x"),
        ("cookie", "a=b"),
        ("x-api-key", "k"),
        ("x-anything", "v"),
        ("content-type", "text/plain"),
        ("accept", "a/b"),
        ("x-request-id", "id"),
    ] {
        request.headers.insert(name, HeaderValue::from_static(value));
    }
    Hop::first(request).map_err(|error| error.to_string()).unwrap()
}

fn led(hop: Hop, status: u16, location: &str) -> Result<Hop, NetError> {
    let mut answered = HeaderMap::new();
    answered.insert(header::LOCATION, HeaderValue::from_bytes(location.as_bytes()).unwrap());
    let next = hop.next(StatusCode::from_u16(status).unwrap(), &answered)?;
    Ok(next.unwrap_or_else(|_| panic!("it was not taken for a redirect")))
}

fn reason(result: Result<Hop, NetError>) -> RefusedRedirect {
    match result {
        Err(NetError::Redirect { reason, .. }) => reason,
        Err(error) => panic!("{error:?}"),
        Ok(hop) => panic!("led to {}", hop.target.url()),
    }
}

fn names(hop: &Hop) -> Vec<&str> {
    let mut names: Vec<&str> = hop.headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn method_and_body_are_as_the_standard_says() {
    let cases = [
        (Method::POST, 301, Method::GET, ""),
        (Method::POST, 302, Method::GET, ""),
        (Method::POST, 303, Method::GET, ""),
        (Method::POST, 307, Method::POST, "body"),
        (Method::POST, 308, Method::POST, "body"),
        (Method::PUT, 301, Method::PUT, "body"),
        (Method::PUT, 303, Method::GET, ""),
        (Method::DELETE, 308, Method::DELETE, "body"),
        (Method::GET, 302, Method::GET, "body"),
        (Method::HEAD, 303, Method::HEAD, "body"),
    ];
    for (method, status, expected, body) in cases {
        let next = led(hop(method.clone(), "http://a.test/x", ALL, false), status, "/y").unwrap();
        assert_eq!((&next.method, &next.body[..]), (&expected, body.as_bytes()), "{method} {status}");
        assert_eq!(next.headers.contains_key(header::CONTENT_TYPE), !body.is_empty());
        assert_eq!(next.target.url().as_str(), "http://a.test/y");
    }
}

#[test]
fn another_origin_sees_no_credential_by_whatever_name() {
    for elsewhere in ["http://b.test/", "http://a.test:81/", "https://a.test/", "//a.test./"] {
        let next = led(hop(Method::POST, "http://a.test/", ALL, false), 307, elsewhere).unwrap();
        assert_eq!(names(&next), ["accept", "content-type", "x-request-id"], "{elsewhere}");
    }
    let same = led(hop(Method::POST, "http://a.test/", ALL, false), 307, "http://A.test:80/z").unwrap();
    assert_eq!(same.headers.len(), 7);
    // What was dropped does not come back with the way back.
    let away = led(hop(Method::POST, "http://a.test/", ALL, false), 307, "http://b.test/").unwrap();
    assert_eq!(led(away, 307, "http://a.test/").unwrap().headers.len(), 3);
}

#[test]
fn a_call_that_left_its_place_reaches_nothing_private_any_more() {
    let start = || hop(Method::POST, "http://10.0.0.1:8080/", ALL, true);
    assert!(led(start(), 307, "/next").unwrap().allow_private);
    assert!(led(start(), 307, "http://10.0.0.1:8080/next").unwrap().allow_private);
    for elsewhere in
        ["http://10.0.0.1:8081/", "http://10.0.0.2:8080/", "http://127.0.0.1:8080/", "http://0x7f.1/"]
    {
        let Err(error) = led(start(), 307, elsewhere) else { panic!("{elsewhere}") };
        let NetError::Redirected { source, .. } = &error else { panic!("{error:?}") };
        assert!(matches!(**source, NetError::RefusedAddress { .. }), "{error:?}");
        assert!(error.may_have_been_sent() && !error.is_transient());
        assert!(error.explain().contains("which must not be called"), "{}", error.explain());
    }
    let away = led(start(), 307, "http://public.test/").unwrap();
    assert!(!away.allow_private);
    assert!(led(away, 307, "http://10.0.0.1:8080/").is_err(), "nor by the way back");
    let Err(NetError::Redirected { source, .. }) = led(start(), 307, "http://169.254.169.254/") else {
        panic!()
    };
    assert!(matches!(*source, NetError::RefusedAddress { kind: AddressKind::Metadata, .. }));
}

#[test]
fn what_is_not_followed_says_why() {
    let from = |url: &str, redirects| hop(Method::POST, url, redirects, false);
    let http = |redirects| from("http://a.test/", redirects);
    assert_eq!(reason(led(http(Redirects::Refused), 307, "/y")), RefusedRedirect::Never);
    let unchanged = Redirects::Unchanged { max: 1 };
    assert_eq!(reason(led(http(unchanged), 302, "/y")), RefusedRedirect::LosesBody);
    assert!(led(http(unchanged), 303, "/y").is_ok() && led(http(unchanged), 308, "/y").is_ok());
    let once = led(http(unchanged), 307, "/y").unwrap();
    assert_eq!(reason(led(once, 307, "/z")), RefusedRedirect::TooMany { max: 1 });
    assert_eq!(reason(led(from("https://a.test/", ALL), 307, "http://a.test/")), RefusedRedirect::Insecure);
    for unusable in ["ftp://a.test/", "http://u:p@a.test/", "http://[::1", "/\\b.test", "\u{fc}\t", "http://"]
    {
        assert_eq!(reason(led(http(ALL), 307, unusable)), RefusedRedirect::Unusable, "{unusable}");
    }
    let nowhere = http(ALL).next(StatusCode::FOUND, &HeaderMap::new());
    assert!(matches!(nowhere, Err(NetError::Redirect { reason: RefusedRedirect::Nowhere, .. })));
}

#[test]
fn an_ordinary_answer_is_kept() {
    for status in [200, 300, 304, 305, 404, 500] {
        let kept = hop(Method::POST, "http://a.test/", ALL, false)
            .next(StatusCode::from_u16(status).unwrap(), &HeaderMap::new());
        assert!(matches!(kept, Ok(Err(_))), "{status}");
    }
}
