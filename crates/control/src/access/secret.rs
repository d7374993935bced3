//! What is shown to be let in, and the hash that is kept of it.

use std::fmt;

use ostler_kernel::Runtime;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use sha2::{Digest as _, Sha256};

/// 32 random bytes as 52 letters and digits, those that can't be mistaken for one another.
pub fn make_secret(prefix: &str, runtime: &dyn Runtime) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut secret = String::from(prefix);
    let (mut bits, mut count) = (0_u128, 0_u32);
    for word in [runtime.random(), runtime.random(), runtime.random(), runtime.random()] {
        bits = bits << 64 | u128::from(word);
        count += 64;
        while count >= 5 {
            count -= 5;
            secret.push(char::from(ALPHABET[(bits >> count) as usize & 31]));
        }
    }
    // One bit is left: the last letter holds it alone.
    secret.push(char::from(ALPHABET[(bits << (5 - count)) as usize & 31]));
    secret
}

/// Takes the same time wherever the two differ, so that nothing can be guessed letter by letter.
pub fn is_same(given: &[u8], expected: &[u8]) -> bool {
    let differences = given.iter().zip(expected).fold(0, |all, (left, right)| all | (left ^ right));
    std::hint::black_box(differences) == 0 && given.len() == expected.len()
}

/// The SHA-256 of a secret of 256 random bits, which needs no salt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    pub fn is(&self, other: &Self) -> bool {
        is_same(&self.0, &other.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// Only the beginning: enough to tell them apart in a log.
impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(4).try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = from_hex(&text).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| D::Error::custom("expected 64 hexadecimal digits"))
    }
}

pub(super) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    if rest.is_empty() { bytes } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_and_read_as_hexadecimal_digits() {
        let digest = Digest::of(b"abc");
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), known);
        let written = serde_json::to_string(&digest).unwrap();
        assert!(serde_json::from_str::<Digest>(&written).unwrap().is(&digest));
        assert!(!digest.is(&Digest::of(b"abd")));
        assert_eq!(format!("{digest:?}"), "ba7816bf");
        for text in
            ["", "ba", &known[1..], "zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"]
        {
            assert!(serde_json::from_value::<Digest>(text.into()).is_err(), "{text}");
        }
    }

    #[test]
    fn only_the_same_is_the_same() {
        assert!(is_same(b"", b"") && is_same(b"abc", b"abc"));
        for (given, expected) in [("ab", "abc"), ("abcd", "abc"), ("abd", "abc"), ("", "a")] {
            assert!(!is_same(given.as_bytes(), expected.as_bytes()), "{given} {expected}");
        }
    }
}
