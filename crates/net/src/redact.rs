//! What another side said, made fit to be shown: short, printable, without anything that looks like a key.

use std::borrow::Cow;

const HIDDEN: &str = "[REDACTED]";

/// The beginning of `text` on one line, of at most `max` characters, keys hidden. Secrets that are known by their value are
/// to be hidden before, by `ostler_secrets::Redactor::excerpt`: one that was cut in half is recognised by nobody.
pub fn excerpt(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = redact(&line);
    match line.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.into_owned(),
    }
}

/// Hides what follows a telling label (`api_key=`, `Authorization:`, `Bearer`) or begins like a known key.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut copied = 0;
    let mut label = Label::None;
    let mut gap_start = 0;
    for (start, word) in words(text) {
        let end = start + word.len();
        let gap = text.get(gap_start..start).unwrap_or_default();
        gap_start = end;
        let scheme = Label::of(word);
        let hidden = (label.reaches(gap) && scheme != Label::Scheme) || looks_like_key(word);
        if hidden {
            shown.push_str(text.get(copied..start).unwrap_or_default());
            shown.push_str(HIDDEN);
            copied = end;
        }
        label = if hidden { Label::None } else { scheme };
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(shown)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    None,
    /// `Bearer`: a blank and then the secret.
    Scheme,
    /// `password`: a colon or an equals sign and then the secret.
    Name,
}

impl Label {
    fn of(word: &str) -> Self {
        let word = word.to_ascii_lowercase();
        if matches!(word.as_str(), "bearer" | "basic") {
            return Label::Scheme;
        }
        let ends = ["authorization", "api_key", "api-key", "apikey", "secret", "password", "token"];
        if ends.iter().any(|end| word.ends_with(end)) { Label::Name } else { Label::None }
    }

    fn reaches(self, gap: &str) -> bool {
        let only = |allowed: &str| gap.chars().all(|c| allowed.contains(c));
        match self {
            Label::None => false,
            Label::Scheme => only(" "),
            Label::Name => only(" :=\"'\\") && gap.contains([':', '=']),
        }
    }
}

/// Runs of the characters that keys and labels are made of, with where each begins.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.+/~*".contains(c);
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text.get(rest..)?.find(is_part)?;
        let tail = text.get(start..)?;
        let length = tail.find(|c| !is_part(c)).unwrap_or(tail.len());
        rest = start + length;
        Some((start, tail.get(..length)?))
    })
}

fn looks_like_key(word: &str) -> bool {
    let prefixes =
        ["sk-", "sk_", "gsk_", "rk_", "xai-", "ghp_", "github_pat_", "xox", "AKIA", "AIza", "eyJ", "hf_"];
    word.len() >= 12 && prefixes.iter().any(|prefix| word.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(redact(text), expected);
    }

    #[test]
    fn keys_are_hidden_wherever_they_stand() {
        check("Incorrect API key provided: sk-proj-abc****wxyz.", "Incorrect API key provided: [REDACTED]");
        check("Authorization: Bearer abc.def-1", "Authorization: Bearer [REDACTED]");
        check("authorization=abcdef", "authorization=[REDACTED]");
        check("X-Api-Key: 12345 was wrong", "X-Api-Key: [REDACTED] was wrong");
        check(r#"{"api_key": "12345", "n": 1}"#, r#"{"api_key": "[REDACTED]", "n": 1}"#);
        check("?api_key=a&access_token=b&x=c", "?api_key=[REDACTED]&access_token=[REDACTED]&x=c");
        check("client_secret='hush' password: p4ss", "client_secret='[REDACTED]' password: [REDACTED]");
        check("jwt eyJhbGciOiJIUzI1NiJ9.e30.abc", "jwt [REDACTED]");
    }

    #[test]
    fn ordinary_words_stay() {
        for text in
            ["the token limit is 4096 tokens: 5000 given", "no password given", "ask sk-1 for it", "ü: ö"]
        {
            check(text, text);
        }
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt("  a\n\tb \r\n", 300), "a b");
        assert_eq!(excerpt("äöü", 2), "äö…");
        let long = format!("{} sk-0123456789abcdef", "x".repeat(295));
        assert!(!excerpt(&long, 300).contains("sk-0"));
    }
}
