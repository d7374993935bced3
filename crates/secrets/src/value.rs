//! A secret in memory: it can't be printed, compared or written down, and is overwritten when it goes.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

#[derive(Clone)]
pub struct SecretText(SecretString);

impl SecretText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The secret itself: for the header that carries it, and nothing else.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretText")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_it_is_printed() {
        let secret = SecretText::new("hunter2-hunter2");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "SecretText Some(SecretText)");
        assert_eq!(secret.expose(), "hunter2-hunter2");
    }
}
