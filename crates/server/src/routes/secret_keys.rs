//! The keys that secrets are sealed with: which there are, and turning to another. Never the keys themselves.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use serde::Serialize;

use super::{
    answer,
    table::{Need, Route, Routes, Shape},
};
use crate::{
    gate::App,
    parameters::Parameters,
    problem::Problem,
    secret_keys::{KeyReadError, KeySource},
    telemetry,
};

pub fn routes() -> Routes {
    Routes::new()
        .add(
            Route::get("/v1/secret-keys", Need::Oversee, "Which keys have sealed the secrets that are kept.")
                .answers(200, Shape::Json("SecretKeys")),
            read,
        )
        .add(
            Route::post(
                "/v1/secret-keys/rotate",
                Need::Administer,
                "Turns to another key, and seals everything with it.",
            )
            .answers(202, Shape::Json("SecretKeys")),
            rotate,
        )
}

#[derive(Serialize)]
struct Keys {
    /// Where they come from.
    source: String,
    /// The one that seals first.
    keys: Vec<OneKey>,
    /// Secrets that the first has not sealed yet.
    left: usize,
}

#[derive(Serialize)]
struct OneKey {
    id: String,
    values: usize,
    known: bool,
}

async fn read(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&[])?;
    Ok(answer(StatusCode::OK, &keys(&app).await?))
}

/// Sealing everything anew goes on behind the answer.
async fn rotate(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let _turn = app.turning.acquire().await;
    let source = &app.key_source;
    let next = source.next(&app.redactor, &*app.runtime);
    if let Some(ring) = next.map_err(|error| unusable(source, "read", &error))? {
        let fit = app.control.fit_keys(ring).await?;
        // Nothing is sealed with a key that could still be lost.
        source.keep(fit.ring()).map_err(|error| unusable(source, "written", &error))?;
        app.control.turn_keys(fit);
    }
    Ok(answer(StatusCode::ACCEPTED, &keys(&app).await?))
}

fn unusable(source: &KeySource, done: &str, error: &KeyReadError) -> Problem {
    telemetry::keys_not_read(error);
    let detail = format!("the keys of {source} can't be {done}: {error}");
    Problem::new(StatusCode::CONFLICT, "secret_key_unusable", detail)
        .remedy("correct the file, a key to a line, and ask again; the keys in use stay as they are")
}

async fn keys(app: &App) -> Result<Keys, Problem> {
    let found = app.control.secret_keys().await?;
    let keys = found.keys.into_iter();
    let keys = keys.map(|key| OneKey { id: key.id, values: key.values, known: key.is_known }).collect();
    Ok(Keys { source: app.key_source.to_string(), keys, left: found.left })
}
