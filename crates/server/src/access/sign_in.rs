//! What it takes to sign users in, and who may make the first of them.

use std::{
    collections::BTreeMap,
    fmt,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::StatusCode;
use ostler_control::access::is_same;
use ostler_kernel::Runtime;

use super::{Caller, Cookies, Passwords, password::Asker};
use crate::{
    limits::{Buckets, Rate},
    problem::Problem,
    routes::Need,
};

pub struct SignIns {
    pub cookies: Cookies,
    pub passwords: Passwords,
    /// How long a sign-in lasts behind its last use.
    pub lasts: Duration,
    setup_token: Option<SetupToken>,
    /// Passwords tried from each address.
    tries: Buckets<IpAddr>,
    /// Where someone has signed in from, and when.
    known: Mutex<BTreeMap<IpAddr, Duration>>,
}

/// Lets its bearer make the first user, and nothing else.
#[derive(Clone)]
pub struct SetupToken(String);

impl SetupToken {
    pub fn new(token: String) -> Self {
        Self(token)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SetupToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// Ten a minute, twenty in a row.
const TRIES: Rate = Rate { per_second: 10.0 / 60.0, burst: 20.0 };

/// Addresses that someone has signed in from; of more, those of long ago are forgotten.
const MOST_KNOWN: usize = 4096;

impl SignIns {
    pub fn new(
        is_tls: bool,
        lasts: Duration,
        setup_token: Option<SetupToken>,
        runtime: &dyn Runtime,
    ) -> Self {
        Self {
            cookies: Cookies::new(is_tls),
            passwords: Passwords::new(runtime),
            lasts,
            setup_token,
            tries: Buckets::new(TRIES),
            known: Mutex::default(),
        }
    }

    /// Counts a try, before it is known how it ends.
    pub fn begin_try(&self, from: IpAddr, now: Duration) -> Result<(), Problem> {
        self.tries.take(network(from), now).map_err(|wait| {
            Problem::too_many("too many wrong passwords or tokens came from this address", wait)
        })
    }

    /// It was right, so it does not count.
    pub fn end_try_well(&self, from: IpAddr, now: Duration) {
        self.tries.give_back(network(from));
        let mut known = self.known();
        known.insert(network(from), now);
        if known.len() > MOST_KNOWN
            && let Some(oldest) = known.iter().min_by_key(|(_, at)| **at).map(|(address, _)| *address)
        {
            known.remove(&oldest);
        }
    }

    /// Who comes from where someone has signed in lately is held up by no crowd of strangers.
    pub fn asker(&self, from: IpAddr) -> Asker {
        let from = network(from);
        if self.known().contains_key(&from) { Asker::Known } else { Asker::Stranger(from) }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Duration>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has_setup_token(&self) -> bool {
        self.setup_token.is_some()
    }

    /// Never open to strangers: it takes an administrator, or the token that was made for this.
    pub fn check_setup(&self, identity: Result<Caller, Problem>, given: Option<&str>) -> Result<(), Problem> {
        if let (Some(SetupToken(expected)), Some(given)) = (&self.setup_token, given) {
            if is_same(given.as_bytes(), expected.as_bytes()) {
                return Ok(());
            }
            return Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "the setup token is wrong"));
        }
        let remedy = "send the token of the data folder as `Authorization: Bearer <token>`, or the server's setup \
                      token as `setup_token`";
        identity.and_then(|caller| caller.check(Need::Administer)).map_err(|problem| problem.remedy(remedy))
    }
}

/// Whoever has one address of version 6 has all of its network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_for_its_network() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(network("192.0.2.7"), "192.0.2.7");
    }
}
