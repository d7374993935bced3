//! Who asks, and what they may: from what a request shows to a caller with a role and namespaces, and the one place
//! where a route's need is held against it.

mod caller;
mod cookie;
mod identify;
mod name;
mod password;
mod references;
mod sign_in;

pub use caller::{Caller, Identity, Peer};
pub use cookie::Cookies;
pub use identify::identify;
pub use name::check_name;
pub use password::{Asker, Passwords, check_password};
pub use sign_in::{SetupToken, SignIns};
