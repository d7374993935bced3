//! Seals what older keys have sealed with the first one, in the background. Each secret is a commit of its own, and one that
//! is done is seen to be done: after a crash it simply goes on.

use std::{collections::BTreeMap, time::Duration};

use ostler_kernel::{
    event::Change,
    resource::{StoredResource, put_and_tell},
    runtime::timeout,
};
use ostler_secrets::{KeyRing, key_of};
use ostler_spec::Kind;
use ostler_store::{ResourceFilter, StoreExt};
use serde_json::json;

use super::{CHECK, CHECK_PLACE, Check, place_of, seal, sealed_values};
use crate::{Control, ControlError, access::Internal};

/// How the keys of a server stand to what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretKeys {
    /// The one that seals first.
    pub keys: Vec<KeyCount>,
    /// Secrets that the first key has not sealed yet.
    pub left: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCount {
    pub id: String,
    /// The values that it has sealed.
    pub values: usize,
    /// Whether this server has it.
    pub is_known: bool,
}

#[derive(Default)]
pub(super) struct Sealed {
    /// How many values each key has sealed.
    pub values: BTreeMap<String, usize>,
    /// Secrets that the first key has not sealed yet.
    pub left: usize,
}

const AT_ONCE: usize = 100;

/// Before what failed is tried again; and how often one looks whether another server has sealed with an older key.
const PAUSE: Duration = Duration::from_secs(5);
const SWEEP: Duration = Duration::from_secs(600);

impl Control {
    pub async fn secret_keys(&self) -> Result<SecretKeys, ControlError> {
        let ring = self.vault.ring()?;
        let Sealed { values: counts, left } = self.sealed_with(&ring).await?;
        let known = ring.ids().map(|id| (id.to_string(), true)).collect::<Vec<_>>();
        let unknown = counts.keys().filter(|id| ring.find(id).is_none()).map(|id| (id.clone(), false));
        let keys = known.iter().cloned().chain(unknown);
        let keys = keys.map(|(id, is_known)| KeyCount {
            values: counts.get(&id).copied().unwrap_or(0),
            id,
            is_known,
        });
        Ok(SecretKeys { keys: keys.collect(), left })
    }

    /// Looks through every secret there is.
    pub(super) async fn sealed_with(&self, ring: &KeyRing) -> Result<Sealed, ControlError> {
        let mut found = Sealed::default();
        let mut pages = Pages::default();
        while let Some(page) = self.next_secrets(&mut pages).await? {
            for stored in &page {
                let values = sealed_values(stored);
                found.left += usize::from(values.values().any(|sealed| !ring.is_first(sealed)));
                for id in values.values().filter_map(|sealed| key_of(sealed)) {
                    *found.values.entry(id.to_owned()).or_default() += 1;
                }
            }
        }
        Ok(found)
    }

    pub(crate) async fn reseal_secrets(&self) {
        let mut turns = self.vault.turns.subscribe();
        loop {
            turns.borrow_and_update();
            let pause = match self.reseal_once().await {
                Ok(()) => SWEEP,
                Err(error) => {
                    tracing::warn!(%error, "secrets could not be sealed with the first key");
                    PAUSE
                }
            };
            // The sender lives in self, so it can't be gone.
            let _ = timeout(&*self.runtime, pause, turns.changed()).await;
        }
    }

    pub(super) async fn reseal_once(&self) -> Result<(), ControlError> {
        let Ok(ring) = self.vault.ring() else { return Ok(()) };
        let mut n_done = 0_usize;
        let mut pages = Pages::default();
        while let Some(page) = self.next_secrets(&mut pages).await? {
            for stored in &page {
                n_done += usize::from(self.reseal(&ring, stored).await?);
            }
        }
        self.reseal_check(&ring).await?;
        if n_done > 0 {
            tracing::info!(n_secrets = n_done, key = %ring.first().id(), "secrets were sealed with the first key");
        }
        Ok(())
    }

    /// Whether it had to be. If someone changes it meanwhile, they have sealed it.
    pub(super) async fn reseal(&self, ring: &KeyRing, stored: &StoredResource) -> Result<bool, ControlError> {
        let values = sealed_values(stored);
        if values.values().all(|sealed| ring.is_first(sealed)) {
            return Ok(false);
        }
        let mut data = serde_json::Map::new();
        for (key, sealed) in values {
            let place = place_of(&stored.key, key);
            let Ok(value) = ring.open(place, sealed) else {
                tracing::warn!(
                    namespace = stored.key.namespace,
                    secret = stored.key.name,
                    key,
                    "can't be opened"
                );
                return Ok(false);
            };
            data.insert(key.to_owned(), json!(seal(ring, place, &value, self)?));
        }
        let mut next = StoredResource { version: stored.version + 1, ..stored.clone() };
        if let Some(place) = next.document.pointer_mut("/spec/data") {
            *place = data.into();
        }
        let bundle = put_and_tell(next, Some(stored), Change::Updated, self.runtime.now());
        Ok(self.commit(bundle).await?.is_ok())
    }

    async fn reseal_check(&self, ring: &KeyRing) -> Result<(), ControlError> {
        let Some(kept) = self.kept::<Check>(Internal::SecretCheck, CHECK).await? else { return Ok(()) };
        if ring.is_first(&kept.document.sealed) || ring.open(CHECK_PLACE, &kept.document.sealed).is_err() {
            return Ok(());
        }
        let check = Check { sealed: seal(ring, CHECK_PLACE, b"ostler", self)? };
        self.commit_documents(kept.replaced(Internal::SecretCheck, &check)).await.map(drop)
    }

    /// Every secret there is, a page at a time.
    async fn next_secrets(&self, pages: &mut Pages) -> Result<Option<Vec<StoredResource>>, ControlError> {
        if pages.is_over {
            return Ok(None);
        }
        let filter = ResourceFilter {
            kind: Kind::Secret.name().to_owned(),
            after: pages.after.take(),
            limit: AT_ONCE,
            ..ResourceFilter::default()
        };
        let page = self.store.resources(filter).await?;
        pages.is_over = page.len() < AT_ONCE;
        pages.after = page.last().map(|last| (last.key.namespace.clone(), last.key.name.clone()));
        Ok(Some(page))
    }
}

/// How far one has looked.
#[derive(Default)]
struct Pages {
    after: Option<(String, String)>,
    is_over: bool,
}
