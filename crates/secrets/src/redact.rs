//! Hides the secrets that this process knows, in whatever it says, keeps or shows: as they are, and as they look when
//! somebody has encoded them; and what can be nothing but a key, whosever it is. What merely looks like a key is
//! `ostler_net::redact`'s matter.

mod flow;
mod forms;
mod patterns;
mod shapes;

use std::{
    borrow::{Borrow, Cow},
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use zeroize::Zeroizing;

pub use self::flow::Flow;
use self::patterns::{Patterns, Rest};

pub const HIDDEN: &str = "[REDACTED]";

/// A shorter value is part of too many words: to hide it would do more harm than good.
pub const SHORTEST: usize = 6;

/// So many values that come and go are known at once; past it the one that was not looked up for longest is forgotten.
const MOST: usize = 1024;

/// As much of what another side said as is looked at for an excerpt.
const MOST_QUOTED: usize = 64 * 1024;

/// A handle: all its clones know the same values.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    values: BTreeMap<Value, Stay>,
    patterns: Arc<Patterns>,
    /// Counts what is looked up.
    clock: AtomicU64,
}

#[derive(PartialEq, Eq)]
struct Value(Zeroizing<String>);

/// How long a value is known.
enum Stay {
    /// As long as the process lives.
    ForGood,
    /// Until others were looked up more recently.
    Since(AtomicU64),
}

impl Redactor {
    /// Hides the value from now on, and remembers that it was just used. Its lines too, if it has many: keys in PEM are
    /// often shown line by line.
    pub fn hide(&self, value: &str) {
        let value = value.trim();
        if value.len() < SHORTEST || self.read().is_used_again(value) {
            return;
        }
        let mut known = self.write();
        let now = known.tick();
        known.add(value, Stay::Since(AtomicU64::new(now)));
        known.forget_one_too_many();
    }

    /// Hides what belongs to the process itself, such as its tokens and keys, and never forgets it.
    pub fn hide_for_good(&self, value: &str) {
        let value = value.trim();
        if value.len() >= SHORTEST {
            self.write().add(value, Stay::ForGood);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The text without any value that is known.
    pub fn hidden<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.patterns().hidden(text, Rest::None)
    }

    /// The same for text that may have been cut: an end that a value begins with is hidden too.
    pub fn hidden_cut<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.patterns().hidden(text, Rest::WasCut)
    }

    /// The same for text that somebody else may have written: what looks like a key is hidden too.
    pub fn hidden_words(&self, text: &str) -> String {
        let text = ostler_net::redact(&self.hidden(text)).into_owned();
        shapes::hidden(&text).into_owned()
    }

    /// The beginning of what another side said, as one line of at most `max` characters. Everything is hidden before it is
    /// cut: of a value that the cut goes through, nobody would know the rest.
    pub fn excerpt(&self, said: &[u8], max: usize) -> String {
        let said = String::from_utf8_lossy(said.get(..MOST_QUOTED).unwrap_or(said));
        let said = ostler_net::redact(&self.hidden_cut(&said)).into_owned();
        ostler_net::excerpt(&shapes::hidden(&said), max)
    }

    /// Hides in place what may have been cut, and what can only be a key; leaves what has nothing in it as it is.
    pub fn clean(&self, text: &mut String) {
        if let Cow::Owned(hidden) = self.hidden_cut(text) {
            *text = hidden;
        }
        if let Cow::Owned(hidden) = shapes::hidden(text) {
            *text = hidden;
        }
    }

    /// Hides the values that are known in every text of a JSON value, the names of its members too.
    pub fn clean_json(&self, value: &mut serde_json::Value) {
        let patterns = self.patterns();
        if !patterns.is_empty() {
            patterns.clean_json(value, Rest::WasCut);
        }
    }

    /// Text that comes in pieces, all of them together as [`Self::clean`] would leave it.
    pub fn flow(&self) -> Flow {
        Flow::new(self.clone())
    }

    pub(crate) fn patterns(&self) -> Arc<Patterns> {
        Arc::clone(&self.read().patterns)
    }
}

impl Known {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether it is known. If so, it was used just now.
    fn is_used_again(&self, value: &str) -> bool {
        match self.values.get(value) {
            Some(Stay::Since(used)) => used.store(self.tick(), Ordering::Relaxed),
            Some(Stay::ForGood) => {}
            None => return false,
        }
        true
    }

    /// Only what is new is worked out; whoever is reading meanwhile goes on with what was known before.
    fn add(&mut self, value: &str, stay: Stay) {
        match (self.values.get_mut(value), stay) {
            (Some(Stay::ForGood), _) => {}
            (Some(known), stay) => *known = stay,
            (None, stay) => {
                self.values.insert(Value(Zeroizing::new(value.to_owned())), stay);
                let patterns = Arc::make_mut(&mut self.patterns);
                forms::of(value).into_iter().for_each(|form| patterns.add(form));
            }
        }
    }

    fn forget_one_too_many(&mut self) {
        let passing = self.values.iter().filter_map(|(value, stay)| match stay {
            Stay::ForGood => None,
            Stay::Since(used) => Some((used.load(Ordering::Relaxed), value)),
        });
        let (count, oldest) = passing.fold((0, None), |(count, oldest), one| {
            let older = oldest.filter(|(used, _)| *used <= one.0).unwrap_or(one);
            (count + 1, Some(older))
        });
        let Some((_, Value(oldest))) = oldest.filter(|_| count > MOST) else { return };
        let oldest = oldest.clone();
        self.values.remove(oldest.as_str());
        let patterns = Arc::make_mut(&mut self.patterns);
        forms::of(&oldest).iter().for_each(|form| patterns.remove(form));
    }
}

impl Borrow<str> for Value {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// As the text that it is, which is how it is looked for.
impl Ord for Value {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.as_str().cmp(other.0.as_str())
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
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
    fn an_excerpt_is_cut_after_everything_is_hidden() {
        let redactor = redactor(&["geheim/wort+0123456789"]);
        for before in 260..320 {
            let said = format!("{} geheim/wort+0123456789 behind", "x".repeat(before));
            let shown = redactor.excerpt(said.as_bytes(), 300);
            assert!(!shown.contains("geheim/w") && shown.chars().count() <= 301, "{before}: {shown}");
        }
        let blank = format!("{}geheim/wort+0123456789", " ".repeat(MOST_QUOTED - 12));
        assert_eq!(redactor.excerpt(blank.as_bytes(), 300), HIDDEN, "what is looked at ends in it");
    }

    #[test]
    fn of_a_text_that_was_cut_the_beginning_of_a_value_is_hidden() {
        let redactor = redactor(&["geheim-wort-1", "geheim-w"]);
        assert_eq!(redactor.hidden_cut("it is geheim-wort"), "it is [REDACTED]");
        assert_eq!(
            redactor.hidden_cut("it is geheim-wo, or"),
            "it is [REDACTED]o, or",
            "cut at its end alone"
        );
        assert_eq!(redactor.hidden_cut("it is geheim-"), "it is geheim-", "as any word begins");
        let mut value = serde_json::json!({"a": ["geheim-wort"], "geheim-wort": 1});
        redactor.clean_json(&mut value);
        assert_eq!(value, serde_json::json!({"a": ["[REDACTED]"], "[REDACTED]ort": 1}));
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
    fn what_was_not_used_for_longest_is_forgotten_when_there_are_too_many() {
        let redactor = Redactor::default();
        redactor.hide_for_good("token-of-mine");
        for number in 0..MOST {
            redactor.hide(&format!("value-{number:05}"));
        }
        redactor.hide("value-00000");
        redactor.hide("one-more-value");
        let text = "token-of-mine value-00000 value-00001 value-00002 one-more-value";
        assert_eq!(
            redactor.hidden(text),
            "[REDACTED] [REDACTED] value-00001 [REDACTED] [REDACTED]",
            "the first was used again, and what belongs to the process stays"
        );
    }

    #[test]
    fn a_form_that_two_values_share_is_hidden_until_both_are_forgotten() {
        let redactor = Redactor::default();
        redactor.hide("shared-line-of-text-1\nother-line-of-text-1");
        redactor.hide("shared-line-of-text-1\nother-line-of-text-2");
        for number in 1..MOST {
            redactor.hide(&format!("value-{number:05}"));
        }
        let text = "shared-line-of-text-1 other-line-of-text-1 other-line-of-text-2";
        assert_eq!(redactor.hidden(text), "[REDACTED] other-line-of-text-1 [REDACTED]");
    }

    #[test]
    fn what_was_added_and_forgotten_leaves_what_is_known_as_if_it_was_never_there() {
        let (redactor, fresh) = (Redactor::default(), Redactor::default());
        for number in 0..MOST * 2 {
            redactor.hide(&format!("value {number:05}/+"));
        }
        for number in MOST..MOST * 2 {
            fresh.hide(&format!("value {number:05}/+"));
        }
        assert!(*redactor.patterns() == *fresh.patterns());
    }
}
