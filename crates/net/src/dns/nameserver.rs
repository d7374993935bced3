//! Nameservers that an operator named, asked directly: first by datagram, over a stream if the answer does not fit.
//! No search domains, no hosts file, no cache: each dial asks anew, and what it gets is what it dials.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use ostler_kernel::{
    Runtime,
    runtime::{BoxFuture, timeout},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
};

use super::{
    DnsError, Resolver, bounded,
    message::{Family, Question, Reply},
};

pub(crate) struct Nameservers {
    servers: Vec<SocketAddr>,
    runtime: Arc<dyn Runtime>,
}

/// For one question to one server.
const PATIENCE: Duration = Duration::from_secs(2);

/// Aliases that lead to a further question.
const MAX_QUESTIONS: usize = 8;

/// Datagrams that are not the answer, such as those of someone who guesses, before the server counts as broken.
const MAX_STRAY: usize = 64;

impl Nameservers {
    pub(crate) fn new(servers: Vec<SocketAddr>, runtime: Arc<dyn Runtime>) -> Self {
        Self { servers, runtime }
    }

    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, DnsError> {
        if is_this_machine(name) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let mut last = DnsError::NoAddress;
        for server in &self.servers {
            match self.look_up_at(*server, name).await {
                Err(error) if is_the_servers_own(&error) => last = error,
                result => return result,
            }
        }
        Err(last)
    }

    /// Both families at once. A server that knows nothing of the newer one must not keep the older from being used,
    /// nor the other way round.
    async fn look_up_at(&self, server: SocketAddr, name: &str) -> Result<Vec<IpAddr>, DnsError> {
        let (v6, v4) =
            tokio::join!(self.family(server, name, Family::V6), self.family(server, name, Family::V4));
        match (v6, v4) {
            (Ok(mut found), Ok(v4)) => {
                found.extend(v4);
                bounded(found)
            }
            (Ok(found), Err(error)) | (Err(error), Ok(found)) => {
                bounded(found).map_err(|problem| match problem {
                    DnsError::NoAddress => error,
                    problem => problem,
                })
            }
            (Err(_), Err(error)) => Err(error),
        }
    }

    async fn family(&self, server: SocketAddr, name: &str, family: Family) -> Result<Vec<IpAddr>, DnsError> {
        let mut name = name.to_owned();
        for _ in 0..MAX_QUESTIONS {
            let id = (self.runtime.random() >> 32) as u16;
            let question = Question::new(id, &name, family).ok_or(DnsError::BadName)?;
            let asked = timeout(&*self.runtime, PATIENCE, ask(server, &question)).await;
            match asked.map_err(|_| DnsError::Silent { server, after: PATIENCE })?? {
                Reply::Found { alias: Some(alias), .. } => name = alias,
                Reply::Found { addresses, alias: None } => return Ok(addresses),
                Reply::NoSuchName => return Err(DnsError::NoSuchName),
                Reply::Refused(code) => return Err(DnsError::Refused { server, code }),
                Reply::Truncated => return Err(DnsError::Unreadable { server }),
            }
        }
        Err(DnsError::Endless)
    }
}

impl Resolver for Nameservers {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, DnsError>> {
        Box::pin(self.look_up(name))
    }
}

/// RFC 6761: such names never leave the machine.
fn is_this_machine(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Another server may do better.
fn is_the_servers_own(error: &DnsError) -> bool {
    match error {
        DnsError::Refused { .. }
        | DnsError::Unreadable { .. }
        | DnsError::Silent { .. }
        | DnsError::Io(_) => true,
        DnsError::BadName
        | DnsError::NoSuchName
        | DnsError::NoAddress
        | DnsError::TooMany
        | DnsError::Endless
        | DnsError::Busy => false,
    }
}

async fn ask(server: SocketAddr, question: &Question) -> Result<Reply, DnsError> {
    match ask_by_datagram(server, question).await? {
        Reply::Truncated => ask_by_stream(server, question).await,
        reply => Ok(reply),
    }
}

/// The socket has a port of its own for each question and takes datagrams of the server alone; the number and the
/// question have to be right as well.
#[expect(clippy::disallowed_methods, reason = "an operator named the nameservers: they are not judged")]
async fn ask_by_datagram(server: SocketAddr, question: &Question) -> Result<Reply, DnsError> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(&question.to_bytes()).await?;
    let mut datagram = [0; 4096];
    for _ in 0..MAX_STRAY {
        let length = socket.recv(&mut datagram).await?;
        if let Ok(reply) = question.read(datagram.get(..length).unwrap_or_default()) {
            return Ok(reply);
        }
    }
    Err(DnsError::Unreadable { server })
}

#[expect(clippy::disallowed_methods, reason = "an operator named the nameservers: they are not judged")]
async fn ask_by_stream(server: SocketAddr, question: &Question) -> Result<Reply, DnsError> {
    let mut stream = TcpStream::connect(server).await?;
    let asked = question.to_bytes();
    let length = u16::try_from(asked.len()).map_err(|_| DnsError::BadName)?;
    stream.write_all(&[&length.to_be_bytes()[..], &asked].concat()).await?;
    let length = stream.read_u16().await?;
    let mut answer = vec![0; usize::from(length)];
    stream.read_exact(&mut answer).await?;
    question.read(&answer).map_err(|_| DnsError::Unreadable { server })
}

#[cfg(test)]
mod tests;
