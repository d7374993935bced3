//! How much is served: requests a second, streams at once, and how long an answer may take. All that is refused here
//! may be asked again a moment later.

mod bucket;
mod streams;
mod within;

use std::{net::IpAddr, sync::Mutex, time::Duration};

use ostler_control::access::Proof;

use bucket::{Bucket, lock};
pub use bucket::{Buckets, Rate};
pub use streams::{Bounds, Permit, Streams, counted, is_over};
pub use within::Within;

use crate::{access::Caller, problem::Problem};

/// What one server, and one caller of it, may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For twice as many a second there is room in a row.
    pub requests_per_second: u32,
    pub requests_per_caller: u32,
    /// At once.
    pub streams: usize,
    pub streams_per_caller: usize,
    /// Of them such as read the log of all for themselves.
    pub watches: usize,
    pub watches_per_caller: usize,
    /// Further ones wait to be accepted. There may be fewer, by the limit of open files.
    pub connections: usize,
    /// How long an answer may take to what only looks, and to what changes something.
    pub read_within: Duration,
    pub write_within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests_per_second: 20_000,
            requests_per_caller: 20_000,
            streams: 8000,
            streams_per_caller: 4000,
            watches: 512,
            watches_per_caller: 128,
            connections: 16_384,
            read_within: Duration::from_secs(30),
            write_within: Duration::from_secs(60),
        }
    }
}

/// Who a request counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Payer {
    /// Nothing is shown by the bearer of the server's own token.
    Caller(Option<Proof>),
    /// Nobody that is known.
    Address(IpAddr),
}

impl Payer {
    pub fn of(caller: Option<&Caller>, from: IpAddr) -> Self {
        caller.map_or(Self::Address(from), |caller| Self::Caller(caller.proof()))
    }
}

impl Limits {
    pub fn of_streams(&self) -> Bounds {
        Bounds {
            all: self.streams,
            each: self.streams_per_caller,
            code: "too_many_requests",
            too_many: "as many follow something here as may",
            too_many_of_one: "this caller follows as much at once as it may",
        }
    }

    pub fn of_watches(&self) -> Bounds {
        Bounds {
            all: self.watches,
            each: self.watches_per_caller,
            code: "too_many_watches",
            too_many: "as many watches are open as may",
            too_many_of_one: "this caller has as many watches open as it may",
        }
    }
}

/// Who a stream counts for: by name, with however many sign-ins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// The bearer of the server's own token.
    Server,
    Token(String),
    User(String),
    /// Nobody that is known.
    Address(IpAddr),
}

impl Account {
    pub fn of(caller: &Caller) -> Self {
        let name = || caller.name().to_owned();
        match caller.proof() {
            None => Self::Server,
            Some(Proof::Token(_)) => Self::Token(name()),
            Some(Proof::SignIn(_)) => Self::User(name()),
        }
    }
}

/// Requests of all, and of each.
pub struct Rates {
    rate: Rate,
    all: Mutex<Bucket>,
    each: Buckets<Payer>,
}

impl Rates {
    pub fn new(limits: &Limits) -> Self {
        let rate = Rate::of(limits.requests_per_second);
        Self {
            rate,
            all: Mutex::new(Bucket::full(rate)),
            each: Buckets::new(Rate::of(limits.requests_per_caller)),
        }
    }

    /// Before anything is found out about who asks, which may cost something too.
    pub fn take(&self, now: Duration) -> Result<(), Problem> {
        let taken = lock(&self.all).take(self.rate, now);
        taken.map_err(|wait| Problem::too_many("the server is asked for more than it is set to answer", wait))
    }

    pub fn take_for(&self, payer: Payer, now: Duration) -> Result<(), Problem> {
        let taken = self.each.take(payer, now);
        taken.map_err(|wait| Problem::too_many("this caller asks oftener than it may", wait))
    }
}
