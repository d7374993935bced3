//! A declared object as the store keeps it: a JSON document with a version. What is inside is `spec`'s matter.
//!
//! Each change is told in the log of all, in the commit that makes it, so that whoever watches resources follows the
//! same positions as whoever watches tasks. A resource's events stand in logs of their own, a new one for every
//! [`CHAPTER`] versions: what was told long ago can be forgotten while the last change stays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    Bundle, Command, EventBody, Expect, TaskId, Timestamp, Write,
    event::{Change, ResourceChanged},
    task::forget::Forgotten,
};

/// The `apiVersion` of our own manifests. Another is kept where it was given, and goes without saying where it wasn't.
pub const API_VERSION: &str = "ostler.dev/v1";

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

/// How many versions share a log.
pub const CHAPTER: u64 = 64;

/// Puts a resource in the place of what was read, and tells it.
pub fn put_and_tell(
    resource: StoredResource,
    former: Option<&StoredResource>,
    change: Change,
    at: Timestamp,
) -> Bundle {
    let event = told(&resource, former, change);
    let log = log_of(&resource.key, resource.version);
    put(resource, former.map(|former| former.version)).event(log, at, event)
}

/// Removes the resource as it was read, and tells it.
pub fn delete_and_tell(former: &StoredResource, at: Timestamp) -> Bundle {
    let event = told(former, Some(former), Change::Deleted);
    let log = log_of(&former.key, former.version);
    delete(former.key.clone(), Some(former.version)).event(log, at, event)
}

/// Puts a resource under a name that is free, and removes it under the one it had.
pub fn rename_and_tell(resource: StoredResource, former: &StoredResource, at: Timestamp) -> Bundle {
    let Bundle { expect, writes, .. } = delete_and_tell(former, at);
    let mut bundle = put_and_tell(resource, None, Change::Created, at);
    bundle.expect.extend(expect);
    bundle.writes.extend(writes);
    bundle
}

/// Forgets what was told of versions long past, if a new chapter begins with this one.
pub fn forget_chapter(key: &ResourceKey, version: u64) -> Option<Bundle> {
    let old = version.checked_sub(2 * CHAPTER).filter(|_| version.is_multiple_of(CHAPTER))?;
    Some(forget_log(log_of(key, old)))
}

/// Forgets a log of a resource.
pub fn forget_log(log: TaskId) -> Bundle {
    let (runs, namespace, name) = (Vec::new(), String::new(), String::new());
    let forgotten = Forgotten { task: log, runs, sessions: Vec::new(), namespace, name, key: None };
    Bundle::new(Command::Forget).write(Write::Forget(forgotten))
}

/// The log in which a version of a resource is told. No task has its id: those are of another version of UUIDs.
pub fn log_of(key: &ResourceKey, version: u64) -> TaskId {
    let mut hash = Sha256::new();
    for part in [&key.kind, &key.namespace, &key.name] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.update((version / CHAPTER).to_be_bytes());
    let digest = hash.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    TaskId::from_bytes(bytes)
}

fn told(resource: &StoredResource, former: Option<&StoredResource>, change: Change) -> EventBody {
    let ResourceKey { kind, namespace, name } = resource.key.clone();
    EventBody::ResourceChanged(ResourceChanged {
        kind,
        namespace,
        name,
        api_version: foreign_version(&resource.document),
        change,
        version: resource.version,
        labels: if change == Change::Deleted { BTreeMap::new() } else { resource.labels() },
        former_labels: former.map(StoredResource::labels).unwrap_or_default(),
    })
}

impl StoredResource {
    pub fn labels(&self) -> BTreeMap<String, String> {
        labels_in(&self.document)
    }
}

/// The `apiVersion` that a document has, unless that is ours.
fn foreign_version(document: &serde_json::Value) -> Option<String> {
    let version = document.get("apiVersion").and_then(serde_json::Value::as_str);
    version.filter(|version| *version != API_VERSION).map(str::to_owned)
}

/// The labels that a document has.
pub fn labels_in(document: &serde_json::Value) -> BTreeMap<String, String> {
    let labels = document.pointer("/metadata/labels").and_then(serde_json::Value::as_object);
    let texts = labels.into_iter().flatten();
    texts.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_a_log_for_each_chapter_and_shares_it_with_no_other() {
        let key = |kind: &str, namespace: &str, name: &str| ResourceKey {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let one = key("Agent", "ab", "c");
        assert_eq!(log_of(&one, 1), log_of(&one, CHAPTER - 1));
        assert_ne!(log_of(&one, 1), log_of(&one, CHAPTER));
        assert_ne!(log_of(&one, 1), log_of(&key("Agent", "a", "bc"), 1));
        assert_ne!(log_of(&one, 1), log_of(&key("Tool", "ab", "c"), 1));
        assert!(forget_chapter(&one, CHAPTER).is_none() && forget_chapter(&one, 2 * CHAPTER + 1).is_none());
        assert!(forget_chapter(&one, 2 * CHAPTER).is_some());
    }
}
