//! Whether what was seen may have been. A trick says where it leads; nothing of the product's own judgement is used.

use std::net::IpAddr;

use super::{
    Seen,
    attempt::Attempt,
    trick::{Kind, Trick},
};

/// The hosts of the world that everybody may call; every other address of it is one that nobody may.
pub(crate) const PUBLIC: [&str; 6] = [
    "93.184.216.34",
    "8.8.8.8",
    "1.1.1.1",
    "2606:4700:4700::1111",
    "2a00:1450:4001:800::200e",
    "11.22.33.44",
];

pub(crate) fn is_public(address: IpAddr) -> bool {
    let address = address.to_canonical().to_string();
    PUBLIC.contains(&address.as_str())
}

/// What was wrong, if anything.
pub(crate) fn judge(trick: &Trick, attempt: &Attempt, seen: &Seen) -> Option<String> {
    let may_be_private = attempt.may_be_private();
    let astray = seen.came.iter().find(|address| !is_public(address.ip()));
    let (is_anybody, is_nobody_public) = (!seen.came.is_empty(), astray.is_some());
    if !attempt.gets_there() && is_anybody {
        return Some(format!("was followed to {:?}", seen.came));
    }
    let is_wrong = match trick.kind {
        Kind::Public => (attempt.gets_there() && !is_anybody) || is_nobody_public,
        Kind::Private if may_be_private => !is_anybody,
        Kind::Special if may_be_private => false,
        Kind::Private | Kind::Special | Kind::Metadata | Kind::Nowhere => is_anybody,
        Kind::Rebind if may_be_private => false,
        Kind::Rebind | Kind::RebindMetadata => is_nobody_public,
    };
    if is_wrong {
        return Some(format!("came to {:?}", seen.came));
    }
    // Where something private may be called, nobody need be at home.
    let may_be_in_vain = may_be_private && trick.kind != Kind::Metadata;
    (seen.n_unseen > 0 && !may_be_in_vain).then(|| format!("{} connections that no host saw", seen.n_unseen))
}
