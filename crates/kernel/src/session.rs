//! Sessions: one conversation, one writer. Of a session's runs that have not ended, only the first may be
//! claimed (`head`); the commit that ends it makes the next one ready.

use serde::{Deserialize, Serialize};

use crate::{Bundle, Command, Expect, RunId, SessionId, Timestamp, Write, conversation::Context};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub id: SessionId,
    pub namespace: String,
    /// The agent it is a conversation with.
    pub subject: String,
    /// The caller's name for it; a session without one serves a single task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Raised by every write: who decided on an older one is refused.
    pub version: u64,
    /// The first run that has not ended, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<RunId>,
    /// How many runs it ever had: the next one's place.
    pub runs: u64,
    /// Where the next entry will stand. While a run is live, the run counts on.
    pub next_entry: u64,
    pub context: Context,
    /// When somebody last asked for something in it, or it was last answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
}

/// Forgets a conversation that nobody goes on with, as it was read: its entries go, and its key is free again. None if it is
/// in use.
pub fn forget(session: &Session) -> Option<Bundle> {
    if session.head.is_some() {
        return None;
    }
    let Session { id, namespace, subject, key, version, .. } = session.clone();
    let expect = Expect::Session { id, version };
    Some(Bundle::new(Command::Forget).expect(expect).write(Write::ForgetSession {
        id,
        namespace,
        subject,
        key,
    }))
}

/// Of one that is older than the note of its use, when it was made.
pub fn last_use(session: &Session) -> Timestamp {
    session.used_at.unwrap_or_else(|| session.id.made_at())
}

impl Session {
    pub fn new(id: SessionId, namespace: &str, subject: &str, key: Option<String>, context: Context) -> Self {
        Self {
            id,
            namespace: namespace.to_owned(),
            subject: subject.to_owned(),
            key,
            version: 0,
            head: None,
            runs: 0,
            next_entry: 0,
            context,
            used_at: None,
        }
    }
}
