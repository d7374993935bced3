//! Faults of the wire: answers that break in the middle of what they say.

use std::time::Duration;

use bytes::Bytes;

use crate::loopback::{Reply, Write};
use crate::model_server::events::Events;
use crate::model_server::fault::Fault;
use crate::model_server::wire::Dialect;

/// How long a slow answer waits before each byte.
const DRIP: Duration = Duration::from_millis(1);

/// How long the pieces of a broken stream are: short, so that it breaks between others, or long, to be done
/// soon.
pub(super) fn chunk(fault: Fault) -> Option<usize> {
    match fault {
        Fault::CutText
        | Fault::CutTool
        | Fault::ErrorEvent
        | Fault::BadChunk
        | Fault::InvalidUtf8
        | Fault::Stall => Some(4),
        Fault::Slow => Some(64),
        Fault::Huge => Some(65_536),
        _ => None,
    }
}

/// Breaks a stream in the middle of its text, or of the arguments of its last call.
pub(super) fn stream<D: Dialect>(events: &Events, fault: Fault) -> Reply {
    let place = if fault == Fault::CutTool { &events.arguments } else { &events.text };
    let middle = usize::midpoint(place.start, place.end);
    let event = events.iter().nth(middle).unwrap_or_default();
    let before = events.iter().take(middle).map(Write::Bytes);
    let after = events.iter().skip(middle + 1).map(Write::Bytes);
    match fault {
        Fault::CutText | Fault::CutTool => {
            let cut = event.slice(..inside::<D>(&event));
            Reply::script(before.chain([Write::Bytes(cut), Write::Flush, Write::Cut]))
        }
        Fault::Stall => Reply::script(before.chain([Write::Stall])),
        Fault::ErrorEvent => Reply::script(before.chain([Write::Bytes(D::error_event().into())])),
        Fault::BadChunk => {
            let bad = [&event[..inside::<D>(&event)], b"\n\n"].concat();
            Reply::script(before.chain([Write::Bytes(bad.into())]).chain(after))
        }
        Fault::InvalidUtf8 => {
            Reply::script(before.chain([Write::Bytes(not_utf8::<D>(&event).into())]).chain(after))
        }
        Fault::Slow => Reply::script([Write::Drip(events.bytes.clone(), DRIP)]),
        _ => Reply::chunked(events.bytes.clone()),
    }
}

/// Breaks an answer in one piece the same way.
pub(super) fn whole<D: Dialect>(body: Vec<u8>, fault: Option<Fault>) -> Reply {
    let body = Bytes::from(body);
    let begin = |then: Write| {
        let begun = Write::Bytes(body.slice(..inside::<D>(&body)));
        Reply::script([begun, Write::Flush, then]).promising(body.len())
    };
    match fault {
        Some(Fault::CutText | Fault::CutTool) => begin(Write::Cut),
        Some(Fault::Stall) => begin(Write::Stall),
        Some(Fault::BadChunk) => Reply::whole(body.slice(..inside::<D>(&body))),
        Some(Fault::InvalidUtf8) => Reply::whole(not_utf8::<D>(&body)),
        Some(Fault::Slow) => Reply::script([Write::Drip(body.clone(), DRIP)]).promising(body.len()),
        _ => Reply::whole(body),
    }
}

/// A place inside the last arguments or text that `json` holds.
fn inside<D: Dialect>(json: &[u8]) -> usize {
    let place = |marker: &&str| {
        let start = json.windows(marker.len()).rposition(|window| window == marker.as_bytes());
        start.map(|start| start + marker.len() + 1).filter(|place| *place < json.len())
    };
    D::BEFORE_CONTENT.iter().find_map(place).unwrap_or(json.len() / 2)
}

fn not_utf8<D: Dialect>(json: &[u8]) -> Vec<u8> {
    let (before, behind) = json.split_at(inside::<D>(json));
    [before, b"\xff\xfe", behind].concat()
}
