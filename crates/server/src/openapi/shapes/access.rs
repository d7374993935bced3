//! Shapes of sign-ins, users and tokens. Members of bodies are read in both spellings; the one with underscores is told.

use serde_json::{Value, json};

use super::{list, object, text};

pub fn all() -> Vec<(&'static str, Value)> {
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    vec![
        ("SignInConfig", config()),
        ("Me", json!({"type": "object", "properties": me(), "required": ["authenticated"]})),
        ("Setup", body(&[("username", name()), ("password", password())], &[("setup_token", text())])),
        ("Login", body(&[("username", text()), ("password", text())], &[])),
        ("PasswordChange", body(&[("current_password", text()), ("new_password", password())], &[])),
        ("PasswordReset", body(&[("new_password", password())], &[("username", text())])),
        ("User", user()),
        ("UserList", list(&reference("User"))),
        ("NewUser", with(&[("name", name())], &[("password", password())])),
        ("UserChange", with(&[], &[("password", password())])),
        ("Token", token()),
        ("TokenList", list(&reference("Token"))),
        ("NewOwnToken", own_token()),
        ("NewToken", with(&[("name", name())], &[("expires_at", text()), ("expires_in", text())])),
    ]
}

fn config() -> Value {
    let yes_or_no = || json!({"type": "boolean"});
    object(&[
        ("mode", text()),
        ("setup_required", yes_or_no()),
        ("setup_token_required", yes_or_no()),
        ("login_methods", json!({"type": "array", "items": text()})),
    ])
}

fn me() -> Value {
    json!({
        "authenticated": {"type": "boolean"}, "username": text(), "name": text(),
        "method": {"enum": ["session", "token"]}, "role": role(), "namespaces": namespaces(), "expires_at": text(),
    })
}

fn user() -> Value {
    let made_up = json!({"type": "string", "description": "Shown once, when it was made up."});
    let required = ["name", "username", "created_at", "updated_at"].map(|name| (name, text()));
    with(&required, &[("password", made_up)])
}

fn token() -> Value {
    let shown_once = json!({"type": "string", "description": "Shown once, when it is made."});
    let more =
        [("token", shown_once), ("username", text()), ("last_used_at", text()), ("expires_at", text())];
    with(&[("name", text()), ("created_at", text()), ("created_by", text())], &more)
}

/// All of it may be left out by who has signed in.
fn own_token() -> Value {
    body(
        &[],
        &[
            ("username", text()),
            ("password", text()),
            ("name", name()),
            ("expires_at", text()),
            ("expires_in", text()),
        ],
    )
}

/// With a role and namespaces, which may be left out.
fn with(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let grant = [("role", role()), ("namespaces", namespaces())];
    body(required, &[optional, &grant].concat())
}

fn body(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let mut body = object(required);
    for (name, shape) in optional {
        body["properties"][*name] = shape.clone();
    }
    body
}

fn role() -> Value {
    json!({"enum": ["reader", "writer", "controller", "admin"]})
}

fn namespaces() -> Value {
    json!({"type": "array", "items": text(), "minItems": 1, "description": "Names; `*` is all."})
}

fn name() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[A-Za-z0-9][A-Za-z0-9_.@+-]*$"})
}

fn password() -> Value {
    json!({"type": "string", "minLength": 12})
}
