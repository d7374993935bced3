//! What another side said, made fit to be shown: short, printable, without anything that looks like a key.

mod label;

use std::{borrow::Cow, ops::Range};

use self::label::Label;

const HIDDEN: &str = "[REDACTED]";

/// The beginning of `text` on one line, of at most `max` characters, keys hidden. Secrets that are known by their value are
/// to be hidden before, by `ostler_secrets::Redactor::excerpt`: one that was cut in half is recognised by nobody.
pub fn excerpt(text: &str, max: usize) -> String {
    // Before it becomes one line: behind some labels everything is hidden up to the line's end.
    let line = redact(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Hides what follows a telling label (`api_key=`, `Authorization:`, `Bearer`) or begins like a known key.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(word) = next_word(text, at) {
        at = word.end;
        let Some(hidden) = secret_at(text, word) else { continue };
        shown.push_str(text.get(copied..hidden.start).unwrap_or_default());
        shown.push_str(HIDDEN);
        (copied, at) = (hidden.end, hidden.end);
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(shown)
}

/// The secret that the word is, or that stands behind it.
fn secret_at(text: &str, place: Range<usize>) -> Option<Range<usize>> {
    let word = text.get(place.clone())?;
    if looks_like_key(word) {
        return Some(place);
    }
    let found = Label::of(word)?.secret_behind(text, place.end)?;
    (!found.is_empty()).then_some(found)
}

/// The next run of the characters that keys and labels are made of.
fn next_word(text: &str, from: usize) -> Option<Range<usize>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.+/~*".contains(c);
    let start = from + text.get(from..)?.find(is_part)?;
    let tail = text.get(start..)?;
    Some(start..start + tail.find(|c| !is_part(c)).unwrap_or(tail.len()))
}

fn looks_like_key(word: &str) -> bool {
    let prefixes =
        ["sk-", "sk_", "gsk_", "rk_", "xai-", "ghp_", "github_pat_", "xox", "AKIA", "AIza", "eyJ", "hf_"];
    word.len() >= 12 && prefixes.iter().any(|prefix| word.starts_with(prefix))
}

#[cfg(test)]
mod tests;
