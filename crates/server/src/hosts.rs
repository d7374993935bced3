//! From where a request may come. A page of some other site, open in a browser on this machine, can reach
//! loopback: by the names it uses for us (Host) and for itself (Origin) it is told from our own callers. A server
//! that others reach too is called by whatever name they have for it; there, only the page's own name tells.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, StatusCode, Uri, header, uri::Authority};

use crate::problem::Problem;

pub struct Hosts {
    listen: SocketAddr,
    /// As nearly every request names us, so that it need not be taken apart.
    usual: String,
    schemes: &'static [&'static str],
}

impl Hosts {
    /// Something in front of a server may speak TLS for it (`behind_tls`): then its pages come by that.
    pub fn new(listen: SocketAddr, is_tls: bool, behind_tls: bool) -> Self {
        let schemes: &[&str] = match (is_tls, behind_tls) {
            (true, _) => &["https://"],
            (false, true) => &["http://", "https://"],
            (false, false) => &["http://"],
        };
        Self { listen, usual: listen.to_string(), schemes }
    }

    /// By the name that it uses for us.
    pub fn check_host<'a>(&self, uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, Problem> {
        let host = host(uri, headers)?;
        if host != self.usual && !self.is_ours(host) {
            return Err(bad_host(&format!("this server is not called {host:?}")));
        }
        Ok(host)
    }

    /// By the name that it uses for itself as well.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let host = self.check_host(uri, headers)?;
        let mut origins = headers.get_all(header::ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(()),
            (Some(origin), None) if self.is_same_origin(origin.as_bytes(), host) => Ok(()),
            (Some(_), _) => {
                let detail = "the request comes from a page of another site";
                Err(Problem::new(StatusCode::FORBIDDEN, "bad_origin", detail)
                    .remedy("`--allow-origin` of the server lets in the pages of a site that it names"))
            }
        }
    }

    fn is_ours(&self, host: &str) -> bool {
        // With a name and a password in front of it, it is no host.
        let Ok(authority) = host.parse::<Authority>() else { return false };
        if host.contains('@') {
            return false;
        }
        if !self.listen.ip().is_loopback() {
            return true;
        }
        let name = authority.host();
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        address.is_ok_and(|address| address.is_loopback() || address == self.listen.ip())
    }

    fn is_same_origin(&self, origin: &[u8], host: &str) -> bool {
        self.schemes.iter().any(|scheme| {
            let named = origin.strip_prefix(scheme.as_bytes());
            named.is_some_and(|named| named.eq_ignore_ascii_case(host.as_bytes()))
        })
    }
}

fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, Problem> {
    let mut values = headers.get_all(header::HOST).iter();
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        return Err(bad_host("the request has more than one Host"));
    }
    let named = match (uri.authority(), first) {
        (Some(authority), _) => Some(authority.as_str()),
        (None, Some(host)) => host.to_str().ok(),
        (None, None) => None,
    };
    named.ok_or_else(|| bad_host("the request names no host"))
}

fn bad_host(detail: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "bad_host", detail)
        .remedy("use the address that the server printed, or localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_at(listen: [u8; 4], is_tls: bool, host: &str, origin: Option<&str>) -> bool {
        check_with(Hosts::new(SocketAddr::from((listen, 7070)), is_tls, false), host, origin)
    }

    fn check_with(hosts: Hosts, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        hosts.check(&Uri::from_static("/v1/tasks"), &headers).is_ok()
    }

    fn check(host: &str, origin: Option<&str>) -> bool {
        check_at([127, 0, 0, 1], false, host, origin)
    }

    #[test]
    fn only_names_of_this_machine_are_ours() {
        for host in ["127.0.0.1:7070", "localhost", "LOCALHOST:1", "127.0.0.2", "[::1]:7070"] {
            assert!(check(host, None), "{host} was refused");
        }
        for host in ["evil.example", "localhost.evil.example:7070", "10.0.0.1", "x@127.0.0.1", "", "[::1"] {
            assert!(!check(host, None), "{host} was let in");
        }
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        assert!(check("localhost:7070", Some("http://localhost:7070")));
        for origin in ["http://evil.example", "http://localhost:7071", "https://localhost:7070", "null"] {
            assert!(!check("localhost:7070", Some(origin)), "{origin} was let in");
        }
    }

    #[test]
    fn what_speaks_tls_for_a_server_serves_its_pages() {
        let check = |origin| {
            let hosts = Hosts::new(SocketAddr::from(([10, 0, 0, 1], 7070)), false, true);
            check_with(hosts, "ostler.example", Some(origin))
        };
        assert!(check("https://ostler.example") && check("http://ostler.example"));
        assert!(!check("https://evil.example") && !check("ftp://ostler.example") && !check("null"));
    }

    #[test]
    fn a_server_for_others_has_many_names_and_still_no_foreign_pages() {
        let check = |host: &str, origin| check_at([0, 0, 0, 0], true, host, origin);
        assert!(check("ostler.example", None) && check("10.0.0.1:7070", None));
        assert!(!check("x@ostler.example", None) && !check("", None));
        assert!(check("ostler.example", Some("https://ostler.example")));
        assert!(!check("ostler.example", Some("http://ostler.example")));
        assert!(!check("ostler.example", Some("https://evil.example")));
    }
}
