//! The control routes: what a test asks the server about the traffic it saw.
//!
//! - `GET /_control/requests`: totals, and counts by request id; `?id=` for one of them, `?repeated=1` for those
//!   that came more than once, `?unanswered=1` for those that never got a whole answer.
//! - `GET /_control/inflight`: how many requests are being answered now, and their ids.
//! - `GET /_control/violations`: every rule that was broken.
//! - `POST /_control/reset`: forgets everything.

use http::{Method, Response, StatusCode};
use serde_json::json;

use super::answer;
use super::chat::Chat;
use super::ledger::Ledger;
use super::trouble::Trouble;
use crate::loopback::{Reply, Tally, query_value};

/// Answers a control request.
pub(super) fn answer(ledger: &Ledger, method: &Method, path: &str, query: Option<&str>) -> Response<Reply> {
    let body = match (method, path) {
        (&Method::GET, "requests") => requests(ledger, query),
        (&Method::GET, "inflight") => {
            let by_id = ledger.desk.by_id(|tally| tally.inflight > 0);
            let ids: Vec<_> = by_id.keys().map(|id| &**id).collect();
            json!({ "inflight": ledger.desk.all().inflight, "ids": ids })
        }
        (&Method::GET, "violations") => json!(ledger.violations()),
        (&Method::POST, "reset") => {
            ledger.reset();
            json!({})
        }
        _ => {
            return answer::of_trouble::<Chat>(&Trouble::NotFound("no such control route"));
        }
    };
    Reply::json(StatusCode::OK, &body)
}

fn requests(ledger: &Ledger, query: Option<&str>) -> serde_json::Value {
    if let Some(id) = query_value(query, "id") {
        return json!(ledger.desk.of(id));
    }
    let repeated = query_value(query, "repeated").is_some();
    let unanswered = query_value(query, "unanswered").is_some();
    let wanted = |tally: &Tally| (!repeated || tally.received > 1) && (!unanswered || tally.answered == 0);
    let by_id: serde_json::Map<_, _> =
        ledger.desk.by_id(wanted).into_iter().map(|(id, tally)| (id.to_string(), json!(tally))).collect();
    json!({ "all": ledger.desk.all(), "by_id": by_id })
}
