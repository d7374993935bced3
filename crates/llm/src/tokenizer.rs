//! Counts tokens with a real tokenizer (o200k_base), for calls of which the vendor reports nothing. It is made when it is first
//! needed, which costs time and memory that a system whose vendors do report never spends.
//!
//! What is counted was written by strangers, and merging pairs takes the square of the length of a word: so text is cut into
//! pieces, and of more than [`MOST`] bytes only the first are counted; the rest is taken to be like them.

use tiktoken_rs::o200k_base_singleton;

use crate::estimate::{self, Counter};

/// Bytes that are cut into tokens for one call.
const MOST: usize = 128 * 1024;

/// Bytes of one piece. Where it is cut a token may be counted twice.
const PIECE: usize = 400;

/// Of one call: its parts are counted one after the other.
#[derive(Debug, Default)]
pub(crate) struct Tokenizer {
    n_bytes: usize,
    n_tokens: u64,
    /// What the counted text would have been guessed to be, and what was left out is.
    guessed: u64,
    guessed_rest: u64,
}

impl Counter for Tokenizer {
    fn count(&mut self, text: &str) {
        let room = MOST.saturating_sub(self.n_bytes);
        let (counted, rest) = text.split_at(text.floor_char_boundary(room));
        self.n_bytes += counted.len();
        self.n_tokens += pieces(counted).map(n_tokens).sum::<u64>();
        self.guessed += estimate::tokens(counted);
        self.guessed_rest += estimate::tokens(rest);
    }

    fn sum(&self) -> u64 {
        let (rest, like) = (u128::from(self.guessed_rest), u128::from(self.guessed.max(1)));
        let rest = u64::try_from(rest * u128::from(self.n_tokens) / like).unwrap_or(u64::MAX);
        self.n_tokens.saturating_add(rest)
    }
}

fn n_tokens(piece: &str) -> u64 {
    o200k_base_singleton().encode_ordinary(piece).len() as u64
}

/// Cut before a blank where there is one, since a word's blank belongs to it.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let most = text.floor_char_boundary(PIECE);
        let at = if most == text.len() {
            most
        } else {
            text[..most].rfind(' ').filter(|at| *at > 0).unwrap_or(most)
        };
        let (piece, rest) = text.split_at(at);
        text = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> u64 {
        let mut tokenizer = Tokenizer::default();
        tokenizer.count(text);
        tokenizer.sum()
    }

    #[test]
    fn counts_what_the_tokenizer_counts() {
        for text in [
            "",
            "Hello, world!",
            "fn add(&mut self, other: &Usage) {\n    self.total += 1;\n}",
            "人人生而自由",
        ] {
            assert_eq!(counted(text), o200k_base_singleton().encode_ordinary(text).len() as u64, "{text}");
        }
    }

    #[test]
    fn pieces_are_the_text_and_their_borders_cost_little() {
        let text =
            "Nothing that matters is kept in memory alone, and größer ist nicht schneller. ".repeat(200);
        assert_eq!(pieces(&text).collect::<String>(), text);
        assert!(pieces(&text).all(|piece| piece.len() <= PIECE));
        let whole = o200k_base_singleton().encode_ordinary(&text).len() as u64;
        assert!(counted(&text).abs_diff(whole) * 100 <= whole, "{} and {whole}", counted(&text));
        let word = "ü".repeat(3 * PIECE);
        assert_eq!(pieces(&word).collect::<String>(), word);
        assert!(
            pieces(&word).all(|piece| piece.len() <= PIECE),
            "a word of any length costs what its letters do"
        );
    }

    #[test]
    fn what_is_too_long_is_taken_to_go_on_as_it_began() {
        let text = "One line of a log, number 4711.\n".repeat(8 * 1024);
        let tenth = counted(&text[..text.len() / 10]);
        let all = counted(&text);
        assert!(all.abs_diff(tenth * 10) * 50 <= all, "{all} and ten times {tenth}");
    }
}
