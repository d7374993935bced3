//! Who may use the system: tokens that programs show, users with a password, and users who have signed in. All are
//! documents of kinds that no manifest can name, among the resources of the store (see decision 20); what is secret in
//! them is kept as a hash. What a caller may do with what it has is the server's matter.

mod documents;
mod grant;
mod known;
mod password;
mod secret;
mod sign_ins;
mod tokens;
mod users;

pub use documents::Kept;
pub use grant::{Grant, Namespaces, Role, UnknownRole};
pub use known::{Holder, Proof};
pub use password::{PasswordBytes, PasswordHash};
pub use secret::{Digest, is_same, make_secret};
pub use sign_ins::SignedIn;
pub use tokens::{NewToken, Token};
pub use users::{User, UserChange};

pub(crate) use documents::Internal;
pub(crate) use known::Credentials;
