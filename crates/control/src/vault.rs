//! Keeps secrets: sealed before they reach the store, opened for who may use them. The keys themselves are the server's
//! matter; here they are only held.

mod reseal;
mod turn;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ostler_kernel::resource::{ResourceKey, StoredResource};
use ostler_secrets::{KeyRing, OpenError, Place};
use ostler_spec::{KEPT, Kind, Path, Problem, Resource, Spec};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use zeroize::Zeroizing;

pub use self::{
    reseal::{KeyCount, SecretKeys},
    turn::FitKeys,
};
use crate::{Control, ControlError, Effect, access::Internal};

pub struct Vault {
    ring: RwLock<Option<Arc<KeyRing>>>,
    /// Raised when there are other keys.
    turns: watch::Sender<u64>,
}

/// A value that means nothing, sealed: whoever opens it has the right keys.
#[derive(Serialize, Deserialize)]
struct Check {
    sealed: String,
}

const CHECK: &str = "check";
const CHECK_PLACE: Place<'_> = Place { namespace: "", name: "internal/SecretCheck", key: CHECK };

impl Vault {
    pub fn new(ring: Option<KeyRing>) -> Self {
        let ring = RwLock::new(ring.map(Arc::new));
        Self { ring, turns: watch::channel(0).0 }
    }

    fn ring(&self) -> Result<Arc<KeyRing>, ControlError> {
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        ring.clone().ok_or_else(|| {
            ControlError::NotAvailable("this server has no key, and keeps no secrets without one".to_owned())
        })
    }
}

impl Control {
    /// Whether the keys of this server open what the store holds. To be asked before it serves anybody.
    pub async fn check_secret_keys(&self) -> Result<(), ControlError> {
        let Ok(ring) = self.vault.ring() else { return Ok(()) };
        self.opens_check(&ring).await.map(drop)
    }

    /// Whether there is a check value at all. One that these keys don't open is an error.
    async fn opens_check(&self, ring: &KeyRing) -> Result<bool, ControlError> {
        let Some(kept) = self.kept::<Check>(Internal::SecretCheck, CHECK).await? else { return Ok(false) };
        ring.open(CHECK_PLACE, &kept.document.sealed).map_err(|error| wrong_keys(ring, &error))?;
        Ok(true)
    }

    /// Makes sure that whoever seals here seals with what the store's other secrets are sealed with. Asked each time: another
    /// server may have turned to keys that this one does not have.
    async fn settle_keys(&self, ring: &KeyRing, effect: Effect) -> Result<(), ControlError> {
        while !self.opens_check(ring).await? && effect == Effect::Real {
            let check = Check { sealed: seal(ring, CHECK_PLACE, b"ostler", self)? };
            // Someone may be quicker; then theirs counts.
            self.commit_documents(self.new_document(Internal::SecretCheck, CHECK, &check)).await?;
        }
        Ok(())
    }

    /// The resource as it may be stored: a secret with its values sealed, or as they were where it says so; anything else
    /// as it is. A value that did not change keeps its sealed form, so that nothing seems to have changed.
    pub(crate) async fn sealed<'a>(
        &self,
        resource: &'a Resource,
        former: Option<&StoredResource>,
        effect: Effect,
    ) -> Result<Cow<'a, Resource>, ControlError> {
        let Spec::Secret(secret) = &resource.spec else { return Ok(Cow::Borrowed(resource)) };
        let ring = self.vault.ring()?;
        self.settle_keys(&ring, effect).await?;
        let before = former.map(sealed_values).unwrap_or_default();
        let (mut data, mut problems) = (BTreeMap::new(), Vec::new());
        for (key, written) in &secret.data {
            let place = Place { namespace: &resource.metadata.namespace, name: &resource.metadata.name, key };
            let kept = before.get(key.as_str()).zip(former.map(|former| place_of(&former.key, key)));
            match self.seal_value(&ring, place, written, kept) {
                Ok(Some(sealed)) => {
                    self.hide(written, effect);
                    data.insert(key.clone(), sealed);
                }
                Ok(None) => problems.push(nothing_to_keep(key)),
                Err(error) => return Err(error),
            }
        }
        if !problems.is_empty() {
            return Err(ControlError::Invalid(problems));
        }
        let mut sealed = resource.clone();
        if let Spec::Secret(secret) = &mut sealed.spec {
            secret.data = data;
        }
        Ok(Cow::Owned(sealed))
    }

    /// What is put here is hidden here from then on, before anybody has used it. Not what was only tried.
    fn hide(&self, written: &str, effect: Effect) {
        if written != KEPT
            && effect == Effect::Real
            && let Ok(value) = text(&decoded(written))
        {
            self.config.redactor.hide(&value);
        }
    }

    /// One value, sealed for its place. None if it is to stay as it is and there is none.
    fn seal_value(
        &self,
        ring: &KeyRing,
        place: Place<'_>,
        written: &str,
        kept: Option<(&&str, Place<'_>)>,
    ) -> Result<Option<String>, ControlError> {
        let Some((sealed, former_place)) = kept else {
            return if written == KEPT {
                Ok(None)
            } else {
                seal(ring, place, &decoded(written), self).map(Some)
            };
        };
        let open = || ring.open(former_place, sealed).map_err(|error| wrong_keys(ring, &error));
        let value = if written == KEPT { open()? } else { decoded(written) };
        let is_same =
            former_place == place && (written == KEPT || open().is_ok_and(|before| before == value));
        if is_same { Ok(Some((*sealed).to_owned())) } else { seal(ring, place, &value, self).map(Some) }
    }
}

/// What the store holds of a secret, by key.
pub(crate) fn sealed_values(stored: &StoredResource) -> BTreeMap<&str, &str> {
    let data = stored.document.pointer("/spec/data").and_then(serde_json::Value::as_object);
    let values = data.into_iter().flatten();
    values.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

pub(crate) fn place_of<'a>(stored: &'a ResourceKey, key: &'a str) -> Place<'a> {
    Place { namespace: &stored.namespace, name: &stored.name, key }
}

impl Control {
    /// A value of a secret that is kept, or why it is not given. None if there is no such secret.
    pub(crate) async fn kept_secret(
        &self,
        namespace: &str,
        name: &str,
        key: &str,
    ) -> Result<Option<Result<Zeroizing<String>, String>>, ControlError> {
        let at = crate::resources::key(Kind::Secret, namespace, name);
        let Some(stored) = ostler_store::StoreExt::resource(&*self.store, at).await? else { return Ok(None) };
        let values = sealed_values(&stored);
        let Some(sealed) = values.get(key) else {
            let has = values.keys().copied().collect::<Vec<_>>().join(", ");
            return Ok(Some(Err(format!("it has no key `{key}`; it has {has}"))));
        };
        let ring = self.vault.ring()?;
        let opened = match ring.open(place_of(&stored.key, key), sealed) {
            Ok(bytes) => text(&bytes),
            Err(error) => Err(format!("it can't be opened: {error}")),
        };
        if let Ok(value) = &opened {
            self.config.redactor.hide(value);
        }
        Ok(Some(opened))
    }
}

/// Fit for a header: text, without blanks around it.
fn text(bytes: &[u8]) -> Result<Zeroizing<String>, String> {
    match std::str::from_utf8(bytes).map(str::trim) {
        Ok("") => Err("it is empty".to_owned()),
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err("it is not text".to_owned()),
    }
}

/// The manifest's reader has seen to it that it is base64.
fn decoded(written: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(STANDARD.decode(written).unwrap_or_default())
}

fn seal(ring: &KeyRing, place: Place<'_>, value: &[u8], control: &Control) -> Result<String, ControlError> {
    ring.seal(place, value, &*control.runtime).map_err(|error| wrong_keys(ring, &error))
}

fn nothing_to_keep(key: &str) -> Problem {
    let message = format!("`{KEPT}` leaves a value as it is, and there is none yet: give the value itself");
    Problem::new(Path::of("spec.data").field(key), message)
}

fn wrong_keys(ring: &KeyRing, error: &OpenError) -> ControlError {
    let ids = ring.ids().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    ControlError::WrongKeys(format!(
        "the store's secrets can't be opened with the keys of this server ({ids}): {error}"
    ))
}

#[cfg(test)]
mod tests;
