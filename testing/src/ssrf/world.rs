//! The world: every address there is, on the ports that tricks name. It notes who comes to which address, answers
//! anybody, redirects where it is asked to, and serves names. It is a process of its own, led by lines on its input.

use std::{
    io::{BufRead as _, Write as _},
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UdpSocket},
};

use super::{names::Names, place::NAMESERVER};

/// What happened since the last one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Which addresses were called.
    pub(crate) came: Vec<SocketAddr>,
    /// Questions about names that came as streams.
    pub(crate) n_streams: u64,
}

#[derive(Default)]
struct Notes {
    came: Mutex<Vec<SocketAddr>>,
    n_streams: AtomicU64,
    names: Names,
}

/// Serves until its input ends. Says `born` at once, `ready` when told to `listen`, and a report when told to.
pub async fn serve(ports: &str) -> Result<()> {
    let ports: Vec<u16> = ports.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let notes = Arc::new(Notes::default());
    say("born")?;
    // Reading blocks; what serves has threads of its own.
    let lines = std::io::stdin().lock().lines();
    for line in lines {
        match line?.as_str() {
            "listen" => {
                listen(&ports, &notes)?;
                say("ready")?;
            }
            "report" => say(&serde_json::to_string(&notes.take())?)?,
            other => anyhow::bail!("nobody understands {other:?}"),
        }
    }
    Ok(())
}

impl Notes {
    fn take(&self) -> Report {
        let came = std::mem::take(&mut *self.came.lock().unwrap_or_else(PoisonError::into_inner));
        Report { came, n_streams: self.n_streams.swap(0, Ordering::Relaxed) }
    }
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

#[expect(clippy::disallowed_methods, reason = "the hosts of the tricks are outside any simulation")]
fn listen(ports: &[u16], notes: &Arc<Notes>) -> Result<()> {
    for port in ports {
        let (listener, notes) = (listener(&format!("[::]:{port}"))?, Arc::clone(notes));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let address = stream.local_addr();
                notes.came.lock().unwrap_or_else(PoisonError::into_inner).extend(address);
                tokio::spawn(answer(stream));
            }
        });
    }
    let datagrams = std::net::UdpSocket::bind((NAMESERVER, 53)).context("no port for names")?;
    datagrams.set_nonblocking(true)?;
    tokio::spawn(name_datagrams(UdpSocket::from_std(datagrams)?, Arc::clone(notes)));
    tokio::spawn(name_streams(listener(&format!("{NAMESERVER}:53"))?, Arc::clone(notes)));
    Ok(())
}

fn listener(address: &str) -> Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address).with_context(|| format!("no port {address}"))?;
    listener.set_nonblocking(true)?;
    Ok(TcpListener::from_std(listener)?)
}

async fn name_datagrams(socket: UdpSocket, notes: Arc<Notes>) {
    let mut bytes = [0; 2048];
    while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
        let question = bytes.get(..length).unwrap_or_default();
        if let Some(answer) = notes.names.answer(question, false) {
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

async fn name_streams(listener: TcpListener, notes: Arc<Notes>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        notes.n_streams.fetch_add(1, Ordering::Relaxed);
        // One question each, as those who ask here do it.
        let Ok(length) = stream.read_u16().await else { continue };
        let mut question = vec![0; usize::from(length)];
        if stream.read_exact(&mut question).await.is_err() {
            continue;
        }
        if let Some(answer) = notes.names.answer(&question, true) {
            let length = u16::try_from(answer.len()).unwrap_or(u16::MAX).to_be_bytes();
            let _ = stream.write_all(&[&length[..], &answer].concat()).await;
        }
    }
}

/// Answers one request and hangs up: no connection is used twice, so that every call has to dial.
pub(crate) async fn answer(mut stream: TcpStream) {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read_buf(&mut head).await {
            Ok(1..) if head.first() != Some(&0x16) => {}
            // The beginning of TLS, which nobody speaks here, or the end.
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let mut reply = match path.strip_prefix("/redirect/").and_then(|rest| rest.split_once('/')) {
        // What a vendor's path adds to an address is none of it.
        Some((status, hidden)) => redirect(status, hidden.split('/').next().unwrap_or_default()),
        None => b"HTTP/1.1 200 OK\r\n".to_vec(),
    };
    reply.extend_from_slice(
        b"content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
    );
    let _ = stream.write_all(&reply).await;
    let _ = stream.shutdown().await;
    // What the other side still sends is read, or it would be told that the connection broke.
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

fn redirect(status: &str, hidden: &str) -> Vec<u8> {
    let digits = hidden.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    let location: Vec<u8> = digits.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect();
    [format!("HTTP/1.1 {status} Elsewhere\r\nlocation: ").as_bytes(), &location, b"\r\n"].concat()
}
