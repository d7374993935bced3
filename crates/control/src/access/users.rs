//! Users: people with a password of their own.

use ostler_kernel::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Grant, Kept, Namespaces, PasswordHash, Role,
    documents::{Internal, together},
};
use crate::{Control, ControlError, commands::TRIES};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct User {
    #[serde(flatten)]
    pub grant: Grant,
    pub password: PasswordHash,
    /// Drawn anew with each password. A sign-in counts as long as it names this one, so that none outlives the password
    /// that it was made with, nor goes over to another user of the same name.
    pub(super) seal: u64,
    /// When something of it was changed last, if anything was.
    #[serde(default)]
    pub updated_at: Option<Timestamp>,
}

/// What of a user is to change.
#[derive(Debug, Clone, Default)]
pub struct UserChange {
    pub role: Option<Role>,
    pub namespaces: Option<Namespaces>,
    pub password: Option<PasswordHash>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Setup {
    first_user: String,
}

/// The one document of its kind.
const SETUP: &str = "setup";

/// More than anybody looks after.
const MOST: usize = 10_000;

impl Control {
    pub async fn create_user(
        &self,
        name: &str,
        grant: Grant,
        password: PasswordHash,
    ) -> Result<Kept<User>, ControlError> {
        if self.users(None, MOST).await?.len() >= MOST {
            let message = format!("there are {MOST} users already; delete those that are gone");
            return Err(ControlError::Conflict(message));
        }
        let user = self.new_user(grant, password);
        if !self.commit_documents(self.new_document(Internal::User, name, &user)).await? {
            return Err(ControlError::Conflict(format!("there is a user {name:?} already")));
        }
        self.user(name).await?.ok_or_else(|| missing(name))
    }

    /// The first user, who may do everything. Of several who want to be it at once, one is.
    pub async fn create_first_user(
        &self,
        name: &str,
        password: PasswordHash,
    ) -> Result<Kept<User>, ControlError> {
        let former = self.kept::<Setup>(Internal::Setup, SETUP).await?;
        if self.has_users().await? {
            return Err(already_set_up());
        }
        let setup = Setup { first_user: name.to_owned() };
        let claim = match &former {
            Some(former) => former.replaced(Internal::Setup, &setup),
            None => self.new_document(Internal::Setup, SETUP, &setup),
        };
        let user = self.new_user(Grant::whole(), password);
        let bundle = together(claim, self.new_document(Internal::User, name, &user));
        if !self.commit_documents(bundle).await? {
            return Err(already_set_up());
        }
        self.user(name).await?.ok_or_else(|| missing(name))
    }

    pub async fn has_users(&self) -> Result<bool, ControlError> {
        Ok(!self.users(None, 1).await?.is_empty())
    }

    pub async fn user(&self, name: &str) -> Result<Option<Kept<User>>, ControlError> {
        self.kept(Internal::User, name).await
    }

    /// In the order of their names, behind one.
    pub async fn users(&self, after: Option<&str>, limit: usize) -> Result<Vec<Kept<User>>, ControlError> {
        self.kept_behind(Internal::User, after, limit).await
    }

    /// Changes a user. A new password ends all that was signed in with the old one.
    pub async fn change_user(&self, name: &str, change: UserChange) -> Result<Kept<User>, ControlError> {
        for _ in 0..TRIES {
            let user = self.user(name).await?.ok_or_else(|| missing(name))?;
            let mut changed = user.document.clone();
            changed.grant.role = change.role.unwrap_or(changed.grant.role);
            if let Some(namespaces) = &change.namespaces {
                changed.grant.namespaces = namespaces.clone();
            }
            if let Some(password) = &change.password {
                changed.password = password.clone();
                changed.seal = self.seal();
            }
            changed.updated_at = Some(self.runtime.now());
            if self.commit_documents(user.replaced(Internal::User, &changed)).await? {
                return self.user(name).await?.ok_or_else(|| missing(name));
            }
        }
        Err(ControlError::Contended)
    }

    /// With all that was signed in as this user.
    pub async fn delete_user(&self, name: &str) -> Result<(), ControlError> {
        for _ in 0..TRIES {
            let user = self.user(name).await?.ok_or_else(|| missing(name))?;
            if self.commit_documents(user.removed(Internal::User)).await? {
                return Ok(());
            }
        }
        Err(ControlError::Contended)
    }

    fn new_user(&self, grant: Grant, password: PasswordHash) -> User {
        User { grant, password, seal: self.seal(), updated_at: None }
    }

    fn seal(&self) -> u64 {
        self.runtime.random()
    }
}

fn already_set_up() -> ControlError {
    ControlError::Conflict("the first user is there already".to_owned())
}

fn missing(name: &str) -> ControlError {
    ControlError::NotFound { kind: "user", name: name.to_owned() }
}
