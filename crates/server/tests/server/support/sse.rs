//! One who reads a task's events.

use std::time::Duration;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use super::{Place, bearer};

pub struct Listener {
    stream: BufReader<TcpStream>,
    pub status: u16,
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub id: Option<u64>,
    pub event: String,
    pub data: Value,
}

/// So long nothing takes, unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);

impl Listener {
    /// `last` is a Last-Event-ID.
    pub async fn open(place: &Place, task: &str, last: Option<u64>) -> Self {
        Self::at(place, &format!("/v1/tasks/{task}/events"), last).await
    }

    /// Of any stream.
    pub async fn at(place: &Place, path: &str, last: Option<u64>) -> Self {
        let last = last.map(|last| format!("last-event-id: {last}\r\n")).unwrap_or_default();
        Self::at_as(place, &bearer(place.server.token()), path, &last).await
    }

    /// As somebody else: `credential` is the header lines that say who.
    pub async fn open_as(place: &Place, credential: &str, task: &str, last: &str) -> Self {
        Self::at_as(place, credential, &format!("/v1/tasks/{task}/events"), last).await
    }

    pub async fn at_as(place: &Place, credential: &str, path: &str, last: &str) -> Self {
        let address = place.address();
        let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{credential}");
        let stream = TcpStream::connect(place.address()).await.unwrap();
        let mut stream = BufReader::new(stream);
        stream.write_all(format!("{head}accept: text/event-stream\r\n{last}\r\n").as_bytes()).await.unwrap();
        let mut status = None;
        loop {
            let mut line = String::new();
            timeout(PATIENCE, stream.read_line(&mut line)).await.unwrap().unwrap();
            if line.trim().is_empty() {
                break;
            }
            status = status.or_else(|| line.split(' ').nth(1)?.parse().ok());
        }
        Self { stream, status: status.unwrap(), text: String::new() }
    }

    /// The next event, delta or comment; nothing at the end of the stream.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let message = self.text[..end].to_owned();
                self.text.drain(..end + 2);
                return Some(read(&message));
            }
            let piece = timeout(PATIENCE, self.chunk()).await.expect("the stream is silent");
            self.text.push_str(&piece?);
        }
    }

    pub async fn rest(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        assert!(self.text.is_empty(), "cut off in {:?}", self.text);
        messages
    }

    async fn chunk(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.ok()?;
        let size = usize::from_str_radix(line.trim(), 16).ok().filter(|size| *size > 0)?;
        let mut piece = vec![0; size + 2];
        self.stream.read_exact(&mut piece).await.ok()?;
        piece.truncate(size);
        Some(String::from_utf8(piece).unwrap())
    }
}

fn read(text: &str) -> Message {
    let mut message = Message { id: None, event: String::new(), data: Value::Null };
    for line in text.lines() {
        match line.split_once(": ").unwrap() {
            ("id", id) => message.id = Some(id.parse().unwrap()),
            ("event", event) => message.event = event.to_owned(),
            ("data", data) => message.data = serde_json::from_str(data).unwrap(),
            ("", _) => message.event = "comment".to_owned(),
            other => panic!("{other:?}"),
        }
    }
    message
}
