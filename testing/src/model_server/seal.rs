//! Seals: what a vendor puts beside its model's thinking and wants back unchanged. A seal proves itself, so
//! that the server needs no memory to tell whether it was made here and for these words.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The seal of a text.
pub(super) fn of(text: &str) -> String {
    let words = hash(&("words", text));
    // As long as a short one of the vendors, so that nobody takes it for a field of fixed size.
    format!("c2VhbGVk{words:016x}{:016x}{:016x}", hash(&("seal", words)), hash(&("tail", words)))
}

/// Whether a seal was made here.
pub(super) fn is_genuine(seal: &str) -> bool {
    let words = seal.get(8..24).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    words.is_some_and(|words| {
        seal == format!("c2VhbGVk{words:016x}{:016x}{:016x}", hash(&("seal", words)), hash(&("tail", words)))
    })
}

/// Whether a seal was made here, and for this text.
pub(super) fn fits(seal: &str, text: &str) -> bool {
    seal == of(text)
}

/// A number that names what is hashed, the same in every process.
pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
