//! A PostgreSQL of one's own: Debian's, in a folder that is thrown away, heard on a socket in it.

mod ask;
mod place;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, OnceLock, mpsc},
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use ostler_link::TokioRuntime;
use ostler_store::postgres::{Options, PostgresStore};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::runtime::Handle;

pub use self::place::{Place, Visitor};

const TRIES: u32 = 3000;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Of the folders, with the number of the process they belong to behind it.
const PREFIX: &str = "ostler-postgres-";

/// Runs as long as it is held, and as long as the thread that started it.
pub struct Postgres {
    folder: TempDir,
    account: Account,
    setup: Setup,
    server: Child,
}

/// How to set a database up, beside what all have in common.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Lines of its configuration.
    pub settings: Vec<String>,
    /// A port of 127.0.0.1 to listen on, besides the socket.
    pub port: Option<u16>,
    /// All its files on a disk of their own of so many MiB, which takes a mount namespace to be thrown away.
    pub disk_mib: Option<u32>,
    /// Where its log goes; or else into its folder.
    pub log: Option<PathBuf>,
}

/// How to stop it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Connections are cut, what was committed is written out.
    Fast,
    /// Like a crash: the next start recovers.
    Immediate,
}

impl Postgres {
    /// Makes a database and starts it. `settings` are lines of its configuration.
    pub fn start(settings: &[&str]) -> anyhow::Result<Self> {
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        Self::start_with(Setup { settings, ..Setup::default() })
    }

    pub fn start_with(setup: Setup) -> anyhow::Result<Self> {
        remove_leftovers();
        let folder = TempDir::with_prefix(format!("{PREFIX}{}-", std::process::id()))?;
        if let Some(mib) = setup.disk_mib {
            mount_disk(folder.path(), mib)?;
        }
        let account = Account::find()?;
        account.own(folder.path())?;
        let data = folder.path().join("data");
        let made = account
            .command("initdb")?
            .args([
                "--no-sync",
                "--auth=trust",
                "--username=ostler",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "-D",
            ])
            .arg(&data)
            .output()
            .context("initdb can't be run")?;
        ensure!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        let server = launch(&account, folder.path(), &setup)?;
        let mut postgres = Self { folder, account, setup, server };
        postgres.wait_until_ready()?;
        Ok(postgres)
    }

    pub fn signal(&self, shutdown: Shutdown) -> anyhow::Result<()> {
        let signal = match shutdown {
            Shutdown::Fast => Signal::INT,
            Shutdown::Immediate => Signal::QUIT,
        };
        Ok(kill_process(Pid::from_child(&self.server), signal)?)
    }

    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.server.try_wait()?.is_some())
    }

    /// Starts it again, once it has ended.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        self.server = launch(&self.account, self.folder.path(), &self.setup)?;
        Ok(())
    }

    pub fn is_ready(&self) -> anyhow::Result<bool> {
        let ready = bin()?.join("pg_isready");
        let port = self.port().to_string();
        Ok(Command::new(ready).args(["-q", "-p", &port, "-h"]).arg(self.folder.path()).status()?.success())
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// One for all tests of a program. It needs no disk that survives anything.
    fn shared() -> anyhow::Result<&'static str> {
        static URL: OnceLock<Result<String, String>> = OnceLock::new();
        let url = URL.get_or_init(|| {
            let (sender, receiver) = mpsc::channel();
            // It ends with the thread that started it, and tests' threads come and go.
            thread::spawn(move || match Postgres::start(&["fsync=off", "max_connections=500"]) {
                Ok(postgres) => {
                    let made = postgres.ask(place::STRANGER).map_err(|error| format!("{error:#}"));
                    let _ = sender.send(made.map(|_| postgres.url()));
                    loop {
                        thread::park();
                    }
                }
                Err(error) => drop(sender.send(Err(format!("{error:#}")))),
            });
            receiver.recv().unwrap_or_else(|_| Err("the thread of PostgreSQL ended".into()))
        });
        url.as_deref().map_err(|error| anyhow::anyhow!("no PostgreSQL: {error}"))
    }

    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// Of one of its databases.
    pub fn url_of(&self, database: &str) -> String {
        let host = self.folder.path().to_string_lossy().replace('/', "%2F");
        format!("postgres://ostler@{host}:{}/{database}", self.port())
    }

    fn port(&self) -> u16 {
        self.setup.port.unwrap_or(5432)
    }

    fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        for _ in 0..TRIES {
            if self.is_ready()? {
                return Ok(());
            }
            if let Some(status) = self.server.try_wait()? {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                bail!("PostgreSQL ended with {status}: {log}");
            }
            thread::sleep(BETWEEN_TRIES);
        }
        bail!("PostgreSQL was asked {TRIES} times and is not ready")
    }
}

fn launch(account: &Account, folder: &Path, setup: &Setup) -> anyhow::Result<Child> {
    let log = setup.log.clone().unwrap_or_else(|| folder.join("log"));
    let log = fs::OpenOptions::new().create(true).append(true).open(log)?;
    let mut command = account.command("postgres")?;
    command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    match setup.port {
        Some(port) => command.args(["-c", "listen_addresses=127.0.0.1", "-c", &format!("port={port}")]),
        None => command.args(["-c", "listen_addresses="]),
    };
    for setting in &setup.settings {
        command.args(["-c", setting]);
    }
    Ok(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?)
}

/// A small disk in memory. Whoever calls this has a mount namespace of its own, and the disk goes with it.
fn mount_disk(folder: &Path, mib: u32) -> anyhow::Result<()> {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"]).arg(folder);
    let made = command.output().context("mount can't be run")?;
    ensure!(made.status.success(), "no disk of its own: {}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}

/// The store at an address, as a server opens it.
pub async fn open(url: &str) -> anyhow::Result<PostgresStore> {
    open_with(Options::at(url)?).await
}

async fn open_with(options: Options) -> anyhow::Result<PostgresStore> {
    Ok(PostgresStore::open(options, Arc::new(TokioRuntime::new(Handle::current()))).await?)
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// What programs that ended left behind: a database that all tests share is not dropped.
fn remove_leftovers() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Who the database runs as: it refuses to run as root.
struct Account {
    /// Of the user `postgres`, where we are root.
    ids: Option<(u32, u32)>,
}

impl Account {
    fn find() -> anyhow::Result<Self> {
        if !rustix::process::getuid().is_root() {
            return Ok(Self { ids: None });
        }
        let users = fs::read_to_string("/etc/passwd")?;
        let user = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let is_postgres = fields.next() == Some("postgres");
            let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
            is_postgres.then_some((uid, gid))
        });
        Ok(Self { ids: Some(user.context("there is no user postgres")?) })
    }

    fn own(&self, folder: &Path) -> anyhow::Result<()> {
        if let Some((uid, gid)) = self.ids {
            chown(folder, Some(uid), Some(gid))?;
        }
        Ok(fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?)
    }

    /// One of PostgreSQL's programs, that ends when we do.
    fn command(&self, program: &str) -> anyhow::Result<Command> {
        let mut command = Command::new("setpriv");
        command.arg("--pdeathsig=KILL");
        if let Some((uid, gid)) = self.ids {
            command.args([format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".to_owned()]);
        }
        command.arg(bin()?.join(program)).current_dir("/");
        Ok(command)
    }
}

/// Where Debian keeps the programs of its newest PostgreSQL.
fn bin() -> anyhow::Result<PathBuf> {
    let versions =
        fs::read_dir("/usr/lib/postgresql").context("PostgreSQL is not installed: scripts/setup.sh")?;
    let version = versions.filter_map(|version| Some(version.ok()?.path())).max();
    Ok(version.context("PostgreSQL is not installed")?.join("bin"))
}
