//! A declared object as the store keeps it: a JSON document with a version. What is inside is `spec`'s matter.

use serde::{Deserialize, Serialize};

use crate::{Bundle, Command, Expect, Timestamp, Write};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ResourceKey {
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredResource {
    pub key: ResourceKey,
    /// Raised by every write.
    pub version: u64,
    /// Raised when the spec changes.
    pub generation: u64,
    pub created_at: Timestamp,
    /// Labels, annotations, spec and status.
    pub document: serde_json::Value,
}

/// Puts a resource in the place of what was read (nothing, if `former` is none).
pub fn put(resource: StoredResource, former: Option<u64>) -> Bundle {
    Bundle::new(Command::Apply)
        .expect(Expect::Resource { key: resource.key.clone(), version: former.unwrap_or(0) })
        .write(Write::Resource(resource))
}

/// Removes the resource: the version that was read, or any.
pub fn delete(key: ResourceKey, version: Option<u64>) -> Bundle {
    let bundle = Bundle::new(Command::Delete).write(Write::DeleteResource(key.clone()));
    match version {
        Some(version) => bundle.expect(Expect::Resource { key, version }),
        None => bundle,
    }
}
