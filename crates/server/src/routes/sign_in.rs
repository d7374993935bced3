//! Users sign in and out, change their password, and ask who they are; and the first of them is made.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ostler_control::access::{Grant, Kept, Proof, User, UserChange};
use serde::Serialize;
use serde_json::json;

use super::{
    answer,
    table::{Body, Need, Route, Routes, Shape},
    users,
};
use crate::{
    access::{Asker, Caller, Identity, Peer, check_name, check_password},
    fields::Fields,
    gate::App,
    parameters::Parameters,
    problem::Problem,
    telemetry,
};

pub fn routes() -> Routes {
    let path = |verb: &str| format!("/v1/auth/{verb}");
    let (nothing, reset) = (Need::Nothing, "admin/reset-password");
    let me_shape = Shape::Json("Me");
    Routes::new()
        .add(
            Route::get(path("config"), nothing, "How one signs in here.")
                .answers(200, Shape::Json("SignInConfig")),
            config,
        )
        .add(
            Route::post(path("setup"), nothing, "Makes the first user, by an admin's token.")
                .carries(Body::Json("Setup"))
                .answers(201, me_shape),
            setup,
        )
        .add(
            Route::post(path("login"), nothing, "Signs a user in, with a cookie.")
                .carries(Body::Json("Login"))
                .answers(200, me_shape),
            login,
        )
        .add(Route::post(path("logout"), nothing, "Ends a sign-in.").answers(204, Shape::Nothing), logout)
        .add(Route::get(path("me"), nothing, "Who asks, and what they may.").answers(200, me_shape), me)
        .add(
            Route::post(path("change-password"), Need::SignIn, "Changes one's own password.")
                .carries(Body::Json("PasswordChange"))
                .answers(200, me_shape),
            change_password,
        )
        .add(
            Route::post(path(reset), Need::Administer, "Gives a user another password.")
                .carries(Body::Json("PasswordReset"))
                .answers(200, Shape::Json("User")),
            reset_password,
        )
}

async fn config(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let is_required = !app.control.has_users().await?;
    let config = json!({
        "mode": "native",
        "setup_required": is_required,
        "setup_token_required": is_required && app.sign_ins.has_setup_token(),
        "login_methods": ["password", "token"],
    });
    Ok(answer(StatusCode::OK, &config))
}

async fn setup(
    State(app): State<Arc<App>>,
    Identity(identity): Identity,
    Peer(from): Peer,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let sign_ins = &app.sign_ins;
    let mut fields = Fields::begin(parameters, &headers, &body)?;
    let token = fields.text(&["setup_token"])?;
    sign_ins.begin_try(from, app.runtime.monotonic())?;
    sign_ins.check_setup(identity, token.as_deref())?;
    sign_ins.end_try_well(from, app.runtime.monotonic());
    let name = fields.checked(&["username", "name"], check_name)?;
    let password = fields.checked(&["password"], check_password)?;
    fields.end()?;
    if app.control.has_users().await? {
        return Err(Problem::new(StatusCode::CONFLICT, "conflict", "the first user is there already")
            .remedy("sign in, or make another user with POST /v1/auth/users"));
    }
    let hash = sign_ins.passwords.hash(password, &*app.runtime).await?;
    let user = app.control.create_first_user(&name, hash).await?;
    telemetry::user_created(&name, "setup");
    signed_in(&app, StatusCode::CREATED, &user).await
}

async fn login(
    State(app): State<Arc<App>>,
    Peer(from): Peer,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut fields = Fields::begin(parameters, &headers, &body)?;
    let name = fields.required(&["username", "name"])?;
    let password = fields.required(&["password"])?;
    fields.end()?;
    let user = user_of(&app, from, &name, password).await?;
    signed_in(&app, StatusCode::OK, &user).await
}

/// Whose name and password these are. Every wrong one counts against the address that it comes from.
pub async fn user_of(app: &App, from: IpAddr, name: &str, password: String) -> Result<Kept<User>, Problem> {
    app.sign_ins.begin_try(from, app.runtime.monotonic())?;
    // Who is not there, or can't be called so, is looked for and compared as long as anybody.
    let user = if check_name(name).is_ok() { app.control.user(name).await? } else { None };
    let kept = user.as_ref().map(|user| &user.document.password);
    let is_right = app.sign_ins.passwords.is_right(password, kept, app.sign_ins.asker(from)).await?;
    match user.filter(|_| is_right) {
        Some(user) => {
            app.sign_ins.end_try_well(from, app.runtime.monotonic());
            Ok(user)
        }
        None => {
            telemetry::sign_in_refused(from);
            let detail = "the name or the password is wrong";
            Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail))
        }
    }
}

async fn logout(
    State(app): State<Arc<App>>,
    Identity(identity): Identity,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    match identity {
        Ok(caller) => {
            if let Some(Proof::SignIn(digest)) = caller.proof() {
                app.control.sign_out(&digest).await?;
            }
        }
        // Of a page that is not ours.
        Err(problem) if problem.status() == StatusCode::FORBIDDEN => return Err(problem),
        Err(_) => {}
    }
    let cleared = [(header::SET_COOKIE, app.sign_ins.cookies.clear())];
    Ok((StatusCode::NO_CONTENT, cleared).into_response())
}

async fn me(
    Identity(identity): Identity,
    parameters: Parameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    match identity {
        Ok(caller) => Ok(answer(StatusCode::OK, &Me::of(&caller))),
        // A token that is not valid is a mistake; whoever shows none only asks.
        Err(problem) if headers.contains_key(header::AUTHORIZATION) => Err(problem),
        Err(_) => Ok(answer(StatusCode::OK, &json!({ "authenticated": false }))),
    }
}

async fn change_password(
    State(app): State<Arc<App>>,
    caller: Caller,
    Peer(from): Peer,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let Some(Proof::SignIn(_)) = caller.proof() else {
        let detail = "a token has no password; only a user who has signed in can change one";
        return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
            .remedy("an admin sets another's with POST /v1/auth/admin/reset-password"));
    };
    let mut fields = Fields::begin(parameters, &headers, &body)?;
    let current = fields.required(&["current_password"])?;
    let new = fields.checked(&["new_password"], check_password)?;
    fields.end()?;
    app.sign_ins.begin_try(from, app.runtime.monotonic())?;
    let user = app.control.user(caller.name()).await?;
    let kept = user.as_ref().map(|user| &user.document.password);
    if !app.sign_ins.passwords.is_right(current, kept, Asker::Known).await? {
        telemetry::sign_in_refused(from);
        let detail = "the current password is wrong";
        return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail));
    }
    app.sign_ins.end_try_well(from, app.runtime.monotonic());
    let user = set_password(&app, caller.name(), new).await?;
    // It ended this sign-in with the others.
    signed_in(&app, StatusCode::OK, &user).await
}

async fn reset_password(
    State(app): State<Arc<App>>,
    caller: Caller,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut fields = Fields::begin(parameters, &headers, &body)?;
    let name = fields.text(&["username", "name"])?;
    let new = fields.checked(&["new_password", "password"], check_password)?;
    fields.end()?;
    let name = match name {
        Some(name) => name,
        None => only_user(&app).await?,
    };
    let user = set_password(&app, &name, new).await?;
    telemetry::password_reset(&name, caller.name());
    Ok(answer(StatusCode::OK, &users::View::of(&user)))
}

async fn only_user(app: &App) -> Result<String, Problem> {
    let mut users = app.control.users(None, 2).await?;
    match (users.pop(), users.is_empty()) {
        (Some(user), true) => Ok(user.name),
        _ => Err(Problem::invalid_body("username", "is missing, and there is more than one user, or none")),
    }
}

async fn set_password(app: &App, name: &str, password: String) -> Result<Kept<User>, Problem> {
    if check_name(name).is_err() || app.control.user(name).await?.is_none() {
        return Err(Problem::not_found("user", name));
    }
    let hash = app.sign_ins.passwords.hash(password, &*app.runtime).await?;
    let change = UserChange { password: Some(hash), ..UserChange::default() };
    Ok(app.control.change_user(name, change).await?)
}

/// Tells a user who they are now, with the cookie that says so from here on.
async fn signed_in(app: &App, status: StatusCode, user: &Kept<User>) -> Result<Response, Problem> {
    let secret = app.control.sign_in(user, app.sign_ins.lasts).await?;
    let mut response = answer(status, &Me::new(&user.name, "session", &user.document.grant));
    let headers = response.headers_mut();
    headers.insert(header::SET_COOKIE, app.sign_ins.cookies.set(&secret));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

#[derive(Serialize)]
struct Me<'a> {
    authenticated: bool,
    username: &'a str,
    name: &'a str,
    /// `session` or `token`.
    method: &'static str,
    #[serde(flatten)]
    grant: &'a Grant,
    /// Of a sign-in, unless it is used before.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

impl<'a> Me<'a> {
    fn of(caller: &'a Caller) -> Self {
        let method = match caller.proof() {
            Some(Proof::SignIn(_)) => "session",
            Some(Proof::Token(_)) | None => "token",
        };
        let expires_at = caller.expires_at().map(|at| at.to_string());
        Self { expires_at, ..Self::new(caller.name(), method, caller.grant()) }
    }

    fn new(name: &'a str, method: &'static str, grant: &'a Grant) -> Self {
        Self { authenticated: true, username: name, name, method, grant, expires_at: None }
    }
}
