//! What a resolver says of a name, and what becomes of the call.

use std::net::{IpAddr, Ipv4Addr};

use ostler_kernel::{
    Timestamp,
    runtime::{BoxFuture, Spawned},
};

use super::*;

/// Time stands still.
struct Still;

impl Runtime for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn random(&self) -> u64 {
        0
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn spawn(&self, _: &'static str, _: BoxFuture<'static, ()>) -> Spawned {
        Spawned::new(|| ())
    }
}

struct Says(fn() -> Result<Vec<IpAddr>, DnsError>);

impl Resolver for Says {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, DnsError>> {
        Box::pin(async move { (self.0)() })
    }
}

async fn judged(says: fn() -> Result<Vec<IpAddr>, DnsError>) -> Result<(), NetError> {
    let judge = Judge::new(Arc::new(Says(says)), Arc::new(Still));
    let target = Target::parse("http://tools.example/x").unwrap();
    let first = judge.judge(&target, false).await;
    let second = judge.judge(&target, false).await;
    assert_eq!(first.is_ok(), second.is_ok(), "{first:?} {second:?}");
    first
}

#[tokio::test]
async fn a_name_that_nobody_knows_here_is_the_proxys_matter() {
    type Says = fn() -> Result<Vec<IpAddr>, DnsError>;
    let unknown: [Says; 3] = [
        || Err(DnsError::NoSuchName),
        || Err(DnsError::Io(std::io::Error::other("no nameservers"))),
        || Ok(vec![Ipv4Addr::new(8, 8, 8, 8).into()]),
    ];
    for says in unknown {
        judged(says).await.unwrap();
    }
}

#[tokio::test]
async fn a_name_that_would_not_be_dialled_is_not_handed_to_the_proxy() {
    for says in [|| Err(DnsError::TooMany), || Err(DnsError::Endless)] {
        let error = judged(says).await.unwrap_err();
        assert!(matches!(&error, NetError::BadUrl { reason } if reason.contains("tools.example")), "{error}");
        assert!(!error.is_transient(), "{error}");
    }
    let error = judged(|| Ok(vec![Ipv4Addr::new(8, 8, 8, 8).into(), Ipv4Addr::LOCALHOST.into()])).await;
    assert!(matches!(error, Err(NetError::RefusedAddress { .. })), "{error:?}");
}
