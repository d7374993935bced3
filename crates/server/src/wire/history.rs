//! Where a task went, and with whom: its log without its steps, in the words of those who read it elsewhere.

use ostler_kernel::{Event, EventBody, message::MessageKind, run::AttemptEnd};
use serde::Serialize;

use super::event::{RUNNING, action, message};

/// The most that a task is shown with: the last ones.
pub const MOST_HISTORY: usize = 200;

#[derive(Debug, Serialize)]
pub struct HistoryItem {
    timestamp: String,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    message: String,
}

/// Of what happened while somebody had the task, it is told who.
pub fn history(events: &[Event]) -> Vec<HistoryItem> {
    let (mut was_lost, mut holder) = (false, None);
    let mut items = Vec::new();
    for event in events {
        let body = &event.body;
        let Some(kind) = turn(body, was_lost) else { continue };
        was_lost = matches!(body, EventBody::AttemptEnded { end: AttemptEnd::Lost, .. });
        let mut kinds = vec![kind];
        if let EventBody::AttemptStarted { worker, .. } = body {
            holder = Some(worker.clone());
            kinds.push(RUNNING);
        }
        items.extend(kinds.into_iter().map(|kind| HistoryItem {
            timestamp: event.at.to_string(),
            r#type: kind,
            worker: holder.clone(),
            message: message(kind, body),
        }));
        // What the end of an attempt leads to is told right behind it.
        if !matches!(body, EventBody::AttemptStarted { .. } | EventBody::AttemptEnded { .. }) {
            holder = None;
        }
    }
    items
}

/// As everywhere, but that a claim is told apart from a take-over, and a try ends in one way only.
fn turn(body: &EventBody, was_lost: bool) -> Option<&'static str> {
    match body {
        EventBody::AttemptStarted { .. } => Some(if was_lost { "takeover" } else { "claim" }),
        EventBody::AttemptEnded { .. } => Some("assignment_cleared"),
        EventBody::MessageSent { message, .. } if message.kind == MessageKind::TaskStart => {
            Some(action(body))
        }
        EventBody::RunEnded { .. }
        | EventBody::RunRetrying { .. }
        | EventBody::RunWaiting { .. }
        | EventBody::RunSleeping { .. }
        | EventBody::RunReady { .. }
        | EventBody::TaskEnded { .. } => Some(action(body)),
        EventBody::TaskAccepted { .. }
        | EventBody::StepFinished(_)
        | EventBody::InputAccepted { .. }
        | EventBody::MessageSent { .. }
        | EventBody::ResourceChanged(_)
        | EventBody::Unknown(_) => None,
    }
}
