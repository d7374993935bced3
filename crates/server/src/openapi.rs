//! The description of the API (OpenAPI 3.1), made from the table of routes and the schemas of the kinds. Nothing is
//! described here that is not declared there.

mod shapes;

use ostler_spec::{kinds, schema};
use serde_json::{Map, Value, json};

use crate::{
    parameters::MAX_LIMIT,
    routes::{
        self,
        parameter::RUNS,
        table::{self, Body, Need, Parameter, Route, Shape},
    },
};

/// The description of this version.
pub fn description() -> Value {
    of(&routes::table())
}

/// As it is served.
pub fn text(table: &[Route]) -> String {
    of(table).to_string()
}

fn of(table: &[Route]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in table {
        let path = paths.entry(route.path.clone()).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ostler",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs AI agents in production. Every refusal is a problem document with a stable code.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "responses": refused(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "The server's token, or one that was made by it."},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "ostler_session", "description": "Of a user who has signed in."},
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = names_in(&route.path).map(path_parameter).collect();
    parameters.extend(route.parameters.iter().map(|it| parameter("query", it)));
    parameters.extend(route.headers.iter().map(|it| parameter("header", it)));
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [tag(&route.path)],
        "parameters": parameters,
        "responses": responses(route),
        "security": security(route.need),
    });
    if let Some(role) = route.need.role() {
        operation["x-ostler-role"] = json!(role);
    }
    if let Some(body) = request_body(route.body) {
        operation["requestBody"] = body;
    }
    operation
}

fn security(need: Need) -> Value {
    match need {
        Need::Nothing => json!([]),
        Need::SignIn
        | Need::Read
        | Need::Oversee
        | Need::Write
        | Need::Report
        | Need::Manage
        | Need::Administer => json!([{"bearer": []}, {"cookie": []}]),
    }
}

/// `get_v1_tasks_task_events`.
fn operation_id(route: &Route) -> String {
    let path = route.path.replace(['{', '}'], "");
    let words = path.split(['/', '-', '.']).filter(|word| !word.is_empty());
    let method = route.method.as_str().to_ascii_lowercase();
    std::iter::once(method.as_str()).chain(words).collect::<Vec<_>>().join("_")
}

fn tag(path: &str) -> &str {
    path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next()).unwrap_or("server")
}

fn names_in(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}})
}

fn parameter(place: &str, parameter: &Parameter) -> Value {
    let schema = match parameter.value {
        table::Value::Text => json!({"type": "string"}),
        table::Value::Flag => json!({"type": "boolean"}),
        table::Value::Limit => json!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}),
        table::Value::Place => json!({"type": "integer", "minimum": 0, "maximum": i64::MAX}),
    };
    json!({"name": parameter.name, "in": place, "description": parameter.about, "schema": schema})
}

fn request_body(body: Body) -> Option<Value> {
    let json = |schema: Value, required: bool| json!({"required": required, "content": {"application/json": {"schema": schema}}});
    match body {
        Body::Nothing => None,
        Body::Optional(name) => Some(json(reference(name), false)),
        Body::Json(name) => Some(json(reference(name), true)),
        Body::Manifests => {
            let mut body = json(json!({"type": "array", "items": reference("Anything")}), true);
            body["content"]["application/yaml"] = json!({"schema": {"type": "string"}});
            Some(body)
        }
        Body::Manifest(kind) => request_body(Body::Request(kind.name())),
        Body::Request(name) => {
            let mut body = json(reference(name), true);
            body["content"]["application/yaml"] = json!({"schema": reference(name)});
            Some(body)
        }
    }
}

fn responses(route: &Route) -> Value {
    let mut responses = Map::new();
    for (status, shape) in &route.answers {
        responses.insert(status.to_string(), response(route, *shape));
    }
    for status in refusals(route) {
        let target = format!("#/components/responses/Refused{status}");
        responses.insert(status.to_string(), json!({ "$ref": target }));
    }
    Value::Object(responses)
}

/// Why a request can be refused.
const REFUSALS: [(u16, &str); 12] = [
    (400, "What was asked for can't be meant."),
    (401, "The request has no valid token."),
    (403, "The caller may not, or comes from a page of another site."),
    (404, "There is no such thing."),
    (408, "The body did not come in time."),
    (409, "It is not as the change expects it."),
    (413, "The body is too large."),
    (415, "A body of this type is not read here."),
    (422, "It asks for something that is not available in this version."),
    (429, "Too many at once; Retry-After says when to come back."),
    (503, "The store is away."),
    (504, "The answer took too long; what was begun is finished."),
];

fn refused() -> Value {
    let mut responses = Map::new();
    for (status, about) in REFUSALS {
        let content = json!({"application/problem+json": {"schema": reference("Problem")}});
        responses.insert(format!("Refused{status}"), json!({"description": about, "content": content}));
    }
    Value::Object(responses)
}

fn response(route: &Route, shape: Shape) -> Value {
    let content = |kind: &str, schema: Value| json!({kind: {"schema": schema}});
    let content = match shape {
        Shape::Nothing => return json!({"description": "Done."}),
        Shape::Resource(kind) => content("application/json", reference(kind.name())),
        Shape::List(kind) => content("application/json", shapes::list(&reference(kind.name()))),
        Shape::Json(name) => {
            let mut content = content("application/json", reference(name));
            // The same log, live, for who asks for it.
            if route.path.ends_with("/events") {
                content["text/event-stream"] = json!({"schema": {"type": "string"}});
            }
            content
        }
        Shape::Events => content("text/event-stream", json!({"type": "string"})),
        Shape::Text => content("text/plain", json!({"type": "string"})),
        Shape::Bytes => content("application/octet-stream", json!({"type": "string", "format": "binary"})),
    };
    json!({"description": "As asked.", "content": content})
}

/// With which of them a route can answer.
fn refusals(route: &Route) -> Vec<u16> {
    let is_named =
        names_in(&route.path).next().is_some() || route.parameters.iter().any(|one| one.name == RUNS.name);
    let changes = route.method != http::Method::GET;
    let can = |status: u16| match status {
        401 => route.need != Need::Nothing || route.path.starts_with("/v1/auth/"),
        404 => is_named || changes,
        408 | 409 | 413 | 415 => changes,
        _ => true,
    };
    REFUSALS.iter().map(|(status, _)| *status).filter(|status| can(*status)).collect()
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn schemas() -> Value {
    let mut schemas = Map::new();
    for info in kinds() {
        add_kind(&mut schemas, info.name, schema::of(info.kind));
    }
    shapes::tasks::describe_status(&mut schemas);
    let mut request = schemas.get("Task").cloned().unwrap_or_default();
    // A task's name can be made up, its kind follows from the address, and one that is asked for again needs nothing but a
    // name.
    if let Some(metadata) = request.pointer_mut("/properties/metadata").and_then(Value::as_object_mut) {
        metadata.remove("required");
    }
    if let Some(request) = request.as_object_mut() {
        request.insert("title".to_owned(), json!("TaskRequest"));
        request.remove("required");
    }
    schemas.insert("TaskRequest".to_owned(), request);
    schemas.extend(shapes::all());
    Value::Object(schemas)
}

/// A kind's schema, with the parts it is made of beside it.
fn add_kind(schemas: &mut Map<String, Value>, kind: &str, mut schema: Value) {
    let Some(parts) = schema.as_object_mut() else { return };
    parts.remove("$schema");
    let definitions = parts.remove("$defs");
    redirect(&mut schema, kind);
    schemas.insert(kind.to_owned(), schema);
    let Some(Value::Object(definitions)) = definitions else { return };
    for (name, mut definition) in definitions {
        redirect(&mut definition, kind);
        schemas.insert(format!("{kind}.{name}"), definition);
    }
}

/// From the place of a part in its own file to its place in here.
fn redirect(schema: &mut Value, kind: &str) {
    match schema {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(target) if key == "$ref" => {
                        *target = target.replace("#/$defs/", &format!("#/components/schemas/{kind}."));
                    }
                    other => redirect(other, kind),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redirect(item, kind)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    match member {
                        Value::String(target) if key == "$ref" => drop(found.insert(target.clone())),
                        other => references(other, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = description();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 50, "{found:?}");
        for target in found {
            assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target} leads nowhere");
        }
    }

    #[test]
    fn every_route_is_described_once() {
        let table = routes::table();
        let document = description();
        let mut ids = BTreeSet::new();
        for route in &table {
            let operation = &document["paths"][&route.path][route.method.as_str().to_ascii_lowercase()];
            assert_eq!(operation["summary"], route.summary.as_str());
            assert!(ids.insert(operation["operationId"].to_string()), "{} twice", operation["operationId"]);
            let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
            assert_eq!(is_open, route.need == Need::Nothing, "{}", route.path);
        }
        assert_eq!(ids.len(), table.len());
    }
}
