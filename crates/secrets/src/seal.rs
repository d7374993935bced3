//! Sealing: a value becomes a text that only who has the key can open, and only where it was put. XChaCha20-Poly1305, whose
//! nonces may be drawn at random; the id of the key stands in front, and the place is part of what is vouched for.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use ostler_kernel::Runtime;
use zeroize::Zeroizing;

use crate::{Key, KeyRing};

/// Where a value is kept. Moved elsewhere, it does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub key: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("it is sealed with the key {id}, which this server does not have")]
    UnknownKey { id: String },
    #[error("it is damaged, or was sealed for another place")]
    Damaged,
}

/// Sealed in this way; another one would begin differently.
const PREFIX: &str = "ostler-sealed-1";
const NONCE: usize = 24;

impl KeyRing {
    /// Seals with the first key.
    pub fn seal(&self, place: Place<'_>, value: &[u8], runtime: &dyn Runtime) -> Result<String, OpenError> {
        let key = self.first();
        let mut sealed = Vec::with_capacity(NONCE + value.len() + 16);
        for _ in 0..NONCE / 8 {
            sealed.extend_from_slice(&runtime.random().to_le_bytes());
        }
        let nonce = nonce(&sealed)?;
        let payload = Payload { msg: value, aad: &place.vouched_for(key) };
        let ciphertext = cipher(key).encrypt(&nonce, payload).map_err(|_| OpenError::Damaged)?;
        sealed.extend_from_slice(&ciphertext);
        Ok(format!("{PREFIX}:{}:{}", key.id(), STANDARD.encode(sealed)))
    }

    /// Opens what any of the keys has sealed for this place.
    pub fn open(&self, place: Place<'_>, sealed: &str) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let (id, encoded) = parts(sealed).ok_or(OpenError::Damaged)?;
        let key = self.find(id).ok_or_else(|| OpenError::UnknownKey { id: id.to_owned() })?;
        let bytes = STANDARD.decode(encoded).map_err(|_| OpenError::Damaged)?;
        let (nonce_bytes, ciphertext) = bytes.split_at_checked(NONCE).ok_or(OpenError::Damaged)?;
        let payload = Payload { msg: ciphertext, aad: &place.vouched_for(key) };
        let value = cipher(key).decrypt(&nonce(nonce_bytes)?, payload).map_err(|_| OpenError::Damaged)?;
        Ok(Zeroizing::new(value))
    }

    /// Whether the first key has sealed it.
    pub fn is_first(&self, sealed: &str) -> bool {
        key_of(sealed) == Some(self.first().id().as_str())
    }
}

/// The id of the key that it was sealed with.
pub fn key_of(sealed: &str) -> Option<&str> {
    parts(sealed).map(|(id, _)| id)
}

fn parts(sealed: &str) -> Option<(&str, &str)> {
    sealed.strip_prefix(PREFIX)?.strip_prefix(':')?.split_once(':')
}

fn cipher(key: &Key) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(key.bytes().into())
}

fn nonce(bytes: &[u8]) -> Result<XNonce, OpenError> {
    let bytes: [u8; NONCE] = bytes.try_into().map_err(|_| OpenError::Damaged)?;
    Ok(bytes.into())
}

impl Place<'_> {
    /// Each part with its length, so that no two places read the same.
    fn vouched_for(self, key: &Key) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in [PREFIX, key.id().as_str(), self.namespace, self.name, self.key] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{
        sync::atomic::{AtomicU64, Ordering},
        time::Duration,
    };

    use ostler_kernel::{
        Timestamp,
        runtime::{BoxFuture, Spawned},
    };

    use super::*;

    /// Counts where others draw.
    pub struct Counting(pub AtomicU64);

    impl Runtime for Counting {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }

        fn random(&self) -> u64 {
            self.0.fetch_add(1, Ordering::SeqCst)
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(async {})
        }

        fn spawn(&self, _: &'static str, _: BoxFuture<'static, ()>) -> Spawned {
            Spawned::new(|| {})
        }
    }

    fn ring(byte: &str) -> KeyRing {
        KeyRing::parse(&byte.repeat(32)).unwrap()
    }

    const PLACE: Place<'_> = Place { namespace: "team", name: "openai", key: "value" };

    #[test]
    fn what_is_sealed_opens_in_its_place_alone() {
        let (ring, runtime) = (ring("0a"), Counting(AtomicU64::new(1)));
        let sealed = ring.seal(PLACE, b"geheim", &runtime).unwrap();
        assert!(!sealed.contains("geheim") && !sealed.contains(&STANDARD.encode("geheim")));
        assert_eq!(&**ring.open(PLACE, &sealed).unwrap(), b"geheim");
        for elsewhere in [
            Place { namespace: "other", ..PLACE },
            Place { name: "openai2", ..PLACE },
            Place { key: "token", ..PLACE },
            Place { namespace: "teamopenai", name: "", ..PLACE },
        ] {
            assert_eq!(ring.open(elsewhere, &sealed), Err(OpenError::Damaged), "{elsewhere:?}");
        }
        let again = ring.seal(PLACE, b"geheim", &runtime).unwrap();
        assert_ne!(again, sealed, "the same value twice does not look the same");
    }

    #[test]
    fn a_changed_letter_anywhere_is_noticed() {
        let (ring, runtime) = (ring("0a"), Counting(AtomicU64::new(1)));
        let sealed = ring.seal(PLACE, b"geheim", &runtime).unwrap();
        for index in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[index] = if changed[index] == b'B' { b'C' } else { b'B' };
            assert!(ring.open(PLACE, std::str::from_utf8(&changed).unwrap()).is_err(), "letter {index}");
        }
        for text in ["", "geheim", "ostler-sealed-1:", "ostler-sealed-1:x:AAAA", &sealed[..sealed.len() - 8]]
        {
            assert!(ring.open(PLACE, text).is_err(), "{text}");
        }
    }

    #[test]
    fn another_key_opens_nothing_and_is_named() {
        let runtime = Counting(AtomicU64::new(1));
        let (old, new) = (ring("0a"), ring("0b"));
        let sealed = old.seal(PLACE, b"geheim", &runtime).unwrap();
        let id = old.first().id().to_string();
        assert_eq!(new.open(PLACE, &sealed), Err(OpenError::UnknownKey { id: id.clone() }));
        let both = old.with_first(new.first().clone());
        assert_eq!(&**both.open(PLACE, &sealed).unwrap(), b"geheim");
        assert!(!both.is_first(&sealed) && old.is_first(&sealed) && key_of(&sealed) == Some(id.as_str()));
        let resealed = both.seal(PLACE, b"geheim", &runtime).unwrap();
        assert!(both.is_first(&resealed) && old.open(PLACE, &resealed).is_err());
    }
}
