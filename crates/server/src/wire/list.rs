//! A part of a list, with where it goes on.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

#[derive(Debug, Serialize)]
pub struct List<T> {
    items: Vec<T>,
    /// Some read it here,
    #[serde(flatten)]
    next: Next,
    /// and others, the SDKs of Orloj among them, there.
    #[serde(skip_serializing_if = "Next::is_none")]
    metadata: Next,
}

/// Where the list goes on, if it does.
#[derive(Debug, Clone, Serialize)]
struct Next {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Next {
    fn is_none(&self) -> bool {
        self.next.is_none()
    }
}

impl<T> List<T> {
    /// Takes one item more than the page has room for, if there is one: that tells whether it goes on.
    pub fn page(mut items: Vec<T>, limit: usize, cursor: impl FnOnce(&T) -> String) -> Self {
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| has_more).map(cursor);
        Self::new(items, next)
    }

    fn new(items: Vec<T>, next: Option<String>) -> Self {
        let next = Next { next };
        Self { items, metadata: next.clone(), next }
    }

    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The same, each item as it is shown.
    pub fn map<U>(self, show: impl FnMut(T) -> U) -> List<U> {
        List { items: self.items.into_iter().map(show).collect(), next: self.next, metadata: self.metadata }
    }
}

/// A page that has room for so many items, and ends early when they are large.
#[derive(Debug)]
pub struct Pages {
    items: Vec<Box<RawValue>>,
    bytes: usize,
    limit: usize,
}

/// Behind so many bytes a page ends, whatever its limit.
const MOST_BYTES: usize = 4 * 1024 * 1024;

impl Pages {
    pub fn new(limit: usize) -> Self {
        Self { items: Vec::new(), bytes: 0, limit }
    }

    pub fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// How many more items it may take.
    pub fn room(&self) -> usize {
        if self.bytes >= MOST_BYTES { 0 } else { self.limit - self.items.len().min(self.limit) }
    }

    pub fn add<T: Serialize>(&mut self, item: &T) {
        // Our own types can always be written.
        if let Ok(item) = to_raw_value(item) {
            self.bytes += item.get().len();
            self.items.push(item);
        }
    }

    /// The page, and where the next one begins if there is more.
    pub fn end(self, next: Option<String>) -> List<Box<RawValue>> {
        List::new(self.items, next)
    }
}
