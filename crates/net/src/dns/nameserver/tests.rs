//! A nameserver on loopback that says what it is told to.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use ostler_kernel::{Timestamp, runtime::Spawned};
use tokio::net::TcpListener;

use super::*;

struct TokioRuntime(Instant);

#[expect(clippy::disallowed_methods, reason = "tests of real sockets run in real time")]
impl Runtime for TokioRuntime {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    fn random(&self) -> u64 {
        0xabcd_ef01_2345_6789
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        // Nothing here is worth the whole wait.
        Box::pin(tokio::time::sleep(delay / 20))
    }

    fn spawn(&self, _: &'static str, future: BoxFuture<'static, ()>) -> Spawned {
        let task = tokio::spawn(future);
        Spawned::new(move || task.abort())
    }
}

/// What the server answers to a question of a family (1 or 28): flags, and the records in bytes with their number.
type Says = fn(u16) -> Option<(u16, Vec<u8>, u16)>;

/// Answers datagrams by `says`, and streams by `at_length`.
#[expect(clippy::disallowed_methods, reason = "the other end of the wire")]
async fn server(says: Says, at_length: Says) -> SocketAddr {
    let streams = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = streams.local_addr().unwrap();
    let datagrams = UdpSocket::bind(address).await.unwrap();
    tokio::spawn(async move {
        let mut bytes = [0; 512];
        loop {
            let (length, from) = datagrams.recv_from(&mut bytes).await.unwrap();
            if let Some(answer) = answer(&bytes[..length], says) {
                datagrams.send_to(b"noise", from).await.unwrap();
                datagrams.send_to(&answer, from).await.unwrap();
            }
        }
    });
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = streams.accept().await.unwrap();
            let length = stream.read_u16().await.unwrap();
            let mut bytes = vec![0; usize::from(length)];
            stream.read_exact(&mut bytes).await.unwrap();
            let answer = answer(&bytes, at_length).unwrap();
            stream.write_u16(answer.len() as u16).await.unwrap();
            stream.write_all(&answer).await.unwrap();
        }
    });
    address
}

fn answer(question: &[u8], says: Says) -> Option<Vec<u8>> {
    let end = question.len() - 11;
    let family = u16::from_be_bytes([question[end - 4], question[end - 3]]);
    let (flags, records, n_records) = says(family)?;
    let mut bytes = question[..end].to_vec();
    bytes[2..4].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&n_records.to_be_bytes());
    bytes[10..12].copy_from_slice(&[0, 0]);
    bytes.extend(records);
    Some(bytes)
}

/// So many addresses 8.8.x.y, for the older family.
fn many(family: u16, count: u16) -> Option<(u16, Vec<u8>, u16)> {
    let count = if family == 1 { count } else { 0 };
    let record = |n: u16| {
        let [high, low] = n.to_be_bytes();
        [&[0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 8, 8][..], &[high, low]].concat()
    };
    Some((0x8180, (0..count).flat_map(record).collect(), count))
}

fn silent(_: u16) -> Option<(u16, Vec<u8>, u16)> {
    None
}

async fn look_up(servers: &[SocketAddr], name: &str) -> Result<Vec<String>, DnsError> {
    let servers = Nameservers::new(servers.to_vec(), Arc::new(TokioRuntime(start())));
    let found = servers.resolve(name).await?;
    Ok(found.iter().map(IpAddr::to_string).collect())
}

#[expect(clippy::disallowed_methods, reason = "tests of real sockets run in real time")]
fn start() -> Instant {
    Instant::now()
}

#[tokio::test]
async fn an_address_is_found_whoever_makes_noise() {
    let server = server(|family| many(family, 2), silent).await;
    assert_eq!(look_up(&[server], "a.example").await.unwrap(), ["8.8.0.0", "8.8.0.1"]);
}

#[tokio::test]
async fn a_long_answer_comes_over_a_stream_and_a_longer_one_is_refused() {
    let cut = |_: u16| Some((0x8380, vec![], 0));
    let fitting = server(cut, |family| many(family, 64)).await;
    assert_eq!(look_up(&[fitting], "a.example").await.unwrap().len(), 64);
    let huge = server(cut, |family| many(family, 4000)).await;
    assert!(matches!(look_up(&[huge], "a.example").await, Err(DnsError::TooMany)));
}

#[tokio::test]
async fn another_server_is_asked_if_one_is_no_help_and_not_if_it_answered() {
    let good = server(|family| many(family, 1), silent).await;
    let broken = server(|_| Some((0x8182, vec![], 0)), silent).await;
    let dead = server(silent, silent).await;
    let unknown = server(|_| Some((0x8183, vec![], 0)), silent).await;
    assert_eq!(look_up(&[broken, dead, good], "a.example").await.unwrap(), ["8.8.0.0"]);
    assert!(matches!(look_up(&[unknown, good], "a.example").await, Err(DnsError::NoSuchName)));
    assert!(matches!(look_up(&[dead], "a.example").await, Err(DnsError::Silent { .. })));
}

#[tokio::test]
async fn one_family_is_enough() {
    let only_old = server(|family| if family == 1 { many(1, 1) } else { None }, silent).await;
    assert_eq!(look_up(&[only_old], "a.example").await.unwrap(), ["8.8.0.0"]);
    let neither = server(|family| many(family, 0), silent).await;
    assert!(matches!(look_up(&[neither], "a.example").await, Err(DnsError::NoAddress)));
}

#[tokio::test]
async fn aliases_without_an_end_are_given_up() {
    // Each question is answered with an alias that has one more label.
    let says =
        |_: u16| Some((0x8180, b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x00\x00\x04\x01a\xc0\x0c".to_vec(), 1));
    let server = server(says, silent).await;
    assert!(matches!(look_up(&[server], "a.example").await, Err(DnsError::Endless)));
}

#[tokio::test]
async fn this_machine_is_not_asked_for() {
    for name in ["localhost", "LOCALHOST.", "a.localhost"] {
        assert_eq!(look_up(&[], name).await.unwrap(), ["127.0.0.1", "::1"], "{name}");
    }
}
