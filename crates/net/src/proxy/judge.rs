//! What can be said of a call that a proxy will dial. Its address is judged if it is one, and so is every address that
//! its name has for us. Where names of the world outside are not known, the proxy alone knows, and has to judge.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ostler_kernel::{Runtime, runtime::timeout};

use crate::{
    NetError,
    dns::{DnsError, Resolver},
    resolver,
    target::Target,
};

pub(crate) struct Judge {
    resolver: Arc<dyn Resolver>,
    runtime: Arc<dyn Runtime>,
    /// Names that nobody knew here, and until when they are not asked for again: where there are no nameservers, each
    /// call would wait for one.
    unknown: Mutex<BTreeMap<String, Duration>>,
}

const PATIENCE: Duration = Duration::from_secs(1);
const ASK_AGAIN: Duration = Duration::from_secs(60);
const MAX_UNKNOWN: usize = 1024;

impl Judge {
    pub(crate) fn new(resolver: Arc<dyn Resolver>, runtime: Arc<dyn Runtime>) -> Self {
        Self { resolver, runtime, unknown: Mutex::default() }
    }

    /// Refuses a name that leads to an address which must not be dialled, as far as is known here.
    pub(crate) async fn judge(&self, target: &Target, allow_private: bool) -> Result<(), NetError> {
        let name = target.host();
        if target.literal().is_some() || self.is_unknown(name) {
            return Ok(());
        }
        let found = timeout(&*self.runtime, PATIENCE, self.resolver.resolve(name)).await;
        let found = match found {
            Ok(Ok(found)) => found,
            Ok(Err(error)) if is_about_the_name(&error) => {
                return Err(NetError::BadUrl { reason: format!("`{name}`: {error}") });
            }
            Ok(Err(_)) | Err(_) => {
                self.remember(name);
                return Ok(());
            }
        };
        found.into_iter().try_for_each(|address| {
            resolver::check(address, allow_private).map_err(|refused| NetError::refused(name, &refused))
        })
    }

    fn is_unknown(&self, name: &str) -> bool {
        let unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        unknown.get(name).is_some_and(|until| self.runtime.monotonic() < *until)
    }

    fn remember(&self, name: &str) {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if unknown.len() >= MAX_UNKNOWN {
            unknown.clear();
        }
        unknown.insert(name.to_owned(), self.runtime.monotonic() + ASK_AGAIN);
    }
}

/// Whether the name was found and is one that is never dialled: not to be handed to somebody who might.
fn is_about_the_name(error: &DnsError) -> bool {
    match error {
        DnsError::TooMany | DnsError::Endless => true,
        DnsError::BadName
        | DnsError::NoSuchName
        | DnsError::NoAddress
        | DnsError::Refused { .. }
        | DnsError::Unreadable { .. }
        | DnsError::Silent { .. }
        | DnsError::Busy
        | DnsError::Io(_) => false,
    }
}

#[cfg(test)]
mod tests;
