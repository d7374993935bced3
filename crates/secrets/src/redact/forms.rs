//! How a value looks once somebody has encoded it.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use zeroize::Zeroizing;

use super::SHORTEST;

/// Shorter pieces of base64 could be anybody's.
const SHORTEST_ENCODED: usize = 8;

/// A line of a long value that is worth hiding by itself, and as many of them as are looked at.
const SHORTEST_LINE: usize = 16;
const MOST_LINES: usize = 256;

/// As `encodeURIComponent` and most others encode.
const COMPONENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'!').remove(b'*');

/// As part of a path, where slashes and signs stay.
const PATH: &AsciiSet =
    &COMPONENT.remove(b'/').remove(b'+').remove(b':').remove(b'@').remove(b'&').remove(b'=');

pub type Form = Zeroizing<String>;

/// Every form of the value, and of each of its lines.
pub fn of(value: &str) -> Vec<Form> {
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE && *line != value);
    // What every file of its kind begins and ends with is no secret.
    let lines = lines.filter(|line| !line.starts_with("-----")).take(MOST_LINES);
    let mut forms: Vec<Form> = std::iter::once(value).chain(lines).flat_map(of_one).collect();
    forms.sort_unstable_by(|one, other| one.as_str().cmp(other));
    forms.dedup();
    forms
}

fn of_one(value: &str) -> Vec<Form> {
    let mut forms = vec![value.to_owned()];
    forms.extend(escaped(value));
    forms.extend(percent_encoded(value));
    forms.retain(|form| form.len() >= SHORTEST);
    forms.extend(encoded(value).filter(|form| form.len() >= SHORTEST_ENCODED));
    forms.into_iter().map(Zeroizing::new).collect()
}

/// As a string of JSON, without its quotes.
fn escaped(value: &str) -> Vec<String> {
    let Ok(quoted) = serde_json::to_string(value) else { return Vec::new() };
    let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    vec![inner.to_owned(), inner.replace('/', "\\/"), ascii(inner)]
}

/// With `\u00fc` for what is not ASCII, as many write JSON.
fn ascii(text: &str) -> String {
    let mut written = String::new();
    for letter in text.chars() {
        if letter.is_ascii() {
            written.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            written.push_str(&format!("\\u{unit:04x}"));
        }
    }
    written
}

fn percent_encoded(value: &str) -> Vec<String> {
    let sets = [NON_ALPHANUMERIC, COMPONENT, PATH];
    let upper = sets.iter().map(|set| utf8_percent_encode(value, set).to_string());
    let mut forms: Vec<String> = upper.collect();
    forms.extend(forms.clone().iter().map(|form| form.replace("%20", "+")));
    forms.extend(forms.clone().iter().map(|form| lower_digits(form)));
    forms
}

fn lower_digits(form: &str) -> String {
    let mut written = String::with_capacity(form.len());
    let mut behind = usize::MAX;
    for letter in form.chars() {
        behind = if letter == '%' { 0 } else { behind.saturating_add(1) };
        written.push(if behind <= 2 { letter.to_ascii_lowercase() } else { letter });
    }
    written
}

/// The part of its base64 that is the same whatever stands before and behind it: for each of the three ways that its
/// first byte can fall into a group.
fn encoded(value: &str) -> impl Iterator<Item = String> {
    let engines = [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD];
    engines.into_iter().flat_map(move |engine| (0..3).map(move |shift| core(engine, value, shift)))
}

fn core(engine: &base64::engine::GeneralPurpose, value: &str, shift: usize) -> String {
    let bytes = Zeroizing::new([&[0_u8; 2][..shift], value.as_bytes()].concat());
    let whole = engine.encode(&*bytes);
    // Letters that hold bits of what stands before it or behind.
    let start = (shift * 8).div_ceil(6);
    let end = bytes.len() * 8 / 6;
    whole.get(start..end).unwrap_or_default().to_owned()
}
