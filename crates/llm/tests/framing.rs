//! Answers whose head doesn't say what they are, or says it wrongly, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../../net/tests/support/mod.rs"]
mod support;

use ostler_kernel::{Block, ErrorClass, Role, plan::ModelPlan};
use ostler_llm::{Message, ModelRequest, Registry, Secrets, complete};
use ostler_net::Client;
use support::{Server, TokioRuntime, answer};

const LINES: &str = r#"{"model":"m","message":{"role":"assistant","content":"Hel"},"done":false}
{"model":"m","message":{"role":"assistant","content":"lo"},"done":true,"done_reason":"stop"}
"#;
const EVENTS: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\n\
                      data: [DONE]\n\n";
const WHOLE: &str =
    "\n {\"choices\":[{\"index\":0,\"message\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}";

/// The text of an answer, or what became of it.
async fn told(provider: &str, media_type: &str, body: &str) -> Result<String, String> {
    let header = match media_type {
        "" => String::new(),
        media_type => format!("content-type: {media_type}\r\n"),
    };
    let server = Server::start([answer("200 OK", &header, body)]).await;
    let runtime = TokioRuntime::new();
    let client = Client::new(runtime.clone()).unwrap();
    let registry = Registry::standard(client, runtime, Secrets::new(|_| None)).unwrap();
    let endpoint = ModelPlan {
        endpoint: "main".into(),
        provider: provider.into(),
        base_url: server.url(""),
        model: "m".into(),
        allow_private: true,
        ..ModelPlan::default()
    };
    let blocks = vec![Block::Text { text: "hi".into() }];
    let request = ModelRequest {
        endpoint,
        system: String::new(),
        messages: vec![Message { role: Role::User, blocks }],
        tools: vec![],
        output_schema: None,
        request_id: "step_1".into(),
    };
    let said = complete(&registry, request, |_| {}).await;
    said.map(|said| said.blocks.iter().filter_map(Block::text).collect()).map_err(|failure| {
        assert_eq!(failure.class, ErrorClass::Transient, "{failure}");
        failure.code
    })
}

#[tokio::test]
async fn a_stream_is_read_whatever_simple_servers_call_it() {
    for media_type in ["application/x-ndjson", "application/json", "text/plain; charset=utf-8", ""] {
        assert_eq!(told("ollama", media_type, LINES).await.as_deref(), Ok("Hello"), "{media_type}");
    }
    for media_type in ["text/event-stream", "text/plain", ""] {
        assert_eq!(told("openai", media_type, EVENTS).await.as_deref(), Ok("Hello"), "{media_type}");
    }
    for media_type in ["application/json", "text/plain", ""] {
        assert_eq!(told("openai", media_type, WHOLE).await.as_deref(), Ok("Hello"), "{media_type}");
    }
}

#[tokio::test]
async fn what_is_cut_or_no_answer_is_told_apart() {
    let half = LINES.lines().next().unwrap();
    for cut in [half, &format!("{half}\n"), &LINES[..LINES.len() - 20]] {
        for media_type in ["application/x-ndjson", ""] {
            assert_eq!(told("ollama", media_type, cut).await.unwrap_err(), "model_stream_cut", "{cut}");
        }
    }
    let cut = &LINES[..LINES.len() - 20];
    assert_eq!(told("ollama", "application/json", cut).await.unwrap_err(), "model_stream_cut");
    let error = format!("{half}\n{{\"error\":\"the runner has died\"}}\n");
    assert_eq!(told("ollama", "application/json", &error).await.unwrap_err(), "model_server_error");
    for page in ["upstream is away", "<html>", ""] {
        assert_eq!(told("openai", "text/plain", page).await.unwrap_err(), "model_bad_answer", "{page}");
    }
    assert_eq!(told("openai", "", "<html>").await.unwrap_err(), "model_stream_cut");
}
