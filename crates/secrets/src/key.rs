//! The keys that secrets are sealed with. Several at once: the first seals, all open, so that one can take another's place
//! while both are in use.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ostler_kernel::Runtime;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

const LENGTH: usize = 32;

/// More than anybody has in use at once; each is tried by its id, never by trial.
const MOST: usize = 16;

#[derive(Clone)]
pub struct Key {
    bytes: Arc<Zeroizing<[u8; LENGTH]>>,
    id: KeyId,
}

/// Tells keys apart without telling them: the beginning of a hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(String);

/// Never empty.
#[derive(Clone)]
pub struct KeyRing(Vec<Key>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("there is no key: expected 32 bytes in base64, or as 64 hexadecimal digits, one key to a line")]
    Empty,
    /// Without the line itself.
    #[error("line {line} is no key: expected 32 bytes in base64, or as 64 hexadecimal digits")]
    Malformed { line: usize },
    #[error("line {line} has the key of an earlier line again")]
    Twice { line: usize },
    #[error("more than {MOST} keys")]
    TooMany,
}

impl Key {
    fn new(bytes: Zeroizing<[u8; LENGTH]>) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"ostler secret key id");
        hash.update(*bytes);
        let id = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Self { bytes: Arc::new(bytes), id: KeyId(id) }
    }

    pub fn generate(runtime: &dyn Runtime) -> Self {
        let mut bytes = Zeroizing::new([0; LENGTH]);
        for word in bytes.chunks_mut(8) {
            word.copy_from_slice(&runtime.random().to_le_bytes());
        }
        Self::new(bytes)
    }

    fn parse(text: &str) -> Option<Self> {
        let decoded = match text.len() {
            64 => from_hex(text)?,
            _ => Zeroizing::new(STANDARD.decode(text).ok()?),
        };
        let mut bytes = Zeroizing::new([0; LENGTH]);
        if decoded.len() != LENGTH {
            return None;
        }
        bytes.copy_from_slice(&decoded);
        Some(Self::new(bytes))
    }

    pub fn id(&self) -> &KeyId {
        &self.id
    }

    pub(crate) fn bytes(&self) -> &[u8; LENGTH] {
        &self.bytes
    }

    /// As a line of a key file.
    fn line(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(**self.bytes))
    }
}

impl KeyRing {
    pub fn of(first: Key) -> Self {
        Self(vec![first])
    }

    /// Reads what a file or a variable holds: a key to a line, the one that seals first. Lines that begin with `#` and
    /// empty ones don't count.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut keys: Vec<Key> = Vec::new();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = Key::parse(line).ok_or(KeyError::Malformed { line: index + 1 })?;
            if keys.iter().any(|known| known.id == key.id) {
                return Err(KeyError::Twice { line: index + 1 });
            }
            keys.push(key);
        }
        match keys.len() {
            0 => Err(KeyError::Empty),
            count if count > MOST => Err(KeyError::TooMany),
            _ => Ok(Self(keys)),
        }
    }

    /// The text that [`Self::parse`] reads.
    pub fn write(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::new());
        for key in &self.0 {
            text.push_str(&key.line());
            text.push('\n');
        }
        text
    }

    /// With another key in front, which seals from now on. The oldest makes room if there are too many: whether it may go is
    /// the caller's to find out.
    pub fn with_first(&self, key: Key) -> Self {
        let mut keys = vec![key];
        keys.extend(self.0.iter().cloned());
        keys.truncate(MOST);
        Self(keys)
    }

    /// The key that seals.
    pub fn first(&self) -> &Key {
        &self.0[0]
    }

    pub fn find(&self, id: &str) -> Option<&Key> {
        self.0.iter().find(|key| key.id.0 == id)
    }

    pub fn ids(&self) -> impl Iterator<Item = &KeyId> {
        self.0.iter().map(|key| &key.id)
    }
}

impl KeyId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Which keys, and nothing of them.
impl fmt::Debug for KeyRing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.ids()).finish()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key({})", self.id)
    }
}

fn from_hex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    bytes.map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(byte: u8) -> String {
        STANDARD.encode([byte; LENGTH])
    }

    #[test]
    fn the_first_key_of_a_file_seals_and_all_are_there() {
        let text = format!("# of this year\n{}\n\n  {}\n", line(1), "02".repeat(LENGTH));
        let ring = KeyRing::parse(&text).unwrap();
        assert_eq!(ring.ids().count(), 2);
        assert_eq!(ring.first().id(), KeyRing::parse(&line(1)).unwrap().first().id());
        let again = KeyRing::parse(&ring.write()).unwrap();
        assert_eq!(again.ids().collect::<Vec<_>>(), ring.ids().collect::<Vec<_>>());
        let third = KeyRing::parse(&line(3)).unwrap().first().clone();
        assert_eq!(ring.with_first(third.clone()).first().id(), third.id());
    }

    #[test]
    fn what_is_no_key_is_told_by_its_line_and_not_shown() {
        let refused = |text: &str| KeyRing::parse(text).unwrap_err();
        assert_eq!(refused("\n# none\n"), KeyError::Empty);
        let short = format!("{}\nc2hvcnQ=", line(1));
        assert_eq!(refused(&short), KeyError::Malformed { line: 2 });
        assert!(!refused(&short).to_string().contains("c2hvcnQ"));
        assert_eq!(refused(&"zz".repeat(LENGTH)), KeyError::Malformed { line: 1 });
        assert_eq!(refused(&format!("{}\n{}", line(1), "01".repeat(LENGTH))), KeyError::Twice { line: 2 });
    }

    #[test]
    fn a_key_is_not_printed() {
        let ring = KeyRing::parse(&line(7)).unwrap();
        for shown in [format!("{ring:?}"), format!("{:?}", ring.first())] {
            assert!(!shown.contains("BwcH") && shown.contains(ring.first().id().as_str()), "{shown}");
        }
    }
}
