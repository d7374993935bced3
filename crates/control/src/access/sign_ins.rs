//! Sign-ins: what stands for a user's name and password for a while. They are kept in the store, so that every server
//! knows them, under the digest of what the cookie holds.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use ostler_kernel::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Digest, Kept, User, documents::Internal, make_secret};
use crate::{Control, ControlError, commands::TRIES};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SignIn {
    pub user: String,
    /// Of the user when it was made.
    pub seal: u64,
    pub expires_at: Timestamp,
    /// How long it lasts behind its last use.
    pub lasts_ms: u64,
}

/// A user who has signed in.
#[derive(Debug, Clone)]
pub struct SignedIn {
    pub user: Kept<User>,
    pub expires_at: Timestamp,
    pub lasts: Duration,
}

/// Of one user. Of more than these, those that would end first are swept away.
const MOST: usize = 32;

/// Between two looks for those that are over.
const SWEEP: Duration = Duration::from_secs(60 * 60);

impl Control {
    /// What the cookie is to hold.
    pub async fn sign_in(&self, user: &Kept<User>, lasts: Duration) -> Result<String, ControlError> {
        let secret = make_secret("", &*self.runtime);
        let sign_in = SignIn {
            user: user.name.clone(),
            seal: user.document.seal,
            expires_at: self.runtime.now().after(lasts),
            lasts_ms: u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX),
        };
        let name = Digest::of(secret.as_bytes()).to_string();
        match self.commit_documents(self.new_document(Internal::SignIn, &name, &sign_in)).await? {
            true => Ok(secret),
            false => Err(ControlError::Contended),
        }
    }

    pub async fn sign_out(&self, digest: &Digest) -> Result<(), ControlError> {
        for _ in 0..TRIES {
            let found = self.kept::<SignIn>(Internal::SignIn, &digest.to_string()).await?;
            let Some(sign_in) = found else { return Ok(()) };
            if self.commit_documents(sign_in.removed(Internal::SignIn)).await? {
                return Ok(());
            }
        }
        Err(ControlError::Contended)
    }

    pub(super) async fn signed_in(&self, digest: &Digest) -> Result<Option<SignedIn>, ControlError> {
        let found = self.kept::<SignIn>(Internal::SignIn, &digest.to_string()).await?;
        let Some(Kept { document: sign_in, .. }) = found else { return Ok(None) };
        let user = self.user(&sign_in.user).await?.filter(|user| user.document.seal == sign_in.seal);
        let lasts = Duration::from_millis(sign_in.lasts_ms);
        Ok(user.map(|user| SignedIn { user, expires_at: sign_in.expires_at, lasts }))
    }

    /// It was used: it lasts for its whole time again. One that was ended meanwhile stays ended.
    pub(super) async fn prolong(&self, digest: &Digest) -> Result<(), ControlError> {
        let found = self.kept::<SignIn>(Internal::SignIn, &digest.to_string()).await?;
        let Some(former) = found else { return Ok(()) };
        let expires_at = self.runtime.now().after(Duration::from_millis(former.document.lasts_ms));
        let prolonged = SignIn { expires_at, ..former.document.clone() };
        self.commit_documents(former.replaced(Internal::SignIn, &prolonged)).await.map(drop)
    }

    /// Removes those that are over or too many, now and then, for as long as it is let.
    pub async fn sweep_sign_ins(&self) {
        loop {
            match self.forget_sign_ins().await {
                Ok(0) => {}
                Ok(forgotten) => tracing::debug!(forgotten, "sign-ins that are over were forgotten"),
                Err(error) => tracing::warn!(%error, "sign-ins that are over could not be forgotten"),
            }
            self.runtime.sleep(SWEEP).await;
        }
    }

    async fn forget_sign_ins(&self) -> Result<usize, ControlError> {
        let (now, mut found, mut seals) = (self.runtime.now(), Vec::new(), BTreeMap::new());
        self.all_kept::<SignIn>(Internal::SignIn, |sign_in| found.push(sign_in)).await?;
        // Behind them: whoever has signed in by then is a user by now.
        self.all_kept::<User>(Internal::User, |user| {
            seals.insert(user.name, user.document.seal);
        })
        .await?;
        let (mut live, mut over) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
        for kept in found {
            let SignIn { user, seal, expires_at, .. } = &kept.document;
            if *expires_at <= now || seals.get(user) != Some(seal) {
                over.push(kept);
            } else {
                live.entry(user.clone()).or_default().push(kept);
            }
        }
        for mut own in live.into_values() {
            own.sort_by_key(|kept| Reverse(kept.document.expires_at));
            over.extend(own.into_iter().skip(MOST));
        }
        let mut forgotten = 0;
        for sign_in in over {
            forgotten += usize::from(self.commit_documents(sign_in.removed(Internal::SignIn)).await?);
        }
        Ok(forgotten)
    }
}
