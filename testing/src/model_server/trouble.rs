//! What an answer says when it is an error, in no vendor's words; each wire has its own for it.

use http::{HeaderMap, HeaderValue};
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::{Timestamp, ToSpan};

use super::fault::Fault;
use super::rules::Violation;

/// Why there is no answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trouble<'t> {
    /// The request broke a rule.
    Invalid(&'t Violation),
    /// There is nothing at this path.
    NotFound(&'t str),
    Unauthorized,
    RateLimited(RetryHint),
    /// Nothing is left to be spent; waiting doesn't help.
    Quota,
    ServerError,
    /// 503.
    Unavailable,
    /// 529 where the vendor has it.
    Overloaded,
    ContextLength,
    /// The filter refuses the prompt itself.
    Blocked,
}

/// How a vendor says when to come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryHint {
    None,
    /// In a second.
    Second,
    /// In two seconds, as a date.
    Date,
    /// In a quarter of a second, in milliseconds.
    Milliseconds,
    /// In a day.
    Day,
}

impl Trouble<'_> {
    /// What a fault answers with instead of a turn, if it does.
    pub fn of(fault: Fault) -> Option<Self> {
        Some(match fault {
            Fault::RateLimited => Trouble::RateLimited(RetryHint::Second),
            Fault::RateLimitedDate => Trouble::RateLimited(RetryHint::Date),
            Fault::RateLimitedMilliseconds => Trouble::RateLimited(RetryHint::Milliseconds),
            Fault::RateLimitedDay => Trouble::RateLimited(RetryHint::Day),
            Fault::RateLimitedBare => Trouble::RateLimited(RetryHint::None),
            Fault::Quota => Trouble::Quota,
            Fault::ServerError => Trouble::ServerError,
            Fault::Unavailable => Trouble::Unavailable,
            Fault::Overloaded => Trouble::Overloaded,
            Fault::Unauthorized => Trouble::Unauthorized,
            Fault::ContextLength => Trouble::ContextLength,
            Fault::Blocked => Trouble::Blocked,
            _ => return None,
        })
    }
}

impl RetryHint {
    /// Says it in headers, as most vendors do.
    pub fn put(self, headers: &mut HeaderMap) {
        match self {
            RetryHint::None => {}
            RetryHint::Second => {
                headers.insert("retry-after", HeaderValue::from_static("1"));
            }
            RetryHint::Date => {
                if let Some(date) = http_date_in_two_seconds() {
                    headers.insert("retry-after", date);
                }
            }
            RetryHint::Day => {
                headers.insert("retry-after", HeaderValue::from_static("86400"));
            }
            RetryHint::Milliseconds => {
                headers.insert("retry-after-ms", HeaderValue::from_static("250"));
                headers.insert("retry-after", HeaderValue::from_static("1"));
            }
        }
    }

    /// Says it as a protobuf duration.
    pub const fn duration(self) -> Option<&'static str> {
        match self {
            RetryHint::None => None,
            RetryHint::Second => Some("1s"),
            RetryHint::Date => Some("2s"),
            RetryHint::Milliseconds => Some("0.250s"),
            RetryHint::Day => Some("86400s"),
        }
    }
}

fn http_date_in_two_seconds() -> Option<HeaderValue> {
    let then = Timestamp::now().checked_add(2.seconds()).ok()?;
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&then).ok()?;
    HeaderValue::try_from(date).ok()
}
