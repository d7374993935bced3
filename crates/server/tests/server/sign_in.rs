//! Users who sign in: the first of them, cookies, and what ends them.

use std::sync::Arc;

use ostler_server::{SetupToken, TlsFiles};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::{
    bad_input::check,
    support::{Calendar, Place, Reply, bearer, raw, runtime, sse::Listener},
};

const PASSWORD: &str = "correct horse battery";
const OTHER: &str = "another long password";

fn named(name: &str, password: &str) -> Value {
    json!({"username": name, "password": password})
}

/// The header line that a browser would send from now on.
fn cookie(reply: &Reply) -> String {
    let set = reply.header("set-cookie").unwrap_or_else(|| panic!("no cookie: {reply:?}"));
    let (pair, attributes) = set.split_once(';').unwrap();
    assert_eq!(attributes, " Path=/; HttpOnly; SameSite=Lax");
    let (name, secret) = pair.split_once('=').unwrap();
    assert!(name == "ostler_session" && secret.len() == 52, "{set}");
    format!("cookie: theme=dark; {pair}\r\n")
}

/// With where our own page is.
fn from_our_page(place: &Place, cookie: &str) -> String {
    format!("{cookie}origin: http://{}\r\n", place.address())
}

/// A server with the user `ada`, who has signed in.
async fn with_ada() -> (Place, String) {
    let place = Place::new().await;
    let reply = place.post("/v1/auth/setup", &named("ada", PASSWORD)).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let cookie = cookie(&reply);
    (place, cookie)
}

async fn login(place: &Place, name: &str, password: &str) -> Reply {
    place.send_as("", "POST", "/v1/auth/login", Some(&named(name, password))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_user_is_made_by_who_has_the_servers_token() {
    let place = Place::new().await;
    let config = async || place.send_as("", "GET", "/v1/auth/config", None).await.json();
    let before = config().await;
    assert_eq!((&before["mode"], &before["setup_required"]), (&json!("native"), &json!(true)));
    assert_eq!(before["setup_token_required"], false);
    let body = named("ada", PASSWORD);
    check(&place.send_as("", "POST", "/v1/auth/setup", Some(&body)).await, 401, "unauthorized", "no token");
    let guess = json!({"username": "ada", "password": PASSWORD, "setup_token": ""});
    check(&place.send_as("", "POST", "/v1/auth/setup", Some(&guess)).await, 401, "unauthorized", "");
    let writer = place.token("w", "controller", &["*"]).await;
    check(&place.send_as(&writer, "POST", "/v1/auth/setup", Some(&body)).await, 403, "forbidden", "admin");
    let elsewhere = place.token("e", "admin", &["a"]).await;
    check(&place.send_as(&elsewhere, "POST", "/v1/auth/setup", Some(&body)).await, 403, "forbidden", "all");
    check(&place.post("/v1/auth/setup", &named("ada", "short")).await, 400, "invalid_body", "password");
    assert_eq!(config().await["setup_required"], true);

    let made = place.post("/v1/auth/setup", &body).await;
    assert_eq!((made.status, &made.json()["role"]), (201, &json!("admin")));
    let mut me = place.send_as(&cookie(&made), "GET", "/v1/auth/me", None).await.json();
    assert!(me.as_object_mut().unwrap().remove("expires_at").is_some());
    let expected = json!({
        "authenticated": true, "username": "ada", "name": "ada", "method": "session", "role": "admin", "namespaces": ["*"],
    });
    assert_eq!(me, expected);
    assert_eq!(config().await["setup_required"], false);
    check(&place.post("/v1/auth/setup", &named("eve", PASSWORD)).await, 409, "conflict", "already");
    assert_eq!(place.get("/v1/auth/users").await.json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_user_is_made_by_who_has_the_setup_token() {
    let token = "setup-token-0123456789";
    let place = Place::configured(runtime(), |config| {
        config.setup_token = Some(SetupToken::new(token.to_owned()));
    })
    .await;
    let config = place.send_as("", "GET", "/v1/auth/config", None).await.json();
    assert_eq!(config["setup_token_required"], true);
    let body = |token: &str| json!({"username": "ada", "password": PASSWORD, "setupToken": token});
    for wrong in ["", "setup-token-012345678", "setup-token-01234567890"] {
        let reply = place.send_as("", "POST", "/v1/auth/setup", Some(&body(wrong))).await;
        check(&reply, 401, "unauthorized", "setup token is wrong");
    }
    check(
        &place.send_as("", "POST", "/v1/auth/setup", Some(&named("ada", PASSWORD))).await,
        401,
        "unauthorized",
        "",
    );
    assert_eq!(place.send_as("", "POST", "/v1/auth/setup", Some(&body(token))).await.status, 201);
    check(&place.send_as("", "POST", "/v1/auth/setup", Some(&body(token))).await, 409, "conflict", "already");
    // It opens nothing else.
    check(&place.send_as(&bearer(token), "GET", "/v1/tasks", None).await, 401, "unauthorized", "not valid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_want_to_be_the_first_one_is() {
    let place = Place::new().await;
    let bodies: Vec<Value> = (0..4).map(|number| named(&format!("user-{number}"), PASSWORD)).collect();
    let asking = bodies.iter().map(|body| place.post("/v1/auth/setup", body));
    let replies = futures_util::future::join_all(asking).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409]);
    assert_eq!(place.get("/v1/auth/users").await.json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_in_is_known_until_they_sign_out() {
    let (place, _) = with_ada().await;
    let replies = [
        login(&place, "ada", OTHER).await,
        login(&place, "eve", PASSWORD).await,
        login(&place, "a/b", PASSWORD).await,
    ];
    let told: Vec<Value> = replies
        .iter()
        .map(|reply| {
            let mut document = check(reply, 401, "unauthorized", "the name or the password is wrong");
            assert!(reply.header("set-cookie").is_none());
            document["request_id"] = Value::Null;
            document
        })
        .collect();
    assert!(
        told.windows(2).all(|pair| pair[0] == pair[1]),
        "they tell whether there is such a user: {told:?}"
    );

    let reply = login(&place, "ada", PASSWORD).await;
    assert_eq!((reply.status, reply.header("cache-control")), (200, Some("no-store")));
    let cookie = cookie(&reply);
    let again = self::cookie(&login(&place, "ada", PASSWORD).await);
    assert_ne!(cookie, again, "each sign-in has a secret of its own");
    assert_eq!(place.send_as(&cookie, "GET", "/v1/tasks", None).await.status, 200);
    let ours = from_our_page(&place, &cookie);
    let out = place.send_as(&ours, "POST", "/v1/auth/logout", None).await;
    assert_eq!(out.status, 204);
    assert!(out.header("set-cookie").unwrap().starts_with("ostler_session=; Max-Age=0"));
    check(&place.send_as(&cookie, "GET", "/v1/tasks", None).await, 401, "unauthorized", "sign-in is over");
    assert_eq!(place.send_as(&again, "GET", "/v1/tasks", None).await.status, 200, "the other one goes on");
    let nobody = place.send_as(&cookie, "GET", "/v1/auth/me", None).await;
    assert_eq!((nobody.status, nobody.json()), (200, json!({"authenticated": false})));
    assert_eq!(place.send_as("", "POST", "/v1/auth/logout", None).await.status, 204, "who is out may go");
    check(
        &place.send_as(&bearer("ost_x"), "GET", "/v1/auth/me", None).await,
        401,
        "unauthorized",
        "not valid",
    );
}

/// Browsers send cookies along with what pages of other sites ask for.
#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_counts_only_on_our_own_pages() {
    let (place, cookie) = with_ada().await;
    let agent = super::support::agent("helper");
    let post = async |credential: &str| place.send_as(credential, "POST", "/v1/agents", Some(&agent)).await;
    check(&post(&cookie).await, 403, "bad_origin", "which page");
    check(
        &post(&format!("{cookie}origin: http://evil.example\r\n")).await,
        403,
        "bad_origin",
        "another site",
    );
    check(&post(&format!("{cookie}origin: null\r\n")).await, 403, "bad_origin", "another site");
    check(&place.send_as(&cookie, "POST", "/v1/auth/logout", None).await, 403, "bad_origin", "which page");
    check(
        &place.send_as(&cookie, "DELETE", "/v1/auth/users/ada", None).await,
        403,
        "bad_origin",
        "which page",
    );
    assert_eq!(place.get("/v1/agents").await.json()["items"], json!([]));
    assert_eq!(post(&from_our_page(&place, &cookie)).await.status, 201);
    assert_eq!(
        place.send_as(&cookie, "GET", "/v1/agents", None).await.status,
        200,
        "who only looks need not"
    );
    // A token counts before it: one that is wrong is not made good by a cookie.
    let both = format!("{cookie}{}", bearer("wrong"));
    assert_eq!(place.send_as(&both, "GET", "/v1/agents", None).await.status, 401);
    let twice = cookie.replace("theme=dark", "ostler_session=0123");
    assert_eq!(place.send_as(&twice, "GET", "/v1/agents", None).await.status, 401);
    let with_prefix = cookie.replace("ostler_session", "__Host-ostler_session");
    assert_eq!(place.send_as(&with_prefix, "GET", "/v1/agents", None).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_password_ends_what_was_signed_in() {
    let (place, first) = with_ada().await;
    let second = cookie(&login(&place, "ada", PASSWORD).await);
    let ours = from_our_page(&place, &second);
    let change = async |current: &str, new: &str| {
        let body = json!({"currentPassword": current, "newPassword": new});
        place.send_as(&ours, "POST", "/v1/auth/change-password", Some(&body)).await
    };
    check(&change(OTHER, OTHER).await, 403, "forbidden", "current password is wrong");
    check(&change(PASSWORD, "short").await, 400, "invalid_body", "new_password: expected at least 12");
    let body = json!({"current_password": PASSWORD, "new_password": OTHER});
    check(&place.post("/v1/auth/change-password", &body).await, 403, "forbidden", "a token has no password");
    let changed = change(PASSWORD, OTHER).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    for old in [&first, &second] {
        assert_eq!(place.send_as(old, "GET", "/v1/tasks", None).await.status, 401);
    }
    assert_eq!(
        place.send_as(&cookie(&changed), "GET", "/v1/tasks", None).await.status,
        200,
        "the page goes on"
    );
    assert_eq!(login(&place, "ada", PASSWORD).await.status, 401);
    assert_eq!(login(&place, "ada", OTHER).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_gives_another_password() {
    let (place, cookie) = with_ada().await;
    let reset = async |body: Value| place.post("/v1/auth/admin/reset-password", &body).await;
    check(&reset(json!({"username": "eve", "new_password": OTHER})).await, 404, "not_found", "eve");
    check(&reset(json!({"username": "a/b", "new_password": OTHER})).await, 404, "not_found", "a/b");
    // Of one user it need not be said whose.
    let reply = reset(json!({"newPassword": OTHER})).await;
    assert_eq!((reply.status, &reply.json()["name"]), (200, &json!("ada")));
    assert_eq!(place.send_as(&cookie, "GET", "/v1/tasks", None).await.status, 401);
    assert_eq!(login(&place, "ada", OTHER).await.status, 200);
    let eve = json!({"name": "eve", "password": PASSWORD});
    assert_eq!(place.post("/v1/auth/users", &eve).await.status, 201);
    check(&reset(json!({"newPassword": OTHER})).await, 400, "invalid_body", "username");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_ends_a_day_after_its_last_use() {
    let calendar = Calendar::new(runtime());
    let place = Place::with(Arc::clone(&calendar) as _).await;
    let cookie = cookie(&place.post("/v1/auth/setup", &named("ada", PASSWORD)).await);
    let ask = async || place.send_as(&cookie, "GET", "/v1/auth/me", None).await.json();
    let mut last = ask().await["expires_at"].clone();
    // Used now and then, it outlives its day.
    for hours in (4..80).step_by(4) {
        calendar.turn_on(4);
        loop {
            let me = ask().await;
            assert_eq!(me["authenticated"], true, "after {hours} hours");
            if me["expires_at"] != last {
                last = me["expires_at"].clone();
                break;
            }
        }
    }
    calendar.turn_on(24);
    assert_eq!(ask().await, json!({"authenticated": false}));
    let reply = place.send_as(&cookie, "GET", "/v1/version", None).await;
    check(&reply, 401, "unauthorized", "sign-in is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_signed_in_and_follows_is_cut_off_at_the_end() {
    let (place, cookie) = with_ada().await;
    place.apply_agent().await;
    let task = place.task().await;
    let mut reader = Listener::open_as(&place, &cookie, &task, "").await;
    assert_eq!(reader.next().await.unwrap().id, Some(1));
    let ours = from_our_page(&place, &cookie);
    assert_eq!(place.send_as(&ours, "POST", "/v1/auth/logout", None).await.status, 204);
    assert_eq!(reader.rest().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_goes_on_prolongs_no_sign_in() {
    let calendar = Calendar::new(runtime());
    let place = Place::with(Arc::clone(&calendar) as _).await;
    let cookie = cookie(&place.post("/v1/auth/setup", &named("ada", PASSWORD)).await);
    place.apply_agent().await;
    let task = place.task().await;
    let mut reader = Listener::open_as(&place, &cookie, &task, "").await;
    assert_eq!(reader.next().await.unwrap().id, Some(1));
    // Each change of a resource has the stream look whether its caller is still let in.
    for hours in (4..=28).step_by(4) {
        calendar.turn_on(4);
        let mut changed = super::support::agent("other");
        changed["spec"]["prompt"] = json!(format!("{hours} hours later"));
        assert_eq!(place.post("/v1/agents", &changed).await.status, 201);
    }
    assert_eq!(reader.rest().await, [], "nobody used it for a day");
    assert_eq!(place.send_as(&cookie, "GET", "/v1/version", None).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_run_out() {
    let (place, _) = with_ada().await;
    let mut refused = 0;
    let limited = loop {
        let reply = login(&place, "eve", PASSWORD).await;
        if reply.status != 401 {
            break reply;
        }
        refused += 1;
    };
    assert!((20..25).contains(&refused), "{refused} were tried");
    check(&limited, 429, "too_many_requests", "from this address");
    let wait: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=6).contains(&wait), "{wait}");
    // The right one has to wait too, or it would tell itself by it.
    assert_eq!(login(&place, "ada", PASSWORD).await.status, 429);
    assert_eq!(place.get("/v1/version").await.status, 200, "others are not held up");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_make_no_sense() {
    let (place, cookie) = with_ada().await;
    let ours = from_our_page(&place, &cookie);
    for (path, body, words) in [
        ("login", json!({}), "username"),
        ("login", json!({"username": "ada"}), "password"),
        ("login", json!({"username": ["ada"], "password": PASSWORD}), "username"),
        ("login", json!({"username": "ada", "name": "ada", "password": PASSWORD}), "given twice"),
        ("login", json!({"username": "ada", "password": PASSWORD, "remember": true}), "remember"),
        ("login", json!("ada"), "object"),
        ("change-password", json!({"new_password": OTHER}), "current_password"),
    ] {
        let reply = place.send_as(&ours, "POST", &format!("/v1/auth/{path}"), Some(&body)).await;
        check(&reply, 400, "invalid_body", words);
    }
    let long = "x".repeat(2 << 20);
    assert_eq!(login(&place, "ada", &long).await.status, 401);
    assert_eq!(login(&place, &long, PASSWORD).await.status, 401);
    check(&place.get("/v1/auth/config?x=1").await, 400, "bad_parameter", "takes none");
}

/// Over TLS the cookie has another name, which only this host can set, and goes nowhere else.
#[tokio::test(flavor = "multi_thread")]
async fn over_tls_the_cookie_stays_there() {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let files = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let certificate = write("cert.pem", certified.cert.pem());
    let key = write("key.pem", certified.signing_key.serialize_pem());
    let tls = TlsFiles { certificate, key };
    let place = Place::configured(runtime(), |config| config.tls = Some(tls)).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let client = Arc::new(builder.unwrap().with_root_certificates(roots).with_no_client_auth());
    let exchange = async |request: String| {
        let stream = TcpStream::connect(place.address()).await.unwrap();
        let connector = TlsConnector::from(Arc::clone(&client));
        let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        // A server that closes without a word of goodbye has still said all.
        let _ = stream.read_to_end(&mut bytes).await;
        raw::parse(&bytes)
    };
    let body = named("ada", PASSWORD);
    let admin = bearer(place.server.token());
    let made = exchange(place.request_as(&admin, "POST", "/v1/auth/setup", Some(&body))).await;
    let set = made.header("set-cookie").unwrap_or_else(|| panic!("{made:?}")).to_owned();
    let (pair, attributes) = set.split_once(';').unwrap();
    assert!(pair.starts_with("__Host-ostler_session="), "{set}");
    assert_eq!(attributes, " Path=/; HttpOnly; SameSite=Lax; Secure");
    let ask =
        async |cookie: String| exchange(place.request_as(&cookie, "GET", "/v1/agents", None)).await.status;
    assert_eq!(ask(format!("cookie: {pair}\r\n")).await, 200);
    let without_prefix = pair.trim_start_matches("__Host-");
    assert_eq!(ask(format!("cookie: {without_prefix}\r\n")).await, 401, "someone on the way may have set it");
    let plain = format!("cookie: {pair}\r\norigin: http://{}\r\n", place.address());
    assert_eq!(ask(plain).await, 403, "from a page that did not come over TLS");
}
