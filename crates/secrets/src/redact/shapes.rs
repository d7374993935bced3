//! Hides what can be nothing but a key, whosever it is: by the letters that its maker begins all of them with, and by what
//! follows. These letters stay, so that one sees what stood there, and so that text in pieces is held back only behind them.

use std::borrow::Cow;

use super::HIDDEN;

/// Text in pieces, or a whole one.
#[derive(Default)]
pub struct Shapes {
    /// The end of what was decided, as it was: a key's first letters may stand in it.
    before: String,
    /// What was not decided yet.
    held: String,
    hiding: Option<Body>,
}

/// What follows the first letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// So many letters, digits and dashes at least, digits among them.
    Word(usize),
    /// The same without a dash in between: the first letters alone are found in other names too.
    Plain(usize),
    /// So many capitals and digits, and then something else.
    Capitals(usize),
    /// Credentials of a header.
    Credentials,
    /// The rest of a token's first part, a dot, and a second part that is JSON as well.
    Token,
    /// The lines of a key.
    Lines,
}

enum Judged {
    No,
    Key,
    /// What comes may tell.
    Unknown,
}

const FIRST_LETTERS: [(&str, Body); 30] = [
    ("sk-", Body::Plain(20)),
    ("sk-ant-", Body::Word(16)),
    ("sk-proj-", Body::Word(16)),
    ("sk-svcacct-", Body::Word(16)),
    ("sk-admin-", Body::Word(16)),
    ("sk-or-v1-", Body::Word(16)),
    ("sk_live_", Body::Word(16)),
    ("sk_test_", Body::Word(16)),
    ("rk_live_", Body::Word(16)),
    ("rk_test_", Body::Word(16)),
    ("ghp_", Body::Plain(30)),
    ("gho_", Body::Plain(30)),
    ("ghu_", Body::Plain(30)),
    ("ghs_", Body::Plain(30)),
    ("ghr_", Body::Plain(30)),
    ("github_pat_", Body::Word(30)),
    ("glpat-", Body::Word(20)),
    ("xoxa-", Body::Word(16)),
    ("xoxb-", Body::Word(16)),
    ("xoxe-", Body::Word(16)),
    ("xoxp-", Body::Word(16)),
    ("xoxr-", Body::Word(16)),
    ("xoxs-", Body::Word(16)),
    ("AIza", Body::Word(35)),
    ("AKIA", Body::Capitals(16)),
    ("ASIA", Body::Capitals(16)),
    ("eyJ", Body::Token),
    ("bearer ", Body::Credentials),
    ("PRIVATE KEY-----", Body::Lines),
    ("PRIVATE KEY BLOCK-----", Body::Lines),
];

/// As far back as first letters reach, with what shows that they are the first: the first line of a key in PEM.
const BEFORE: usize = 64;

/// If a word does not look like a key so far in, it is none.
const LOOKED_AT: usize = 64;

/// Behind its first letters, the first part of a token is no shorter and no longer. What may be one is held back.
const SHORTEST_PART: usize = 8;
const LONGEST_PART: usize = 512;

/// A line of a key.
const LINE: usize = 32;

/// What may stand between the first line of a key and the next.
const BREAK: usize = 16;

/// `RSA ` and its like.
const LONGEST_KIND: usize = 24;

/// The text without what can only be a key.
pub fn hidden(text: &str) -> Cow<'_, str> {
    let mut shapes = Shapes::default();
    let (shown, has_hidden) = shapes.pass(text, 0, true);
    if has_hidden { Cow::Owned(shown) } else { Cow::Borrowed(text) }
}

impl Shapes {
    /// As much as can be shown already.
    pub fn push(&mut self, piece: &str) -> String {
        let text = [self.before.as_str(), self.held.as_str(), piece].concat();
        self.pass(&text, self.before.len(), false).0
    }

    /// What was held back, once nothing more comes.
    pub fn finish(&mut self) -> String {
        let text = [self.before.as_str(), self.held.as_str()].concat();
        self.pass(&text, self.before.len(), true).0
    }

    /// What is shown of the text from there on, and whether anything was hidden.
    fn pass(&mut self, text: &str, from: usize, is_all: bool) -> (String, bool) {
        let bytes = text.as_bytes();
        let (mut at, mut copied, mut shown, mut has_hidden) = (from, from, String::new(), false);
        loop {
            if let Some(body) = self.hiding {
                let length = body.length(&bytes[at..], is_all);
                at += length.unwrap_or_else(|sure| sure);
                copied = at;
                if length.is_err() || at == bytes.len() {
                    break;
                }
                self.hiding = None;
            }
            let found = (at..bytes.len()).find_map(|place| Some((place, Body::behind(&bytes[..place])?)));
            let Some((place, body)) = found else {
                at = bytes.len();
                break;
            };
            match body.judge(&bytes[place..], is_all) {
                Judged::Key => {
                    shown.push_str(&text[copied..place]);
                    shown.push_str(HIDDEN);
                    (at, copied, has_hidden, self.hiding) = (place, place, true, Some(body));
                }
                Judged::Unknown => {
                    at = place;
                    break;
                }
                // No key, but another one's first letters may be behind.
                Judged::No => at = text[place..].chars().next().map_or(bytes.len(), |c| place + c.len_utf8()),
            }
        }
        shown.push_str(&text[copied..at]);
        if !is_all {
            self.held = text[at..].to_owned();
            self.before = text[text.ceil_char_boundary(at.saturating_sub(BEFORE))..at].to_owned();
        }
        (shown, has_hidden)
    }
}

impl Body {
    /// What would follow a text that ends with some key's first letters.
    fn behind(before: &[u8]) -> Option<Self> {
        // Most places are passed over by a look at two bytes.
        let [.., last_but_one, last] = before else { return None };
        let may_be = match last {
            b'-' | b'_' => true,
            b' ' => last_but_one.eq_ignore_ascii_case(&b'r'),
            b'a' | b'A' | b'J' => b"zIy".contains(last_but_one),
            _ => false,
        };
        if !may_be {
            return None;
        }
        FIRST_LETTERS.iter().find_map(|(first, body)| {
            let start = before.len().checked_sub(first.len())?;
            let (earlier, letters) = before.split_at(start);
            let is_first = !earlier.last().is_some_and(u8::is_ascii_alphanumeric);
            let is_it = match body {
                Body::Credentials => is_first && letters.eq_ignore_ascii_case(first.as_bytes()),
                Body::Lines => letters == first.as_bytes() && ends_as_a_key_begins(earlier),
                Body::Word(_) | Body::Plain(_) | Body::Capitals(_) | Body::Token => {
                    is_first && letters == first.as_bytes()
                }
            };
            is_it.then_some(*body)
        })
    }

    /// Whether what follows makes it a key. Once it does, or does not, more of it changes nothing.
    fn judge(self, behind: &[u8], is_all: bool) -> Judged {
        match self {
            Body::Word(least) => judge_word(behind, is_all, least, is_word),
            Body::Plain(least) => judge_word(behind, is_all, least, |byte| byte.is_ascii_alphanumeric()),
            Body::Credentials => judge_word(behind, is_all, 20, is_credential),
            Body::Capitals(exactly) => {
                let n = run(behind, is_capital);
                match behind.get(n) {
                    None if !is_all && n <= exactly => Judged::Unknown,
                    next if n == exactly && !next.is_some_and(|byte| is_word(*byte)) => Judged::Key,
                    _ => Judged::No,
                }
            }
            Body::Token => judge_token(behind, is_all),
            Body::Lines => judge_lines(behind, is_all),
        }
    }

    /// How far it goes; an error is how far it surely goes, if what comes may be part of it.
    fn length(self, behind: &[u8], is_all: bool) -> Result<usize, usize> {
        let length = match self {
            Body::Word(_) | Body::Plain(_) => run(behind, is_word),
            Body::Capitals(_) => run(behind, is_capital),
            Body::Credentials | Body::Token => run(behind, is_credential),
            Body::Lines => run_of_lines(behind),
        };
        let may_go_on = self == Body::Lines && !is_all && is_half_a_break(&behind[length..]);
        if may_go_on { Err(length) } else { Ok(length) }
    }
}

fn judge_word(behind: &[u8], is_all: bool, least: usize, is_part: fn(u8) -> bool) -> Judged {
    let n = run(behind, is_part);
    let word = &behind[..n.min(LOOKED_AT)];
    // What has no digit may be somebody's words.
    let is_mixed = word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_alphabetic);
    match n == behind.len() && n < LOOKED_AT && !is_all {
        _ if n >= least && is_mixed => Judged::Key,
        true => Judged::Unknown,
        false => Judged::No,
    }
}

fn judge_token(behind: &[u8], is_all: bool) -> Judged {
    let n = run(behind, is_word);
    let rest = &behind[n..];
    if n > LONGEST_PART {
        Judged::No
    } else if !is_all
        && (rest.is_empty() || n >= SHORTEST_PART && rest.len() < 4 && b".eyJ".starts_with(rest))
    {
        Judged::Unknown
    } else if n >= SHORTEST_PART && rest.starts_with(b".eyJ") {
        Judged::Key
    } else {
        Judged::No
    }
}

fn judge_lines(behind: &[u8], is_all: bool) -> Judged {
    let n_break = run_of_breaks(behind);
    let n = run(&behind[n_break..], is_base64);
    let rest = &behind[n_break + n..];
    if n_break > BREAK {
        Judged::No
    } else if n >= LINE {
        Judged::Key
    } else if !is_all && (rest.is_empty() || n == 0 && is_half_a_break(rest)) {
        Judged::Unknown
    } else {
        Judged::No
    }
}

/// `-----BEGIN RSA ` and its like, up to where its kind ends.
fn ends_as_a_key_begins(earlier: &[u8]) -> bool {
    let is_kind = |byte: &&u8| is_capital(**byte) || **byte == b' ';
    let longest = earlier.iter().rev().take(LONGEST_KIND).take_while(is_kind).count();
    (0..=longest).any(|n| earlier[..earlier.len() - n].ends_with(b"-----BEGIN "))
}

fn run(bytes: &[u8], is_part: fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is_part(**byte)).count()
}

/// Blanks, ends of lines, and those that somebody has escaped.
fn run_of_breaks(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += run(&bytes[at..], |byte| byte.is_ascii_whitespace());
        let n_escapes = run(&bytes[at..], |byte| byte == b'\\');
        match bytes.get(at + n_escapes) {
            Some(b'n' | b'r') if n_escapes > 0 => at += n_escapes + 1,
            _ => return at,
        }
    }
}

fn run_of_lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let end_of_line = at + run(&bytes[at..], is_base64);
        let next = end_of_line + run_of_breaks(&bytes[end_of_line..]);
        if next == at {
            return at;
        }
        at = next;
    }
}

fn is_half_a_break(rest: &[u8]) -> bool {
    !rest.is_empty() && rest.iter().all(|byte| *byte == b'\\')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

fn is_credential(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

#[cfg(test)]
mod tests;
