//! The namespaces. The callers' has a cable to the world's and a route for everything through it; the world's has the
//! cable and nothing else, and takes every address there is for its own. So no packet leaves the two, and if either had
//! another way out, nothing would be played.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tokio::net::TcpListener;

use super::{Seen, attempt::REDIRECTOR, world::Report};
use crate::loopback::pause;

const INSIDE: &str = "OSTLER_SSRF_INSIDE";

const CABLE: &str = "world0";

/// The world's end of the cable.
pub(crate) const NAMESERVER: &str = "10.99.0.1";

/// How long a connection that was begun may take to be seen.
const PATIENCE: Duration = Duration::from_secs(4);

pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs this program again in namespaces of its own; `None` if none can be made here.
pub fn enter() -> Result<Option<ExitStatus>> {
    let this = std::env::current_exe()?;
    for ways in [&["--net", "--mount"][..], &["--user", "--map-root-user", "--net", "--mount"]] {
        let trial = Command::new("unshare").args(ways).arg("true").stderr(Stdio::null()).status();
        if trial.is_ok_and(|status| status.success()) {
            let mut inside = Command::new("unshare");
            // A client that obeyed these would go to where nobody may go.
            for variable in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
                inside.env(variable, "http://10.66.66.66:80");
            }
            return Ok(Some(inside.args(ways).arg(this).env(INSIDE, "1").status()?));
        }
    }
    Ok(None)
}

pub(crate) struct Place {
    world: Child,
    to_world: ChildStdin,
    from_world: BufReader<ChildStdout>,
    /// Who came to this machine itself.
    here: Arc<Mutex<Vec<SocketAddr>>>,
    n_names: usize,
}

impl Place {
    pub(crate) fn make(ports: &[u16]) -> Result<Self> {
        no_way_out("lo")?;
        ip("link set lo up")?;
        let mut unshare = Command::new("unshare");
        unshare.arg("--net").arg(std::env::current_exe()?).arg("--world");
        let ports_text = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
        unshare.arg(ports_text).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut world = unshare.spawn().context("the world can't be made")?;
        let to_world = world.stdin.take().context("no way to talk to the world")?;
        let from_world = BufReader::new(world.stdout.take().context("no way to hear the world")?);
        let here = Arc::default();
        let mut place = Self { world, to_world, from_world, here, n_names: 0 };
        ensure!(place.hear()? == "born", "the world did not come to be");
        place.connect()?;
        ensure!(place.ask("listen")? == "ready", "the world does not listen");
        place.listen_here(ports)?;
        ask_the_world_for_names()?;
        Ok(place)
    }

    fn connect(&self) -> Result<()> {
        let id = self.world.id().to_string();
        let there = |arguments: &str| {
            let mut nsenter = Command::new("nsenter");
            succeed(nsenter.args(["--target", &id, "--net", "ip"]).args(arguments.split(' ')))
        };
        ip(&format!("link add {CABLE} type veth peer name {CABLE} netns {id}"))?;
        there("link set lo up")?;
        for (end, host) in [(&there as &dyn Fn(&str) -> Result<()>, 1), (&ip, 2)] {
            end(&format!("link set {CABLE} up"))?;
            end(&format!("addr add 10.99.0.{host}/30 dev {CABLE}"))?;
            end(&format!("addr add fd99::{host}/64 dev {CABLE} nodad"))?;
        }
        there("route add local default dev lo table main")?;
        there("-6 route add local default dev lo table main")?;
        ip("route add default via 10.99.0.1")?;
        ip("-6 route add default via fd99::1")?;
        no_way_out(CABLE)
    }

    /// Hears whoever calls this machine: loopback, and every other address of its own.
    #[expect(clippy::disallowed_methods, reason = "the hosts of the tricks are outside any simulation")]
    fn listen_here(&self, ports: &[u16]) -> Result<()> {
        for port in ports {
            let listener = std::net::TcpListener::bind(format!("[::]:{port}"))?;
            listener.set_nonblocking(true)?;
            let (listener, here) = (TcpListener::from_std(listener)?, Arc::clone(&self.here));
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let address = stream.local_addr();
                    here.lock().unwrap_or_else(PoisonError::into_inner).extend(address);
                    tokio::spawn(super::world::answer(stream));
                }
            });
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        self.from_world.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn ask(&mut self, what: &str) -> Result<String> {
        writeln!(self.to_world, "{what}")?;
        self.to_world.flush()?;
        self.hear()
    }

    pub(crate) fn new_name(&mut self) -> String {
        self.n_names += 1;
        format!("n{}", self.n_names)
    }

    /// How many connections were ever begun in this namespace, by the kernel's own count.
    pub(crate) fn n_begun(&self) -> Result<u64> {
        let text = fs::read_to_string("/proc/self/net/snmp")?;
        let mut rows = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
        let (names, values) = rows.next().zip(rows.next()).context("the kernel does not count")?;
        let index = names.split(' ').position(|name| name == "ActiveOpens").context("no such count")?;
        Ok(values.split(' ').nth(index).context("no such count")?.parse()?)
    }

    /// Gathers who came since the kernel had begun `before` connections, once all of them were seen somewhere, or have
    /// had the time. `n_redirectors` of them went to the redirector.
    pub(crate) async fn settle(&mut self, before: u64, n_redirectors: usize) -> Result<Seen> {
        let (mut came, mut n_streams) = (Vec::new(), 0);
        let mut waited = Duration::ZERO;
        let n_unseen = loop {
            let report: Report = serde_json::from_str(&self.ask("report")?)?;
            came.extend(report.came);
            n_streams += report.n_streams;
            came.append(&mut *self.here.lock().unwrap_or_else(PoisonError::into_inner));
            let n_unseen = (self.n_begun()? - before).saturating_sub(came.len() as u64 + n_streams);
            if n_unseen == 0 || waited > PATIENCE {
                break n_unseen;
            }
            pause(Duration::from_millis(2)).await;
            waited += Duration::from_millis(2);
        };
        let is_redirector = |address: &SocketAddr| address.ip().to_canonical().to_string() == REDIRECTOR;
        let n_came = came.iter().filter(|address| is_redirector(address)).count();
        // More than that, if it sent somebody to itself.
        ensure!(n_came >= n_redirectors, "the redirector was asked {n_came} times of {n_redirectors}");
        came.retain(|address| !is_redirector(address));
        Ok(Seen { came, n_unseen })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.world.kill();
        let _ = self.world.wait();
    }
}

/// Refuses to go on unless `only` and loopback are all the links there are here.
fn no_way_out(only: &str) -> Result<()> {
    let devices = fs::read_to_string("/proc/self/net/dev")?;
    let links = devices.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    let others: Vec<&str> = links.filter(|name| !["lo", only].contains(name)).collect();
    ensure!(others.is_empty(), "there may be a way out of here by {others:?}: nothing is played");
    Ok(())
}

/// The system's resolver asks the world, in this mount namespace.
fn ask_the_world_for_names() -> Result<()> {
    let folder = tempfile::tempdir()?.keep();
    let file = folder.join("resolv.conf");
    fs::write(&file, format!("nameserver {NAMESERVER}\noptions timeout:1 attempts:2\n"))?;
    succeed(Command::new("mount").arg("--bind").arg(&file).arg("/etc/resolv.conf"))?;
    // What is mounted stays there; the folder need not.
    let _ = fs::remove_dir_all(folder);
    Ok(())
}

fn ip(arguments: &str) -> Result<()> {
    succeed(Command::new("ip").args(arguments.split(' ')))
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
