//! A small HTTP/1.1 client on one keep-alive socket. By hand, because what it costs is taken from the server
//! that is measured: they share two cores.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One connection; one request at a time.
pub struct Connection {
    stream: TcpStream,
    /// Sent with every request.
    headers: String,
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    /// When the first of the body was there.
    pub began: Option<Instant>,
}

/// What a request is, beside its headers.
pub struct Request<'r> {
    pub method: &'static str,
    pub path: &'r str,
    pub accept: &'static str,
    pub body: &'r str,
}

impl Connection {
    #[expect(clippy::disallowed_methods, reason = "it dials what it measures")]
    pub async fn open(address: SocketAddr, token: Option<&str>) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("can't connect")?;
        stream.set_nodelay(true)?;
        let mut headers = format!("host: {address}\r\ncontent-type: application/json\r\n");
        if let Some(token) = token {
            headers.push_str(&format!("authorization: Bearer {token}\r\n"));
        }
        Ok(Self { stream, headers, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Sends it and reads the whole answer.
    pub async fn call(&mut self, request: &Request<'_>) -> anyhow::Result<Answer> {
        let Request { method, path, accept, body } = request;
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\n{}accept: {accept}\r\ncontent-length: {length}\r\n\r\n{body}",
            self.headers
        );
        self.stream.write_all(text.as_bytes()).await?;
        let head = self.until(b"\r\n\r\n").await?;
        let (status, length) = read_head(&String::from_utf8_lossy(&head))?;
        let (body, began) = match length {
            Length::Known(length) => (self.take(length).await?, Some(Instant::now())),
            Length::Chunked => self.chunks().await?,
        };
        Ok(Answer { status, body, began })
    }

    async fn chunks(&mut self) -> anyhow::Result<(Vec<u8>, Option<Instant>)> {
        let (mut body, mut began) = (Vec::new(), None);
        loop {
            let size = self.until(b"\r\n").await?;
            let size = usize::from_str_radix(String::from_utf8_lossy(&size).trim(), 16);
            let size = size.context("a chunk has no size")?;
            let chunk = self.take(size + 2).await?;
            if size == 0 {
                return Ok((body, began));
            }
            began.get_or_insert_with(Instant::now);
            body.extend_from_slice(&chunk[..size]);
        }
    }

    /// Everything up to the mark, the mark included.
    async fn until(&mut self, mark: &[u8]) -> anyhow::Result<Vec<u8>> {
        loop {
            if let Some(place) = self.buffer.windows(mark.len()).position(|window| window == mark) {
                return Ok(self.buffer.drain(..place + mark.len()).collect());
            }
            self.more().await?;
        }
    }

    async fn take(&mut self, length: usize) -> anyhow::Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.more().await?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => bail!("the server closed the connection"),
            _ => Ok(()),
        }
    }
}

#[derive(Debug, PartialEq)]
enum Length {
    Known(usize),
    Chunked,
}

fn read_head(head: &str) -> anyhow::Result<(u16, Length)> {
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.context("the answer has no status")?;
    let mut length = Length::Known(0);
    for (name, value) in head.lines().filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            length = Length::Known(value.trim().parse().context("the answer's length is no number")?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            length = Length::Chunked;
        }
    }
    Ok((status, length))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn reads_answers_one_after_the_other_however_they_are_cut() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let served = async {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut asked = vec![0; 1024];
            assert!(stream.read(&mut asked).await.expect("a request") > 0);
            for piece in [
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r",
                "\n3\r\nabc\r\n2\r",
                "\nde\r\n0\r\n\r\n",
            ] {
                stream.write_all(piece.as_bytes()).await.expect("written");
                tokio::task::yield_now().await;
            }
            assert!(stream.read(&mut asked).await.expect("a request") > 0);
            stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok").await.expect("written");
        };
        let asked = async {
            let mut connection = Connection::open(address, None).await.expect("a connection");
            let request = Request { method: "GET", path: "/", accept: "*/*", body: "" };
            let first = connection.call(&request).await.expect("an answer");
            assert_eq!((first.status, first.body.as_slice()), (200, b"abcde".as_slice()));
            let second = connection.call(&request).await.expect("an answer");
            assert_eq!((second.status, second.body.as_slice()), (201, b"ok".as_slice()));
        };
        tokio::join!(served, asked);
    }
}
