//! Pages of other sites that may call this server, because someone set it so: which they are, what is answered when their
//! browser asks first, and what it has to be told with each answer. They show a token, as programs do: a cookie counts only
//! from a page of our own.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

pub struct Origins(Vec<String>);

/// What those pages may ask with.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, if-match, idempotency-key, last-event-id, traceparent, tracestate, user-agent, \
     x-request-id",
);

/// What of an answer they may read beside its body.
const SHOWN: HeaderValue = HeaderValue::from_static("allow, retry-after, x-request-id");

/// For so many seconds a browser need not ask again.
const ASKED_EVERY: HeaderValue = HeaderValue::from_static("600");

/// A browser asks whether a page of the wide world may reach into a private network.
const ASKS_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

impl Origins {
    /// As browsers write them: `https://app.example`, without a path.
    pub fn new(origins: &[String]) -> Self {
        Self(origins.iter().map(|origin| origin.to_ascii_lowercase()).collect())
    }

    /// The page that a request comes from, if it is one of these.
    pub fn of(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut given = headers.get_all(header::ORIGIN).iter();
        let (first, second) = (given.next()?, given.next());
        let is_known = self.0.iter().any(|origin| origin.as_bytes() == first.as_bytes());
        (is_known && second.is_none()).then(|| first.clone())
    }
}

/// Whether a browser only asks what it may ask for.
pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

pub fn preflight(headers: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let told = response.headers_mut();
    told.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    told.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    told.insert(header::ACCESS_CONTROL_MAX_AGE, ASKED_EVERY);
    if headers.contains_key(ASKS_PRIVATE) {
        told.insert(ALLOWS_PRIVATE, HeaderValue::from_static("true"));
    }
    response
}

/// Lets the page see the answer, a refusal too. That credentials of the browser's own count is never said.
pub fn show_to(origin: HeaderValue, response: &mut Response) {
    let told = response.headers_mut();
    told.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    told.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, SHOWN);
    told.append(header::VARY, HeaderValue::from_static("origin"));
}
