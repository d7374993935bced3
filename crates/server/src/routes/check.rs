//! Looks at objects that belong together before the first of them is put in place.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use ostler_control::{Fate, Mistake};
use ostler_spec::{Parsed, Resource};
use serde::Serialize;

use super::{
    answer, resources,
    table::{Body, Need, Route, Routes, Shape},
};
use crate::{
    access::Caller,
    gate::App,
    manifest,
    parameters::Parameters,
    problem::{FieldProblem, Problem},
};

pub fn routes() -> Routes {
    let about = "Checks objects that belong together, and writes nothing: all mistakes at once, or what would become of each.";
    let route = Route::post("/v1/check", Need::Write, about)
        .carries(Body::Manifests)
        .answers(200, Shape::Json("Checked"));
    Routes::new().add(route, check)
}

/// What would become of one of them.
#[derive(Serialize)]
struct Checked<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    outcome: &'static str,
}

async fn check(
    State(app): State<Arc<App>>,
    caller: Caller,
    parameters: Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let parsed = manifest::many(&headers, &body)?;
    for resource in &parsed.resources {
        caller.check(resources::need_to_change(resource.kind()))?;
        caller.check_resource(resource)?;
    }
    match app.control.check_together(&parsed.resources).await? {
        Ok(fates) => {
            let items: Vec<Checked<'_>> = parsed.resources.iter().zip(fates).map(checked).collect();
            Ok(answer(StatusCode::OK, &serde_json::json!({ "items": items })))
        }
        Err(mistakes) => Err(refusal(&parsed, mistakes)),
    }
}

fn checked((resource, fate): (&Resource, Fate)) -> Checked<'_> {
    let metadata = &resource.metadata;
    let (namespace, name) = (metadata.namespace.as_str(), metadata.name.as_str());
    Checked { kind: resource.kind().name(), namespace, name, outcome: fate.name() }
}

/// Each with the place in the body, and which of the objects it is about.
fn refusal(parsed: &Parsed, mistakes: Vec<Mistake>) -> Problem {
    let told = mistakes.into_iter().map(|Mistake { item, problem }| {
        let place = parsed.origins.get(item).and_then(|origin| origin.locate(&problem.path));
        FieldProblem::of_item(item, &problem, place)
    });
    Problem::invalid_manifests(told.collect())
}
