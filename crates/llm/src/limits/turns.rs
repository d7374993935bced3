//! Whose turn it is at an endpoint: first come, first served, as many at once and in a minute as its limits say. Pure: who
//! waits holds a ticket and asks again when it is told to.

use std::{collections::BTreeSet, time::Duration};

use ostler_kernel::plan::ModelLimits;

use super::window::{Booking, Window};

#[derive(Debug, Default)]
pub(super) struct Turns {
    next: u64,
    waiting: BTreeSet<Ticket>,
    under_way: u32,
    window: Window,
}

/// A place in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Begin(Booking),
    /// Not yet: not before this time if it is known, and else when somebody else is done.
    Wait {
        until: Option<Duration>,
    },
}

impl Turns {
    /// At once, if nobody waits and there is room.
    pub(super) fn begin(&mut self, now: Duration, tokens: u64, limits: &ModelLimits) -> Turn {
        match self.waiting.is_empty() {
            true => self.admit(now, tokens, limits),
            false => Turn::Wait { until: None },
        }
    }

    pub(super) fn queue(&mut self) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiting.insert(ticket);
        ticket
    }

    /// Asks for whoever holds the ticket. Only the first in the line is ever let in.
    pub(super) fn ask(&mut self, ticket: Ticket, now: Duration, tokens: u64, limits: &ModelLimits) -> Turn {
        if self.first() != Some(ticket) {
            return Turn::Wait { until: None };
        }
        let turn = self.admit(now, tokens, limits);
        if matches!(turn, Turn::Begin(_)) {
            self.waiting.remove(&ticket);
        }
        turn
    }

    /// Whoever holds the ticket waits no longer.
    pub(super) fn give_up(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// A call is over; it took so many tokens, if that is known.
    pub(super) fn end(&mut self, booking: Booking, tokens: Option<u64>) {
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(tokens) = tokens {
            self.window.settle(booking, tokens);
        }
    }

    /// Who is to be told when something has changed.
    pub(super) fn first(&self) -> Option<Ticket> {
        self.waiting.first().copied()
    }

    /// Nothing would be lost by forgetting it.
    pub(super) fn is_idle(&mut self, now: Duration) -> bool {
        self.under_way == 0 && self.waiting.is_empty() && self.window.is_empty(now)
    }

    fn admit(&mut self, now: Duration, tokens: u64, limits: &ModelLimits) -> Turn {
        if limits.concurrency.is_some_and(|most| self.under_way >= most) {
            return Turn::Wait { until: None };
        }
        let is_counted = limits.requests_per_minute.is_some() || limits.tokens_per_minute.is_some();
        let opens = if is_counted { self.window.opens(now, tokens, limits) } else { now };
        if opens > now {
            return Turn::Wait { until: Some(opens) };
        }
        self.under_way += 1;
        Turn::Begin(self.window.book(now, tokens))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Happening {
        Come {
            tokens: u64,
        },
        /// One of those who wait asks, in its turn or not.
        Ask(usize),
        GiveUp(usize),
        End {
            which: usize,
            tokens: Option<u64>,
        },
        Later {
            millis: u64,
        },
    }

    fn happening() -> impl Strategy<Value = Happening> {
        prop_oneof![
            3 => (0..50_u64).prop_map(|tokens| Happening::Come { tokens }),
            4 => any::<usize>().prop_map(Happening::Ask),
            1 => any::<usize>().prop_map(Happening::GiveUp),
            3 => (any::<usize>(), proptest::option::of(0..50_u64))
                .prop_map(|(which, tokens)| Happening::End { which, tokens }),
            3 => (0..20_000_u64).prop_map(|millis| Happening::Later { millis }),
        ]
    }

    fn limits() -> impl Strategy<Value = ModelLimits> {
        let some = |most: std::ops::Range<u32>| proptest::option::of(most);
        (some(1..4), some(1..6), proptest::option::of(50..120_u64)).prop_map(
            |(concurrency, requests, tokens)| ModelLimits {
                concurrency,
                requests_per_minute: requests,
                tokens_per_minute: tokens,
                ..ModelLimits::default()
            },
        )
    }

    /// What the test itself knows.
    #[derive(Default)]
    struct Book {
        line: Vec<(Ticket, u64)>,
        under_way: Vec<(usize, Booking)>,
        /// When each call began and what it counts as.
        begun: Vec<(Duration, u64)>,
    }

    impl Book {
        fn began(&mut self, now: Duration, tokens: u64, booking: Booking) {
            self.under_way.push((self.begun.len(), booking));
            self.begun.push((now, tokens));
        }

        /// What the minute that ends with the call begun last holds.
        fn last_minute(&self) -> (u64, u64) {
            let Some((last, _)) = self.begun.last() else { return (0, 0) };
            let recent = self.begun.iter().filter(|(at, _)| *last - *at <= Duration::from_secs(60));
            recent.fold((0, 0), |(requests, tokens), (_, more)| (requests + 1, tokens + more))
        }
    }

    proptest! {
        /// Whatever happens: no more at once, no more in any minute, and nobody before who came first.
        #[test]
        fn keeps_limits_and_order(
            limits in limits(),
            happenings in proptest::collection::vec(happening(), 1..150),
        ) {
            let (mut turns, mut now, mut book) = (Turns::default(), Duration::ZERO, Book::default());
            for happening in happenings {
                let before = book.begun.len();
                match happening {
                    Happening::Come { tokens } => match turns.begin(now, tokens, &limits) {
                        Turn::Begin(booking) => {
                            prop_assert!(book.line.is_empty(), "went past the line");
                            book.began(now, tokens, booking);
                        }
                        Turn::Wait { .. } => book.line.push((turns.queue(), tokens)),
                    },
                    Happening::Ask(which) if !book.line.is_empty() => {
                        let which = which % book.line.len();
                        let (ticket, tokens) = book.line[which];
                        if let Turn::Begin(booking) = turns.ask(ticket, now, tokens, &limits) {
                            prop_assert_eq!(which, 0, "went past others");
                            book.line.remove(0);
                            book.began(now, tokens, booking);
                        }
                    }
                    Happening::GiveUp(which) if !book.line.is_empty() => {
                        let (ticket, _) = book.line.remove(which % book.line.len());
                        turns.give_up(ticket);
                    }
                    Happening::End { which, tokens } if !book.under_way.is_empty() => {
                        let which = which % book.under_way.len();
                        let (call, booking) = book.under_way.remove(which);
                        turns.end(booking, tokens);
                        if let Some(tokens) = tokens {
                            book.begun[call].1 = tokens;
                        }
                    }
                    Happening::Ask(_) | Happening::GiveUp(_) | Happening::End { .. } => {}
                    Happening::Later { millis } => now += Duration::from_millis(millis),
                }
                prop_assert!(limits.concurrency.is_none_or(|most| book.under_way.len() <= most as usize));
                if book.begun.len() > before {
                    let (requests, tokens) = book.last_minute();
                    prop_assert!(limits.requests_per_minute.is_none_or(|most| requests <= u64::from(most)));
                    let largest = book.begun[before].1;
                    let fits = |most: u64| tokens <= most || tokens == largest;
                    prop_assert!(limits.tokens_per_minute.is_none_or(fits), "{tokens} tokens in a minute");
                }
            }
            // In the end everybody who still waits is let in, in order.
            for (_, booking) in book.under_way.drain(..) {
                turns.end(booking, None);
            }
            for (ticket, tokens) in book.line.drain(..) {
                let mut turn = turns.ask(ticket, now, tokens, &limits);
                if let Turn::Wait { until: Some(until) } = turn {
                    prop_assert!(until > now && until <= now + Duration::from_secs(61));
                    now = until;
                    turn = turns.ask(ticket, now, tokens, &limits);
                }
                let Turn::Begin(booking) = turn else { panic!("{turn:?} at {now:?}") };
                turns.end(booking, None);
            }
            prop_assert!(turns.is_idle(now + Duration::from_secs(62)));
        }
    }
}
