//! What kind of body an answer has. Its media type says so; where there is none, or `text/plain`, which simple servers
//! call everything, the first letters do.

use ostler_net::{NetError, Response};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A stream of server-sent events.
    Events,
    /// A stream of lines, each of them JSON.
    Lines,
    /// JSON in one piece.
    Whole,
    /// Nothing that a vendor would answer.
    Foreign,
}

/// What a line of events may begin with.
const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// Letters by which all of those can be told from other text.
const ENOUGH: usize = 6;

/// The kind of an answer of a vendor whose streams usually are `usual`; and what of it was read to know that.
pub(crate) async fn look(response: &mut Response, usual: Kind) -> Result<(Kind, Vec<u8>), NetError> {
    let media_type = response.media_type().map(str::to_ascii_lowercase);
    let otherwise = match media_type.as_deref() {
        Some("text/event-stream") => return Ok((Kind::Events, Vec::new())),
        Some("application/x-ndjson" | "application/jsonl") => return Ok((Kind::Lines, Vec::new())),
        Some("application/json") => return Ok((Kind::Whole, Vec::new())),
        Some("text/plain") => Kind::Foreign,
        Some(_) => return Ok((Kind::Foreign, Vec::new())),
        None => usual,
    };
    let mut begun = Vec::new();
    while judged(&begun, usual).is_none()
        && begun.trim_ascii_start().len() < ENOUGH
        && let Some(piece) = response.next().await
    {
        begun.extend_from_slice(&piece?);
    }
    Ok((judged(&begun, usual).unwrap_or(otherwise), begun))
}

fn judged(begun: &[u8], usual: Kind) -> Option<Kind> {
    let begun = begun.trim_ascii_start();
    match begun.first()? {
        b'{' | b'[' if usual == Kind::Lines => Some(Kind::Lines),
        b'{' | b'[' => Some(Kind::Whole),
        _ => FIELDS.iter().any(|field| begun.starts_with(field)).then_some(Kind::Events),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letters_tell() {
        for (begun, kind) in [
            (" \n{\"a\"", Some(Kind::Whole)),
            ("data: {}", Some(Kind::Events)),
            (": ping\n", Some(Kind::Events)),
            ("event:x", Some(Kind::Events)),
            ("events are over", None),
            ("<html>", None),
            ("dat", None),
            ("", None),
        ] {
            assert_eq!(judged(begun.as_bytes(), Kind::Events), kind, "{begun}");
        }
        assert_eq!(judged(b"{\"a\"", Kind::Lines), Some(Kind::Lines));
    }
}
