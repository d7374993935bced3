//! From what a request shows to who it comes from: a token, or the cookie of a user who has signed in.

use http::{HeaderMap, Method, StatusCode, header};
use ostler_control::access::{Digest, Proof};

use super::Caller;
use crate::{auth::bearer, gate::App, problem::Problem};

/// A token counts before a cookie. Nothing is asked of the store but for what it has not been asked before.
pub async fn identify(app: &App, method: &Method, headers: &HeaderMap) -> Result<Caller, Problem> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let Some(token) = bearer(value.as_bytes()) else {
            return Err(Problem::unauthorized("the Authorization header holds no bearer token"));
        };
        return by_token(app, token).await;
    }
    match app.sign_ins.cookies.read(headers) {
        // A page of another site was let in to show a token: what its browser has for us is not its own.
        Some(_) if app.origins.of(headers).is_some() => {
            Err(Problem::unauthorized("a cookie counts only from a page of this server")
                .remedy("show a token: `Authorization: Bearer <token>`"))
        }
        Some(secret) => by_cookie(app, secret, method, headers).await,
        None => Err(Problem::unauthorized("the request has no token")),
    }
}

async fn by_token(app: &App, token: &[u8]) -> Result<Caller, Problem> {
    if app.token.is(token) {
        return Ok(app.itself.clone());
    }
    let proof = Proof::Token(Digest::of(token));
    let holder = app.control.holder(proof).await?;
    let caller = holder.map(|holder| Caller::holding(holder, proof));
    caller.ok_or_else(|| Problem::unauthorized("the token is not valid here"))
}

async fn by_cookie(app: &App, secret: &str, method: &Method, headers: &HeaderMap) -> Result<Caller, Problem> {
    // Browsers send cookies along with what other sites' pages ask for. Where a request comes from another page than
    // ours it was refused already; one that changes something has to say where it comes from.
    if !method.is_safe() && !headers.contains_key(header::ORIGIN) {
        let detail = "a request that changes something by a cookie has to say which page it comes from";
        return Err(Problem::new(StatusCode::FORBIDDEN, "bad_origin", detail)
            .remedy("send the header Origin, as browsers do; programs use a token"));
    }
    let proof = Proof::SignIn(Digest::of(secret.as_bytes()));
    let holder = app.control.holder(proof).await?;
    let caller = holder.map(|holder| Caller::holding(holder, proof));
    caller.ok_or_else(|| Problem::unauthorized("the sign-in is over").remedy("sign in again"))
}
