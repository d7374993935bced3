//! What a server needs to know to start. Where it comes from is the caller's matter.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use crate::StoreAddress;

#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to listen: an address of this machine's loopback. Port 0 takes any that is free.
    pub listen: SocketAddr,
    /// The folder of the token and `server.json`, and of the store unless that is elsewhere. Made if it isn't there.
    pub data: PathBuf,
    pub store: StoreAddress,
    /// How long a worker may be silent before its runs are given to others.
    pub lease: Duration,
    /// A backup to put in the store's place before it is opened.
    pub restore: Option<PathBuf>,
    /// Replace a store that is there already; it is kept beside.
    pub force_restore: bool,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7070)),
            data: PathBuf::from(".ostler"),
            store: StoreAddress::default(),
            lease: Duration::from_secs(30),
            restore: None,
            force_restore: false,
        }
    }
}
