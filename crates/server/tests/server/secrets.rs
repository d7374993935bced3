//! Secrets over the wire: written and never read back, sealed in the store, under keys that can be turned.

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ostler_server::{SecretText, ServerConfig, StartError, start};
use serde_json::{Value, json};

use crate::support::{Place, config, runtime};

const VALUE: &str = "hush-hush-0123456789";

fn secret(data: Value) -> Value {
    json!({"kind": "Secret", "metadata": {"name": "openai"}, "spec": data})
}

/// Whether any file of the data folder holds it, as it is or in base64.
fn lies_in(folder: &Path, value: &str) -> bool {
    let encoded = STANDARD.encode(value);
    let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    fs::read_dir(folder).unwrap().any(|entry| {
        let bytes = fs::read(entry.unwrap().path()).unwrap_or_default();
        holds(&bytes, value) || holds(&bytes, encoded.trim_end_matches('='))
    })
}

async fn version(place: &Place) -> String {
    let reply = place.get("/v1/secrets/openai").await;
    reply.json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_secret_is_written_and_never_read_back() {
    let place = Place::new().await;
    let told = json!({"value": "***", "other": "***"});
    let written =
        secret(json!({"stringData": {"value": VALUE}, "data": {"other": STANDARD.encode("more-secret-1")}}));
    let tried = place.post("/v1/secrets?dry_run=true", &written).await;
    assert_eq!((tried.status, &tried.json()["spec"]["data"]), (201, &told), "{tried:?}");
    assert_eq!(place.get("/v1/secrets/openai").await.status, 404, "it was only tried");
    let made = place.post("/v1/secrets", &written).await;
    assert_eq!((made.status, &made.json()["spec"]["data"]), (201, &told), "{made:?}");
    for path in ["/v1/secrets/openai", "/v1/secrets"] {
        let text = String::from_utf8(place.get(path).await.body).unwrap();
        assert!(
            text.contains("\"***\"") && !text.contains("hush") && !text.contains("ostler-sealed"),
            "{text}"
        );
    }
    let backup = place.send("POST", "/v1/backup", "", b"").await.body;
    let copies = place.folder.path().join("copies");
    fs::create_dir(&copies).unwrap();
    fs::write(copies.join("backup"), backup).unwrap();
    assert!(!lies_in(&copies, VALUE) && !lies_in(place.folder.path(), VALUE), "it lies there in clear");
}

#[tokio::test]
async fn stars_leave_a_value_as_it_is_and_the_same_again_changes_nothing() {
    let place = Place::new().await;
    let nothing = place.post("/v1/secrets", &secret(json!({"data": {"value": "***"}}))).await;
    assert_eq!((nothing.status, &nothing.json()["code"]), (400, &json!("invalid_manifest")), "{nothing:?}");
    let made = place.post("/v1/secrets", &secret(json!({"stringData": {"value": VALUE}}))).await.json();
    let again = place.post("/v1/secrets", &secret(json!({"stringData": {"value": VALUE}}))).await.json();
    assert_eq!(
        made["metadata"]["generation"], again["metadata"]["generation"],
        "the same value is no change"
    );
    let more = secret(json!({"data": {"value": "***"}, "stringData": {"second": "another-one"}}));
    let put = format!("if-match: \"{}\"\r\n", version(&place).await);
    let reply = place.put("/v1/secrets/openai", &put, &more).await;
    assert_eq!(
        (reply.status, &reply.json()["spec"]["data"]),
        (200, &json!({"value": "***", "second": "***"}))
    );
    let mut renamed = secret(json!({"data": {"value": "***", "second": "***"}}));
    renamed["metadata"]["name"] = json!("renamed");
    let put = format!("if-match: \"{}\"\r\n", version(&place).await);
    assert_eq!(
        place.put("/v1/secrets/openai", &put, &renamed).await.status,
        200,
        "it is sealed for its new name"
    );
    let keys = place.get("/v1/secret-keys").await.json();
    assert_eq!((&keys["left"], &keys["keys"][0]["values"]), (&json!(0), &json!(2)), "{keys}");
}

#[tokio::test]
async fn who_may_only_read_sees_names_and_writes_nothing() {
    let place = Place::new().await;
    place.post("/v1/secrets", &secret(json!({"stringData": {"value": VALUE}}))).await;
    let reader = place.token("looks", "reader", &["default"]).await;
    let seen = place.send_as(&reader, "GET", "/v1/secrets/openai", None).await;
    assert_eq!((seen.status, &seen.json()["spec"]["data"]["value"]), (200, &json!("***")));
    let written = secret(json!({"stringData": {"value": "mine-from-now-on"}}));
    assert_eq!(place.send_as(&reader, "POST", "/v1/secrets", Some(&written)).await.status, 403);
    let elsewhere = place.token("writes", "writer", &["team"]).await;
    assert_eq!(place.send_as(&elsewhere, "POST", "/v1/secrets", Some(&written)).await.status, 403);
    assert_eq!(place.send_as(&elsewhere, "GET", "/v1/secrets/openai", None).await.status, 403);
}

#[tokio::test]
async fn what_is_refused_does_not_show_the_value() {
    let place = Place::new().await;
    place.post("/v1/secrets", &secret(json!({"stringData": {"value": VALUE}}))).await;
    for wrong in [
        secret(json!({"data": {"value": VALUE}})),
        secret(json!({"stringData": {"value": [VALUE]}})),
        secret(json!({"stringData": VALUE})),
    ] {
        let reply = place.post("/v1/secrets", &wrong).await;
        let text = String::from_utf8(reply.body.clone()).unwrap();
        assert!(reply.status == 400 && !text.contains("hush"), "{text}");
    }
}

#[tokio::test]
async fn a_server_with_another_key_does_not_start() {
    let place = Place::new().await;
    place.post("/v1/secrets", &secret(json!({"stringData": {"value": VALUE}}))).await;
    let Place { server, folder } = place;
    server.shutdown().await;
    let key_file = folder.path().join("secret-key");
    let key = fs::read_to_string(&key_file).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&key_file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let with = |key: String| ServerConfig { secret_key: Some(SecretText::new(key)), ..config(folder.path()) };
    let other = STANDARD.encode([7; 32]);
    let refused = start(with(other.clone()), runtime()).await.err().unwrap();
    assert!(matches!(refused, StartError::WrongSecretKey { .. }), "{refused}");
    let bad = start(with("short".to_owned()), runtime()).await.err().unwrap();
    assert!(matches!(bad, StartError::SecretKey { .. }) && !format!("{bad:?}").contains("short"), "{bad:?}");
    fs::remove_file(&key_file).unwrap();
    let refused = start(config(folder.path()), runtime()).await.err().unwrap();
    assert!(matches!(refused, StartError::WrongSecretKey { .. }), "one that was made anew: {refused}");
    // The new key first and the old one behind it: all is sealed with the new one, and then the old one may go.
    let server = start(with(format!("{other}\n{key}")), runtime()).await.unwrap();
    let place = Place { server, folder };
    let mut keys = place.get("/v1/secret-keys").await.json();
    while keys["left"] != json!(0) {
        keys = place.get("/v1/secret-keys").await.json();
    }
    assert_eq!((&keys["keys"][0]["values"], &keys["keys"][1]["values"]), (&json!(1), &json!(0)), "{keys}");
    let Place { server, folder } = place;
    server.shutdown().await;
    let again = ServerConfig { secret_key: Some(SecretText::new(other)), ..config(folder.path()) };
    start(again, runtime()).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn turning_the_key_seals_everything_anew_and_values_stay() {
    let place = Place::new().await;
    for number in 0..120 {
        let mut one = secret(json!({"stringData": {"value": format!("{VALUE}-{number}")}}));
        one["metadata"]["name"] = json!(format!("secret-{number}"));
        assert_eq!(place.post("/v1/secrets", &one).await.status, 201);
    }
    let before = place.get("/v1/secret-keys").await.json();
    let turned = place.post("/v1/secret-keys/rotate", &json!({})).await;
    assert_eq!(turned.status, 202, "{turned:?}");
    let first = turned.json()["keys"][0]["id"].clone();
    assert_ne!(first, before["keys"][0]["id"]);
    let mut keys = turned.json();
    while keys["left"] != json!(0) {
        keys = place.get("/v1/secret-keys").await.json();
    }
    assert_eq!((&keys["keys"][0]["id"], &keys["keys"][0]["values"]), (&first, &json!(120)), "{keys}");
    let text = fs::read_to_string(place.folder.path().join("secret-key")).unwrap();
    assert_eq!(text.lines().count(), 2, "the old one is there until somebody takes it away");
    let Place { server, folder } = place;
    server.shutdown().await;
    let server = start(config(folder.path()), runtime()).await.unwrap();
    let keep = secret(json!({"data": {"value": "***"}, "stringData": {"more": "x-and-more"}}));
    let mut keep = keep;
    keep["metadata"]["name"] = json!("secret-7");
    let place = Place { server, folder };
    assert_eq!(place.post("/v1/secrets", &keep).await.status, 201, "it opens");
}

#[tokio::test]
async fn a_key_file_without_the_old_key_is_refused_and_everything_still_opens() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let (old, new) = (STANDARD.encode([1; 32]), STANDARD.encode([2; 32]));
    fs::write(&file, &old).unwrap();
    let with_file = |folder: &Path| ServerConfig { secret_key_file: Some(file.clone()), ..config(folder) };
    let server = start(with_file(folder.path()), runtime()).await.unwrap();
    let place = Place { server, folder };
    place.post("/v1/secrets", &secret(json!({"stringData": {"value": VALUE}}))).await;
    let before = place.get("/v1/secret-keys").await.json();
    fs::write(&file, &new).unwrap();
    let refused = place.post("/v1/secret-keys/rotate", &json!({})).await;
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("secret_key_in_use")), "{refused:?}");
    let text = String::from_utf8(refused.body.clone()).unwrap();
    assert!(text.contains(before["keys"][0]["id"].as_str().unwrap()) && !text.contains(&new), "{text}");
    assert_eq!(place.get("/v1/secret-keys").await.json(), before, "the keys in use stay");
    let more = secret(json!({"data": {"value": "***"}, "stringData": {"second": "another-one"}}));
    let kept = place.post("/v1/secrets", &more).await;
    assert!(kept.status < 300, "the value opens, and another is sealed: {kept:?}");
    fs::write(&file, format!("{new}\n{old}\n")).unwrap();
    let mut keys = place.post("/v1/secret-keys/rotate", &json!({})).await.json();
    while keys["left"] != json!(0) {
        keys = place.get("/v1/secret-keys").await.json();
    }
    assert_eq!(keys["keys"][1]["id"], before["keys"][0]["id"], "{keys}");
}
