//! The table of addresses, one row each.

use super::{AddressKind::*, *};

#[rustfmt::skip]
const TABLE: &[(&str, Option<AddressKind>)] = &[
    // Public IPv4, also right beside a special range.
    ("1.1.1.1", None),
    ("8.8.8.8", None),
    ("9.255.255.255", None),
    ("11.0.0.0", None),
    ("100.63.255.255", None),
    ("100.128.0.0", None),
    ("126.255.255.255", None),
    ("128.0.0.1", None),
    ("169.253.255.255", None),
    ("169.255.0.0", None),
    ("172.15.255.255", None),
    ("172.32.0.0", None),
    ("192.0.1.1", None),
    ("192.167.255.255", None),
    ("192.169.0.0", None),
    ("198.17.255.255", None),
    ("198.20.0.0", None),
    ("223.255.255.255", None),
    // Special IPv4.
    ("0.0.0.0", Some(Unspecified)),
    ("0.1.2.3", Some(Reserved)),
    ("10.0.0.0", Some(Private)),
    ("10.255.255.255", Some(Private)),
    ("172.16.0.0", Some(Private)),
    ("172.31.255.255", Some(Private)),
    ("192.168.0.1", Some(Private)),
    ("100.64.0.0", Some(Shared)),
    ("100.127.255.255", Some(Shared)),
    ("127.0.0.1", Some(Loopback)),
    ("127.255.255.254", Some(Loopback)),
    ("169.254.0.1", Some(LinkLocal)),
    ("169.254.168.254", Some(LinkLocal)),
    ("169.254.171.1", Some(LinkLocal)),
    ("100.96.0.95", Some(Shared)),
    ("100.80.80.81", Some(Shared)),
    ("192.0.0.1", Some(Reserved)),
    ("192.0.2.5", Some(Reserved)),
    ("192.88.99.1", Some(Reserved)),
    ("198.18.0.1", Some(Reserved)),
    ("198.19.255.255", Some(Reserved)),
    ("198.51.100.7", Some(Reserved)),
    ("203.0.113.9", Some(Reserved)),
    ("224.0.0.1", Some(Multicast)),
    ("239.255.255.255", Some(Multicast)),
    ("240.0.0.1", Some(Reserved)),
    ("255.255.255.255", Some(Reserved)),
    // Metadata.
    ("169.254.169.0", Some(Metadata)),
    ("169.254.169.123", Some(Metadata)),
    ("169.254.169.250", Some(Metadata)),
    ("169.254.169.253", Some(Metadata)),
    ("fd00:ec2::253", Some(Metadata)),
    ("fe80::a9fe:a9fe", Some(Metadata)),
    ("2a00:1450:4001:82a:0:5efe:a9fe:a9fe", Some(Metadata)),
    ("2a00:1450:4001:82a:200:5efe:7f00:1", Some(Loopback)),
    ("2a00:1450:4001:82a:0:5efe:808:808", None),
    ("169.254.169.254", Some(Metadata)),
    ("169.254.170.2", Some(Metadata)),
    ("169.254.170.23", Some(Metadata)),
    ("169.254.42.42", Some(Metadata)),
    ("169.254.0.23", Some(Metadata)),
    ("100.100.100.200", Some(Metadata)),
    ("100.96.0.96", Some(Metadata)),
    ("100.80.80.80", Some(Metadata)),
    ("192.0.0.192", Some(Metadata)),
    ("168.63.129.16", Some(Metadata)),
    ("fd00:ec2::254", Some(Metadata)),
    ("fd00:ec2::23", Some(Metadata)),
    ("fd20:ce::254", Some(Metadata)),
    ("fd00:42::42", Some(Metadata)),
    ("fd00:c1::a9fe:a9fe", Some(Metadata)),
    ("fd00:a9fe:a9fe::1", Some(Metadata)),
    ("fd00:100::100:200", Some(Metadata)),
    // Public IPv6.
    ("2606:4700:4700::1111", None),
    ("2001:4860:4860::8888", None),
    ("2a00:1450:4001:800::200e", None),
    ("2001:200::1", None),
    // Special IPv6.
    ("::", Some(Unspecified)),
    ("::1", Some(Loopback)),
    ("fc00::1", Some(Private)),
    ("fdff:ffff::1", Some(Private)),
    ("fd00:a9fe:a9fe::2", Some(Private)),
    ("fd00:100::100:201", Some(Private)),
    ("fec0::1", Some(Private)),
    ("fe80::1", Some(LinkLocal)),
    ("febf::1", Some(LinkLocal)),
    ("ff02::1", Some(Multicast)),
    ("2001::1", Some(Reserved)),
    ("2001:2::1", Some(Reserved)),
    ("2001:20::1", Some(Reserved)),
    ("2001:db8::1", Some(Reserved)),
    ("3fff::1", Some(Reserved)),
    ("100::1", Some(Reserved)),
    ("5f00::1", Some(Reserved)),
    ("4000::1", Some(Reserved)),
    // IPv4 inside IPv6: mapped, compatible, translated, NAT64, 6to4.
    ("::ffff:8.8.8.8", None),
    ("::ffff:127.0.0.1", Some(Loopback)),
    ("::ffff:10.1.2.3", Some(Private)),
    ("::ffff:0.0.0.0", Some(Unspecified)),
    ("::ffff:100.64.0.1", Some(Shared)),
    ("::ffff:169.254.169.254", Some(Metadata)),
    ("::127.0.0.1", Some(Loopback)),
    ("::192.168.1.1", Some(Private)),
    ("::ffff:0:192.168.1.1", Some(Private)),
    ("::ffff:0:169.254.169.254", Some(Metadata)),
    ("64:ff9b::8.8.8.8", None),
    ("64:ff9b::10.0.0.1", Some(Private)),
    ("64:ff9b::127.0.0.1", Some(Loopback)),
    ("64:ff9b::169.254.169.254", Some(Metadata)),
    ("64:ff9b::224.0.0.1", Some(Multicast)),
    ("64:ff9b:1::8.8.8.8", Some(Private)),
    ("64:ff9b:1::169.254.169.254", Some(Metadata)),
    ("64:ff9b:1:a9fe:a9:fe00::", Some(Metadata)),
    ("64:ff9b:1:a9fe:a9:fe00::1", Some(Metadata)),
    ("64:ff9b:1:12a9:fe:a9fe::", Some(Metadata)),
    ("64:ff9b:1:1234:a9:fea9:fe00:0", Some(Metadata)),
    ("64:ff9b:1:6464:64:c800::", Some(Metadata)),
    ("64:ff9b:1:6460:0:6000::", Some(Metadata)),
    ("::ffff:100.80.80.80", Some(Metadata)),
    ("64:ff9b::100.96.0.96", Some(Metadata)),
    ("2002:6450:5050::1", Some(Metadata)),
    ("64:ff9b:1:808:8:800::", Some(Private)),
    ("64:ff9b:1:a9fe:a8:100::", Some(Private)),
    ("2002:0808:0808::1", None),
    ("2002:7f00:0001::", Some(Loopback)),
    ("2002:0a00:0001::1", Some(Private)),
    ("2002:a9fe:a9fe::1", Some(Metadata)),
];

#[test]
fn every_row_is_what_it_is() {
    for (text, expected) in TABLE {
        let address: IpAddr = text.parse().unwrap();
        assert_eq!(classify(address), *expected, "{text}");
    }
    assert!(TABLE.len() >= 60);
}

#[test]
fn private_is_dialled_on_request_and_metadata_never() {
    for (text, kind) in TABLE {
        let address: IpAddr = text.parse().unwrap();
        assert_eq!(check(address, false).err(), *kind, "{text}");
        let refused_anyway = kind.filter(|kind| *kind == Metadata);
        assert_eq!(check(address, true).err(), refused_anyway, "{text} with private allowed");
    }
}
