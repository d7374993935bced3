//! Which addresses may be dialled. Everything that is not plainly public counts as private, and the addresses
//! where clouds hand out credentials are refused to everyone. An IPv4 address that hides in an IPv6 one is
//! judged as what it is.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Why an address is not a public one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressKind {
    Loopback,
    /// RFC 1918, unique local, site local.
    Private,
    LinkLocal,
    /// Carrier-grade NAT, 100.64.0.0/10.
    Shared,
    /// Serves credentials to whoever asks from inside a cloud.
    Metadata,
    Unspecified,
    Multicast,
    /// Documentation, benchmarks, tunnels, and what nobody was given yet.
    Reserved,
}

/// What is special about an address; `None` for a public one.
pub fn classify(address: IpAddr) -> Option<AddressKind> {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

/// Refuses an address that must not be dialled.
pub(crate) fn check(address: IpAddr, allow_private: bool) -> Result<(), AddressKind> {
    match classify(address) {
        None => Ok(()),
        Some(AddressKind::Metadata) => Err(AddressKind::Metadata),
        Some(_) if allow_private => Ok(()),
        Some(kind) => Err(kind),
    }
}

/// Scaleway, Tencent, Alibaba, Volcengine, UCloud, Oracle, and the Azure host agent, which has a public address. What
/// nearly all others share is a whole range, below.
const METADATA_V4: [Ipv4Addr; 7] = [
    Ipv4Addr::new(169, 254, 42, 42),
    Ipv4Addr::new(169, 254, 0, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(100, 96, 0, 96),
    Ipv4Addr::new(100, 80, 80, 80),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// Google, Scaleway, Oracle, Akamai (Linode), Alibaba, OpenStack. Amazon has a range.
const METADATA_V6: [Ipv6Addr; 6] = [
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
    Ipv6Addr::new(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

fn is_metadata_v4(address: Ipv4Addr) -> bool {
    // What a cloud serves to its machines (instance, clock, names, workload credentials) lies side by side.
    matches!(address.octets(), [169, 254, 169 | 170, _]) || METADATA_V4.contains(&address)
}

fn is_metadata_v6(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [0xfd00, 0xec2, ..]) || METADATA_V6.contains(&address)
}

fn classify_v4(address: Ipv4Addr) -> Option<AddressKind> {
    if is_metadata_v4(address) {
        return Some(AddressKind::Metadata);
    }
    match address.octets() {
        [0, 0, 0, 0] => Some(AddressKind::Unspecified),
        [0, ..] => Some(AddressKind::Reserved),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some(AddressKind::Private),
        [100, 64..=127, ..] => Some(AddressKind::Shared),
        [127, ..] => Some(AddressKind::Loopback),
        [169, 254, ..] => Some(AddressKind::LinkLocal),
        [192, 0, 0 | 2, _] | [192, 88, 99, _] => Some(AddressKind::Reserved),
        [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => Some(AddressKind::Reserved),
        [224..=239, ..] => Some(AddressKind::Multicast),
        [240..=255, ..] => Some(AddressKind::Reserved),
        _ => None,
    }
}

fn classify_v6(address: Ipv6Addr) -> Option<AddressKind> {
    if is_metadata_v6(address) {
        return Some(AddressKind::Metadata);
    }
    if address.is_unspecified() {
        return Some(AddressKind::Unspecified);
    }
    if address.is_loopback() {
        return Some(AddressKind::Loopback);
    }
    if let Some(embedded) = embedded_v4(address) {
        return classify_v4(embedded);
    }
    // A tunnel's end (ISATAP) may lie in any prefix, also in one that looks public.
    if let [_, _, _, _, 0 | 0x200, 0x5efe, high, low] = address.segments()
        && let Some(kind) = classify_v4(v4(high, low))
    {
        return Some(kind);
    }
    match address.segments() {
        // NAT64 inside one's own network (RFC 8215): private, whatever it leads to.
        [0x64, 0xff9b, 1, ..] => match translated(address).into_iter().any(is_metadata_v4) {
            true => Some(AddressKind::Metadata),
            false => Some(AddressKind::Private),
        },
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Some(AddressKind::Private),
        [0xfe80..=0xfebf, ..] => Some(AddressKind::LinkLocal),
        [0xff00..=0xffff, ..] => Some(AddressKind::Multicast),
        // Teredo and its neighbours, and documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            Some(AddressKind::Reserved)
        }
        // The part of the space that is in public use.
        [0x2000..=0x3fff, ..] => None,
        _ => Some(AddressKind::Reserved),
    }
}

/// The IPv4 address that packets to this one end up at.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        // Compatible, mapped, translated, NAT64.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => Some(v4(high, low)),
        [0, 0, 0, 0, 0xffff, 0, high, low] => Some(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        // 6to4.
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

/// Where one's own NAT64 may have put the IPv4 address, as its prefix has 48, 56, 64 or 96 bits (RFC 6052): around the ninth
/// byte, which is none of it.
fn translated(address: Ipv6Addr) -> [Ipv4Addr; 4] {
    let octets = address.octets();
    [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]]
        .map(|places: [usize; 4]| Ipv4Addr::from(places.map(|place| octets[place])))
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressKind::Loopback => "a loopback address",
            AddressKind::Private => "a private address",
            AddressKind::LinkLocal => "a link-local address",
            AddressKind::Shared => "a carrier's shared address",
            AddressKind::Metadata => "a cloud metadata address",
            AddressKind::Unspecified => "the unspecified address",
            AddressKind::Multicast => "a multicast address",
            AddressKind::Reserved => "a reserved address",
        })
    }
}

#[cfg(test)]
mod tests;
