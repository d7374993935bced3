//! What the tests of `net`, `llm` and `tools` share: a TCP server that plays one answer per request, byte for
//! byte, and tells what it received; and the runtime port over tokio.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of real sockets run in real time"
)]

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use ostler_kernel::{
    Runtime, Timestamp,
    runtime::{BoxFuture, Spawned},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// What the server does once it has read a request.
#[derive(Debug, Clone)]
pub enum Act {
    Write(Vec<u8>),
    /// Says nothing until the client has gone.
    Hang,
    Close,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    Request { connection: usize, head: String, body: String },
    Closed { connection: usize },
}

pub struct Server {
    pub address: SocketAddr,
    accepted: Arc<Mutex<Vec<SocketAddr>>>,
    seen: mpsc::UnboundedReceiver<Seen>,
}

impl Server {
    /// Each request gets the next of `answers`, over whichever connection it comes.
    pub async fn start(answers: impl IntoIterator<Item = Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, seen) = mpsc::unbounded_channel();
        let answers = Arc::new(Mutex::new(VecDeque::from_iter(answers)));
        let accepted = Arc::new(Mutex::new(Vec::new()));
        let peers = accepted.clone();
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, peer)) = listener.accept().await else { break };
                peers.lock().unwrap().push(peer);
                let (answers, tell) = (answers.clone(), tell.clone());
                tokio::spawn(async move {
                    serve(stream, connection, &answers, &tell).await;
                    tell.send(Seen::Closed { connection }).ok();
                });
            }
        });
        Self { address, accepted, seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits for what the server sees next.
    pub async fn seen(&mut self) -> Seen {
        tokio::time::timeout(Duration::from_secs(10), self.seen.recv()).await.unwrap().unwrap()
    }

    /// How many connections there have been before the one that is made here to find out: they are taken in order.
    pub async fn n_connections(&mut self) -> usize {
        let own = TcpStream::connect(self.address).await.unwrap();
        let address = own.local_addr().unwrap();
        drop(own);
        loop {
            let position = self.accepted.lock().unwrap().iter().position(|peer| *peer == address);
            match position {
                Some(position) => return position,
                None => drop(self.seen().await),
            }
        }
    }

    /// Waits for a request and gives its connection, head and body.
    pub async fn request(&mut self) -> (usize, String, String) {
        match self.seen().await {
            Seen::Request { connection, head, body } => (connection, head, body),
            Seen::Closed { connection } => panic!("connection {connection} was closed"),
        }
    }
}

/// A whole answer with a body of known length.
pub fn answer(status: &str, headers: &str, body: &str) -> Vec<Act> {
    let length = body.len();
    vec![write(format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}"))]
}

pub fn write(bytes: impl Into<Vec<u8>>) -> Act {
    Act::Write(bytes.into())
}

/// An address at which nobody listens.
pub async fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    answers: &Mutex<VecDeque<Vec<Act>>>,
    tell: &mpsc::UnboundedSender<Seen>,
) {
    let mut buffer = Vec::new();
    while let Some((head, body)) = read_request(&mut stream, &mut buffer).await {
        tell.send(Seen::Request { connection, head, body }).ok();
        let acts = answers.lock().unwrap().pop_front().expect("more requests than answers");
        for act in acts {
            match act {
                Act::Write(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Act::Hang => {
                    stream.read_exact(&mut [0; 1]).await.ok();
                    return;
                }
                Act::Close => return,
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(String, String)> {
    let head_end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        more(stream, buffer).await?;
    };
    let head = String::from_utf8(buffer[..head_end].to_vec()).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let end = head_end + length.map_or(0, |length| length.parse::<usize>().unwrap());
    while buffer.len() < end {
        more(stream, buffer).await?;
    }
    let body = String::from_utf8(buffer[head_end..end].to_vec()).unwrap();
    buffer.drain(..end);
    Some((head, body))
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let n_read = stream.read_buf(buffer).await.ok()?;
    (n_read > 0).then_some(())
}

pub struct TokioRuntime {
    start: Instant,
    drawn: AtomicU64,
    /// How long each sleep was asked to be.
    pub slept: Mutex<Vec<Duration>>,
}

impl TokioRuntime {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), drawn: AtomicU64::new(0), slept: Mutex::default() })
    }
}

impl Runtime for TokioRuntime {
    fn now(&self) -> Timestamp {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        Timestamp::from_millis(since.as_millis() as i64)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn random(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed)
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        self.slept.lock().unwrap().push(delay);
        Box::pin(tokio::time::sleep(delay))
    }

    fn spawn(&self, _: &'static str, future: BoxFuture<'static, ()>) -> Spawned {
        let task = tokio::spawn(future);
        Spawned::new(move || task.abort())
    }
}
