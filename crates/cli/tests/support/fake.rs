//! A server that answers as a test says, for what the real one would make hard to see: conflicts, restarts, refusals.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex, mpsc},
    thread,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Ran, ostler, run, run_with};

/// Writes an answer for each request, or nothing: then the connection just ends.
pub type Script = Box<dyn FnMut(&Asked) -> String + Send>;

#[derive(Debug, Clone)]
pub struct Asked {
    /// `GET /v1/agents?namespace=default`
    pub line: String,
    pub head: String,
    pub body: String,
}

impl Asked {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

pub struct Fake {
    pub asked: mpsc::Receiver<Asked>,
    folder: TempDir,
}

impl Fake {
    /// Listens, and lies in a folder as a real server would, so that commands find it.
    pub fn start(script: impl FnMut(&Asked) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        announce(folder.path(), &url);
        let (sender, asked) = mpsc::channel();
        let script: Arc<Mutex<Script>> = Arc::new(Mutex::new(Box::new(script)));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, sender) = (Arc::clone(&script), sender.clone());
                thread::spawn(move || serve(stream, &script, &sender));
            }
        });
        Self { asked, folder }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn ostler<const N: usize>(&self, arguments: [&str; N]) -> Ran {
        run(ostler(self.folder()).args(arguments))
    }

    pub fn ostler_with<const N: usize>(&self, stdin: &str, arguments: [&str; N]) -> Ran {
        run_with(ostler(self.folder()).args(arguments), stdin)
    }

    /// Everything it was asked so far.
    pub fn lines(&self) -> Vec<String> {
        self.asked.try_iter().map(|asked| asked.line).collect()
    }
}

fn announce(folder: &Path, url: &str) {
    let data = folder.join(".ostler");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("server.json"), json!({ "url": url }).to_string()).unwrap();
    fs::write(data.join("token"), "ostler_fake").unwrap();
}

fn serve(stream: TcpStream, script: &Mutex<Script>, asked: &mpsc::Sender<Asked>) {
    let mut reader = BufReader::new(stream);
    let request = read(&mut reader);
    let answer = (script.lock().unwrap())(&request);
    // Who has seen enough does not listen any more.
    let _ = asked.send(request);
    let _ = reader.get_mut().write_all(answer.as_bytes());
}

fn read(reader: &mut impl BufRead) -> Asked {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let line = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    Asked { line, head, body: String::from_utf8(body).unwrap() }
}

pub fn ok(body: &Value) -> String {
    answer("200 OK", "application/json", &body.to_string())
}

pub fn problem(status: u16, code: &str, detail: &str) -> String {
    let body =
        json!({ "type": "about:blank", "title": "No", "status": status, "code": code, "detail": detail });
    answer(&format!("{status} No"), "application/problem+json", &body.to_string())
}

/// A stream that ends where the text does.
pub fn stream(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{text}")
}

pub fn change(id: u32, kind: &str, resource: &Value) -> String {
    let data = json!({ "type": kind, "resource": resource });
    format!("id: {id}\nevent: resource\ndata: {data}\n\n")
}

fn answer(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

pub fn agent(name: &str, version: u32, prompt: &str) -> Value {
    json!({
        "apiVersion": "ostler.dev/v1", "kind": "Agent",
        "metadata": {"name": name, "namespace": "default", "uid": "u1", "resourceVersion": version.to_string(),
            "generation": version, "createdAt": "2026-01-02T03:04:05Z"},
        "spec": {"model_ref": "mock", "prompt": prompt},
    })
}
