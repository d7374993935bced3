//! What is null in an answer is as if it were not there: vendors leave a field out one time, and write null the next.

use serde::{Deserialize, Deserializer};

/// For every field that a vendor may leave empty, beside `#[serde(default)]`, which stands for absence alone.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
