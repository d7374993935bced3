//! Turning to other keys, once it is known that nothing would be lost by it.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
};

use ostler_secrets::{KeyRing, key_of};

use super::{CHECK, Check};
use crate::{Control, ControlError, access::Internal};

/// Keys that open all that is kept, and what is being sealed at this moment.
pub struct FitKeys(KeyRing);

impl FitKeys {
    pub fn ring(&self) -> &KeyRing {
        &self.0
    }
}

impl Control {
    /// Whether one may turn to these keys: each key that has sealed something is among them, and so is the one that seals
    /// now, since someone may be about to keep what it has sealed.
    pub async fn fit_keys(&self, ring: KeyRing) -> Result<FitKeys, ControlError> {
        let current = self.vault.ring()?;
        let mut needed = self.sealed_with(&current).await?.values;
        needed.entry(current.first().id().to_string()).or_default();
        if let Some(kept) = self.kept::<Check>(Internal::SecretCheck, CHECK).await?
            && let Some(id) = key_of(&kept.document.sealed)
        {
            needed.entry(id.to_owned()).or_default();
        }
        needed.retain(|id, _| ring.find(id).is_none());
        if !needed.is_empty() {
            return Err(still_needed(&needed));
        }
        self.opens_check(&ring).await?;
        Ok(FitKeys(ring))
    }

    /// From now on the first of these seals.
    pub fn turn_keys(&self, FitKeys(ring): FitKeys) {
        let mut held = self.vault.ring.write().unwrap_or_else(PoisonError::into_inner);
        *held = Some(Arc::new(ring));
        drop(held);
        self.vault.turns.send_modify(|turns| *turns += 1);
    }
}

fn still_needed(missing: &BTreeMap<String, usize>) -> ControlError {
    let keys = missing.iter().map(|(id, values)| match values {
        0 => id.clone(),
        1 => format!("{id}, which seals 1 value"),
        values => format!("{id}, which seals {values} values"),
    });
    let keys = keys.collect::<Vec<_>>().join("; ");
    ControlError::KeysInUse(format!("the keys to turn to lack some that are still needed: {keys}"))
}
