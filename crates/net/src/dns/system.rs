//! The system's own way: `/etc/hosts`, `/etc/resolv.conf`, and whatever else its administrator set up. Names that end
//! in a dot are absolute: it adds no search domain to them.

use std::net::IpAddr;

use ostler_kernel::runtime::BoxFuture;
use tokio::sync::Semaphore;

use super::{DnsError, Resolver, bounded};

pub(crate) struct System {
    room: Semaphore,
}

/// A lookup occupies a thread until the system gives up, also when nobody waits for it any more; nameservers that
/// are gone must not occupy all of them.
const AT_ONCE: usize = 128;

impl System {
    pub(crate) fn new() -> Self {
        Self { room: Semaphore::new(AT_ONCE) }
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where the system is asked for addresses")]
    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, DnsError> {
        let _room = self.room.acquire().await.map_err(|_| DnsError::Busy)?;
        let found = tokio::net::lookup_host((name, 0)).await?;
        bounded(found.map(|found| found.ip()).collect())
    }
}

impl Resolver for System {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, DnsError>> {
        Box::pin(self.look_up(name))
    }
}
