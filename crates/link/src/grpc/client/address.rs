//! Where a server is.

use std::{fmt, str::FromStr};

use http::Uri;

/// `http://HOST[:PORT]` or `https://HOST[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    pub is_tls: bool,
    /// A name or an address, without brackets.
    pub host: String,
    pub port: u16,
    uri: Uri,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected http://HOST:PORT or https://HOST:PORT")]
pub struct BadServerAddress;

impl FromStr for ServerAddress {
    type Err = BadServerAddress;

    fn from_str(text: &str) -> Result<Self, BadServerAddress> {
        let uri: Uri = text.trim_end_matches('/').parse().map_err(|_| BadServerAddress)?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(BadServerAddress),
        };
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let host = authority.ok_or(BadServerAddress)?.host();
        if host.is_empty() || uri.path() != "/" || uri.query().is_some() {
            return Err(BadServerAddress);
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self { is_tls, host, port, uri })
    }
}

impl ServerAddress {
    /// With no path behind it.
    pub fn origin(&self) -> &Uri {
        &self.uri
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.uri.to_string().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let read = |text: &str| text.parse::<ServerAddress>().unwrap();
        let plain = read("http://127.0.0.1:7070/");
        assert_eq!((plain.is_tls, plain.host.as_str(), plain.port), (false, "127.0.0.1", 7070));
        assert_eq!(plain.to_string(), "http://127.0.0.1:7070");
        let named = read("https://ostler.example");
        assert_eq!((named.is_tls, named.host.as_str(), named.port), (true, "ostler.example", 443));
        assert_eq!(read("http://[::1]:9").host, "::1");
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "localhost:7070",
            "ftp://x",
            "http://",
            "http://a/b",
            "http://u:p@a",
            "http://a?b",
            "http://a b",
        ] {
            assert!(text.parse::<ServerAddress>().is_err(), "{text:?} was taken");
        }
    }
}
