//! Lists of tasks that are large: an answer stays small, and nothing is lost of the list.

use serde_json::{Value, json};

use super::support::{Place, task, worker::Worker};

const MIB: usize = 1024 * 1024;

async fn create(place: &Place, name: &str, input: Value) {
    let mut task = task();
    task["metadata"] = json!({ "name": name });
    task["spec"]["input"] = input;
    assert_eq!(place.post("/v1/tasks", &task).await.status, 201);
}

#[tokio::test]
async fn a_list_shows_the_beginning_of_what_is_long_and_says_so() {
    let place = Place::with_agent().await;
    let (image, answer) = ("i".repeat(MIB), "o".repeat(300 * 1024));
    create(&place, "large", json!({"message": "hi", "image": image})).await;
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    worker.finish(held, &answer).await;
    let reply = place.get("/v1/tasks").await;
    assert!(reply.body.len() < 32 * 1024, "{}", reply.body.len());
    let listed = reply.json()["items"][0].clone();
    let begins = |value: &Value, letter: &str| *value == format!("{}...[truncated]", letter.repeat(4096));
    assert!(
        begins(&listed["spec"]["input"]["image"], "i")
            && begins(&listed["status"]["output"]["last_output"], "o")
    );
    assert_eq!(listed["spec"]["input"]["message"], "hi");
    assert_eq!(listed["status"]["shortened"], json!(["spec.input.image", "status.output.last_output"]));
    let whole = place.get("/v1/tasks/large").await.json();
    assert_eq!((&whole["spec"]["input"]["image"], whole["status"].get("shortened")), (&json!(image), None));
    let output = whole["status"]["output"]["last_output"].as_str().unwrap();
    assert_eq!(output.len(), 256 * 1024 + "...[truncated]".len(), "that much and no more of an output");
    let log = place.get("/v1/tasks/large/events").await.json();
    assert_eq!(
        log["items"].as_array().unwrap().last().unwrap()["body"]["output"],
        answer,
        "the log has it all"
    );
}

#[tokio::test]
async fn a_page_ends_early_where_tasks_are_large_and_the_list_goes_on_behind_it() {
    const COUNT: usize = 30;
    let place = Place::with_agent().await;
    let input: serde_json::Map<String, Value> =
        (0..100).map(|number| (format!("part-{number}"), json!("p".repeat(4000)))).collect();
    let names: Vec<String> = (0..COUNT).map(|number| format!("t{number:02}")).collect();
    for name in &names {
        create(&place, name, Value::Object(input.clone())).await;
    }
    let newest: Vec<String> = names.iter().rev().cloned().collect();
    for (query, expected) in [
        ("", &newest),
        ("&agent=helper", &newest),
        ("&sort=name", &names),
        ("&sort=created_at&order=asc", &names),
        ("&sort=name&order=desc", &newest),
    ] {
        let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let reply = place.get(&format!("/v1/tasks?limit=1000{query}{after}")).await;
            assert!(reply.body.len() < 5 * MIB, "{query}: {}", reply.body.len());
            let page = reply.json();
            let items = page["items"].as_array().unwrap();
            seen.extend(items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()));
            pages += 1;
            let Some(next) = page["continue"].as_str() else { break };
            after = format!("&after={}", encoded(next));
        }
        assert_eq!((&seen, pages), (expected, 3), "{query}");
    }
    let rest = place.get("/v1/tasks?limit=1000&offset=28").await.json();
    assert_eq!((rest["items"].as_array().unwrap().len(), rest.get("continue")), (2, None));
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
