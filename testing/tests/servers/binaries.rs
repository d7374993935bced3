//! The programs: each says where it listens, and serves.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::client::{Call, ask};

struct Server {
    child: Child,
    base_url: String,
}

impl Server {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, base_url: line.trim_end().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[tokio::test]
async fn the_model_server_plays_plans_waits_and_keeps_a_log() {
    let log = std::env::temp_dir().join(format!("model-server-{}.log", std::process::id()));
    let arguments = ["--port", "0", "--latency-ms", "100", "--log", log.to_str().unwrap()];
    let server = Server::start(env!("CARGO_BIN_EXE_model-server"), &arguments);
    let url = format!("{}/chat/completions", server.base_url);
    let before = jiff::Timestamp::now();
    let request = ask("plan: text=done fault=529:1").to_string();
    for status in [529, 200] {
        let call = Call::post(url.clone(), request.clone()).header("x-request-id", "step-1");
        assert_eq!(call.send().await.status, status);
    }
    assert!(jiff::Timestamp::now().duration_since(before).as_millis() >= 200);
    let counts = Call::get(server.base_url.replace("/v1", "/_control/requests?id=step-1")).send().await;
    assert_eq!(counts.json()["received"], 2);
    let written = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    let lines: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], json!({ "id": "step-1", "turn": 0, "fault": "529", "violations": [] }));
    assert_eq!(lines[1]["fault"], json!(null));
}

#[tokio::test]
async fn the_tool_server_answers() {
    let server = Server::start(env!("CARGO_BIN_EXE_tool-server"), &["--port", "0"]);
    let call = Call::post(format!("{}/tool/echo", server.base_url), "{\"q\":1}");
    assert_eq!(call.send().await.json(), json!({ "q": 1 }));
}
