//! The keys that a server seals secrets with: which there are, never what they are.

use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::{Client, ClientError};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretKeysView {
    /// Where the server has them from.
    #[serde(default)]
    pub source: String,
    /// The one that seals first.
    #[serde(default)]
    pub keys: Vec<SecretKeyView>,
    /// Secrets that the first has not sealed yet.
    #[serde(default)]
    pub left: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretKeyView {
    pub id: String,
    /// The values that it has sealed.
    #[serde(default)]
    pub values: usize,
    /// Whether the server has it.
    #[serde(default)]
    pub known: bool,
}

impl Client {
    pub async fn secret_keys(&self) -> Result<SecretKeysView, ClientError> {
        self.read(self.request(Method::GET, &["v1", "secret-keys"])?).await
    }

    /// Turns to another key. Sealing everything with it goes on behind the answer.
    pub async fn rotate_secret_keys(&self) -> Result<SecretKeysView, ClientError> {
        self.read(self.request(Method::POST, &["v1", "secret-keys", "rotate"])?).await
    }
}
