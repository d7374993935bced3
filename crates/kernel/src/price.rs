//! What tokens cost. Money is counted in whole millionths of a US dollar, so that sums stay exact.

use serde::{Deserialize, Serialize};

use crate::step::Usage;

/// What a million tokens cost, in millionths of a US dollar. What a vendor's cache costs is what other input costs, unless
/// it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    pub input: u64,
    pub output: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
}

const MILLION: u128 = 1_000_000;

impl Price {
    /// In millionths of a dollar, rounded once.
    pub fn of(&self, usage: &Usage) -> u64 {
        // A vendor that counts more of its cache than it says was read is believed about the whole.
        let read = usage.cache_read_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - read);
        let parts = [
            (usage.input_tokens - read - written, self.input),
            (read, self.cache_read.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
        ];
        let millionths = parts.iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(*tokens).saturating_mul(u128::from(*price)))
        });
        u64::try_from(millionths.saturating_add(MILLION / 2) / MILLION).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        input: 3_000_000,
        output: 15_000_000,
        cache_read: Some(300_000),
        cache_write: Some(3_750_000),
    };

    fn usage(
        input_tokens: u64,
        output_tokens: u64,
        cache_read_tokens: u64,
        cache_write_tokens: u64,
    ) -> Usage {
        Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, ..Usage::default() }
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        // 400 plain, 500 read, 100 written, 200 said: 1200 + 150 + 375 + 3000 millionths.
        assert_eq!(PRICE.of(&usage(1_000, 200, 500, 100)), 4_725);
        let without = Price { cache_read: None, cache_write: None, ..PRICE };
        assert_eq!(without.of(&usage(1_000, 200, 500, 100)), 6_000);
    }

    #[test]
    fn rounds_once_and_never_overflows() {
        let cheap = Price { input: 75_000, output: 300_000, cache_read: None, cache_write: None };
        assert_eq!((cheap.of(&usage(6, 0, 0, 0)), cheap.of(&usage(7, 0, 0, 0))), (0, 1));
        let dear = Price { input: u64::MAX, output: u64::MAX, cache_read: None, cache_write: None };
        assert_eq!(dear.of(&usage(u64::MAX, u64::MAX, 7, 7)), u64::MAX);
        assert_eq!(PRICE.of(&usage(10, 0, 99, 99)), 3, "more from the cache than was read at all");
    }
}
