//! Routes of what is declared and not built yet: whoever uses it is told by name.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use ostler_spec::Kind;

use super::{
    parameter::{LIMIT, NAMESPACE, PREFIX, QUERY},
    table::{Body, Need, Route, Routes},
};
use crate::{
    gate::App,
    parameters::{Name, Parameters},
    problem::Problem,
};

pub fn routes() -> Routes {
    let decisions = [
        (Kind::ToolApproval, "approve", "Lets a tool be called."),
        (Kind::ToolApproval, "deny", "Refuses a call of a tool."),
        (Kind::TaskApproval, "approve", "Lets a task go on."),
        (Kind::TaskApproval, "deny", "Ends what a task was about to do."),
        (Kind::TaskApproval, "request-changes", "Sends what a task has so far back to its agent."),
    ];
    let routes = Routes::new().add(
        Route::get("/v1/memories/{name}/entries", Need::Read, "What a memory holds.")
            .takes(&[NAMESPACE, QUERY, PREFIX, LIMIT]),
        entries,
    );
    let delivered = "Takes what a webhook delivers.";
    let routes = routes.add(
        Route::post("/v1/webhook-deliveries/{name}", Need::Write, delivered)
            .carries(Body::Optional("Delivery")),
        deliver,
    );
    decisions.into_iter().fold(routes, |routes, (kind, verb, summary)| {
        let path = format!("/v1/{}/{{name}}/{verb}", kind.plural());
        let route =
            Route::post(path, Need::Write, summary).takes(&[NAMESPACE]).carries(Body::Optional("Decision"));
        routes.add(route, move |app, name, parameters| decide(kind, app, name, parameters))
    })
}

async fn entries(
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace", "q", "prefix", "limit"])?;
    parameters.limit()?;
    refuse(Kind::Memory, &app, &name, &parameters, "reading what a memory holds").await
}

async fn deliver(parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let detail = "taking deliveries of webhooks is not available in this version";
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_available", detail))
}

async fn decide(
    kind: Kind,
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace"])?;
    refuse(kind, &app, &name, &parameters, "deciding about an approval").await
}

async fn refuse(
    kind: Kind,
    app: &App,
    name: &str,
    parameters: &Parameters,
    what: &str,
) -> Result<Response, Problem> {
    let found = app.control.resource(kind, parameters.namespace_or_default()?, name).await?;
    found.ok_or_else(|| Problem::not_found(kind.name(), name))?;
    let detail = format!("{}/{name}: {what} is not available in this version", kind.singular());
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_available", detail))
}
