//! A name for each request, for logs and for whoever asks about one. A caller may bring its own.

use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest that is echoed.
const MAX_LENGTH: usize = 128;

pub struct RequestIds {
    /// Tells this start of the server from others.
    start: u32,
    next: AtomicU64,
}

impl RequestIds {
    pub fn new(random: u64) -> Self {
        Self { start: (random >> 32) as u32, next: AtomicU64::new(1) }
    }

    pub fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let is_plain = |value: &&HeaderValue| {
            let bytes = value.as_bytes();
            !bytes.is_empty() && bytes.len() <= MAX_LENGTH && bytes.iter().all(u8::is_ascii_graphic)
        };
        headers.get(REQUEST_ID).filter(is_plain).cloned().unwrap_or_else(|| self.make())
    }

    fn make(&self) -> HeaderValue {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:08x}-{number}", self.start);
        HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("-"))
    }
}
