//! Who was let in, kept at hand: a request costs no question to the store unless a resource changed since. A change is
//! heard of by the store's hint, of this server's own commits before they are answered; so what was deleted here opens
//! nothing any more once that was answered.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ostler_kernel::Timestamp;
use ostler_store::Hint;
use tokio::sync::watch;

use super::{Digest, Grant, Kept, Token, tokens::StandsFor};
use crate::{Control, ControlError};

/// What was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    Token(Digest),
    SignIn(Digest),
}

/// Who showed it.
#[derive(Debug)]
pub struct Holder {
    pub name: String,
    pub grant: Grant,
    /// From then on it does not count.
    pub expires_at: Option<Timestamp>,
    /// When its use has to be written down again.
    note_from: Timestamp,
    is_noted: AtomicBool,
}

pub struct Credentials {
    known: Mutex<Known>,
    hints: watch::Receiver<Hint>,
    /// How often resources have changed, for those who wait for it: hints come with every commit.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Known {
    /// So often resources had changed when these were read.
    changes: u64,
    /// Also those that are nobody's.
    found: BTreeMap<Proof, Option<Arc<Holder>>>,
}

/// Kept at hand; past it all are read again.
const ROOM: usize = 4096;

/// A token's last use is written down no oftener.
const NOTED_EVERY: Duration = Duration::from_secs(60 * 60);

/// A sign-in is prolonged when this part of its time is over.
const PROLONGED_AFTER: u32 = 8;

impl Credentials {
    pub fn new(hints: watch::Receiver<Hint>) -> Self {
        Self { known: Mutex::default(), hints, changes: watch::Sender::default() }
    }

    /// What is known, without what was read before a change.
    fn lock(&self) -> MutexGuard<'_, Known> {
        let changes = self.hints.borrow().resources;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.changes < changes {
            known.changes = changes;
            known.found.clear();
        }
        known
    }

    fn put(&self, proof: Proof, holder: Option<&Arc<Holder>>, changes: u64) {
        let mut known = self.lock();
        if known.changes != changes {
            return;
        }
        if known.found.len() >= ROOM {
            known.found.clear();
        }
        known.found.insert(proof, holder.cloned());
    }
}

impl Control {
    /// Whose this is, if it counts; and it was used.
    pub async fn holder(self: &Arc<Self>, proof: Proof) -> Result<Option<Arc<Holder>>, ControlError> {
        let holder = self.still_holds(proof).await?;
        if let Some(holder) = &holder {
            self.note(proof, holder, self.runtime.now());
        }
        Ok(holder)
    }

    /// Whose this is, if it still counts. To look is no use of it: whoever only goes on prolongs nothing.
    pub async fn still_holds(&self, proof: Proof) -> Result<Option<Arc<Holder>>, ControlError> {
        let (known, changes) = {
            let known = self.credentials.lock();
            (known.found.get(&proof).cloned(), known.changes)
        };
        let holder = match known {
            Some(holder) => holder,
            None => {
                let holder = self.find_holder(&proof).await?.map(Arc::new);
                self.credentials.put(proof, holder.as_ref(), changes);
                holder
            }
        };
        let now = self.runtime.now();
        Ok(holder.filter(|holder| holder.expires_at.is_none_or(|expires_at| now < expires_at)))
    }

    /// Rises when credentials may have changed; for those who go on for long.
    pub fn watch_credentials(&self) -> watch::Receiver<u64> {
        self.credentials.changes.subscribe()
    }

    /// Tells those who watch, for as long as it is let.
    pub async fn follow_credentials(&self) {
        let mut hints = self.store.watch();
        loop {
            let seen = hints.borrow_and_update().resources;
            self.credentials.changes.send_replace(seen);
            if hints.wait_for(|hint| hint.resources != seen).await.is_err() {
                return;
            }
        }
    }

    async fn find_holder(&self, proof: &Proof) -> Result<Option<Holder>, ControlError> {
        Ok(match proof {
            Proof::Token(digest) => match self.token_of(digest).await? {
                Some(kept) => self.bearer(kept).await?,
                None => None,
            },
            Proof::SignIn(digest) => self.signed_in(digest).await?.map(|signed_in| {
                let left = signed_in.lasts - signed_in.lasts / PROLONGED_AFTER;
                let note_from = signed_in.expires_at.before(left);
                let user = signed_in.user;
                Holder::new(user.name, user.document.grant, Some(signed_in.expires_at), note_from)
            }),
        })
    }

    /// Who shows this token: the one it was made for, or the user that it stands for, as they are now.
    async fn bearer(&self, kept: Kept<Token>) -> Result<Option<Holder>, ControlError> {
        let token = kept.document;
        let note_from = token.last_used_at.map_or(kept.created_at, |last| last.after(NOTED_EVERY));
        let (name, grant) = match token.stands_for {
            None => (kept.name, token.grant),
            Some(StandsFor { user, seal }) => match self.user(&user).await? {
                Some(user) if user.document.seal == seal => (user.name, user.document.grant),
                Some(_) | None => return Ok(None),
            },
        };
        Ok(Some(Holder::new(name, grant, token.expires_at, note_from)))
    }

    /// Writes down that it was used, beside the request that used it.
    fn note(self: &Arc<Self>, proof: Proof, holder: &Holder, now: Timestamp) {
        if now < holder.note_from || holder.is_noted.swap(true, Ordering::Relaxed) {
            return;
        }
        let control = Arc::clone(self);
        let noting = async move {
            let noted = match proof {
                Proof::Token(digest) => control.note_use(&digest).await,
                Proof::SignIn(digest) => control.prolong(&digest).await,
            };
            if let Err(error) = noted {
                tracing::warn!(%error, "the use of a credential could not be written down");
            }
        };
        self.runtime.spawn("note a use", Box::pin(noting)).detach();
    }
}

impl Holder {
    /// One that is in no store: always there, and never noted.
    pub fn lasting(name: &str, grant: Grant) -> Self {
        Self::new(name.to_owned(), grant, None, Timestamp::from_millis(i64::MAX))
    }

    fn new(name: String, grant: Grant, expires_at: Option<Timestamp>, note_from: Timestamp) -> Self {
        Self { name, grant, expires_at, note_from, is_noted: AtomicBool::new(false) }
    }
}
