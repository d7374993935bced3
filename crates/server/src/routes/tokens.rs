//! Tokens for programs: made, listed without what is secret in them, and taken away.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{extract::State, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ostler_control::access::{Grant, Kept, NewToken, Proof, Token, User, make_secret};
use ostler_kernel::{Runtime, Timestamp};
use ostler_spec::GoDuration;
use serde::Serialize;

use super::{
    answer,
    parameter::{AFTER, LIMIT, USER_AGENT},
    sign_in::user_of,
    table::{Body, Need, Route, Routes, Shape},
    users::{behind, grant},
};
use crate::{
    access::{Caller, Identity, Peer, check_name},
    dialect::Dialect,
    fields::{Fields, invalid},
    gate::App,
    parameters::{Name, Parameters},
    problem::Problem,
    telemetry,
    wire::list::List,
};

pub fn routes() -> Routes {
    let (all, need) = ("/v1/tokens", Need::Administer);
    Routes::new()
        .add(
            Route::get(all, need, "Tokens, by their names; not what they are.")
                .takes(&[LIMIT, AFTER])
                .heeds(&[USER_AGENT])
                .answers(200, Shape::Json("TokenList")),
            list,
        )
        .add(
            Route::post(all, need, "Makes a token, and shows it this once.")
                .carries(Body::Json("NewToken"))
                .answers(201, Shape::Json("Token")),
            create,
        )
        .add(
            // Who is not signed in shows a name and a password.
            Route::post(
                "/v1/auth/cli-token",
                Need::Nothing,
                "Makes a token that stands for who is signed in, or for whose name and password are sent.",
            )
            .carries(Body::Optional("NewOwnToken"))
            .answers(201, Shape::Json("Token")),
            create_own,
        )
        .add(
            Route::delete("/v1/tokens/{name}", need, "Takes a token away: it opens nothing any more.")
                .answers(204, Shape::Nothing),
            delete,
        )
}

#[derive(Serialize)]
struct View<'a> {
    name: &'a str,
    /// Whom it stands for, where it is made for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<&'a str>,
    #[serde(flatten)]
    grant: &'a Grant,
    /// Shown once.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    created_at: String,
    created_by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

impl<'a> View<'a> {
    fn of(kept: &'a Kept<Token>) -> Self {
        let Token { grant, created_by, last_used_at, expires_at, .. } = &kept.document;
        let text = |time: &Option<Timestamp>| time.map(|time| time.to_string());
        Self {
            name: &kept.name,
            username: None,
            grant,
            token: None,
            created_at: kept.created_at.to_string(),
            created_by,
            last_used_at: text(last_used_at),
            expires_at: text(expires_at),
        }
    }
}

async fn list(
    State(app): State<Arc<App>>,
    dialect: Dialect,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["limit", "after"])?;
    let limit = dialect.limit(&parameters)?;
    let tokens = app.control.tokens(behind(&parameters)?, limit + 1).await?;
    let views = tokens.iter().map(View::of).collect();
    Ok(dialect.list(&List::page(views, limit, |view| view.name.to_owned())))
}

async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut fields = Fields::begin(parameters, &headers, &body)?;
    let name = fields.checked(&["name"], check_name)?;
    let grant = grant(&mut fields)?;
    let expires_at = expiry(&mut fields, app.runtime.now())?;
    fields.end()?;
    let new = NewToken { name, grant, created_by: caller.name().to_owned(), expires_at };
    let (kept, secret) = app.control.create_token(new).await?;
    telemetry::token_created(&kept.name, caller.name());
    Ok(shown_once(&View { token: Some(&secret), ..View::of(&kept) }))
}

/// How long a token lasts that stands for a user, if no end is asked for, and at most.
const OWN_LASTS: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const OWN_LASTS_AT_MOST: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// For the command line of whoever has signed in, or has sent a name and a password.
async fn create_own(
    State(app): State<Arc<App>>,
    Identity(identity): Identity,
    Peer(from): Peer,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut fields = Fields::begin_optional(parameters, &headers, &body)?;
    let asker = Asker::of(identity, &mut fields)?;
    let name = fields.text(&["name"])?;
    name.as_deref().map_or(Ok(()), check_name).map_err(|message| invalid("name", &message))?;
    let now = app.runtime.now();
    let expires_at = expiry(&mut fields, now)?.unwrap_or_else(|| now.after(OWN_LASTS));
    fields.end()?;
    if expires_at > now.after(OWN_LASTS_AT_MOST) {
        return Err(invalid("expires_at", &"expected a moment within 90 days"));
    }
    let user = asker.user(&app, from).await?;
    let name = name.unwrap_or_else(|| made_up_name(&user.name, &*app.runtime));
    let (kept, secret) = app.control.create_own_token(&user, name, expires_at).await?;
    telemetry::token_created(&kept.name, &user.name);
    let username = Some(user.name.as_str());
    Ok(shown_once(&View { token: Some(&secret), username, ..View::of(&kept) }))
}

/// Who wants a token that stands for them.
enum Asker {
    SignedIn(Caller),
    WithPassword { name: String, password: String },
}

impl Asker {
    /// A name and a password count alone, whatever else the request shows.
    fn of(identity: Result<Caller, Problem>, fields: &mut Fields) -> Result<Self, Problem> {
        let (name, password) = (fields.text(&["username"])?, fields.text(&["password"])?);
        match (name, password) {
            (Some(name), Some(password)) => return Ok(Asker::WithPassword { name, password }),
            (Some(_), None) => return Err(invalid("password", &"is missing")),
            (None, Some(_)) => return Err(invalid("username", &"is missing")),
            (None, None) => {}
        }
        let caller =
            identity.map_err(|problem| problem.remedy("sign in, or send `username` and `password`"))?;
        match caller.proof() {
            Some(Proof::SignIn(_)) => Ok(Asker::SignedIn(caller)),
            Some(Proof::Token(_)) | None => {
                let detail =
                    "a token makes no other; only a user who has signed in gets one that stands for them";
                Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
                    .remedy("an admin makes tokens for programs with POST /v1/tokens"))
            }
        }
    }

    async fn user(self, app: &App, from: IpAddr) -> Result<Kept<User>, Problem> {
        match self {
            Asker::SignedIn(caller) => {
                let user = app.control.user(caller.name()).await?;
                user.ok_or_else(|| Problem::not_found("user", caller.name()))
            }
            Asker::WithPassword { name, password } => user_of(app, from, &name, password).await,
        }
    }
}

/// Tells whose it is, and is not there yet.
fn made_up_name(user: &str, runtime: &dyn Runtime) -> String {
    let letters = make_secret("", runtime);
    let user: String = user.chars().take(64).collect();
    format!("{user}-cli-{}", &letters[..letters.len().min(10)])
}

fn shown_once(view: &View<'_>) -> Response {
    let mut response = answer(StatusCode::CREATED, view);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Name(name): Name,
    parameters: Parameters,
) -> Result<StatusCode, Problem> {
    parameters.only(&[])?;
    if check_name(&name).is_err() {
        return Err(Problem::not_found("token", &name));
    }
    app.control.delete_token(&name).await?;
    telemetry::token_deleted(&name, caller.name());
    Ok(StatusCode::NO_CONTENT)
}

/// `expires_at` as a moment, or `expires_in` as a duration from now.
fn expiry(fields: &mut Fields, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
    let (at, lasts) = (fields.text(&["expires_at"])?, fields.text(&["expires_in"])?);
    let expires_at = match (at, lasts) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(invalid("expires_in", &"expires_at is given too")),
        (Some(at), None) => moment(&at)?,
        (None, Some(lasts)) => now.after(duration(&lasts)?),
    };
    if expires_at <= now {
        return Err(invalid("expires_at", &"expected a moment that is to come"));
    }
    Ok(Some(expires_at))
}

fn moment(text: &str) -> Result<Timestamp, Problem> {
    let read = text.parse::<jiff::Timestamp>();
    let moment =
        read.map_err(|_| invalid("expires_at", &"expected a moment such as 2027-01-31T12:00:00Z"))?;
    Ok(Timestamp::from_millis(moment.as_millisecond()))
}

/// A hundred years.
const MOST_DAYS: u32 = 36_525;

fn duration(text: &str) -> Result<Duration, Problem> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    match days {
        Some(days) if days > MOST_DAYS => {
            Err(invalid("expires_in", &format_args!("expected at most {MOST_DAYS}d")))
        }
        Some(days) => Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        None => {
            text.parse::<GoDuration>().map(GoDuration::get).map_err(|error| invalid("expires_in", &error))
        }
    }
}
