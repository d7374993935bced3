//! A TCP proxy that can be told to misbehave: to cut connections, or to stop forwarding without closing them, so that
//! both ends believe in a peer that says nothing.

#![allow(clippy::disallowed_methods, reason = "the network is outside the simulation")]

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::watch,
    task::{AbortHandle, JoinHandle},
};

/// What is held back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Silence {
    #[default]
    Nothing,
    /// What the server answers; what it is asked gets through.
    Answers,
    Everything,
    /// And for good: as if a firewall in between had lost its memory of the connection.
    ForGood,
}

/// How long until the server's end finds out by itself that a connection is silent for good, as a kernel that asks
/// now and then does.
const SERVER_NOTICES: Duration = Duration::from_secs(10);

/// Listens as long as it is held.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    target: SocketAddr,
    /// For connections to come, too.
    silence: Mutex<Silence>,
    connections: Mutex<Connections>,
}

#[derive(Default)]
struct Connections {
    next: u64,
    open: BTreeMap<u64, Connection>,
}

struct Connection {
    silence: watch::Sender<Silence>,
    forwarding: Option<AbortHandle>,
}

impl Proxy {
    /// Starts on a free port. Nobody need listen at the target yet.
    pub async fn start(target: SocketAddr) -> io::Result<Self> {
        Self::start_on(Ipv4Addr::LOCALHOST.into(), target).await
    }

    /// The same, heard at another address of this machine.
    pub async fn start_on(address: IpAddr, target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { target, silence: Mutex::default(), connections: Mutex::default() });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection; says how many there were.
    pub fn cut(&self) -> usize {
        let open = std::mem::take(&mut locked(&self.shared.connections).open);
        open.values().filter_map(|connection| connection.forwarding.as_ref()).for_each(AbortHandle::abort);
        open.len()
    }

    /// From now on these are silent, and new ones too. Told `Nothing`, what was held back is forwarded, late.
    pub fn silence(&self, silence: Silence) -> usize {
        *locked(&self.shared.silence) = silence;
        let connections = locked(&self.shared.connections);
        for connection in connections.open.values() {
            connection.silence.send_if_modified(|known| {
                let is_other = *known != Silence::ForGood && *known != silence;
                if is_other {
                    *known = silence;
                }
                is_other
            });
        }
        connections.open.len()
    }

    /// The connections of now are silent for good; new ones are forwarded.
    pub fn forget(&self) -> usize {
        let connections = locked(&self.shared.connections);
        for connection in connections.open.values() {
            connection.silence.send_replace(Silence::ForGood);
        }
        connections.open.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let silence = watch::Sender::new(*locked(&shared.silence));
        let number = {
            let mut connections = locked(&shared.connections);
            connections.next += 1;
            let number = connections.next;
            connections.open.insert(number, Connection { silence: silence.clone(), forwarding: None });
            number
        };
        let remembered = Arc::clone(&shared);
        let forwarding = tokio::spawn(async move {
            // An error is an end that went away.
            let _ = forward(stream, remembered.target, silence).await;
            locked(&remembered.connections).open.remove(&number);
        });
        if let Some(connection) = locked(&shared.connections).open.get_mut(&number) {
            connection.forwarding = Some(forwarding.abort_handle());
        }
    }
}

async fn forward(
    mut client: TcpStream,
    target: SocketAddr,
    silence: watch::Sender<Silence>,
) -> io::Result<()> {
    let mut server = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let mut silences = silence.subscribe();
    {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let holds_all = |silence| matches!(silence, Silence::Everything | Silence::ForGood);
        let asking = pump(from_client, to_server, silence.subscribe(), holds_all);
        let answering = pump(from_server, to_client, silence.subscribe(), |held| held != Silence::Nothing);
        // When one end closes, so does the other; but not while the news of it is held back.
        tokio::select! {
            asked = asking => return asked,
            answered = answering => return answered,
            _ = silences.wait_for(|silence| *silence == Silence::ForGood) => {}
        }
    }
    tokio::time::sleep(SERVER_NOTICES).await;
    drop(server);
    // The client's end stays as long as the client believes in it.
    let mut bytes = [0; 1024];
    while client.read(&mut bytes).await? > 0 {}
    Ok(())
}

async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut silence: watch::Receiver<Silence>,
    is_held_back: impl Fn(Silence) -> bool,
) -> io::Result<()> {
    let mut bytes = vec![0; 16 << 10];
    loop {
        let length = from.read(&mut bytes).await?;
        if silence.wait_for(|silence| !is_held_back(*silence)).await.is_err() || length == 0 {
            return Ok(());
        }
        to.write_all(&bytes[..length]).await?;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
