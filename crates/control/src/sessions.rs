//! Conversations that have a key: listed, and forgotten when nobody has gone on with them for long.

use ostler_kernel::{
    Session, Timestamp,
    session::{self, last_use},
};
use ostler_store::{SessionPlace, StoreError, StoreExt};

use crate::{Control, ControlError};

const AT_ONCE: usize = 500;

/// Where it stands in their list.
pub fn place(session: &Session) -> SessionPlace {
    SessionPlace {
        namespace: session.namespace.clone(),
        subject: session.subject.clone(),
        key: session.key.clone().unwrap_or_default(),
    }
}

impl Control {
    /// By namespace, subject and key, behind one of them.
    pub async fn sessions(
        &self,
        namespace: Option<String>,
        after: Option<SessionPlace>,
        limit: usize,
    ) -> Result<Vec<Session>, ControlError> {
        Ok(self.store.sessions(namespace, after, limit).await?)
    }

    /// One that someone goes on with meanwhile stays. What was said by its tasks is in their logs, as long as those are kept.
    pub(crate) async fn forget_idle_sessions(&self, used_by: Timestamp) -> Result<(), StoreError> {
        let (mut after, mut forgotten) = (None, 0);
        loop {
            let page = self.store.sessions(None, after, AT_ONCE).await?;
            let Some(last) = page.last() else { break };
            after = Some(place(last));
            let idle = page.iter().filter(|session| last_use(session) <= used_by);
            forgotten += self.commit_each(idle.filter_map(session::forget).collect()).await?;
        }
        if forgotten > 0 {
            tracing::info!(forgotten, "conversations that nobody went on with were forgotten");
        }
        Ok(())
    }
}
