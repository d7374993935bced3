//! Versions never come back: what is made under a name begins behind every version that something of that name ever had, so
//! that who still means the former one can't hit it.
//!
//! The highest version that was deleted is written down in the commit that deletes it, and what is made expects that nobody
//! deleted anything meanwhile. No calendar is asked. Names share a number of floors: so what is written down stays small
//! whatever comes and goes, and few wait for each other.

use ostler_kernel::{
    Bundle, Expect, Timestamp, Write,
    resource::{ResourceKey, StoredResource, log_of},
};
use ostler_spec::DEFAULT_NAMESPACE;
use ostler_store::{StoreError, StoreExt};
use serde_json::json;

use crate::Control;

/// No kind of a manifest can have a slash: no route, list or watch leads here.
const KIND: &str = "internal/Floor";

/// The highest version of anything that stood on it and was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    key: ResourceKey,
    /// Of the floor's own document; 0 means it isn't there.
    version: u64,
    highest: u64,
}

impl Control {
    /// The floor that something of this name stands on.
    pub(crate) async fn floor(&self, of: &ResourceKey) -> Result<Floor, StoreError> {
        let key = place(of);
        let found = self.store.resource(key.clone()).await?;
        let (version, highest) =
            found.map_or((0, 0), |found| (found.version, found.document["highest"].as_u64().unwrap_or(0)));
        Ok(Floor { key, version, highest })
    }
}

impl Floor {
    /// The first version of what is made.
    pub fn first(&self) -> u64 {
        self.highest + 1
    }

    /// Lets the bundle count only if nothing was deleted since.
    pub fn under(&self, bundle: Bundle) -> Bundle {
        bundle.expect(Expect::Resource { key: self.key.clone(), version: self.version })
    }

    /// Adds to a bundle that deletes this version that it will not come again.
    pub fn raise(&self, bundle: Bundle, deleted: u64, at: Timestamp) -> Bundle {
        if deleted <= self.highest {
            return bundle;
        }
        let raised = StoredResource {
            key: self.key.clone(),
            version: self.version + 1,
            generation: 1,
            created_at: at,
            document: json!({ "highest": deleted }),
        };
        self.under(bundle).write(Write::Resource(raised))
    }
}

/// One of a thousand and twenty-four.
fn place(of: &ResourceKey) -> ResourceKey {
    let log = log_of(of, 0);
    let [first, second, ..] = *log.as_bytes();
    let number = u16::from_be_bytes([first, second]) % 1024;
    let (kind, namespace) = (KIND.to_owned(), DEFAULT_NAMESPACE.to_owned());
    ResourceKey { kind, namespace, name: format!("{number:03x}") }
}
