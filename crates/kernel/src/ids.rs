//! The one registry of ids. Each is a UUID v7 of its own type, printed as a prefix and 26 letters
//! (`run_01kb3v...`), so that swapped arguments don't compile and a log line says what it talks about.

use std::{
    fmt,
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{Runtime, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {article} id: expected {prefix}_ and 26 characters")]
pub struct BadId {
    pub text: String,
    pub prefix: &'static str,
    article: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal, $article:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// Behind every one that this process made before, as long as its calendar goes forward.
            pub fn new(runtime: &dyn Runtime) -> Self {
                let (at, count) = runtime.id_clock().next(runtime.now());
                Self::from_parts(at, count, runtime.random())
            }

            pub fn from_parts(at: Timestamp, high: u64, low: u64) -> Self {
                Self(v7(at, high, low))
            }

            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// By the calendar of who made it.
            pub fn made_at(&self) -> Timestamp {
                Timestamp::from_millis(i64::try_from(self.0.as_u128() >> 80).unwrap_or(i64::MAX))
            }

            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}_{}", $prefix, Letters(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                text.strip_prefix(concat!($prefix, "_")).and_then(from_letters).map(Self).ok_or_else(|| BadId {
                    text: text.to_owned(),
                    prefix: $prefix,
                    article: $article,
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(IdVisitor::<$name>(std::marker::PhantomData))
            }
        }
    )*};
}

ids! {
    /// One durable request, as its caller sees it.
    TaskId = "task", "a task";
    /// One agent working on one message of one task.
    RunId = "run", "a run";
    /// One conversation.
    SessionId = "session", "a session";
    /// What a run waits for.
    BlockerId = "blocker", "a blocker";
    /// What someone sent to a task that already existed.
    InputId = "input", "an input";
    /// What the model sees of a session.
    ContextId = "context", "a context";
    /// One declared object, whatever it is called.
    ResourceId = "resource", "a resource";
}

/// Counts what is made within one millisecond, so that ids sort in the order in which they were made.
#[derive(Debug, Default)]
pub struct IdClock(AtomicU64);

/// Of an id, after its milliseconds.
const COUNT_BITS: u32 = 12;

/// A calendar that was set back further is followed; by less, ids go on behind the last one.
const PATIENCE_MS: u64 = 10_000;

impl IdClock {
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The moment and the count that the next id begins with. Past the last count of a millisecond it is the next one's.
    pub fn next(&self, now: Timestamp) -> (Timestamp, u64) {
        let present = now.as_millis().max(0).cast_unsigned() << COUNT_BITS;
        let behind = |last: u64| match last.saturating_sub(present) >> COUNT_BITS {
            0..PATIENCE_MS => present.max(last + 1),
            _ => present,
        };
        let last = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(behind(last)));
        let next = behind(last.unwrap_or_else(|last| last));
        let millis = i64::try_from(next >> COUNT_BITS).unwrap_or(i64::MAX);
        (Timestamp::from_millis(millis), next & ((1 << COUNT_BITS) - 1))
    }
}

/// One journaled effect: the run and its place in it. Also the request id a tool is called with, so that a
/// call made again after a crash can be told from a new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId {
    pub run: RunId,
    pub index: u32,
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.index)
    }
}

impl FromStr for StepId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = || BadId { text: text.to_owned(), prefix: RunId::PREFIX, article: "a step's" };
        let (run, index) = text.rsplit_once('.').ok_or_else(bad)?;
        Ok(Self { run: run.parse()?, index: index.parse().map_err(|_| bad())? })
    }
}

impl fmt::Debug for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The SHA-256 of a blob's bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId([u8; 32]);

impl BlobId {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BlobId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = || BadId { text: text.to_owned(), prefix: "sha256", article: "a blob" };
        let hex =
            text.strip_prefix("sha256:").filter(|hex| hex.len() == 64 && hex.is_ascii()).ok_or_else(bad)?;
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for BlobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(IdVisitor::<BlobId>(std::marker::PhantomData))
    }
}

struct IdVisitor<T>(std::marker::PhantomData<T>);

impl<T: FromStr<Err = BadId>> de::Visitor<'_> for IdVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

fn v7(at: Timestamp, high: u64, low: u64) -> Uuid {
    let millis = u128::from(at.as_millis().max(0).cast_unsigned()) & 0xffff_ffff_ffff;
    let random_a = u128::from(high & 0xfff);
    let random_b = u128::from(low) & 0x3fff_ffff_ffff_ffff;
    Uuid::from_u128(millis << 80 | 0x7 << 76 | random_a << 64 | 0b10 << 62 | random_b)
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

struct Letters(Uuid);

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0.as_u128();
        let mut letters = [0; 26];
        for (place, letter) in letters.iter_mut().enumerate() {
            *letter = ALPHABET[(value >> (125 - 5 * place)) as usize & 31];
        }
        f.write_str(std::str::from_utf8(&letters).map_err(|_| fmt::Error)?)
    }
}

fn from_letters(text: &str) -> Option<Uuid> {
    let bytes = text.as_bytes();
    if bytes.len() != 26 || bytes[0] > b'7' {
        return None;
    }
    let digit = |byte: &u8| ALPHABET.iter().position(|letter| letter == byte).map(|digit| digit as u128);
    bytes.iter().try_fold(0_u128, |value, byte| Some(value << 5 | digit(byte)?)).map(Uuid::from_u128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_it_was_printed() {
        let id = RunId::from_parts(Timestamp::from_millis(1_800_000_000_123), u64::MAX, 7);
        assert_eq!(id.to_string().parse::<RunId>().unwrap(), id);
        assert_eq!(id.to_string().len(), "run_".len() + 26);
        assert_eq!(serde_json::from_str::<RunId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        let run = RunId::from_parts(Timestamp::from_millis(1), 1, 1).to_string();
        assert!(run.parse::<TaskId>().is_err());
        for text in ["", "run_", "run_0", "run_zzzzzzzzzzzzzzzzzzzzzzzzzz", "run_0123456789abcdefghjkmnpqrü"]
        {
            assert!(text.parse::<RunId>().is_err(), "{text} was read");
        }
    }

    #[test]
    fn ids_sort_by_the_time_they_were_made() {
        let early = TaskId::from_parts(Timestamp::from_millis(1000), u64::MAX, u64::MAX);
        let late = TaskId::from_parts(Timestamp::from_millis(1001), 0, 0);
        assert!(early < late && early.to_string() < late.to_string());
    }

    #[test]
    fn ids_of_one_millisecond_sort_in_the_order_in_which_they_were_made() {
        let clock = IdClock::new();
        let made = |millis: i64| {
            let (at, count) = clock.next(Timestamp::from_millis(millis));
            TaskId::from_parts(at, count, u64::MAX / 3)
        };
        let ids: Vec<TaskId> = (0..10_000).map(|_| made(1_800_000_000_000)).collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
        let later = made(1_800_000_000_500);
        assert!(ids.iter().all(|id| *id < later));
        assert!(made(1_800_000_000_100) > later, "a calendar that was set back a little changes nothing");
        assert!(made(1_700_000_000_000) < later, "one that was set back for long is followed");
    }

    #[test]
    fn a_blob_is_named_by_its_bytes() {
        let id = BlobId::of(b"abc");
        assert!(id.to_string().starts_with("sha256:ba7816bf"));
        assert_eq!(id.to_string().parse::<BlobId>().unwrap(), id);
    }
}
