//! Sessions: one conversation, one writer. Of a session's runs that have not ended, only the first may be
//! claimed (`head`); the commit that ends it makes the next one ready.

use serde::{Deserialize, Serialize};

use crate::{RunId, SessionId, conversation::Context};

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
        }
    }
}
