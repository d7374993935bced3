//! Sessions as they were declared; and with `mode=live` the conversations that have a key: with whom, when they were last used,
//! how many runs they had.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use ostler_control::store::SessionPlace;
use ostler_kernel::{Session, resource::API_VERSION, session::last_use};
use ostler_spec::Kind;
use serde::Serialize;

use super::{
    answer,
    parameter::{AFTER, LABEL_SELECTOR, LABELS, LIMIT, SCOPE, SESSION_MODE},
    resources,
    table::{Need, Route, Routes, Shape},
};
use crate::{
    gate::App,
    parameters::{Parameters, Scope},
    problem::Problem,
    wire::list::List,
};

pub fn routes() -> Routes {
    let listed = Route::get(
        "/v1/sessions",
        Need::Read,
        "Sessions as they were declared; or conversations that have a key, by subject and key.",
    )
    .takes(&[SCOPE, LIMIT, AFTER, LABEL_SELECTOR, LABELS, SESSION_MODE])
    .answers(200, Shape::Json("SessionList"));
    Routes::new().add(listed, list)
}

/// A conversation as the API shows it, in the shape of what is declared.
#[derive(Serialize)]
struct SessionView<'a> {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    status: Status<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
    uid: String,
    created_at: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    /// `Active` while a run of it has not ended.
    phase: &'static str,
    /// The agent it is with; of a system's, the system comes first.
    subject: &'a str,
    key: &'a str,
    runs: u64,
    last_used_at: String,
}

impl<'a> SessionView<'a> {
    fn of(session: &'a Session) -> Self {
        let key = session.key.as_deref().unwrap_or_default();
        let (uid, created_at) = (session.id.to_string(), session.id.made_at().to_string());
        Self {
            api_version: API_VERSION,
            kind: Kind::Session.name(),
            metadata: Metadata { name: key, namespace: &session.namespace, uid, created_at },
            status: Status {
                phase: if session.head.is_some() { "Active" } else { "Idle" },
                subject: &session.subject,
                key,
                runs: session.runs,
                last_used_at: last_use(session).to_string(),
            },
        }
    }
}

async fn list(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    let known = ["namespace", "limit", "after", "labelSelector", "labels", "mode"];
    let parameters = parameters.only(&known)?;
    match parameters.get("mode") {
        None | Some("declared") => return resources::page(Kind::Session, &app, &parameters).await,
        Some("live") => {}
        Some(other) => {
            let detail = format!("mode: expected declared or live, found {other:?}");
            return Err(Problem::bad_parameter(detail));
        }
    }
    if !parameters.selector()?.is_empty() {
        return Err(Problem::bad_parameter("a conversation has no labels").remedy("leave the selector out"));
    }
    let limit = parameters.limit()?;
    let namespace = match parameters.scope()? {
        Scope::One(namespace) => Some(namespace),
        Scope::All => None,
    };
    let after = parameters.get("after").map(cursor).transpose()?;
    let found = app.control.sessions(namespace, after, limit + 1).await?;
    let page = List::page(found.iter().collect(), limit, |session: &&Session| place(session));
    Ok(answer(StatusCode::OK, &page.map(SessionView::of)))
}

/// Where the list goes on. Each part may hold anything, so it is written as JSON.
fn place(session: &Session) -> String {
    let Session { namespace, subject, key, .. } = session;
    serde_json::to_string(&(namespace, subject, key.as_deref().unwrap_or_default())).unwrap_or_default()
}

fn cursor(after: &str) -> Result<SessionPlace, Problem> {
    let read = serde_json::from_str::<(String, String, String)>(after);
    let place = read.map(|(namespace, subject, key)| SessionPlace { namespace, subject, key });
    place.map_err(|_| {
        let detail = format!("after: expected the `continue` of the page before, found {after:?}");
        Problem::bad_parameter(detail)
    })
}
