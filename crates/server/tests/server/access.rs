//! Every route, asked by everybody: who is let in is written down here by hand, and a route that is not fails.

use std::collections::BTreeMap;

use ostler_server::route_table;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::support::{Place, bearer, raw};

/// The least that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Least {
    Nobody,
    Reader,
    Writer,
    Controller,
    Admin,
}

/// What of the namespaces it concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    /// One of them.
    In,
    /// None of them.
    Nowhere,
    /// All of them.
    Everywhere,
}

use Least::{Admin, Controller, Nobody, Reader, Writer};
use Where::{Everywhere, In, Nowhere};

const ROWS: &[(&str, &str, Least, Where)] = &[
    ("GET", "/healthz", Nobody, Nowhere),
    ("GET", "/readyz", Nobody, Nowhere),
    ("GET", "/v1/version", Reader, Nowhere),
    ("GET", "/openapi.json", Reader, Nowhere),
    ("GET", "/metrics", Reader, Everywhere),
    // Each is told of its own.
    ("GET", "/v1/namespaces", Reader, Nowhere),
    ("GET", "/v1/capabilities", Reader, Nowhere),
    ("POST", "/v1/check", Writer, Nowhere),
    ("GET", "/v1/events/watch", Reader, In),
    ("POST", "/v1/backup", Admin, Everywhere),
    ("GET", "/v1/secret-keys", Reader, Everywhere),
    ("POST", "/v1/secret-keys/rotate", Admin, Everywhere),
    ("GET", "/v1/auth/config", Nobody, Nowhere),
    // It asks for an admin's token or the setup token by itself: see sign_in.rs.
    ("POST", "/v1/auth/setup", Nobody, Nowhere),
    ("POST", "/v1/auth/login", Nobody, Nowhere),
    ("POST", "/v1/auth/logout", Nobody, Nowhere),
    ("GET", "/v1/auth/me", Nobody, Nowhere),
    ("POST", "/v1/auth/change-password", Reader, Nowhere),
    ("POST", "/v1/auth/admin/reset-password", Admin, Everywhere),
    ("GET", "/v1/auth/users", Admin, Everywhere),
    ("POST", "/v1/auth/users", Admin, Everywhere),
    ("GET", "/v1/auth/users/{name}", Admin, Everywhere),
    ("PATCH", "/v1/auth/users/{name}", Admin, Everywhere),
    ("DELETE", "/v1/auth/users/{name}", Admin, Everywhere),
    ("GET", "/v1/tokens", Admin, Everywhere),
    ("POST", "/v1/tokens", Admin, Everywhere),
    ("DELETE", "/v1/tokens/{name}", Admin, Everywhere),
    // It asks for a sign-in, or a name and a password, by itself: see users.rs.
    ("POST", "/v1/auth/cli-token", Nobody, Nowhere),
    ("GET", "/v1/tasks", Reader, In),
    ("POST", "/v1/tasks", Writer, In),
    ("GET", "/v1/tasks/watch", Reader, In),
    ("GET", "/v1/tasks/{task}", Reader, In),
    ("PUT", "/v1/tasks/{task}", Writer, In),
    ("DELETE", "/v1/tasks/{task}", Writer, In),
    ("GET", "/v1/tasks/{task}/status", Reader, In),
    ("PUT", "/v1/tasks/{task}/status", Controller, In),
    ("GET", "/v1/tasks/{task}/messages", Reader, In),
    ("GET", "/v1/tasks/{task}/metrics", Reader, In),
    ("GET", "/v1/tasks/{task}/trace", Reader, In),
    ("GET", "/v1/agents/{name}/logs", Reader, In),
    ("GET", "/v1/memories/{name}/entries", Reader, In),
    ("POST", "/v1/tool-approvals/{name}/approve", Writer, In),
    ("POST", "/v1/tool-approvals/{name}/deny", Writer, In),
    ("POST", "/v1/task-approvals/{name}/approve", Writer, In),
    ("POST", "/v1/task-approvals/{name}/deny", Writer, In),
    ("POST", "/v1/task-approvals/{name}/request-changes", Writer, In),
    ("POST", "/v1/tasks/{task}/cancel", Writer, In),
    ("POST", "/v1/tasks/{task}/retry", Writer, In),
    ("POST", "/v1/tasks/{task}/release", Writer, In),
    ("POST", "/v1/tasks/{task}/archive", Writer, In),
    ("GET", "/v1/tasks/{task}/steps", Reader, In),
    ("GET", "/v1/tasks/{task}/events", Reader, In),
    ("GET", "/v1/tasks/{task}/logs", Reader, In),
    ("POST", "/v1/webhook-deliveries/{name}", Writer, Nowhere),
    ("GET", "/v1/sealing-key/public", Reader, Nowhere),
    ("POST", "/v1/chat/completions", Writer, Nowhere),
    ("POST", "/a2a", Writer, Nowhere),
    ("GET", "/v1/a2a/agents", Reader, Nowhere),
    ("GET", "/.well-known/agent-card.json", Reader, Nowhere),
    ("GET", "/.well-known/agent.json", Reader, Nowhere),
    ("POST", "/v1/agents/{name}/a2a", Writer, In),
    ("POST", "/v1/agent-systems/{name}/a2a", Writer, In),
    ("GET", "/v1/agents/{name}/.well-known/agent-card.json", Reader, In),
    ("GET", "/v1/agent-systems/{name}/.well-known/agent-card.json", Reader, In),
    ("GET", "/v1/sessions/{name}/checkpoints", Reader, In),
    ("POST", "/v1/sessions/{name}/turns", Writer, In),
    ("GET", "/v1/sessions/{name}/events", Reader, In),
    ("GET", "/v1/sessions/{name}/stream", Reader, In),
    ("POST", "/v1/sessions/{name}/pause", Writer, In),
    ("POST", "/v1/sessions/{name}/resume", Writer, In),
    ("POST", "/v1/sessions/{name}/cancel", Writer, In),
    ("POST", "/v1/eval-runs/{name}/start", Writer, In),
    ("POST", "/v1/eval-runs/{name}/cancel", Writer, In),
    ("POST", "/v1/eval-runs/{name}/annotate", Writer, In),
    ("POST", "/v1/eval-runs/{name}/finalize", Writer, In),
    ("GET", "/v1/eval-runs/{name}/compare", Reader, In),
    ("GET", "/v1/eval-runs/compare", Reader, In),
    ("POST", "/v1/eval-runs/{name}/results", Writer, In),
    ("PUT", "/v1/eval-runs/{name}/results/{sample}", Writer, In),
    ("GET", "/v1/eval-runs/{name}/export", Reader, In),
    ("GET", "/v1/workers", Reader, Everywhere),
    ("GET", "/v1/workers/watch", Reader, Everywhere),
    ("GET", "/v1/workers/{name}", Reader, Everywhere),
    ("GET", "/v1/quotas/{name}/status", Reader, In),
    ("GET", "/v1/secrets/{name}/status", Reader, In),
    ("GET", "/v1/sealed-secrets/{name}/status", Reader, In),
    ("GET", "/v1/mcp-servers/{name}/status", Reader, In),
    ("GET", "/v1/agent-roles/{name}/status", Reader, In),
    ("GET", "/v1/tool-permissions/{name}/status", Reader, In),
    ("GET", "/v1/context-adapters/{name}/status", Reader, In),
    ("GET", "/v1/sessions/{name}/status", Reader, In),
    ("GET", "/v1/tool-approvals/{name}/status", Reader, In),
    ("GET", "/v1/task-approvals/{name}/status", Reader, In),
    ("GET", "/v1/workers/{name}/status", Reader, Everywhere),
    ("PUT", "/v1/workers/{name}/status", Controller, Nowhere),
    ("POST", "/v1/workers/{name}/cordon", Admin, Everywhere),
    ("POST", "/v1/workers/{name}/drain", Admin, Everywhere),
    ("POST", "/v1/workers/{name}/uncordon", Admin, Everywhere),
    ("GET", "/v1/mcp-servers", Reader, In),
    ("POST", "/v1/mcp-servers", Admin, In),
    ("GET", "/v1/mcp-servers/{name}", Reader, In),
    ("GET", "/v1/mcp-servers/watch", Reader, In),
    ("PUT", "/v1/mcp-servers/{name}", Admin, In),
    ("DELETE", "/v1/mcp-servers/{name}", Admin, In),
    ("GET", "/v1/quotas", Reader, In),
    ("POST", "/v1/quotas", Admin, Everywhere),
    ("GET", "/v1/quotas/{name}", Reader, In),
    ("GET", "/v1/quotas/watch", Reader, In),
    ("PUT", "/v1/quotas/{name}", Admin, Everywhere),
    ("DELETE", "/v1/quotas/{name}", Admin, Everywhere),
];

/// Declared objects like any other.
const ORDINARY: [&str; 18] = [
    "agent-policies",
    "agent-roles",
    "agent-systems",
    "agents",
    "context-adapters",
    "eval-datasets",
    "eval-runs",
    "memories",
    "model-endpoints",
    "sealed-secrets",
    "secrets",
    "sessions",
    "task-approvals",
    "task-schedules",
    "task-webhooks",
    "tool-approvals",
    "tool-permissions",
    "tools",
];

const ORDINARY_ROWS: [(&str, &str, Least); 6] = [
    ("GET", "", Reader),
    ("POST", "", Writer),
    ("GET", "/watch", Reader),
    ("GET", "/{name}", Reader),
    ("PUT", "/{name}", Writer),
    ("DELETE", "/{name}", Writer),
];

/// Of these something is found out.
const WITH_STATUS: [&str; 10] = [
    "agent-policies",
    "agent-systems",
    "agents",
    "eval-datasets",
    "eval-runs",
    "memories",
    "model-endpoints",
    "task-schedules",
    "task-webhooks",
    "tools",
];

type Rows = BTreeMap<(String, String), (Least, Where)>;

fn rows() -> Rows {
    let mut rows = Rows::new();
    for (method, path, least, place) in ROWS {
        rows.insert(((*method).to_owned(), (*path).to_owned()), (*least, *place));
    }
    for plural in ORDINARY {
        for (method, tail, least) in ORDINARY_ROWS {
            rows.insert((method.to_owned(), format!("/v1/{plural}{tail}")), (least, In));
        }
    }
    // It is decided about as it was asked for.
    rows.remove(&("PUT".to_owned(), "/v1/tool-approvals/{name}".to_owned()));
    for plural in WITH_STATUS {
        for (method, least) in [("GET", Reader), ("PUT", Controller)] {
            rows.insert((method.to_owned(), format!("/v1/{plural}/{{name}}/status")), (least, In));
        }
    }
    rows
}

#[test]
fn every_route_has_a_row_here_and_every_row_a_route() {
    let rows = rows();
    let routes: Vec<(String, String)> =
        route_table().into_iter().map(|route| (route.method.to_string(), route.path)).collect();
    let missing: Vec<_> = routes.iter().filter(|route| !rows.contains_key(*route)).collect();
    assert!(missing.is_empty(), "routes that nobody has said who may call: {missing:?}");
    let stale: Vec<_> = rows.keys().filter(|row| !routes.contains(row)).collect();
    assert!(stale.is_empty(), "rows without a route: {stale:?}");
}

/// What came back: the status, and the code if it was a refusal.
async fn ask(place: &Place, credential: &str, method: &str, path: &str) -> (u16, String) {
    let request = place.request_as(credential, method, path, None);
    let mut stream = TcpStream::connect(place.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // Some answers go on for ever: their head will do.
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "no answer to {method} {path}");
    }
    let status = raw::parse_head(&bytes);
    if !matches!(status, 401 | 403) {
        return (status, String::new());
    }
    stream.read_to_end(&mut bytes).await.unwrap();
    (status, raw::parse(&bytes).json()["code"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_lets_in_who_may_and_nobody_else() {
    let place = Place::new().await;
    let callers = [
        ("nobody", String::new(), None),
        ("a bad token", bearer("ost_0123456789abcdefghjkmnpqrstvwxyz0123456789abcdefghjk"), None),
        ("a reader", place.token("reader", "reader", &["*"]).await, Some((Reader, true))),
        ("a writer", place.token("writer", "writer", &["*"]).await, Some((Writer, true))),
        ("a controller", place.token("ctl", "controller", &["*"]).await, Some((Controller, true))),
        ("an admin", place.token("admin", "admin", &["*"]).await, Some((Admin, true))),
        ("another's admin", place.token("other", "admin", &["other"]).await, Some((Admin, false))),
    ];
    for ((method, path), (least, concerns)) in rows() {
        let path = path.replace("{name}", "nothing").replace("{task}", "nothing");
        let path = path.replace("{sample}", "nothing");
        let path = if concerns == In { format!("{path}?namespace=default") } else { path };
        for (who, credential, role) in &callers {
            let expected = match role {
                _ if least == Nobody => None,
                None => Some((401, "unauthorized")),
                Some((role, _)) if *role < least => Some((403, "forbidden")),
                Some((_, is_everywhere)) if !is_everywhere && concerns != Nowhere => Some((403, "forbidden")),
                Some(_) => None,
            };
            let (status, code) = ask(&place, credential, &method, &path).await;
            let context = format!("{method} {path} by {who}: {status} {code}");
            // These have reasons of their own to refuse, when they are asked for nothing.
            let own_reasons =
                ["/v1/auth/setup", "/v1/auth/me", "/v1/auth/change-password", "/v1/auth/cli-token"];
            match expected {
                Some((expected, expected_code)) => {
                    assert_eq!((status, code.as_str()), (expected, expected_code), "{context}");
                }
                None if own_reasons.contains(&path.as_str()) => assert!(status < 500, "{context}"),
                None => assert!(!matches!(status, 401 | 403) && status < 500, "{context}"),
            }
        }
    }
}

/// HEAD is answered by what answers GET, and no method is a way around.
#[tokio::test]
async fn no_method_is_a_way_around() {
    let place = Place::new().await;
    let reader = place.token("reader", "reader", &["*"]).await;
    for (credential, expected) in [(String::new(), 401), (reader, 403)] {
        let reply = place.send_as(&credential, "HEAD", "/v1/tokens", None).await;
        assert_eq!(reply.status, expected, "{reply:?}");
        for path in [
            "/v1/tokens/",
            "//v1/tokens",
            "/v1/%74okens",
            "/V1/tokens",
            "/v1/tokens/x/..",
            "/healthz/../v1/tokens",
        ] {
            let reply = place.send_as(&credential, "GET", path, None).await;
            assert!(matches!(reply.status, 401 | 403 | 404), "{path}: {reply:?}");
        }
    }
}
