//! Watches resources and the server's events: first what is there, then everything that changes. A connection that
//! drops is made again behind the last change that came, on a server that has restarted too.

use std::time::Duration;

use futures_util::{Stream, stream};
use ostler_spec::Kind;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Client, ClientError,
    source::{Heard, Source},
};

/// Which resources of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchQuery {
    pub name: Option<String>,
    /// As `labelSelector` of lists.
    pub selector: Option<String>,
    /// Of tasks, the templates instead.
    pub templates: bool,
}

/// Which events of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Only those behind this one.
    pub since: Option<u64>,
    pub kind: Option<String>,
    pub name: Option<String>,
}

#[derive(Debug)]
pub enum Watched<T> {
    Came(T),
    /// The connection dropped; it is made again after `wait`.
    Reconnecting {
        attempt: u32,
        wait: Duration,
        error: ClientError,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    #[serde(rename = "type")]
    pub kind: ChangeKind,
    pub resource: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is there; told of each at the beginning too.
    Added,
    Updated,
    Deleted,
    /// Of a newer server.
    #[serde(other)]
    Other,
}

impl Client {
    /// What there is of a kind in the client's namespace, then everything that changes.
    pub fn watch(
        &self,
        kind: Kind,
        query: &WatchQuery,
    ) -> impl Stream<Item = Result<Watched<Change>, ClientError>> + Send + Unpin + use<> {
        let mut pairs = Vec::new();
        pairs.extend(query.name.clone().map(|name| ("name", name)));
        pairs.extend(query.selector.clone().map(|selector| ("labelSelector", selector)));
        pairs.extend(query.templates.then(|| ("mode", "template".to_owned())));
        messages(Source::new(self, &["v1", kind.plural(), "watch"], pairs, None))
    }

    /// What happens on the server, as it happens.
    pub fn watch_events(
        &self,
        query: &EventQuery,
    ) -> impl Stream<Item = Result<Watched<Value>, ClientError>> + Send + Unpin + use<> {
        let mut pairs = Vec::new();
        pairs.extend(query.since.map(|since| ("since", since.to_string())));
        pairs.extend(query.kind.clone().map(|kind| ("kind", kind)));
        pairs.extend(query.name.clone().map(|name| ("name", name)));
        messages(Source::new(self, &["v1", "events", "watch"], pairs, None))
    }
}

fn messages<T: DeserializeOwned + Send + 'static>(
    source: Source,
) -> impl Stream<Item = Result<Watched<T>, ClientError>> + Send + Unpin + use<T> {
    Box::pin(stream::unfold(Some(source), |source| async move {
        let mut source = source?;
        match source.next().await? {
            Ok(Heard::Message(message)) => match serde_json::from_str(&message.data) {
                Ok(came) => Some((Ok(Watched::Came(came)), Some(source))),
                Err(error) => Some((Err(ClientError::BadAnswer(error)), None)),
            },
            Ok(Heard::Dropped { attempt, wait, error }) => {
                Some((Ok(Watched::Reconnecting { attempt, wait, error }), Some(source)))
            }
            Err(error) => Some((Err(error), None)),
        }
    }))
}
