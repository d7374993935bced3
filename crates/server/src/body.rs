//! Reads what a request carries, whole and within bounds. Who sends too much is let finish, within bounds
//! too: a connection that is closed while its client still writes loses the answer that says why.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use ostler_kernel::{Runtime, runtime::timeout};

use crate::problem::Problem;

/// The most that any request may carry.
pub const MAX_BODY: usize = 4 << 20;

/// The most that is read only to be thrown away.
const MAX_DISCARDED: u64 = 64 << 20;

/// How long a body may take.
const WITHIN: Duration = Duration::from_secs(30);

pub async fn read(runtime: &dyn Runtime, headers: &HeaderMap, mut body: Incoming) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > MAX_BODY as u64 {
        discard(runtime, headers, body).await;
        return Err(too_large());
    }
    let collected = timeout(runtime, WITHIN, collect(&mut body)).await.map_err(|_| too_slow())?;
    match collected? {
        Some(bytes) => Ok(bytes),
        None => {
            discard(runtime, headers, body).await;
            Err(too_large())
        }
    }
}

/// Reads on to the end, unless that is far away or the client waits to be asked for it.
pub async fn discard(runtime: &dyn Runtime, headers: &HeaderMap, mut body: Incoming) {
    if headers.contains_key(header::EXPECT) || body.size_hint().lower() > MAX_DISCARDED {
        return;
    }
    let all = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len) as u64;
            if read > MAX_DISCARDED {
                return;
            }
        }
    };
    // Whoever is slower than that may miss the answer.
    let _ = timeout(runtime, WITHIN, all).await;
}

/// Nothing if it is too large. A body in one piece, which is nearly every one, is not copied.
async fn collect(body: &mut Incoming) -> Result<Option<Bytes>, Problem> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|error| broken(&error))?.into_data() else { continue };
        if first.is_empty() {
            first = piece;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
        }
        if all.len() + piece.len() > MAX_BODY {
            return Ok(None);
        }
        all.extend_from_slice(&piece);
    }
    Ok(Some(if all.is_empty() { first } else { all.freeze() }))
}

fn too_large() -> Problem {
    let detail = format!("the body is larger than {MAX_BODY} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

fn too_slow() -> Problem {
    let detail = format!("the body did not come within {} seconds", WITHIN.as_secs());
    Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail)
}

fn broken(error: &hyper::Error) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad_body", format!("the body can't be read: {error}"))
}
