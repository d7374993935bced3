//! Who may ask: the bearer of the server's token.

use http::{HeaderMap, StatusCode, header};

use crate::problem::Problem;

/// What every request but the health check has to show; the link has one of its own.
pub struct Token(String);

impl Token {
    pub fn new(token: String) -> Self {
        Self(token)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let refuse = |detail: &str| {
            Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail).remedy(
                "send `Authorization: Bearer <token>`; the token is in the file `token` of the data folder",
            )
        };
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return Err(refuse("the request has no token"));
        };
        let Some(token) = bearer(value.as_bytes()) else {
            return Err(refuse("the Authorization header holds no bearer token"));
        };
        if is_same(token, self.0.as_bytes()) { Ok(()) } else { Err(refuse("the token is not valid here")) }
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

/// Takes the same time wherever the two differ, so that a token can't be guessed letter by letter.
fn is_same(given: &[u8], expected: &[u8]) -> bool {
    let differences = given.iter().zip(expected).fold(0, |all, (left, right)| all | (left ^ right));
    std::hint::black_box(differences) == 0 && given.len() == expected.len()
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
