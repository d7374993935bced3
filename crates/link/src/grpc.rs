//! The worker port over gRPC: both ends of it.
//!
//! A worker opens one connection with two streams on it: *control* for all that must not wait (claims, writes, renewals,
//! signals), and *bulk* for what may be many (text as it comes), so that a flood of the one never holds up the other.
//! On each, numbered requests go up and their answers come down in any order. What is large is cut into parts that
//! take turns.
//!
//! Nothing depends on a connection: every request may be sent again on another one, to another server, as it is.

pub mod client;
pub mod server;
pub mod tls;

mod frame;

use serde::{Deserialize, Serialize};

use crate::{LinkError, Request, Response};

/// The versions of the link that this build speaks, from the oldest to the newest. A change that an older peer would
/// misread makes a new one; one that it can pass over (a new optional field) does not.
pub const VERSIONS: (u32, u32) = (1, 1);

/// Where the link is on a server, beside everything else that it serves.
pub const SERVICE: &str = "/ostler.link.v1.Link/";

const CONTROL: &str = "/ostler.link.v1.Link/Control";
const BULK: &str = "/ostler.link.v1.Link/Bulk";

/// Sent by a worker with each stream: the oldest and the newest version it speaks, as `1-2`.
const VERSIONS_HEADER: &str = "ostler-link-versions";
/// Answered by the server: the version that both speak from here on.
const VERSION_HEADER: &str = "ostler-link-version";
/// Sent by a worker with each stream: who it is. It can't speak for another one.
const WORKER_HEADER: &str = "ostler-worker";

/// How much may be under way to one who does not read it: for one stream, and for all of a connection together. The
/// streams of a connection can't fill its window, so none of them can hold up another.
pub const STREAM_WINDOW: u32 = 1 << 20;
pub const CONNECTION_WINDOW: u32 = 8 << 20;

/// A message of more bytes than this is not one of ours, and is not sent. What is under way on a stream, in parts, is
/// together no more than this either.
pub const LARGEST_MESSAGE: usize = 64 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Done(Response),
    Failed(LinkError),
}

impl From<Result<Response, LinkError>> for Answer {
    fn from(result: Result<Response, LinkError>) -> Self {
        match result {
            Ok(response) => Answer::Done(response),
            Err(error) => Answer::Failed(error),
        }
    }
}

impl From<Answer> for Result<Response, LinkError> {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Done(response) => Ok(response),
            Answer::Failed(error) => Err(error),
        }
    }
}

/// On which stream a request goes.
fn path_of(request: &Request) -> &'static str {
    match request {
        Request::Deltas(_) => BULK,
        Request::Register(_)
        | Request::Claim(_)
        | Request::Journal(_)
        | Request::Leave(_)
        | Request::Renew(_)
        | Request::Signals(_)
        | Request::Inputs(_)
        | Request::Secret(_) => CONTROL,
    }
}

/// The newest version that both speak.
fn common_version(theirs: (u32, u32), ours: (u32, u32)) -> Option<u32> {
    let newest = theirs.1.min(ours.1);
    (newest >= theirs.0 && newest >= ours.0).then_some(newest)
}

fn write_versions((oldest, newest): (u32, u32)) -> String {
    format!("{oldest}-{newest}")
}

fn read_versions(text: &str) -> Option<(u32, u32)> {
    let (oldest, newest) = text.split_once('-')?;
    let versions = (oldest.parse().ok()?, newest.parse().ok()?);
    (versions.0 <= versions.1).then_some(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_both_speak_is_spoken() {
        assert_eq!(common_version((1, 1), (1, 1)), Some(1));
        assert_eq!(common_version((1, 3), (2, 5)), Some(3));
        assert_eq!(common_version((2, 5), (1, 3)), Some(3));
        assert_eq!(common_version((4, 5), (1, 3)), None);
        assert_eq!(common_version((1, 3), (4, 5)), None);
    }

    #[test]
    fn versions_are_read_as_they_are_written() {
        assert_eq!(read_versions(&write_versions((1, 12))), Some((1, 12)));
        for text in ["", "1", "-", "2-1", "a-b", "1-2-3", "1.0-2"] {
            assert_eq!(read_versions(text), None, "{text:?}");
        }
    }
}
