//! Hosts that are called without the proxy: `example.com` and all below it, addresses, ranges, `*` for every one.

use std::net::IpAddr;

use crate::{NetError, target::Target};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Exempt {
    All,
    /// The domain itself and what lies below it, on any port or on this one.
    Domain {
        name: String,
        port: Option<u16>,
    },
    Range {
        network: IpAddr,
        bits: u8,
    },
}

impl Exempt {
    pub(super) fn list(text: &str) -> Result<Vec<Self>, NetError> {
        text.split([',', ' ']).map(str::trim).filter(|part| !part.is_empty()).map(Self::read).collect()
    }

    fn read(text: &str) -> Result<Self, NetError> {
        let bad = || NetError::BadSetting {
            reason: format!(
                "{text:?} is no host to spare from the proxy: expected a domain, an address or a range"
            ),
        };
        if text == "*" {
            return Ok(Exempt::All);
        }
        if let Some((network, bits)) = text.split_once('/') {
            let network: IpAddr = network.parse().map_err(|_| bad())?;
            let bits: u8 = bits.parse().map_err(|_| bad())?;
            return if bits <= width(network) { Ok(Exempt::Range { network, bits }) } else { Err(bad()) };
        }
        if let Ok(network) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Ok(Exempt::Range { network, bits: width(network) });
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port.parse().map_err(|_| bad())?)),
            None => (text, None),
        };
        let name = name.trim_start_matches("*.").trim_matches('.').to_ascii_lowercase();
        if name.is_empty() { Err(bad()) } else { Ok(Exempt::Domain { name, port }) }
    }

    pub(super) fn covers(&self, target: &Target) -> bool {
        match self {
            Exempt::All => true,
            Exempt::Domain { name, port } => {
                let host = target.host().trim_end_matches('.');
                let below = host.strip_suffix(name.as_str());
                let is_in = below.is_some_and(|below| below.is_empty() || below.ends_with('.'));
                is_in && port.is_none_or(|port| port == target.port())
            }
            Exempt::Range { network, bits } => {
                target.literal().is_some_and(|address| lies_in(address, *network, *bits))
            }
        }
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn lies_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    let outside = u32::from(width(network) - bits);
    let cut = |address: IpAddr| number(address).checked_shr(outside).unwrap_or_default();
    address.is_ipv4() == network.is_ipv4() && cut(address) == cut(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, url: &str, expected: bool) {
        let list = Exempt::list(list).unwrap();
        let target = Target::parse(url).unwrap();
        assert_eq!(list.iter().any(|exempt| exempt.covers(&target)), expected, "{list:?} {url}");
    }

    #[test]
    fn a_domain_covers_itself_and_what_lies_below() {
        for list in ["example.com", ".example.com", "*.Example.com", "other, example.com"] {
            check(list, "http://example.com/", true);
            check(list, "https://a.b.EXAMPLE.com./", true);
            check(list, "http://badexample.com/", false);
        }
        check("example.com:8080", "http://example.com:8080/", true);
        check("example.com:8080", "http://example.com/", false);
        check("*", "http://anything/", true);
        check("", "http://anything/", false);
    }

    #[test]
    fn a_range_covers_its_addresses() {
        check("10.0.0.0/8", "http://10.255.1.2/", true);
        check("10.0.0.0/8", "http://11.0.0.1/", false);
        check("0.0.0.0/0", "http://8.8.8.8/", true);
        check("0.0.0.0/0", "http://[2606:4700::1]/", false);
        check("fd00::/8", "http://[fd12::1]/", true);
        check("::/0", "http://[fd12::1]/", true);
        check("192.168.1.1", "http://192.168.1.1:9/", true);
        for bad in ["10.0.0.0/33", "10.0/x", "a:b", "."] {
            assert!(Exempt::list(bad).is_err(), "{bad}");
        }
    }
}
