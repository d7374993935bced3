//! A part of a list, with where it goes on.

use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct List<T> {
    items: Vec<T>,
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl<T> List<T> {
    /// Takes one item more than the page has room for, if there is one: that tells whether it goes on.
    pub fn page(mut items: Vec<T>, limit: usize, cursor: impl FnOnce(&T) -> String) -> Self {
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| has_more).map(cursor);
        Self { items, next }
    }

    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The same, each item as it is shown.
    pub fn map<U>(self, show: impl FnMut(T) -> U) -> List<U> {
        List { items: self.items.into_iter().map(show).collect(), next: self.next }
    }

    /// Goes on there, if the page does not know better: it ended early.
    #[must_use]
    pub fn or_else_from(self, place: Option<String>) -> Self {
        Self { next: self.next.or(place), ..self }
    }
}
