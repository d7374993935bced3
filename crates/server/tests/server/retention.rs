//! Tasks that ended long ago are forgotten, with all they left.

use std::time::Duration;

use ostler_kernel::runtime::timeout;
use ostler_server::{ServerConfig, start};
use serde_json::json;

use super::support::{Hasty, Place, config, runtime, task};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_long_ago_is_gone_and_its_name_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let config = ServerConfig { keep: Some(Duration::from_millis(1)), ..config(folder.path()) };
    let place = Place { server: start(config, Hasty::new()).await.unwrap(), folder };
    place.apply_agent().await;
    let waiting = place.task().await;
    let mut named = task();
    named["metadata"] = json!({"name": "report"});
    assert_eq!(place.post("/v1/tasks", &named).await.status, 201);
    assert_eq!(place.post("/v1/tasks", &named).await.status, 409, "it is there");
    place.post("/v1/tasks/report/cancel", &json!({})).await;
    let gone = async {
        while place.get("/v1/tasks/report").await.status != 404 {
            tokio::task::yield_now().await;
        }
    };
    timeout(&*runtime(), PATIENCE, gone).await.unwrap();
    assert_eq!(place.get("/v1/tasks/report/logs").await.status, 404);
    assert_eq!(place.get(&format!("/v1/tasks/{waiting}")).await.status, 200, "it has not ended");
    let listed = place.get("/v1/tasks?archived=true").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(place.post("/v1/tasks", &named).await.status, 201);
}
