//! Routes of what is declared and not built yet: whoever uses it is told by name.

use std::sync::Arc;

use axum::{
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use http::StatusCode;
use ostler_spec::Kind;

use super::{
    parameter::{LIMIT, NAMESPACE, PREFIX, QUERY, RUNS},
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
    let routes = routes
        .add(
            Route::post("/v1/webhook-deliveries/{name}", Need::Write, delivered)
                .carries(Body::Optional("Delivery")),
            deliver,
        )
        .merge(of_the_server())
        .merge(of_agents())
        .merge(of_sessions())
        .merge(of_eval_runs());
    decisions.into_iter().fold(routes, |routes, (kind, verb, summary)| {
        let path = format!("/v1/{}/{{name}}/{verb}", kind.plural());
        let route =
            Route::post(path, Need::Write, summary).takes(&[NAMESPACE]).carries(Body::Optional("Decision"));
        routes.add(route, move |app, name, parameters| decide(kind, app, name, parameters))
    })
}

const A2A: &str = "being called by other agents (A2A)";

/// Agents and systems as other agents see them.
fn of_agents() -> Routes {
    [Kind::Agent, Kind::AgentSystem].into_iter().fold(Routes::new(), |routes, kind| {
        let path = |rest: &str| format!("/v1/{}/{{name}}/{rest}", kind.plural());
        let call =
            Route::post(path("a2a"), Need::Write, format!("Takes what another agent asks of an {kind}."))
                .takes(&[NAMESPACE])
                .carries(Body::Optional("Anything"));
        let card = path(".well-known/agent-card.json");
        let card = Route::get(card, Need::Read, format!("What an {kind} says of itself to other agents."))
            .takes(&[NAMESPACE]);
        let answer = move |State(app): State<Arc<App>>, Name(name): Name, parameters: Parameters| async move {
            refuse(kind, &app, &name, &parameters, A2A).await
        };
        routes.add(call, answer).add(card, answer)
    })
}

/// What belongs to no resource.
fn of_the_server() -> Routes {
    let get = |path: &str, summary: &str| Route::get(path, Need::Read, summary);
    let post = |path: &str, summary: &str| {
        Route::post(path, Need::Write, summary).carries(Body::Optional("Anything"))
    };
    let chat = "the chat interface of OpenAI";
    let (agents, card) = (A2A, "/.well-known/agent-card.json");
    [
        (
            get("/v1/sealing-key/public", "The key that secrets are sealed for."),
            "sealing secrets by a public key",
        ),
        (post("/v1/chat/completions", "Asks a system in the words of OpenAI."), chat),
        (post("/a2a", "Takes what another agent asks for."), agents),
        (get("/v1/a2a/agents", "Agents elsewhere that are known here."), agents),
        (get(card, "What this server says of itself to other agents."), agents),
        (get("/.well-known/agent.json", "The same, where it stood before."), agents),
    ]
    .into_iter()
    .fold(Routes::new(), |routes, (route, what)| routes.add(route, move || async move { not_built(what) }))
}

/// Conversations as things to write to; they go on by tasks that name them.
fn of_sessions() -> Routes {
    let path = |verb: &str| format!("/v1/sessions/{{name}}/{verb}");
    let get = |verb: &str, summary: &str| Route::get(path(verb), Need::Read, summary).takes(&[NAMESPACE]);
    let post = |verb: &str, summary: &str| {
        Route::post(path(verb), Need::Write, summary).takes(&[NAMESPACE]).carries(Body::Optional("Anything"))
    };
    [
        post("turns", "Says something in a conversation."),
        get("events", "What happened in a conversation."),
        get("stream", "A conversation, live."),
        get("checkpoints", "Where a conversation can go back to."),
        post("pause", "Holds a conversation."),
        post("resume", "Lets a conversation go on."),
        post("cancel", "Ends a conversation."),
    ]
    .into_iter()
    .fold(Routes::new(), |routes, route| routes.add(route, converse))
}

fn of_eval_runs() -> Routes {
    let path = |verb: &str| format!("/v1/{}/{{name}}/{verb}", Kind::EvalRun.plural());
    let get = |verb: &str, summary: &str| Route::get(path(verb), Need::Read, summary).takes(&[NAMESPACE]);
    let post = |verb: &str, summary: &str| {
        Route::post(path(verb), Need::Write, summary).takes(&[NAMESPACE]).carries(Body::Optional("Anything"))
    };
    [
        post("start", "Begins an evaluation."),
        post("cancel", "Ends an evaluation."),
        post("results", "Says what people think of many results."),
        post("annotate", "Says what a person thinks of a result."),
        post("finalize", "Closes an evaluation."),
        get("compare", "An evaluation beside another."),
        get("export", "An evaluation as a file."),
    ]
    .into_iter()
    .fold(Routes::new(), |routes, route| routes.add(route, evaluate))
    .add(
        Route::get(
            format!("/v1/{}/compare", Kind::EvalRun.plural()),
            Need::Read,
            "Evaluations side by side.",
        )
        .takes(&[NAMESPACE, RUNS]),
        compare,
    )
    .add(
        Route::put(path("results/{sample}"), Need::Write, "Says what a person thinks of a sample's result.")
            .takes(&[NAMESPACE])
            .carries(Body::Optional("Anything")),
        annotate,
    )
}

async fn converse(Name(name): Name, parameters: Parameters) -> Result<Response, Problem> {
    parameters.namespace_or_default()?;
    not_built(&format!("session/{name}: talking in a session"))
        .map_err(|problem| problem.remedy("POST /v1/tasks with `session` goes on with one"))
}

async fn evaluate(
    State(app): State<Arc<App>>,
    Name(name): Name,
    parameters: Parameters,
) -> Result<Response, Problem> {
    refuse(Kind::EvalRun, &app, &name, &parameters, "running an evaluation").await
}

async fn compare(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    let parameters = parameters.only(&["namespace", "runs"])?;
    let namespace = parameters.namespace_or_default()?;
    let first =
        parameters.get("runs").unwrap_or_default().split(',').map(str::trim).find(|run| !run.is_empty());
    if let Some(run) = first
        && app.control.resource(Kind::EvalRun, namespace, run).await?.is_none()
    {
        return Err(Problem::not_found(Kind::EvalRun.name(), run));
    }
    not_built("comparing evaluations")
}

async fn annotate(
    State(app): State<Arc<App>>,
    path: Result<Path<(String, String)>, PathRejection>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let Ok(Path((run, _sample))) = path else { return Err(Problem::bad_utf8("the path")) };
    refuse(Kind::EvalRun, &app, &run, &parameters, "running an evaluation").await
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
    not_built("taking deliveries of webhooks")
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
    not_built(&format!("{}/{name}: {what}", kind.singular()))
}

fn not_built(what: &str) -> Result<Response, Problem> {
    let detail = format!("{what} is not available in this version");
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_available", detail))
}
