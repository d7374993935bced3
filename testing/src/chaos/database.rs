//! What is done to the database.

use std::{
    fs,
    io::{self, Write as _},
    time::Duration,
};

use anyhow::Context as _;
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls};

use crate::{
    loopback::pause,
    postgres::{Postgres, Setup, Shutdown},
};

/// The disk of the database.
const DISK_MIB: u32 = 512;

const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// A database that is not back by then won't come.
const BACK_WITHIN: Duration = Duration::from_secs(60);

pub struct Database {
    postgres: Mutex<Postgres>,
    url: String,
    has_disk: bool,
}

impl Database {
    pub async fn start(port: u16, log: std::path::PathBuf, has_disk: bool) -> anyhow::Result<Self> {
        // A little more than two servers and who watches need, so that it takes not many to exhaust them; and a log that
        // is written over before it fills the disk.
        let settings =
            ["max_connections=75", "shared_buffers=32MB", "min_wal_size=32MB", "max_wal_size=96MB"];
        let setup = Setup {
            settings: settings.map(str::to_owned).to_vec(),
            port: Some(port),
            disk_mib: has_disk.then_some(DISK_MIB),
            log: Some(log),
        };
        let postgres = Postgres::start_with(setup)?;
        let url = postgres.url();
        Ok(Self { postgres: Mutex::new(postgres), url, has_disk })
    }

    /// Where it is heard without anybody in between.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn has_disk(&self) -> bool {
        self.has_disk
    }

    pub async fn restart(&self, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut postgres = self.postgres.lock().await;
        postgres.signal(shutdown)?;
        while !postgres.has_ended()? {
            pause(BETWEEN_LOOKS).await;
        }
        drop(postgres);
        self.bring_back().await
    }

    /// Waits until it is ready, and starts it if it isn't there.
    pub async fn bring_back(&self) -> anyhow::Result<()> {
        let mut postgres = self.postgres.lock().await;
        let bringing = async {
            loop {
                if postgres.has_ended()? {
                    postgres.start_again()?;
                }
                if postgres.is_ready()? {
                    return Ok(());
                }
                pause(BETWEEN_LOOKS).await;
            }
        };
        tokio::time::timeout(BACK_WITHIN, bringing).await.context("the database does not come back")?
    }

    /// Ends a part of the servers' connections in the middle of whatever they do.
    pub async fn kill_backends(&self, percent: u64) -> anyhow::Result<()> {
        let client = self.connect().await?;
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
            WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() * 100 < $1::bigint";
        client.query_one(sql, &[&i64::try_from(percent)?]).await?;
        Ok(())
    }

    /// Takes every connection that is left, again and again as others give theirs up.
    pub async fn exhaust(&self, for_so_long: Duration) {
        let mut taken = Vec::new();
        let taking = async {
            loop {
                match self.connect().await {
                    Ok(client) => taken.push(client),
                    Err(_) => pause(BETWEEN_LOOKS).await,
                }
            }
        };
        let _: Result<(), _> = tokio::time::timeout(for_so_long, taking).await;
    }

    /// Leaves no room on its disk, and after a while takes away what filled it.
    pub async fn fill(&self, for_so_long: Duration) -> anyhow::Result<()> {
        let ballast = self.postgres.lock().await.folder().join("ballast");
        let mut file = fs::File::create(&ballast)?;
        let block = vec![0; 64 << 10];
        let began = tokio::time::Instant::now();
        while began.elapsed() < for_so_long {
            match file.write_all(&block) {
                Ok(()) => {}
                // The database gave something back, perhaps: that is taken too.
                Err(error) if error.kind() == io::ErrorKind::StorageFull => pause(BETWEEN_LOOKS).await,
                Err(error) => return Err(error.into()),
            }
        }
        fs::remove_file(&ballast)?;
        self.bring_back().await
    }

    async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}
