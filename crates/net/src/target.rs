//! Where a call goes. A [`Target`] can only be made from a text in which nothing is hidden: whatever way a host was
//! written, it is judged, shown and dialled as what it leads to.

use std::net::IpAddr;

use reqwest::Url;

use crate::{NetError, resolver};

/// An `http` or `https` address without credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    url: Url,
}

/// Longer ones are refused by most servers anyway.
const MAX_URL: usize = 16 * 1024;

impl Target {
    pub(crate) fn parse(text: &str) -> Result<Self, NetError> {
        refuse_trickery(text)?;
        Self::checked(Url::parse(text).map_err(|error| bad(&error.to_string()))?)
    }

    /// Where `location` leads when it is given here.
    pub(crate) fn join(&self, location: &str) -> Result<Self, NetError> {
        refuse_trickery(location)?;
        Self::checked(self.url.join(location).map_err(|error| bad(&error.to_string()))?)
    }

    fn checked(url: Url) -> Result<Self, NetError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("it must begin with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it must not hold credentials"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(bad("it has no host"));
        }
        if url.port() == Some(0) {
            return Err(bad("nothing can listen on port 0"));
        }
        Ok(Self { url })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(crate) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
    }

    /// The address, if the host is one.
    pub(crate) fn literal(&self) -> Option<IpAddr> {
        self.host().trim_start_matches('[').trim_end_matches(']').parse().ok()
    }

    /// Refuses a host that is an address which must not be dialled. A name's addresses are looked at when it is
    /// resolved.
    pub(crate) fn check_literal(&self, allow_private: bool) -> Result<(), NetError> {
        let Some(address) = self.literal() else { return Ok(()) };
        resolver::check(address, allow_private).map_err(|refused| NetError::refused(self.host(), &refused))
    }

    /// What may be shown of it: no path, no query.
    pub(crate) fn host_and_port(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host()),
            None => self.host().to_owned(),
        }
    }

    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        self.host() == other.host() && self.port() == other.port()
    }

    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        self.is_same_place(other) && self.is_tls() == other.is_tls()
    }
}

/// Readers of addresses disagree about these: one drops them, another ends the host there. An honest address has
/// none, so nobody needs to know who is right.
fn refuse_trickery(text: &str) -> Result<(), NetError> {
    if text.len() > MAX_URL {
        return Err(bad("it is too long"));
    }
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    match text.chars().find(|c| is_odd(*c)) {
        Some(c) => Err(bad(&format!("it holds {c:?}"))),
        None => Ok(()),
    }
}

fn bad(reason: &str) -> NetError {
    NetError::BadUrl { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn literal(text: &str) -> Option<String> {
        Target::parse(text).unwrap().literal().map(|address| address.to_string())
    }

    #[test]
    fn a_host_is_seen_as_what_it_leads_to() {
        for text in [
            "http://127.0.0.1/",
            "http://127.1",
            "http://127.0.1:80/x",
            "http://2130706433",
            "http://0x7f000001",
            "http://0177.0.0.1",
            "http://0x7f.0.0.1.",
            "http://%31%32%37.1",
            "http://１２７.０.０.１",
            "http://①②⑦.⓪.⓪.①",
            "http://127。0。0。1",
            "http:127.0.0.1",
            "http:///127.0.0.1/",
        ] {
            assert_eq!(literal(text).as_deref(), Some("127.0.0.1"), "{text}");
        }
        assert_eq!(literal("https://[0:0::0:1]:8443/").as_deref(), Some("::1"));
        assert_eq!(literal("https://127.0.0.1.example.com/"), None);
    }

    #[test]
    fn what_readers_disagree_about_is_refused() {
        for text in [
            "http://example.com\\@127.0.0.1/",
            "http://example.com /",
            "http://exa\tmple.com/",
            "http://example.com/\r\nHost: x",
            " http://example.com/",
            "http://a@example.com/",
            "http://:p@example.com/",
            "http://[fe80::1%25lo]/",
            "http://[::1",
            "http://256.256.256.256/",
            "http://1.2.3.4.5/",
            "http://0x100000000/",
            "http://example.com:0/",
            "http://example.com:99999/",
            "file:///etc/passwd",
            "gopher://127.0.0.1:70/",
            "//example.com/",
            "http://",
        ] {
            assert!(matches!(Target::parse(text), Err(NetError::BadUrl { .. })), "{text}");
        }
    }

    #[test]
    fn a_location_is_read_from_where_it_was_given() {
        let here = Target::parse("https://example.com:8443/a/b?c").unwrap();
        let leads = |location: &str| here.join(location).unwrap().url().to_string();
        assert_eq!(leads("../d"), "https://example.com:8443/d");
        assert_eq!(leads("//0x7f.1/x"), "https://127.0.0.1/x");
        assert!(here.join("/\\127.0.0.1/").is_err());
        assert!(here.join("dict://127.0.0.1:11211/").is_err());
    }

    #[test]
    fn a_place_is_a_host_and_a_port_and_an_origin_has_a_scheme_too() {
        let target = |text: &str| Target::parse(text).unwrap();
        let here = target("http://Example.com/");
        assert!(here.is_same_origin(&target("http://example.com:80/x")));
        assert!(!here.is_same_place(&target("https://example.com/")));
        assert!(!here.is_same_place(&target("http://example.com./")));
        let odd = target("https://example.com:80/");
        assert!(here.is_same_place(&odd) && !here.is_same_origin(&odd));
    }
}
