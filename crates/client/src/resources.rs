//! Declared objects of any kind, as the JSON they are on the wire.

use ostler_spec::Kind;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Client, ClientError, transport};

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next page begins, if there is one.
    #[serde(rename = "continue", default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which part of a list; by default the first hundred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageRequest {
    pub limit: Option<usize>,
    /// The `next` of the page before.
    pub after: Option<String>,
}

impl Client {
    /// Puts the object in place (a Task is created) and gives it back as it is stored. Takes a
    /// [`ostler_spec::Resource`] or plain JSON; its own namespace counts, not the client's.
    pub async fn apply<T: Serialize + ?Sized>(&self, manifest: &T) -> Result<Value, ClientError> {
        let manifest = serde_json::to_value(manifest).map_err(ClientError::BadAnswer)?;
        let kind = manifest.get("kind").and_then(Value::as_str).and_then(Kind::from_name);
        let plural = kind.ok_or(ClientError::UnknownKind)?.plural();
        self.read(self.request(Method::POST, &["v1", plural])?.json(&manifest)).await
    }

    pub async fn get(&self, kind: Kind, name: &str) -> Result<Value, ClientError> {
        self.read(self.request_in_namespace(Method::GET, &["v1", kind.plural(), name], &[])?).await
    }

    pub async fn list(&self, kind: Kind, page: &PageRequest) -> Result<Page<Value>, ClientError> {
        let limit = page.limit.map(|limit| limit.to_string());
        let mut query = Vec::new();
        query.extend(limit.as_deref().map(|limit| ("limit", limit)));
        // Tasks are listed from the newest on.
        let cursor = if kind == Kind::Task { "before" } else { "after" };
        query.extend(page.after.as_deref().map(|after| (cursor, after)));
        self.read(self.request_in_namespace(Method::GET, &["v1", kind.plural()], &query)?).await
    }

    pub async fn delete(&self, kind: Kind, name: &str) -> Result<(), ClientError> {
        let request = self.request_in_namespace(Method::DELETE, &["v1", kind.plural(), name], &[])?;
        self.send(request.timeout(transport::ANSWER_WITHIN)).await?;
        Ok(())
    }
}
