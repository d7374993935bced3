//! Users, as those who look after the server see them.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ostler_control::access::{Grant, Kept, Namespaces, Role, User, UserChange, make_secret};
use serde::Serialize;

use super::{
    answer,
    parameter::{AFTER, LIMIT, USER_AGENT},
    table::{Body, Need, Route, Routes, Shape},
};
use crate::{
    access::{Caller, check_name, check_password},
    dialect::Dialect,
    fields::Fields,
    gate::App,
    parameters::{Name, Parameters},
    problem::Problem,
    telemetry,
    wire::list::List,
};

pub fn routes() -> Routes {
    let (all, one, need) = ("/v1/auth/users", "/v1/auth/users/{name}", Need::Administer);
    let user = Shape::Json("User");
    Routes::new()
        .add(
            Route::get(all, need, "Users, by their names.")
                .takes(&[LIMIT, AFTER])
                .heeds(&[USER_AGENT])
                .answers(200, Shape::Json("UserList")),
            list,
        )
        .add(
            Route::post(
                all,
                need,
                "Makes a user; a password that is not given is made up, and shown this once.",
            )
            .carries(Body::Json("NewUser"))
            .answers(201, user),
            create,
        )
        .add(Route::get(one, need, "A user.").answers(200, user), read)
        .add(
            Route::patch(one, need, "Changes a user's role, namespaces or password.")
                .carries(Body::Json("UserChange"))
                .answers(200, user),
            change,
        )
        .add(
            Route::delete(one, need, "Deletes a user, and ends their sign-ins.").answers(204, Shape::Nothing),
            delete,
        )
}

#[derive(Serialize)]
pub struct View<'a> {
    name: &'a str,
    /// The same: each of the two is read somewhere.
    username: &'a str,
    #[serde(flatten)]
    grant: &'a Grant,
    created_at: String,
    updated_at: String,
    /// One that was made up, shown once.
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<&'a str>,
}

impl<'a> View<'a> {
    pub fn of(user: &'a Kept<User>) -> Self {
        let Kept { name, created_at, document, .. } = user;
        let User { grant, updated_at, .. } = document;
        Self {
            name,
            username: name,
            grant,
            created_at: created_at.to_string(),
            updated_at: updated_at.unwrap_or(*created_at).to_string(),
            password: None,
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
    let users = app.control.users(behind(&parameters)?, limit + 1).await?;
    let views = users.iter().map(View::of).collect();
    Ok(dialect.list(&List::page(views, limit, |view| view.name.to_owned())))
}

/// The name that the page before ended with.
pub fn behind(parameters: &Parameters) -> Result<Option<&str>, Problem> {
    let after = parameters.get("after");
    after
        .map_or(Ok(()), check_name)
        .map_err(|message| Problem::bad_parameter(format!("after: {message}")))?;
    Ok(after)
}

async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut fields = Fields::begin(parameters, &headers, &body)?;
    let name = fields.checked(&["name", "username"], check_name)?;
    let given = fields.text(&["password"])?;
    if let Some(password) = &given {
        check_password(password).map_err(|message| Problem::invalid_body("password", message))?;
    }
    let grant = grant(&mut fields)?;
    fields.end()?;
    if app.control.user(&name).await?.is_some() {
        let detail = format!("there is a user {name:?} already");
        return Err(Problem::new(StatusCode::CONFLICT, "conflict", detail));
    }
    // Nobody has to think of one: who is told it changes it.
    let made_up = given.is_none().then(|| make_secret("", &*app.runtime));
    let password = given.or_else(|| made_up.clone()).unwrap_or_default();
    let hash = app.sign_ins.passwords.hash(password, &*app.runtime).await?;
    let user = app.control.create_user(&name, grant, hash).await?;
    telemetry::user_created(&name, caller.name());
    let view = View { password: made_up.as_deref(), ..View::of(&user) };
    let mut response = answer(StatusCode::CREATED, &view);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The least, unless more is said.
pub fn grant(fields: &mut Fields) -> Result<Grant, Problem> {
    let (role, namespaces) = (fields.role()?, fields.namespaces()?);
    Ok(Grant { role: role.unwrap_or(Role::Reader), namespaces: namespaces.unwrap_or(Namespaces::All) })
}

async fn read(
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    Ok(answer(StatusCode::OK, &View::of(&find(&app, &name).await?)))
}

async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Name(name): Name,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut fields = Fields::begin(parameters, &headers, &body)?;
    let (role, namespaces) = (fields.role()?, fields.namespaces()?);
    let password = fields.text(&["password", "new_password"])?;
    fields.end()?;
    find(&app, &name).await?;
    let password = match password {
        Some(password) => {
            check_password(&password).map_err(|message| Problem::invalid_body("password", message))?;
            Some(app.sign_ins.passwords.hash(password, &*app.runtime).await?)
        }
        None => None,
    };
    let user = app.control.change_user(&name, UserChange { role, namespaces, password }).await?;
    telemetry::user_changed(&name, caller.name());
    Ok(answer(StatusCode::OK, &View::of(&user)))
}

async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Name(name): Name,
    parameters: Parameters,
) -> Result<StatusCode, Problem> {
    parameters.only(&[])?;
    find(&app, &name).await?;
    app.control.delete_user(&name).await?;
    telemetry::user_deleted(&name, caller.name());
    Ok(StatusCode::NO_CONTENT)
}

/// Nobody is called what nobody may be called.
async fn find(app: &App, name: &str) -> Result<Kept<User>, Problem> {
    let user = if check_name(name).is_ok() { app.control.user(name).await? } else { None };
    user.ok_or_else(|| Problem::not_found("user", name))
}
