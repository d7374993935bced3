//! Tokens: made once and shown once. What is kept is a digest, under the token's name, and beside it who has which
//! digest, so that a token is found by what its holder shows.

use ostler_kernel::{Bundle, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    Digest, Grant, Kept, User,
    documents::{Internal, together},
    make_secret,
};
use crate::{Control, ControlError, commands::TRIES};

/// A token as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Token {
    pub(super) digest: Digest,
    #[serde(flatten)]
    pub grant: Grant,
    /// Who made it.
    pub created_by: String,
    /// Not to the minute: it is written down rarely.
    #[serde(default)]
    pub last_used_at: Option<Timestamp>,
    /// From then on it opens nothing.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// Whom it stands for: then it may what they may, as long as they are there with the password of then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stands_for: Option<StandsFor>,
}

/// A user, as one who has signed in is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StandsFor {
    pub user: String,
    pub seal: u64,
}

#[derive(Debug, Clone)]
pub struct NewToken {
    pub name: String,
    pub grant: Grant,
    pub created_by: String,
    pub expires_at: Option<Timestamp>,
}

/// Which token has this digest.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DigestOf {
    pub token: String,
}

/// How all of them begin, so that one that was left somewhere is recognised.
const PREFIX: &str = "ost_";

/// More than anybody looks after.
const MOST: usize = 10_000;

/// Of those that stand for one user.
const MOST_OWN: usize = 32;

impl Control {
    /// Makes a token. What its holder has to show is given back here, and nowhere else.
    pub async fn create_token(&self, new: NewToken) -> Result<(Kept<Token>, String), ControlError> {
        self.create_token_of(new, None).await
    }

    /// One that stands for a user, wherever they are not asked for their password.
    pub async fn create_own_token(
        &self,
        user: &Kept<User>,
        name: String,
        expires_at: Timestamp,
    ) -> Result<(Kept<Token>, String), ControlError> {
        self.make_room(&user.name).await?;
        let (grant, created_by) = (user.document.grant.clone(), user.name.clone());
        let stands_for = StandsFor { user: user.name.clone(), seal: user.document.seal };
        let new = NewToken { name, grant, created_by, expires_at: Some(expires_at) };
        self.create_token_of(new, Some(stands_for)).await
    }

    /// Takes away those of a user's that end first, and may have ended, if there are too many.
    async fn make_room(&self, user: &str) -> Result<(), ControlError> {
        let mut own = Vec::new();
        self.all_kept::<Token>(Internal::Token, |token| {
            if token.document.stands_for.as_ref().is_some_and(|stands_for| stands_for.user == user) {
                own.push((token.document.expires_at, token.name));
            }
        })
        .await?;
        own.sort();
        let surplus = (own.len() + 1).saturating_sub(MOST_OWN);
        for (_, name) in own.into_iter().take(surplus) {
            match self.delete_token(&name).await {
                Ok(()) | Err(ControlError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn create_token_of(
        &self,
        new: NewToken,
        stands_for: Option<StandsFor>,
    ) -> Result<(Kept<Token>, String), ControlError> {
        let NewToken { name, grant, created_by, expires_at } = new;
        if self.kept_behind::<Token>(Internal::Token, None, MOST).await?.len() >= MOST {
            let message = format!("there are {MOST} tokens already; delete those that nobody needs");
            return Err(ControlError::Conflict(message));
        }
        let secret = make_secret(PREFIX, &*self.runtime);
        let digest = Digest::of(secret.as_bytes());
        let token = Token { digest, grant, created_by, last_used_at: None, expires_at, stands_for };
        let bundle = together(
            self.new_document(Internal::Token, &name, &token),
            self.new_document(Internal::TokenDigest, &digest.to_string(), &DigestOf { token: name.clone() }),
        );
        if !self.commit_documents(bundle).await? {
            return Err(ControlError::Conflict(format!("there is a token {name:?} already")));
        }
        let kept = self.kept(Internal::Token, &name).await?.ok_or_else(|| missing(&name))?;
        Ok((kept, secret))
    }

    /// In the order of their names, behind one.
    pub async fn tokens(&self, after: Option<&str>, limit: usize) -> Result<Vec<Kept<Token>>, ControlError> {
        self.kept_behind(Internal::Token, after, limit).await
    }

    /// From now on it opens nothing: here at once, on other servers as soon as they hear of it.
    pub async fn delete_token(&self, name: &str) -> Result<(), ControlError> {
        for _ in 0..TRIES {
            let token: Kept<Token> = self.kept(Internal::Token, name).await?.ok_or_else(|| missing(name))?;
            if self.commit_documents(self.without(&token).await?).await? {
                return Ok(());
            }
        }
        Err(ControlError::Contended)
    }

    async fn without(&self, token: &Kept<Token>) -> Result<Bundle, ControlError> {
        let digest = token.document.digest.to_string();
        let removed = token.removed(Internal::Token);
        Ok(match self.kept::<DigestOf>(Internal::TokenDigest, &digest).await? {
            Some(found) => together(removed, found.removed(Internal::TokenDigest)),
            None => removed,
        })
    }

    /// The token that this is the digest of.
    pub(super) async fn token_of(&self, digest: &Digest) -> Result<Option<Kept<Token>>, ControlError> {
        let found = self.kept::<DigestOf>(Internal::TokenDigest, &digest.to_string()).await?;
        let Some(found) = found else { return Ok(None) };
        let token = self.kept::<Token>(Internal::Token, &found.document.token).await?;
        Ok(token.filter(|token| token.document.digest.is(digest)))
    }

    /// Notes that it was used. Another server may have noted it already, or it is gone: then there is nothing to note.
    pub(super) async fn note_use(&self, digest: &Digest) -> Result<(), ControlError> {
        let Some(token) = self.token_of(digest).await? else { return Ok(()) };
        let noted = Token { last_used_at: Some(self.runtime.now()), ..token.document.clone() };
        self.commit_documents(token.replaced(Internal::Token, &noted)).await.map(drop)
    }
}

fn missing(name: &str) -> ControlError {
    ControlError::NotFound { kind: "token", name: name.to_owned() }
}
