//! What an endpoint was asked in the last minute. Counted in cells of a second, so that it takes the same room however
//! much that was; the oldest cell counts whole, so that no minute, wherever it begins, holds more than it may.

use std::{collections::VecDeque, time::Duration};

use ostler_kernel::plan::ModelLimits;

/// Two calls of which one is begun in the cell of this many before can be less than a minute apart.
const CELLS: u64 = 60;

#[derive(Debug, Default)]
pub(super) struct Window {
    /// Those that are not empty, oldest first.
    cells: VecDeque<Cell>,
}

#[derive(Debug, Default)]
struct Cell {
    /// Of the clock; which second it is.
    second: u64,
    requests: u64,
    tokens: u64,
}

/// What a call took of the window when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Booking {
    second: u64,
    tokens: u64,
}

impl Window {
    /// When a call of so many tokens may begin, if none begins before it: now, or later.
    pub(super) fn opens(&mut self, now: Duration, tokens: u64, limits: &ModelLimits) -> Duration {
        self.forget(now);
        let (mut requests, mut used) = self.cells.iter().fold((0, 0_u64), |(requests, tokens), cell| {
            (requests + cell.requests, tokens.saturating_add(cell.tokens))
        });
        let mut opens = now;
        for cell in &self.cells {
            if fits(limits, requests, used, tokens) {
                break;
            }
            requests -= cell.requests;
            used = used.saturating_sub(cell.tokens);
            opens = Duration::from_secs(cell.second + CELLS + 1);
        }
        opens
    }

    pub(super) fn book(&mut self, now: Duration, tokens: u64) -> Booking {
        let second = now.as_secs();
        match self.cells.back_mut() {
            Some(cell) if cell.second == second => {
                cell.requests += 1;
                cell.tokens = cell.tokens.saturating_add(tokens);
            }
            Some(_) | None => self.cells.push_back(Cell { second, requests: 1, tokens }),
        }
        Booking { second, tokens }
    }

    /// What was booked was a guess; this is what it came to.
    pub(super) fn settle(&mut self, booking: Booking, tokens: u64) {
        if let Some(cell) = self.cells.iter_mut().find(|cell| cell.second == booking.second) {
            cell.tokens = cell.tokens.saturating_sub(booking.tokens).saturating_add(tokens);
        }
    }

    /// Nothing is left that counts.
    pub(super) fn is_empty(&mut self, now: Duration) -> bool {
        self.forget(now);
        self.cells.is_empty()
    }

    fn forget(&mut self, now: Duration) {
        let oldest = now.as_secs().saturating_sub(CELLS);
        while self.cells.front().is_some_and(|cell| cell.second < oldest) {
            self.cells.pop_front();
        }
    }
}

/// A call that is larger than what a whole minute may hold goes alone, or it would never go.
fn fits(limits: &ModelLimits, requests: u64, used: u64, tokens: u64) -> bool {
    let has_room = limits.requests_per_minute.is_none_or(|most| requests < u64::from(most));
    let has_tokens =
        limits.tokens_per_minute.is_none_or(|most| used == 0 || used.saturating_add(tokens) <= most);
    has_room && has_tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(requests: Option<u32>, tokens: Option<u64>) -> ModelLimits {
        ModelLimits { requests_per_minute: requests, tokens_per_minute: tokens, ..ModelLimits::default() }
    }

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_minute_that_is_full_opens_when_its_oldest_second_is_past() {
        let (mut window, limits) = (Window::default(), limits(Some(2), None));
        assert_eq!(window.opens(at(500), 0, &limits), at(500));
        window.book(at(500), 0);
        window.book(at(1_700), 0);
        assert_eq!(window.opens(at(2_000), 0, &limits), at(61_000));
        assert_eq!(window.opens(at(61_000), 0, &limits), at(61_000));
    }

    #[test]
    fn tokens_are_corrected_to_what_they_came_to() {
        let (mut window, limits) = (Window::default(), limits(None, Some(100)));
        let booking = window.book(at(0), 90);
        assert_eq!(window.opens(at(10), 20, &limits), at(61_000));
        window.settle(booking, 30);
        assert_eq!(window.opens(at(10), 20, &limits), at(10));
    }

    #[test]
    fn what_is_larger_than_a_minute_goes_alone() {
        let (mut window, limits) = (Window::default(), limits(None, Some(100)));
        assert_eq!(window.opens(at(0), 1_000, &limits), at(0));
        window.book(at(0), 1_000);
        assert_eq!(window.opens(at(59_999), 1, &limits), at(61_000));
    }
}
