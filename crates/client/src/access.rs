//! Who may come in: tokens for programs, users for people. Each has a role (reader, writer, controller, admin) and the
//! namespaces it holds for.

use reqwest::Method;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{Client, ClientError, Page, transport::ANSWER_WITHIN};

/// As many as a server gives at once.
const PAGE: &str = "1000";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewToken {
    pub name: String,
    pub role: String,
    /// None for all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// RFC 3339; without it the token holds until it is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenView {
    pub name: String,
    #[serde(default)]
    pub role: String,
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Told once, when it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct NewUser {
    pub name: String,
    pub password: String,
    pub role: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

/// What is to be different; the rest stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UserChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SentUser")]
pub struct UserView {
    pub name: String,
    pub role: String,
    pub namespaces: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_login_at: Option<String>,
}

/// A user as it may come: under either name, or under both. An alias would take the second for a repetition.
#[derive(Deserialize)]
struct SentUser {
    name: Option<String>,
    username: Option<String>,
    #[serde(default)]
    role: String,
    #[serde(default)]
    namespaces: Vec<String>,
    created_at: Option<String>,
    last_login_at: Option<String>,
}

impl TryFrom<SentUser> for UserView {
    type Error = &'static str;

    fn try_from(sent: SentUser) -> Result<Self, Self::Error> {
        let SentUser { name, username, role, namespaces, created_at, last_login_at } = sent;
        let name = name.or(username).ok_or("a user without a name")?;
        Ok(Self { name, role, namespaces, created_at, last_login_at })
    }
}

/// What whoever asks may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantView {
    #[serde(default)]
    pub role: String,
    /// None, or `*`, for all of them.
    #[serde(default)]
    pub namespaces: Vec<String>,
}

impl GrantView {
    pub fn is_everywhere(&self) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|name| name == "*")
    }
}

impl Client {
    /// What our token lets us do.
    pub async fn grant(&self) -> Result<GrantView, ClientError> {
        self.read(self.request(Method::GET, &["v1", "auth", "me"])?).await
    }

    /// Makes a token; the answer is the only place where it is told.
    pub async fn create_token(&self, token: &NewToken) -> Result<TokenView, ClientError> {
        self.read(self.request(Method::POST, &["v1", "tokens"])?.json(token)).await
    }

    pub async fn tokens(&self) -> Result<Vec<TokenView>, ClientError> {
        self.all_pages(&["v1", "tokens"]).await
    }

    pub async fn delete_token(&self, name: &str) -> Result<(), ClientError> {
        self.done(Method::DELETE, &["v1", "tokens", name], None).await
    }

    pub async fn create_user(&self, user: &NewUser) -> Result<UserView, ClientError> {
        self.read(self.request(Method::POST, &["v1", "auth", "users"])?.json(user)).await
    }

    pub async fn users(&self) -> Result<Vec<UserView>, ClientError> {
        self.all_pages(&["v1", "auth", "users"]).await
    }

    pub async fn change_user(&self, name: &str, change: &UserChange) -> Result<UserView, ClientError> {
        self.read(self.request(Method::PATCH, &["v1", "auth", "users", name])?.json(change)).await
    }

    pub async fn delete_user(&self, name: &str) -> Result<(), ClientError> {
        self.done(Method::DELETE, &["v1", "auth", "users", name], None).await
    }

    /// Gives somebody another password, whatever the one before it was.
    pub async fn reset_password(&self, name: &str, password: &str) -> Result<(), ClientError> {
        let body = json!({ "username": name, "new_password": password });
        self.done(Method::POST, &["v1", "auth", "admin", "reset-password"], Some(&body)).await
    }

    async fn all_pages<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Vec<T>, ClientError> {
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut query = vec![("limit", PAGE)];
            query.extend(after.as_deref().map(|after| ("after", after)));
            let page: Page<T> = self.read(self.request_with(Method::GET, path, &query)?).await?;
            all.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// Sends it, and is content with any answer that is no refusal.
    async fn done(&self, method: Method, path: &[&str], body: Option<&Value>) -> Result<(), ClientError> {
        let request = self.request(method, path)?.timeout(ANSWER_WITHIN);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        self.send(request).await?;
        Ok(())
    }
}
