//! One request on its way, and what becomes of it when the answer is a redirect. Each hop is judged like a call of
//! its own, and more strictly: where it leads was not written by whoever allowed the call.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};

use crate::{NetError, Request, error::RefusedRedirect, redact, request::Redirects, target::Target};

pub(crate) struct Hop {
    pub(crate) target: Target,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Lost for good when the call leaves the host and port that it was allowed for.
    pub(crate) allow_private: bool,
    redirects: Redirects,
    n_followed: u8,
}

/// What another host may see. Anything else may be a credential, by whatever name.
const HARMLESS: [HeaderName; 6] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::USER_AGENT,
];

/// The same, of names without a constant: who asks, not in whose name.
const HARMLESS_BY_NAME: [&str; 3] = ["idempotency-key", "traceparent", "x-request-id"];

const ABOUT_THE_BODY: [HeaderName; 4] =
    [header::CONTENT_ENCODING, header::CONTENT_LANGUAGE, header::CONTENT_LENGTH, header::CONTENT_TYPE];

/// Characters of a redirect's location that are shown.
const MAX_LOCATION: usize = 200;

impl Hop {
    pub(crate) fn first(request: Request) -> Result<Self, NetError> {
        let target = Target::parse(&request.url)?;
        if request.headers.contains_key(header::HOST) {
            let reason = "another host can't be named beside it".to_owned();
            return Err(NetError::BadUrl { reason });
        }
        target.check_literal(request.allow_private)?;
        Ok(Self {
            target,
            method: request.method,
            headers: request.headers,
            body: request.body,
            allow_private: request.allow_private,
            redirects: request.redirects,
            n_followed: 0,
        })
    }

    /// An error of this hop, told as one behind redirects if it is.
    pub(crate) fn blame(&self, error: NetError) -> NetError {
        match self.n_followed {
            0 => error,
            _ => NetError::Redirected { host: self.target.host_and_port(), source: Box::new(error) },
        }
    }

    /// Where the answer sends the request next; none if it is an answer to keep.
    pub(crate) fn next(self, status: StatusCode, answered: &HeaderMap) -> Result<Result<Hop, Hop>, NetError> {
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(Err(self));
        }
        let location = answered.get(header::LOCATION).map(|value| value.as_bytes());
        let refuse = |reason| NetError::Redirect { status, location: shown(location), reason };
        let becomes_get = self.becomes_get(status);
        self.redirects.check(status, becomes_get, self.n_followed).map_err(refuse)?;
        let text = location.ok_or_else(|| refuse(RefusedRedirect::Nowhere))?;
        let text = std::str::from_utf8(text).map_err(|_| refuse(RefusedRedirect::Unusable))?;
        let target = self.target.join(text).map_err(|_| refuse(RefusedRedirect::Unusable))?;
        if self.target.is_tls() && !target.is_tls() {
            return Err(refuse(RefusedRedirect::Insecure));
        }
        let next = self.led_to(target, becomes_get);
        next.target.check_literal(next.allow_private).map_err(|error| next.blame(error))?;
        Ok(Ok(next))
    }

    /// As every client does it: a POST is not repeated behind 301 and 302, and nothing is behind 303.
    fn becomes_get(&self, status: StatusCode) -> bool {
        match status.as_u16() {
            301 | 302 => self.method == Method::POST,
            303 => self.method != Method::HEAD && self.method != Method::GET,
            _ => false,
        }
    }

    fn led_to(self, target: Target, becomes_get: bool) -> Hop {
        let mut next = Hop {
            allow_private: self.allow_private && self.target.is_same_place(&target),
            n_followed: self.n_followed.saturating_add(1),
            ..self
        };
        if becomes_get {
            next.method = Method::GET;
            next.body = Bytes::new();
            ABOUT_THE_BODY.iter().for_each(|name| drop(next.headers.remove(name)));
        }
        if !next.target.is_same_origin(&target) {
            next.headers = next
                .headers
                .iter()
                .filter(|(name, value)| is_harmless(name) && !value.is_sensitive())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
        }
        next.target = target;
        next
    }
}

impl Redirects {
    fn check(self, status: StatusCode, becomes_get: bool, n_followed: u8) -> Result<(), RefusedRedirect> {
        let max = match self {
            Redirects::Refused => return Err(RefusedRedirect::Never),
            Redirects::Unchanged { .. } if becomes_get && status != StatusCode::SEE_OTHER => {
                return Err(RefusedRedirect::LosesBody);
            }
            Redirects::Unchanged { max } | Redirects::Followed { max } => max,
        };
        if n_followed >= max { Err(RefusedRedirect::TooMany { max }) } else { Ok(()) }
    }
}

fn is_harmless(name: &HeaderName) -> bool {
    HARMLESS.contains(name) || HARMLESS_BY_NAME.contains(&name.as_str())
}

/// Where a redirect leads, without the query, which may hold what must not be shown. A long path is left out rather than
/// cut: half a secret could be recognised by nobody who knows the whole.
fn shown(location: Option<&[u8]>) -> String {
    let location = location.unwrap_or_default().split(|byte| *byte == b'?').next().unwrap_or_default();
    let location = redact::excerpt(&String::from_utf8_lossy(location), usize::MAX);
    if location.chars().count() <= MAX_LOCATION {
        return location;
    }
    let host_ends =
        location.find("://").and_then(|scheme| Some(scheme + 3 + location.get(scheme + 3..)?.find('/')?));
    let origin = host_ends.and_then(|end| location.get(..end)).filter(|origin| origin.len() <= MAX_LOCATION);
    format!("{}/…", origin.unwrap_or_default())
}

#[cfg(test)]
mod tests;
