//! A server that answers each connection as the test says, and keeps what it was asked.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener},
    sync::mpsc,
    thread,
};

pub struct Scripted {
    pub url: String,
    pub asked: mpsc::Receiver<Asked>,
}

#[derive(Debug)]
pub struct Asked {
    /// The request line and the headers, names in lower case.
    pub head: String,
    pub body: String,
}

impl Scripted {
    /// One answer for each connection, in order; then nobody listens any more.
    pub fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, asked) = mpsc::channel();
        thread::spawn(move || serve(&listener, answers, &sender));
        Self { url: url(address), asked }
    }
}

pub fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

fn serve(listener: &TcpListener, answers: Vec<String>, asked: &mpsc::Sender<Asked>) {
    for answer in answers {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        asked.send(read_request(&mut reader)).unwrap();
        reader.get_mut().write_all(answer.as_bytes()).unwrap();
    }
}

fn read_request(reader: &mut impl BufRead) -> Asked {
    let mut head = String::new();
    let mut length = 0;
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
    Asked { head, body: String::from_utf8(body).unwrap() }
}

pub fn answer(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// A stream that ends where the text does, well or cut off.
pub fn events(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{text}")
}
