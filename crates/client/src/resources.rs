//! Declared objects of any kind, as the JSON they are on the wire.

use ostler_spec::Kind;
use reqwest::{Method, header};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
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
    /// Only those whose labels are so: `team=a,tier!=test,owner,!old`.
    pub selector: Option<String>,
}

/// Whether a write counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    Real,
    /// Everything is checked and nothing is written.
    Dry,
}

/// What would become of an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Checked {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    /// `created`, `configured` or `unchanged`.
    pub outcome: String,
}

/// A conversation that has a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    #[serde(default)]
    pub api_version: String,
    #[serde(default)]
    pub kind: String,
    pub metadata: SessionMetadata,
    pub status: SessionStatus,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionMetadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    /// `Active` while a run of it has not ended, or else `Idle`.
    pub phase: String,
    /// The agent it is with; of a system's, the system comes first.
    pub subject: String,
    pub key: String,
    pub runs: u64,
    pub last_used_at: String,
}

impl Client {
    /// Puts the object in place (a Task is created) and gives it back as it is stored. Takes a
    /// [`ostler_spec::Resource`] or plain JSON; its own namespace counts, not the client's.
    pub async fn apply<T: Serialize + ?Sized>(&self, manifest: &T) -> Result<Value, ClientError> {
        self.apply_as(manifest, Writing::Real).await
    }

    /// The same, or only what would come of it.
    pub async fn apply_as<T: Serialize + ?Sized>(
        &self,
        manifest: &T,
        writing: Writing,
    ) -> Result<Value, ClientError> {
        let manifest = serde_json::to_value(manifest).map_err(ClientError::BadAnswer)?;
        let kind = manifest.get("kind").and_then(Value::as_str).and_then(Kind::from_name);
        let plural = kind.ok_or(ClientError::UnknownKind)?.plural();
        let query: &[(&str, &str)] = match writing {
            Writing::Real => &[],
            Writing::Dry => &[("dry_run", "true")],
        };
        self.read(self.request_with(Method::POST, &["v1", plural], query)?.json(&manifest)).await
    }

    /// What would become of objects that belong together; a problem tells all that is wrong with them. Nothing is written.
    pub async fn check<T: Serialize>(&self, manifests: &[T]) -> Result<Vec<Checked>, ClientError> {
        #[derive(Deserialize)]
        struct Answer {
            items: Vec<Checked>,
        }
        let answer: Answer =
            self.read(self.request(Method::POST, &["v1", "check"])?.json(&manifests)).await?;
        Ok(answer.items)
    }

    /// Puts the manifest in the place of an object that is there, if nobody has changed it since `version`. Another name
    /// in the manifest renames it.
    pub async fn replace(
        &self,
        kind: Kind,
        name: &str,
        manifest: &Value,
        version: &str,
    ) -> Result<Value, ClientError> {
        let request = self.request_in_namespace(Method::PUT, &["v1", kind.plural(), name], &[])?;
        self.read(request.header(header::IF_MATCH, format!("\"{version}\"")).json(manifest)).await
    }

    pub async fn get(&self, kind: Kind, name: &str) -> Result<Value, ClientError> {
        self.read(self.request_in_namespace(Method::GET, &["v1", kind.plural(), name], &[])?).await
    }

    /// Conversations that have a key, as somebody has spoken in them; they have no labels.
    pub async fn sessions(&self, page: &PageRequest) -> Result<Page<SessionView>, ClientError> {
        self.page(Kind::Session, &[("mode", "live")], page).await
    }

    /// Resources of a kind: tasks that were asked for, and of anything else what was declared.
    pub async fn list(&self, kind: Kind, page: &PageRequest) -> Result<Page<Value>, ClientError> {
        match kind {
            // The same address lists conversations, too.
            Kind::Session => self.page(kind, &[("mode", "declared")], page).await,
            _ => self.page(kind, &[], page).await,
        }
    }

    /// Tasks that are kept and never run, by name.
    pub async fn templates(&self, page: &PageRequest) -> Result<Page<Value>, ClientError> {
        self.page(Kind::Task, &[("mode", "template")], page).await
    }

    async fn page<T: DeserializeOwned>(
        &self,
        kind: Kind,
        mode: &[(&str, &str)],
        page: &PageRequest,
    ) -> Result<Page<T>, ClientError> {
        let limit = page.limit.map(|limit| limit.to_string());
        let mut query = mode.to_vec();
        query.extend(limit.as_deref().map(|limit| ("limit", limit)));
        query.extend(page.after.as_deref().map(|after| ("after", after)));
        query.extend(page.selector.as_deref().map(|selector| ("labelSelector", selector)));
        self.read(self.request_in_namespace(Method::GET, &["v1", kind.plural()], &query)?).await
    }

    pub async fn delete(&self, kind: Kind, name: &str) -> Result<(), ClientError> {
        let request = self.request_in_namespace(Method::DELETE, &["v1", kind.plural(), name], &[])?;
        self.send(request.timeout(transport::ANSWER_WITHIN)).await?;
        Ok(())
    }

    /// Every namespace that holds something.
    pub async fn namespaces(&self) -> Result<Vec<String>, ClientError> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Namespaces {
            Wrapped { namespaces: Vec<String> },
            Bare(Vec<String>),
        }
        match self.read(self.request(Method::GET, &["v1", "namespaces"])?).await? {
            Namespaces::Wrapped { namespaces } | Namespaces::Bare(namespaces) => Ok(namespaces),
        }
    }
}
