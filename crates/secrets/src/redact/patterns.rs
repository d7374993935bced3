//! Looks for many texts at once. Most places of a text are passed over by a look at two bytes; the texts looked for are
//! overwritten when they go.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{HIDDEN, forms::Form};

/// A copy shares what did not change: one is made when somebody looks for the old ones while another is added.
#[derive(Clone, PartialEq)]
pub struct Patterns {
    /// By their first two bytes, the longest first.
    by_start: BTreeMap<[u8; 2], Arc<Vec<Pattern>>>,
    /// One bit for each pair of bytes that one begins with.
    starts: Vec<u64>,
}

#[derive(Clone, PartialEq)]
struct Pattern {
    form: Form,
    /// So many values look like this.
    owners: usize,
}

/// What is found at a place.
enum Found {
    Nothing,
    Whole(usize),
    /// What is there may be the beginning of one.
    Beginning,
}

/// What may stand behind the end of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    None,
    MayCome,
    /// More stood there once, and is gone.
    WasCut,
}

/// Of a text that was cut, a shorter end could be that of any word.
const SHORTEST_BEGINNING: usize = 8;

impl Default for Patterns {
    fn default() -> Self {
        Self { by_start: BTreeMap::new(), starts: vec![0; 1024] }
    }
}

impl Patterns {
    /// None is shorter than two bytes.
    pub fn add(&mut self, form: Form) {
        let Some(start) = start(&form) else { return };
        self.mark(start, true);
        let bucket = Arc::make_mut(self.by_start.entry(start).or_default());
        match bucket.binary_search_by(|known| known.order(&form)) {
            Ok(place) => bucket[place].owners += 1,
            Err(place) => bucket.insert(place, Pattern { form, owners: 1 }),
        }
    }

    pub fn remove(&mut self, form: &Form) {
        let Some(start) = start(form) else { return };
        let Some(bucket) = self.by_start.get_mut(&start).map(Arc::make_mut) else { return };
        let Ok(place) = bucket.binary_search_by(|known| known.order(form)) else { return };
        bucket[place].owners -= 1;
        if bucket[place].owners == 0 {
            bucket.remove(place);
        }
        if bucket.is_empty() {
            self.by_start.remove(&start);
            self.mark(start, false);
        }
    }

    fn mark(&mut self, start: [u8; 2], is_used: bool) {
        let bit = usize::from(u16::from_be_bytes(start));
        let mask = 1 << (bit % 64);
        if is_used { self.starts[bit / 64] |= mask } else { self.starts[bit / 64] &= !mask }
    }

    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    pub fn hidden<'a>(&self, text: &'a str, rest: Rest) -> Cow<'a, str> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut shown = String::new();
        match self.pass(text, &mut shown, rest) {
            (_, false) => Cow::Borrowed(text),
            (_, true) => Cow::Owned(shown),
        }
    }

    /// Passes the text on with what is found hidden, up to where the beginning of something stands at its end. Returns how
    /// far that is, and whether anything was hidden.
    pub fn pass(&self, text: &str, shown: &mut String, rest: Rest) -> (usize, bool) {
        let bytes = text.as_bytes();
        let (mut at, mut copied, mut has_hidden) = (0, 0, false);
        while at < bytes.len() {
            match self.at(bytes, at, rest) {
                Found::Nothing => at += 1,
                Found::Whole(length) => {
                    shown.push_str(text.get(copied..at).unwrap_or_default());
                    shown.push_str(HIDDEN);
                    at += length;
                    copied = at;
                    has_hidden = true;
                }
                Found::Beginning => break,
            }
        }
        shown.push_str(text.get(copied..at).unwrap_or_default());
        (at, has_hidden)
    }

    fn at(&self, bytes: &[u8], at: usize, rest: Rest) -> Found {
        let behind = bytes.get(at..).unwrap_or_default();
        let candidates = match *behind {
            [] => return Found::Nothing,
            [only] if rest == Rest::MayCome && self.begins(only) => return Found::Beginning,
            [_] => return Found::Nothing,
            [first, second, ..] => {
                let bit = usize::from(u16::from_be_bytes([first, second]));
                if self.starts[bit / 64] & (1 << (bit % 64)) == 0 {
                    return Found::Nothing;
                }
                self.by_start.get(&[first, second])
            }
        };
        for Pattern { form, .. } in candidates.into_iter().flat_map(|bucket| bucket.iter()) {
            if behind.starts_with(form.as_bytes()) {
                return Found::Whole(form.len());
            }
            if !form.as_bytes().starts_with(behind) {
                continue;
            }
            match rest {
                Rest::MayCome => return Found::Beginning,
                Rest::WasCut if behind.len() >= SHORTEST_BEGINNING => return Found::Whole(behind.len()),
                Rest::None | Rest::WasCut => {}
            }
        }
        Found::Nothing
    }

    fn begins(&self, first: u8) -> bool {
        self.by_start.range([first, 0]..=[first, u8::MAX]).next().is_some()
    }

    pub fn clean_json(&self, value: &mut Value, rest: Rest) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(hidden) = self.hidden(text, rest) {
                    *text = hidden;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_json(item, rest)),
            Value::Object(members) => {
                let is_clean =
                    members.keys().all(|name| matches!(self.hidden(name, Rest::None), Cow::Borrowed(_)));
                if !is_clean {
                    let renamed = std::mem::take(members).into_iter();
                    members.extend(
                        renamed.map(|(name, member)| (self.hidden(&name, Rest::None).into_owned(), member)),
                    );
                }
                members.values_mut().for_each(|member| self.clean_json(member, rest));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl Pattern {
    /// The longest comes first, so that it is found before what it begins with.
    fn order(&self, form: &Form) -> Ordering {
        form.len().cmp(&self.form.len()).then_with(|| self.form.as_str().cmp(form))
    }
}

fn start(form: &Form) -> Option<[u8; 2]> {
    let [first, second, ..] = *form.as_bytes() else { return None };
    Some([first, second])
}
