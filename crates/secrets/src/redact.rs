//! Hides the secrets that this process knows, in whatever it says, keeps or shows: as they are, and as they look when
//! somebody has encoded them. What looks like a key and is none of ours is `ostler_net::redact`'s matter.

mod flow;
mod forms;
mod patterns;

use std::{
    borrow::Cow,
    collections::VecDeque,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use zeroize::Zeroizing;

pub use self::flow::Flow;
use self::patterns::Patterns;

pub const HIDDEN: &str = "[REDACTED]";

/// A shorter value is part of too many words: to hide it would do more harm than good.
pub const SHORTEST: usize = 6;

/// So many values are known at once; past it the one that was first heard of is forgotten.
const MOST: usize = 1024;

/// A handle: all its clones know the same values.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    values: VecDeque<Zeroizing<String>>,
    patterns: Arc<Patterns>,
}

impl Redactor {
    /// Hides the value from now on. Its lines too, if it has many: keys in PEM are often shown line by line.
    pub fn hide(&self, value: &str) {
        let value = value.trim();
        if value.len() < SHORTEST || self.knows(value) {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.values.push_back(Zeroizing::new(value.to_owned()));
        if known.values.len() > MOST {
            known.values.pop_front();
        }
        let patterns = Patterns::of(known.values.iter().flat_map(|value| forms::of(value)));
        known.patterns = Arc::new(patterns);
    }

    fn knows(&self, value: &str) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.values.iter().any(|known| known.as_str() == value)
    }

    /// The text without any value that is known.
    pub fn hidden<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.patterns().hidden(text)
    }

    /// The same for text that somebody else may have written: what looks like a key is hidden too.
    pub fn hidden_words(&self, text: &str) -> String {
        ostler_net::redact(&self.hidden(text)).into_owned()
    }

    /// Hides in place, and leaves what has nothing in it as it is.
    pub fn clean(&self, text: &mut String) {
        if let Cow::Owned(hidden) = self.hidden(text) {
            *text = hidden;
        }
    }

    /// Hides in every text of a JSON value, the names of its members too.
    pub fn clean_json(&self, value: &mut serde_json::Value) {
        let patterns = self.patterns();
        if !patterns.is_empty() {
            patterns.clean_json(value);
        }
    }

    /// Text that comes in pieces.
    pub fn flow(&self) -> Flow {
        Flow::new(self.clone())
    }

    pub(crate) fn patterns(&self) -> Arc<Patterns> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).patterns)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Redactor")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "p\"ss w/rd+ü\\ sk-1234";

    fn redactor(values: &[&str]) -> Redactor {
        let redactor = Redactor::default();
        values.iter().for_each(|value| redactor.hide(value));
        redactor
    }

    #[test]
    fn a_value_is_hidden_as_it_is_and_as_others_write_it() {
        use base64::{
            Engine as _,
            engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
        };
        let redactor = redactor(&[VALUE]);
        let written = [
            VALUE.to_owned(),
            serde_json::to_string(VALUE).unwrap(),
            STANDARD.encode(VALUE),
            STANDARD_NO_PAD.encode(VALUE),
            URL_SAFE_NO_PAD.encode(VALUE),
            "p%22ss%20w%2Frd%2B%C3%BC%5C%20sk-1234".to_owned(),
            "p%22ss+w%2frd%2b%c3%bc%5c+sk-1234".to_owned(),
            "p%22ss%20w/rd+%C3%BC%5C%20sk-1234".to_owned(),
        ];
        for text in written {
            let shown = redactor.hidden(&text).into_owned();
            assert!(shown.contains(HIDDEN) && shown.len() <= HIDDEN.len() + 6, "{text} is shown as {shown}");
        }
    }

    #[test]
    fn base64_of_more_than_the_value_is_seen_through() {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let redactor = redactor(&["correct-horse-battery"]);
        for (before, behind) in [("", ""), ("u:", ""), ("user:", "!"), ("ab", "xyz"), ("abc", "12")] {
            let text = STANDARD.encode(format!("{before}correct-horse-battery{behind}"));
            let shown = redactor.hidden(&text).into_owned();
            assert!(shown.contains(HIDDEN), "{before:?} {behind:?}: {shown}");
            let rest = shown.replace(HIDDEN, "");
            assert!(rest.len() <= 4 + before.len() * 2 + behind.len() * 2, "{rest} is left of {text}");
        }
    }

    #[test]
    fn short_values_and_other_words_stay() {
        let redactor = redactor(&["abc12", "   x ", "longer-than-that"]);
        for text in ["abc12 and x", "longer-than-thi", "", "ü"] {
            assert!(matches!(redactor.hidden(text), Cow::Borrowed(_)), "{text}");
        }
        assert_eq!(redactor.hidden("<longer-than-that>"), "<[REDACTED]>");
    }

    #[test]
    fn the_longest_of_several_is_hidden_whole() {
        let redactor = redactor(&["secret", "secret-and-more", "and-more-still"]);
        assert_eq!(redactor.hidden("a secret-and-more-still"), "a [REDACTED]-still");
        assert_eq!(redactor.hidden("secretsecret-and"), "[REDACTED][REDACTED]-and");
    }

    #[test]
    fn each_line_of_a_long_key_is_hidden() {
        let redactor = redactor(&["-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSj\n"]);
        assert_eq!(redactor.hidden("found MIIEvQIBADANBgkqhkiG9w0B there"), "found [REDACTED] there");
    }

    #[test]
    fn json_is_cleaned_wherever_a_text_stands() {
        let redactor = redactor(&["geheim-wort"]);
        let mut value = serde_json::json!({"a geheim-wort": [1, "x geheim-wort", {"n": null}]});
        redactor.clean_json(&mut value);
        assert_eq!(value, serde_json::json!({"a [REDACTED]": [1, "x [REDACTED]", {"n": null}]}));
    }

    #[test]
    fn the_oldest_is_forgotten_when_there_are_too_many() {
        let redactor = Redactor::default();
        for number in 0..=MOST {
            redactor.hide(&format!("value-{number:05}"));
        }
        assert_eq!(redactor.hidden("value-00000 value-00001"), "value-00000 [REDACTED]");
    }
}
