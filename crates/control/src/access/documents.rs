//! Documents of our own among the resources. Their kinds have a slash, which no kind of a manifest can have: no route,
//! list or watch of resources leads to them.

use ostler_kernel::{
    Bundle, Command, Expect, Timestamp, Write,
    resource::{ResourceKey, StoredResource},
};
use ostler_spec::DEFAULT_NAMESPACE;
use ostler_store::{StoreError, StoreExt, query::ResourceFilter};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Control, ControlError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Internal {
    /// By name.
    Token,
    /// Which token has this digest.
    TokenDigest,
    /// By name.
    User,
    /// By the digest of what its cookie holds.
    SignIn,
    /// Raised by each first user, so that there is one.
    Setup,
    /// Sealed by the first server that kept a secret: who can't open it has other keys.
    SecretCheck,
}

/// A document with what the store knows about it.
#[derive(Debug, Clone)]
pub struct Kept<T> {
    pub name: String,
    pub created_at: Timestamp,
    pub document: T,
    pub(super) version: u64,
}

/// They belong to no namespace. The store wants one; this one is there in any case, so that no list shows another.
const NOWHERE: &str = DEFAULT_NAMESPACE;

const AT_ONCE: usize = 500;

impl Internal {
    fn kind(self) -> &'static str {
        match self {
            Self::Token => "internal/Token",
            Self::TokenDigest => "internal/TokenDigest",
            Self::User => "internal/User",
            Self::SignIn => "internal/SignIn",
            Self::Setup => "internal/Setup",
            Self::SecretCheck => "internal/SecretCheck",
        }
    }

    pub fn key(self, name: &str) -> ResourceKey {
        ResourceKey { kind: self.kind().to_owned(), namespace: NOWHERE.to_owned(), name: name.to_owned() }
    }
}

impl Control {
    pub(crate) async fn kept<T: DeserializeOwned>(
        &self,
        kind: Internal,
        name: &str,
    ) -> Result<Option<Kept<T>>, ControlError> {
        self.store.resource(kind.key(name)).await?.map(read).transpose()
    }

    /// Up to `limit` of them in the order of their names, behind one.
    pub(super) async fn kept_behind<T: DeserializeOwned>(
        &self,
        kind: Internal,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Kept<T>>, ControlError> {
        let after = after.map(|name| (NOWHERE.to_owned(), name.to_owned()));
        let filter =
            ResourceFilter { kind: kind.kind().to_owned(), after, limit, ..ResourceFilter::default() };
        let stored = self.store.resources(filter).await?;
        stored.into_iter().map(read).collect()
    }

    /// Shows them all to `look`, a page at a time.
    pub(super) async fn all_kept<T: DeserializeOwned>(
        &self,
        kind: Internal,
        mut look: impl FnMut(Kept<T>),
    ) -> Result<(), ControlError> {
        let mut after: Option<String> = None;
        loop {
            let page = self.kept_behind(kind, after.as_deref(), AT_ONCE).await?;
            let is_last = page.len() < AT_ONCE;
            after = page.last().map(|last| last.name.clone());
            page.into_iter().for_each(&mut look);
            if is_last {
                return Ok(());
            }
        }
    }

    /// One that is not there yet. Its version begins with the calendar, so that what was decided on a former one of the
    /// same name does not hold for it.
    pub(crate) fn new_document<T: Serialize>(&self, kind: Internal, name: &str, document: &T) -> Bundle {
        let now = self.runtime.now();
        let version = u64::try_from(now.as_millis()).unwrap_or(0).max(1);
        let stored = stored(kind, name, version, now, document);
        Bundle::new(Command::Apply)
            .expect(Expect::Resource { key: stored.key.clone(), version: 0 })
            .write(Write::Resource(stored))
    }

    /// Whether it counted.
    pub(crate) async fn commit_documents(&self, bundle: Bundle) -> Result<bool, ControlError> {
        Ok(self.commit(bundle).await?.is_ok())
    }
}

impl<T: Serialize> Kept<T> {
    /// In the place of what was read.
    pub(crate) fn replaced(&self, kind: Internal, document: &T) -> Bundle {
        let stored = stored(kind, &self.name, self.version + 1, self.created_at, document);
        Bundle::new(Command::Apply)
            .expect(Expect::Resource { key: stored.key.clone(), version: self.version })
            .write(Write::Resource(stored))
    }

    pub(super) fn removed(&self, kind: Internal) -> Bundle {
        let key = kind.key(&self.name);
        Bundle::new(Command::Delete)
            .expect(Expect::Resource { key: key.clone(), version: self.version })
            .write(Write::DeleteResource(key))
    }
}

/// Both or neither.
pub fn together(mut one: Bundle, other: Bundle) -> Bundle {
    one.expect.extend(other.expect);
    one.writes.extend(other.writes);
    one
}

fn stored<T: Serialize>(
    kind: Internal,
    name: &str,
    version: u64,
    created_at: Timestamp,
    document: &T,
) -> StoredResource {
    // Our own types can always be written.
    let document = serde_json::to_value(document).unwrap_or_default();
    StoredResource { key: kind.key(name), version, generation: 1, created_at, document }
}

/// Fails closed: what can't be read lets nobody in.
fn read<T: DeserializeOwned>(stored: StoredResource) -> Result<Kept<T>, ControlError> {
    let StoredResource { key, version, created_at, document, .. } = stored;
    let document = serde_json::from_value(document)
        .map_err(|error| StoreError::Read(format!("the stored {} can't be read: {error}", key.kind)))?;
    Ok(Kept { name: key.name, created_at, document, version })
}
