//! Names to addresses, checked at the moment of dialling: a name that leads to one address it must not lead
//! to is refused as a whole, so that no second answer of a name server can smuggle one in. What is dialled is what was
//! checked: nobody asks again in between.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{
    address::{self, AddressKind},
    dns::Resolver,
};

pub(crate) struct CheckedResolver {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) allow_private: bool,
}

/// Travels through the HTTP library as its error and is found again in `error.rs`.
#[derive(Debug, thiserror::Error)]
#[error("{address} is {kind}")]
pub(crate) struct RefusedAddress {
    pub(crate) address: IpAddr,
    pub(crate) kind: AddressKind,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (resolver, allow_private) = (self.resolver.clone(), self.allow_private);
        Box::pin(async move {
            let found = resolver.resolve(name.as_str()).await?;
            for address in &found {
                check(*address, allow_private)?;
            }
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

pub(crate) fn check(address: IpAddr, allow_private: bool) -> Result<(), RefusedAddress> {
    address::check(address, allow_private).map_err(|kind| RefusedAddress { address, kind })
}
