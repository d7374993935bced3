//! Tokens that were given to the server itself: its own, and that of workers.

use http::{HeaderMap, header};
use ostler_control::access::is_same;

use crate::problem::Problem;

pub struct Token(String);

impl Token {
    pub fn new(token: String) -> Self {
        Self(token)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is(&self, given: &[u8]) -> bool {
        is_same(given, self.0.as_bytes())
    }

    /// Whether a request shows it.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return Err(Problem::unauthorized("the request has no token"));
        };
        let Some(token) = bearer(value.as_bytes()) else {
            return Err(Problem::unauthorized("the Authorization header holds no bearer token"));
        };
        if self.is(token) { Ok(()) } else { Err(Problem::unauthorized("the token is not valid here")) }
    }
}

/// What stands behind `Bearer`.
pub fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        Token::new("ostler_abc".to_owned()).check(&headers).is_ok()
    }

    #[test]
    fn only_the_whole_token_counts() {
        assert!(check("Bearer ostler_abc") && check("bearer ostler_abc "));
        for value in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer ostler_ab",
            "Bearer ostler_abcd",
            "Bearer ostler_abd",
            "ostler_abc",
            "Basic ostler_abc",
        ] {
            assert!(!check(value), "{value:?} was let in");
        }
    }
}
