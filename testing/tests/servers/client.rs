//! A client that hides nothing: it writes bytes to a socket and keeps what comes back, ends and cuts
//! included.

#![allow(clippy::disallowed_methods, reason = "the other end of the wire")]

use std::collections::BTreeMap;
use std::time::Duration;

use ostler_testing::model_server::ModelServer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than any answer here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A request in the making.
pub struct Call {
    pub method: &'static str,
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    /// Whether the answer ended as HTTP asks, rather than with the connection.
    pub complete: bool,
}

impl Call {
    pub fn get(url: String) -> Self {
        Self { method: "GET", url, headers: Vec::new(), body: Vec::new() }
    }

    pub fn post(url: String, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { method: "POST", url, headers, body: body.into() }
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|header| header.0 != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sends the request and keeps the connection.
    pub async fn open(&self) -> TcpStream {
        let rest = self.url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_at(rest.find('/').unwrap());
        let mut head = format!("{} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n", self.method);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        let mut stream = TcpStream::connect(host).await.unwrap();
        stream.write_all(&[head.as_bytes(), &self.body].concat()).await.unwrap();
        stream
    }

    /// Sends the request and reads until the connection ends; `None` if that came before a byte.
    pub async fn send_raw(&self) -> Option<Answer> {
        let mut stream = self.open().await;
        let mut bytes = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("an answer that ends").unwrap();
        (!bytes.is_empty()).then(|| Answer::read(&bytes))
    }

    pub async fn send(&self) -> Answer {
        self.send_raw().await.expect("an answer")
    }
}

impl Answer {
    fn read(bytes: &[u8]) -> Self {
        let head_end = find(bytes, b"\r\n\r\n").expect("a head");
        let head = std::str::from_utf8(&bytes[..head_end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: BTreeMap<_, _> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let rest = &bytes[head_end + 4..];
        let (body, complete) = match headers.get("content-length") {
            Some(length) => (rest.to_vec(), rest.len() == length.parse::<usize>().unwrap()),
            None => unchunk(rest),
        };
        Self { status, headers, body, complete }
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// The data of each event of a stream, read strictly: `data: ` and a blank line, nothing else.
    pub fn events(&self) -> Vec<&str> {
        let text = self.text();
        assert!(text.ends_with("\n\n"), "a whole stream ends with a blank line: {text:?}");
        let data = |event: &str| event.strip_prefix("data: ").expect("data").len();
        text.trim_end().split("\n\n").map(|event| &event[event.len() - data(event)..]).collect()
    }

    /// The chunks of a stream that ends with `[DONE]`.
    pub fn chunks(&self) -> Vec<Value> {
        let mut events = self.events();
        assert_eq!(events.pop(), Some("[DONE]"));
        events.into_iter().map(|event| serde_json::from_str(event).expect("a chunk is JSON")).collect()
    }

    /// The stream put together as a client would.
    pub fn assembled(&self) -> Assembled {
        Assembled::from(&self.chunks())
    }
}

/// What a stream said.
#[derive(Debug, Default, PartialEq)]
pub struct Assembled {
    pub text: String,
    pub refusal: String,
    /// Id, name, arguments.
    pub calls: Vec<(String, String, String)>,
    pub finish_reason: String,
    pub usage: Value,
}

impl Assembled {
    fn from(chunks: &[Value]) -> Self {
        let mut whole = Self::default();
        for chunk in chunks {
            if chunk["usage"].is_object() {
                whole.usage = chunk["usage"].clone();
            }
            let choice = &chunk["choices"][0];
            let delta = &choice["delta"];
            whole.text += delta["content"].as_str().unwrap_or_default();
            whole.refusal += delta["refusal"].as_str().unwrap_or_default();
            whole.finish_reason += choice["finish_reason"].as_str().unwrap_or_default();
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                whole.add_call(call);
            }
        }
        whole
    }

    fn add_call(&mut self, delta: &Value) {
        let index = usize::try_from(delta["index"].as_u64().unwrap()).unwrap();
        if index == self.calls.len() {
            assert_eq!(delta["type"], "function", "the first piece of a call names its type");
            self.calls.push(Default::default());
        }
        let call = &mut self.calls[index];
        call.0 += delta["id"].as_str().unwrap_or_default();
        call.1 += delta["function"]["name"].as_str().unwrap_or_default();
        call.2 += delta["function"]["arguments"].as_str().unwrap();
    }
}

/// A streaming request of one user message, with one tool on offer.
pub fn ask(message: &str) -> Value {
    json!({
        "model": "scripted",
        "messages": [{ "role": "system", "content": "be brief" }, { "role": "user", "content": message }],
        "tools": [{
            "type": "function",
            "function": {
                "name": "lookup",
                "description": "looks things up",
                "parameters": { "type": "object", "properties": { "q": { "type": "string" } } },
            },
        }],
        "stream": true,
        "stream_options": { "include_usage": true },
    })
}

/// The same request without a stream.
pub fn without_stream(mut request: Value) -> Value {
    request.as_object_mut().unwrap().retain(|key, _| !key.starts_with("stream"));
    request
}

/// Adds what the model said and what its tools answered.
pub fn go_on(request: &mut Value, said: &Assembled) {
    let messages = request["messages"].as_array_mut().unwrap();
    let calls: Vec<_> = said
        .calls
        .iter()
        .map(|(id, name, arguments)| {
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
        })
        .collect();
    if calls.is_empty() {
        messages.push(json!({ "role": "assistant", "content": said.text }));
        return;
    }
    messages.push(json!({ "role": "assistant", "content": null, "tool_calls": calls }));
    for (id, _, _) in &said.calls {
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": "found" }));
    }
}

pub fn completions(server: &ModelServer, request: &Value) -> Call {
    Call::post(format!("{}/chat/completions", server.base_url()), request.to_string())
}

/// Waits for something to become true.
pub async fn until(mut condition: impl AsyncFnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(2));
    let wait = async {
        while !condition().await {
            ticks.tick().await;
        }
    };
    timeout(PATIENCE, wait).await.expect("it never became true");
}

fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(line_end) = find(rest, b"\r\n") else { return (body, false) };
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line_end]).unwrap(), 16).unwrap();
        rest = &rest[line_end + 2..];
        if size == 0 {
            return (body, rest == b"\r\n");
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        if rest.len() < size + 2 {
            return (body, false);
        }
        rest = &rest[size + 2..];
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}
