//! Every way the scripted model can misbehave, each with the name that scripts and plans call it by.

use std::fmt;
use std::str::FromStr;

/// One way to misbehave. What each looks like on the wire is proven in `tests/servers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// 429 with `retry-after: 1`.
    RateLimited,
    /// 429 with `retry-after` as an HTTP date, two seconds ahead.
    RateLimitedDate,
    /// 429 without `retry-after`.
    RateLimitedBare,
    /// 429 with `retry-after-ms: 250` beside a coarser `retry-after`.
    RateLimitedMilliseconds,
    /// 429 with `retry-after` of a day.
    RateLimitedDay,
    /// Nothing is left to be spent.
    Quota,
    /// 500.
    ServerError,
    /// 503.
    Unavailable,
    /// 529, overloaded.
    Overloaded,
    /// 401, wrong key.
    Unauthorized,
    /// The conversation is too long for the model.
    ContextLength,
    /// The filter refuses the prompt itself.
    Blocked,
    /// The connection is closed before a byte of the answer.
    Close,
    /// The stream ends in the middle of a text chunk, without its end.
    CutText,
    /// The stream ends in the middle of the JSON of a tool call's arguments.
    CutTool,
    /// The stream says in its middle that it failed; 500 in one piece.
    ErrorEvent,
    /// A chunk that is not JSON.
    BadChunk,
    /// Tool arguments that are not JSON.
    BadArguments,
    /// Tool arguments that are JSON but no object.
    ArrayArguments,
    /// One byte at a time, a millisecond apart.
    Slow,
    /// Never an answer.
    Hang,
    /// The beginning of a stream, and then nothing more.
    Stall,
    /// A text of 10 MB.
    Huge,
    /// No usage, though it was asked for.
    NoUsage,
    /// Two tool calls with the same id.
    DuplicateIds,
    /// A tool call with an empty id.
    EmptyId,
    /// A call of a tool that was not offered.
    UnknownTool,
    /// The model refuses.
    Refusal,
    /// Neither text nor a call.
    Empty,
    /// Cut off by the token limit, in the middle of text or arguments.
    Length,
    /// Cut off by the token limit behind the name of a call, before the first of its arguments.
    LengthBare,
    /// Stopped by the content filter.
    ContentFilter,
    /// Stopped by the content filter behind a call that is there as a whole.
    FilteredCall,
    /// Bytes that are not UTF-8 inside a chunk.
    InvalidUtf8,
    /// 200 with an HTML page.
    Html,
    /// Usage of 2^63 - 1 tokens each, so that a sum overflows.
    UsageHuge,
    /// Usage below zero.
    UsageNegative,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 37] = [
        Fault::RateLimited,
        Fault::RateLimitedDate,
        Fault::RateLimitedBare,
        Fault::RateLimitedMilliseconds,
        Fault::RateLimitedDay,
        Fault::Quota,
        Fault::ServerError,
        Fault::Unavailable,
        Fault::Overloaded,
        Fault::Unauthorized,
        Fault::ContextLength,
        Fault::Blocked,
        Fault::Close,
        Fault::CutText,
        Fault::CutTool,
        Fault::ErrorEvent,
        Fault::BadChunk,
        Fault::BadArguments,
        Fault::ArrayArguments,
        Fault::Slow,
        Fault::Hang,
        Fault::Stall,
        Fault::Huge,
        Fault::NoUsage,
        Fault::DuplicateIds,
        Fault::EmptyId,
        Fault::UnknownTool,
        Fault::Refusal,
        Fault::Empty,
        Fault::Length,
        Fault::LengthBare,
        Fault::ContentFilter,
        Fault::FilteredCall,
        Fault::InvalidUtf8,
        Fault::Html,
        Fault::UsageHuge,
        Fault::UsageNegative,
    ];

    /// The name it is called by.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::RateLimited => "429",
            Fault::RateLimitedDate => "429-date",
            Fault::RateLimitedBare => "429-bare",
            Fault::RateLimitedMilliseconds => "429-ms",
            Fault::RateLimitedDay => "429-day",
            Fault::Quota => "quota",
            Fault::ServerError => "500",
            Fault::Unavailable => "503",
            Fault::Overloaded => "529",
            Fault::Unauthorized => "401",
            Fault::ContextLength => "context-length",
            Fault::Blocked => "blocked",
            Fault::Close => "close",
            Fault::CutText => "cut-text",
            Fault::CutTool => "cut-tool",
            Fault::ErrorEvent => "error-event",
            Fault::BadChunk => "bad-chunk",
            Fault::BadArguments => "bad-arguments",
            Fault::ArrayArguments => "array-arguments",
            Fault::Slow => "slow",
            Fault::Hang => "hang",
            Fault::Stall => "stall",
            Fault::Huge => "huge",
            Fault::NoUsage => "no-usage",
            Fault::DuplicateIds => "duplicate-ids",
            Fault::EmptyId => "empty-id",
            Fault::UnknownTool => "unknown-tool",
            Fault::Refusal => "refusal",
            Fault::Empty => "empty",
            Fault::Length => "length",
            Fault::LengthBare => "length-bare",
            Fault::ContentFilter => "content-filter",
            Fault::FilteredCall => "filtered-call",
            Fault::InvalidUtf8 => "invalid-utf8",
            Fault::Html => "html",
            Fault::UsageHuge => "usage-huge",
            Fault::UsageNegative => "usage-negative",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, UnknownFault> {
        Fault::ALL.into_iter().find(|fault| fault.name() == name).ok_or_else(|| UnknownFault(name.to_owned()))
    }
}

/// No fault has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault `{0}`")]
pub struct UnknownFault(pub String);
