//! What is kept of a password. How it is made, and how it is compared, is the server's matter.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::secret::{from_hex, to_hex};

/// A hash by argon2id, with all it takes to make it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordHash {
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
    pub salt: PasswordBytes,
    pub hash: PasswordBytes,
}

/// Written as hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordBytes(pub Vec<u8>);

impl fmt::Debug for PasswordBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes", self.0.len())
    }
}

impl Serialize for PasswordBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for PasswordBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        from_hex(&text).map(Self).ok_or_else(|| D::Error::custom("expected hexadecimal digits"))
    }
}
