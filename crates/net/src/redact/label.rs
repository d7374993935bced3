//! The words that say that what follows is a secret, and how far it goes: as the text writes a header, a line of settings, a
//! query or JSON.

use std::ops::Range;

use super::HIDDEN;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    /// `Bearer`: a blank and then the secret.
    Scheme,
    /// `Authorization`: everything up to the end of its line, as credentials may have several parts.
    Header,
    /// `password`: one value.
    Name,
}

const HEADERS: [&str; 2] = ["authorization", "cookie"];

const NAMES: [&str; 16] = [
    "api_key",
    "api-key",
    "apikey",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "secret_key",
    "secret-key",
    "secretkey",
    "access_key",
    "accesskey",
    "private_key",
    "privatekey",
    "-signature",
];

/// What may stand before the credentials of a header, and is none itself.
const SCHEMES: [&str; 14] = [
    "bearer",
    "basic",
    "token",
    "apikey",
    "api-key",
    "key",
    "digest",
    "negotiate",
    "ntlm",
    "hawk",
    "hmac",
    "oauth",
    "dpop",
    "aws4-hmac-sha256",
];

/// What people write behind `Bearer` or `Basic` when they speak of it.
const SPOKEN: [&str; 9] =
    ["token", "tokens", "auth", "authentication", "authorization", "credentials", "scheme", "realm", "error"];

const QUOTES: [char; 3] = ['"', '\'', '`'];

/// What closes a thing that a value may be the last part of.
const CLOSING: [char; 6] = [')', ']', '}', '>', ';', '.'];

/// What a value stands behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `=`, as in queries and in logs, where the next pair follows at once.
    Equals,
    /// A colon, or an arrow.
    Colon,
}

/// A quotation mark with so many backslashes before it: text in quotes may itself be quoted.
#[derive(Debug, Clone, Copy)]
struct Quote {
    mark: char,
    depth: usize,
}

impl Label {
    pub(super) fn of(word: &str) -> Option<Self> {
        let ends = |end: &&str| {
            let start = word.len().checked_sub(end.len());
            start.and_then(|start| word.get(start..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
        };
        if ["bearer", "basic"].iter().any(|scheme| scheme.eq_ignore_ascii_case(word)) {
            Some(Label::Scheme)
        } else if HEADERS.iter().any(ends) {
            Some(Label::Header)
        } else {
            NAMES.iter().any(ends).then_some(Label::Name)
        }
    }

    /// What is to be hidden behind a label that ends at `end`.
    pub(super) fn secret_behind(self, text: &str, end: usize) -> Option<Range<usize>> {
        match self {
            Label::Scheme => behind_scheme(text, end),
            Label::Header => {
                let value = Value::behind(text, end)?;
                let whole = value.header(text);
                Some(behind_its_scheme(text, whole))
            }
            Label::Name => {
                let value = Value::behind(text, end)?;
                let found = value.single(text);
                // A sign or two is no secret: `unexpected token: '}'`.
                let is_sign = |text: &str| text.len() <= 2 && !text.contains(char::is_alphanumeric);
                text.get(found.clone()).is_some_and(|text| !is_sign(text)).then_some(found)
            }
        }
    }
}

fn behind_scheme(text: &str, end: usize) -> Option<Range<usize>> {
    let rest = text.get(end..)?;
    let behind = rest.trim_start_matches(' ');
    let start = text.len() - behind.len();
    let run = &behind[..word_length(behind)];
    let is_spoken = SPOKEN.iter().any(|word| {
        run.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
            && !run[word.len()..].starts_with(|c: char| c.is_alphanumeric() || "-_".contains(c))
    });
    (start > end && !is_spoken).then(|| start..start + run.len())
}

/// Without the scheme that it begins with, if something follows that.
fn behind_its_scheme(text: &str, whole: Range<usize>) -> Range<usize> {
    let said = text.get(whole.clone()).unwrap_or_default();
    match said.split_once(' ') {
        Some((scheme, rest)) if is_scheme(scheme) && !rest.trim().is_empty() => {
            whole.end - rest.trim_start().len()..whole.end
        }
        Some(_) | None => whole,
    }
}

fn is_scheme(word: &str) -> bool {
    SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(word))
}

/// Up to the next blank, quotation mark, `&` or comma, without what closes something around it.
fn word_length(text: &str) -> usize {
    let is_end = |c: char| c.is_whitespace() || QUOTES.contains(&c) || "&,".contains(c);
    let run = &text[..text.find(is_end).unwrap_or(text.len())];
    without_closing(run).len()
}

fn without_closing(run: &str) -> &str {
    // What was hidden before ends with a bracket of its own.
    let hidden = run.rfind(HIDDEN).map_or(0, |at| at + HIDDEN.len());
    // A backslash here belongs to the quotation mark behind it.
    let trimmed = run.trim_end_matches('\\').trim_end_matches(CLOSING).len().max(hidden);
    if trimmed == 0 { run } else { &run[..trimmed] }
}

/// Where a value begins.
struct Value {
    start: usize,
    sign: Sign,
    quote: Option<Quote>,
    /// It stands in brackets: `Authorization:[Bearer x]`.
    is_listed: bool,
}

impl Value {
    fn behind(text: &str, end: usize) -> Option<Self> {
        let rest = text.get(end..)?;
        // The label itself may have been in quotes, or in brackets.
        let rest = Quote::opening(rest).map_or(rest, |(_, rest)| rest);
        let rest = rest.strip_prefix(']').unwrap_or(rest).trim_start_matches([' ', '\t']);
        let (sign, rest) = Sign::opening(rest)?;
        let is_listed = sign == Sign::Colon && rest.trim_start().starts_with('[') && !begins_hidden(rest);
        let rest = if is_listed { &rest.trim_start()[1..] } else { rest };
        let (quote, rest) = value_start(rest)?;
        let is_structure = quote.is_none() && sign == Sign::Colon && rest.starts_with(['{', '(', '<']);
        let start = text.len() - rest.len();
        (!is_structure).then_some(Self { start, sign, quote, is_listed })
    }

    /// One value.
    fn single(&self, text: &str) -> Range<usize> {
        let rest = text.get(self.start..).unwrap_or_default();
        let length = match self.quote {
            Some(quote) => quote.length(rest),
            None => word_length(self.listed(rest)),
        };
        self.start..self.start + length
    }

    /// Credentials: up to the end of their line or of what they are quoted in. In a line of pairs, up to the next.
    fn header(&self, text: &str) -> Range<usize> {
        let rest = text.get(self.start..).unwrap_or_default();
        let length = match self.quote {
            Some(quote) => quote.length(rest),
            None => without_closing(&self.listed(rest)[..self.header_length(self.listed(rest))]).len(),
        };
        self.start..self.start + length
    }

    fn header_length(&self, rest: &str) -> usize {
        let mut at = 0;
        while let Some(next) = rest[at..].chars().next() {
            let passed = &rest[..at];
            let goes_on = passed.ends_with(',') || is_scheme(passed);
            match next {
                '\n' | '\r' => return at,
                '\\' if rest[at + 1..].starts_with(['n', 'r']) => return at,
                ' ' | '\t' if self.sign == Sign::Equals && !goes_on => return at,
                '&' if self.sign == Sign::Equals => return at,
                mark if QUOTES.contains(&mark) => {
                    // A parameter in quotes belongs to it: `Digest username="x"`.
                    let depth = passed.len() - passed.trim_end_matches('\\').len();
                    if !passed.trim_end_matches('\\').ends_with('=') {
                        return at;
                    }
                    at += 1 + Quote { mark, depth }.length(&rest[at + 1..]);
                    let behind = rest[at..].trim_start_matches('\\');
                    at = rest.len() - behind.strip_prefix(mark).unwrap_or(behind).len();
                }
                other => at += other.len_utf8(),
            }
        }
        at
    }

    fn listed<'a>(&self, rest: &'a str) -> &'a str {
        if !self.is_listed {
            return rest;
        }
        let hidden = rest.find(HIDDEN).filter(|at| !rest[..*at].contains(']'));
        let from = hidden.map_or(0, |at| at + HIDDEN.len());
        &rest[..rest[from..].find(']').map_or(rest.len(), |end| from + end)]
    }
}

fn begins_hidden(rest: &str) -> bool {
    rest.trim_start().starts_with(HIDDEN)
}

/// Behind blanks, and behind the mark that opens the value if there is one. A value on the next line is one if it is quoted.
fn value_start(rest: &str) -> Option<(Option<Quote>, &str)> {
    let behind = rest.trim_start();
    if let Some((quote, inside)) = Quote::opening(unwrapped(behind)) {
        return Some((Some(quote), inside));
    }
    let behind = rest.trim_start_matches([' ', '\t']);
    (!behind.is_empty() && !behind.starts_with(['\n', '\r'])).then_some((None, behind))
}

/// `Some("x")`, `b'x'`: what stands around the quotes.
fn unwrapped(text: &str) -> &str {
    let Some(at) = text.find(QUOTES) else { return text };
    let before = text[..at].trim_end_matches('\\');
    let is_call = before.strip_suffix('(').is_some_and(|name| name.chars().all(char::is_alphanumeric));
    if is_call || ["b", "r", "u", "f"].contains(&before) { &text[before.len()..] } else { text }
}

impl Sign {
    fn opening(rest: &str) -> Option<(Self, &str)> {
        if rest.starts_with("::") {
            return None;
        }
        let signs = [
            ("=>", Sign::Colon),
            (":=", Sign::Colon),
            ("==", Sign::Equals),
            ("=", Sign::Equals),
            (":", Sign::Colon),
        ];
        signs.into_iter().find_map(|(text, sign)| Some((sign, rest.strip_prefix(text)?)))
    }
}

impl Quote {
    fn opening(text: &str) -> Option<(Self, &str)> {
        let behind = text.trim_start_matches('\\');
        let mark = behind.chars().next().filter(|mark| QUOTES.contains(mark))?;
        Some((Self { mark, depth: text.len() - behind.len() }, &behind[1..]))
    }

    /// How far it is to the mark that closes it, or to the line's end if none does.
    fn length(self, inside: &str) -> usize {
        let mut at = 0;
        while let Some(found) = inside[at..].find([self.mark, '\n']) {
            at += found;
            if inside[at..].starts_with('\n') {
                return at;
            }
            let before = inside[..at].trim_end_matches('\\');
            // With more of them before it, it is a mark within the value.
            if (at - before.len()) % (2 * (self.depth + 1)) == self.depth {
                return at - self.depth;
            }
            at += 1;
        }
        inside.len()
    }
}
