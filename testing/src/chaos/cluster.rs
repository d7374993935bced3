//! Servers and workers on one PostgreSQL, with a proxy in every connection between them.

use std::{fs, net::SocketAddr, path::Path, sync::Arc};

use anyhow::Context as _;
use ostler_client::Client;
use ostler_control::{Control, ControlConfig};
use ostler_link::TokioRuntime;
use ostler_store::PostgresStore;
use tokio::{runtime::Handle, sync::Mutex};

use super::{
    LEASE, Settings,
    database::Database,
    member::{Member, Role},
};
use crate::{
    load::{Meddler, Pace},
    postgres,
    program::{Program, free_address},
    proxy::{Proxy, Silence},
};

/// Runs that a worker takes at once.
const SLOTS: &str = "24";

const TOKEN: &str = "chaos-api-token-0123456789abcdef";
const WORKER_TOKEN: &str = "chaos-worker-token-0123456789abcdef";

/// Enough to tell afterwards who did what.
const LOG: &str = "info,ostler_worker=debug,ostler_link=debug,ostler_control=debug,ostler_store=debug";

pub struct Cluster {
    pub database: Database,
    pub members: Vec<Mutex<Member>>,
    /// Between each server and the database.
    pub to_database: Vec<Proxy>,
    /// Between each worker and each server.
    pub links: Vec<Proxy>,
    servers: Vec<SocketAddr>,
}

impl Cluster {
    pub async fn start(settings: &Settings, n_servers: usize, n_workers: usize) -> anyhow::Result<Self> {
        let folder = &settings.folder;
        fs::create_dir_all(folder).context("the folder can't be made")?;
        fs::write(folder.join("token"), TOKEN)?;
        fs::write(folder.join("worker-token"), WORKER_TOKEN)?;
        let port = free_address().await?;
        let log = folder.join("postgres.log");
        let database = Database::start(port.port(), log, settings.has_own_mounts).await?;
        let mut cluster = Self {
            database,
            members: Vec::new(),
            to_database: Vec::new(),
            links: Vec::new(),
            servers: Vec::new(),
        };
        for number in 1..=n_servers {
            cluster.add_server(settings, number, port).await?;
        }
        for number in 1..=n_workers {
            cluster.add_worker(settings, number).await?;
        }
        for member in &cluster.members {
            let mut member = member.lock().await;
            member.start()?;
            member.wait_until_ready().await?;
        }
        Ok(cluster)
    }

    async fn add_server(
        &mut self,
        settings: &Settings,
        number: usize,
        port: SocketAddr,
    ) -> anyhow::Result<()> {
        let proxy = Proxy::start(port).await?;
        let address = free_address().await?;
        let name = format!("server-{number}");
        let store = format!("postgres://ostler@{}/postgres", proxy.address());
        let program = program(settings, "server", &name)
            .args(["--listen", &address.to_string(), "--lease", &format!("{}s", LEASE.as_secs())])
            .args(["--token-file".into(), settings.folder.join("token")])
            .env("OSTLER_STORE", store);
        let mut member = Member::new(Role::Server, &name, &settings.folder, program)?;
        member.address = Some(address);
        self.members.push(Mutex::new(member));
        self.to_database.push(proxy);
        self.servers.push(address);
        Ok(())
    }

    async fn add_worker(&mut self, settings: &Settings, number: usize) -> anyhow::Result<()> {
        let mut urls = Vec::new();
        // Not all of them begin with the same one.
        for server in self.servers.iter().cycle().skip(number).take(self.servers.len()) {
            let proxy = Proxy::start(*server).await?;
            urls.push(format!("http://{}", proxy.address()));
            self.links.push(proxy);
        }
        let name = format!("worker-{number}");
        let program = program(settings, "worker", &name).args([
            "--servers",
            &urls.join(","),
            "--worker-name",
            &name,
            "--slots",
            SLOTS,
        ]);
        self.members.push(Mutex::new(Member::new(Role::Worker, &name, &settings.folder, program)?));
        Ok(())
    }

    /// One for each server, straight to it.
    pub fn clients(&self) -> anyhow::Result<Vec<Client>> {
        let client = |address: &SocketAddr| Ok(Client::new(&format!("http://{address}"), TOKEN)?);
        self.servers.iter().map(client).collect()
    }

    /// As one who watches opens it.
    pub async fn store(&self) -> anyhow::Result<PostgresStore> {
        postgres::open(self.database.url()).await
    }

    /// As a third server would, that serves nobody: for what there is no route for yet.
    pub async fn meddler(&self, pace: Pace) -> anyhow::Result<Meddler> {
        let runtime = Arc::new(TokioRuntime::new(Handle::current()));
        let control = Control::new(Arc::new(self.store().await?), runtime, ControlConfig::default());
        Ok(Meddler::new(pace.life(), Some(control)))
    }

    /// Undoes all that may still be wrong.
    pub async fn calm(&self) -> anyhow::Result<()> {
        for proxy in self.links.iter().chain(&self.to_database) {
            proxy.silence(Silence::Nothing);
        }
        self.database.bring_back().await?;
        for member in &self.members {
            let mut member = member.lock().await;
            member.set_clock(0)?;
            member.look_after()?;
        }
        Ok(())
    }

    /// Starts again who ended by itself; who is being dealt with is left alone.
    pub fn look_after_members(&self) -> anyhow::Result<()> {
        for member in &self.members {
            if let Ok(mut member) = member.try_lock() {
                member.look_after()?;
            }
        }
        Ok(())
    }

    pub async fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        for member in &self.members {
            complaints.extend(member.lock().await.complaints());
        }
        complaints
    }

    pub async fn n_false_starts(&self) -> u32 {
        let mut n_false_starts = 0;
        for member in &self.members {
            n_false_starts += member.lock().await.n_false_starts();
        }
        n_false_starts
    }
}

fn program(settings: &Settings, command: &str, name: &str) -> Program {
    let folder: &Path = &settings.folder;
    Program::new(&settings.binary, folder.join(format!("{name}.log")))
        .args([command])
        .args(["--data".into(), folder.join(name)])
        .args(["--worker-token-file".into(), folder.join("worker-token")])
        .env("OSTLER_LOG", LOG)
}
