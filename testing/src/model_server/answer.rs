//! A turn as an HTTP response: well-behaved, refused, or broken on its way by a fault.

mod broken;

use std::time::Duration;

use http::{HeaderValue, Response, StatusCode};

use super::completion::Completion;
use super::conversation::Conversation;
use super::events::Events;
use super::fault::Fault;
use super::script::Turn;
use super::trouble::Trouble;
use super::wire::Dialect;
use crate::loopback::{Reply, Write};

/// What the server does to a request.
pub(super) enum Answer {
    /// Responds.
    Respond(Box<Response<Reply>>),
    /// Closes the connection without a byte.
    Close,
    /// Never says anything.
    Hang,
}

/// The answer to a sound request. `settle` fills in the usage where the turn has none.
pub(super) fn of_turn<D: Dialect>(
    turn: Turn,
    fault: Option<Fault>,
    conversation: &Conversation<'_>,
    settle: impl FnOnce(&mut Completion<'_>),
) -> Answer {
    if let Some(answer) = fault.and_then(|fault| instead_of_a_turn::<D>(fault, conversation.stream)) {
        return answer;
    }
    let (chunk, pace) = (turn.chunk, turn.pace);
    let mut completion = Completion::new(turn, conversation, D::CALL_PREFIX);
    settle(&mut completion);
    if let Some(fault) = fault {
        completion.apply(fault);
    }
    let mut response = if conversation.stream {
        let events = D::stream(&completion, chunk.or(fault.and_then(broken::chunk)));
        let reply = match fault {
            Some(fault) => broken::stream::<D>(&events, fault),
            None if chunk.is_some() || !pace.is_zero() => paced(&events, pace),
            None => Reply::chunked(events.bytes),
        };
        reply.into_response(StatusCode::OK, D::STREAM_TYPE)
    } else {
        broken::whole::<D>(D::whole(&completion), fault).into_response(StatusCode::OK, "application/json")
    };
    if let Ok(id) = HeaderValue::try_from(format!("req_{}", completion.id)) {
        response.headers_mut().insert(D::ID_HEADER, id);
    }
    Answer::Respond(Box::new(response))
}

/// An error in the shape of a wire.
pub(super) fn of_trouble<D: Dialect>(trouble: &Trouble<'_>) -> Response<Reply> {
    let (status, body) = D::error(trouble);
    let mut response = Reply::json(status, &body);
    if let Trouble::RateLimited(hint) = trouble
        && D::HINTS_IN_HEADERS
    {
        hint.put(response.headers_mut());
    }
    response.headers_mut().insert(D::ID_HEADER, HeaderValue::from_static("req_refused"));
    response
}

fn instead_of_a_turn<D: Dialect>(fault: Fault, streams: bool) -> Option<Answer> {
    let response = match fault {
        Fault::Close => return Some(Answer::Close),
        Fault::Hang => return Some(Answer::Hang),
        Fault::Html => {
            let page = "<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>";
            Reply::whole(page).into_response(StatusCode::OK, "text/html; charset=utf-8")
        }
        // In one piece there is no middle to fail in.
        Fault::ErrorEvent if !streams => of_trouble::<D>(&Trouble::ServerError),
        Fault::BadArguments if D::PARSES_ARGUMENTS => of_trouble::<D>(&Trouble::ServerError),
        Fault::Blocked => match D::blocked(streams) {
            Some(body) => {
                let content_type = if streams { D::STREAM_TYPE } else { "application/json" };
                Reply::whole(body).into_response(StatusCode::OK, content_type)
            }
            None => of_trouble::<D>(&Trouble::Blocked),
        },
        fault => of_trouble::<D>(&Trouble::of(fault)?),
    };
    Some(Answer::Respond(Box::new(response)))
}

/// Every event in a write of its own.
fn paced(events: &Events, pace: Duration) -> Reply {
    let before = if pace.is_zero() { Write::Flush } else { Write::Pause(pace) };
    Reply::script(events.iter().flat_map(|event| [before.clone(), Write::Bytes(event)]))
}
