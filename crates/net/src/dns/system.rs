//! The system's own way: `/etc/hosts`, `/etc/resolv.conf`, and whatever else its administrator set up. Names that end
//! in a dot are absolute: it adds no search domain to them.

use std::{
    io,
    net::{IpAddr, ToSocketAddrs as _},
    sync::Arc,
};

use ostler_kernel::runtime::BoxFuture;
use tokio::sync::Semaphore;

use super::{DnsError, Resolver, bounded};

pub(crate) struct System {
    room: Arc<Semaphore>,
    ask: Ask,
}

/// Waits for the answer, on a thread of its own.
type Ask = fn(&str) -> io::Result<Vec<IpAddr>>;

/// A lookup occupies a thread until the system gives up, also when nobody waits for it any more; nameservers that
/// are gone must not occupy all of them.
const AT_ONCE: usize = 128;

impl System {
    pub(crate) fn new() -> Self {
        Self { room: Arc::new(Semaphore::new(AT_ONCE)), ask: ask_system }
    }

    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, DnsError> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| DnsError::Busy)?;
        let (name, ask) = (name.to_owned(), self.ask);
        let asking = tokio::task::spawn_blocking(move || {
            // Held until the thread is free again, not only as long as somebody waits.
            let _room = room;
            ask(&name)
        });
        bounded(asking.await.map_err(io::Error::from)??)
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where the system is asked for addresses")]
fn ask_system(name: &str) -> io::Result<Vec<IpAddr>> {
    Ok((name, 0).to_socket_addrs()?.map(|found| found.ip()).collect())
}

impl Resolver for System {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, DnsError>> {
        Box::pin(self.look_up(name))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::Ipv4Addr,
        sync::{Barrier, LazyLock},
    };

    use super::*;

    static BEGUN: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(2));
    static ANSWERED: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(2));

    fn ask_slowly(_: &str) -> io::Result<Vec<IpAddr>> {
        BEGUN.wait();
        ANSWERED.wait();
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }

    #[tokio::test]
    async fn a_lookup_that_nobody_waits_for_still_takes_its_room() {
        let room = Arc::new(Semaphore::new(1));
        let system = System { room: Arc::clone(&room), ask: ask_slowly };
        tokio::select! {
            biased;
            _ = system.look_up("slow.example") => panic!("it can't have been answered"),
            begun = tokio::task::spawn_blocking(|| BEGUN.wait()) => drop(begun.unwrap()),
        }
        assert_eq!(room.available_permits(), 0, "its thread is still occupied");
        tokio::task::spawn_blocking(|| ANSWERED.wait()).await.unwrap();
        drop(room.acquire().await.unwrap());
    }

    #[tokio::test]
    async fn the_system_knows_this_machine() {
        let found = System::new().look_up("localhost").await.unwrap();
        assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
    }
}
