//! Secrets: values that can't be printed, sealed where they are kept, found where they are used, and hidden wherever they
//! would show.
//!
//! [`KeyRing`] seals and opens; who keeps what was sealed is `control`'s matter. [`Secrets`] finds the value that an
//! endpoint or a tool names, and tells [`Redactor`], which hides it from then on in everything that is said, kept or
//! shown.

mod codes;
mod environment;
mod key;
mod redact;
mod resolve;
mod seal;
mod value;

pub use codes::CODES;
pub use environment::variable;
pub use key::{Key, KeyError, KeyId, KeyRing};
pub use redact::{Flow, HIDDEN, Redactor, SHORTEST};
pub use resolve::{Asked, Resolver, Secrets};
pub use seal::{OpenError, Place, key_of};
pub use value::SecretText;
