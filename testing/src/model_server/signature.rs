//! Signatures: what a vendor puts beside its model's thinking and wants back unchanged. One proves itself, so that
//! the server needs no memory to tell whether it was made here and for these words.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The signature of a text: base64 to whoever decodes it, and too long to be taken for a field of fixed size.
pub(super) fn of(text: &str) -> String {
    signed(hash(&("words", text)))
}

/// Whether a signature was made here.
pub(super) fn is_genuine(signature: &str) -> bool {
    let words = signature.get(8..24).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    words.is_some_and(|words| signature == signed(words))
}

/// Whether a signature was made here, and for this text.
pub(super) fn fits(signature: &str, text: &str) -> bool {
    signature == of(text)
}

/// A number that names what is hashed, the same in every process.
pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn signed(words: u64) -> String {
    format!("c2lnbmVk{words:016x}{:016x}{:016x}", hash(&("proof", words)), hash(&("tail", words)))
}
