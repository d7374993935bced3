//! A worker that is cut off from its server for longer than its lease: its run is finished elsewhere, nothing that it
//! sends afterwards counts, and it works again once it is back. And one behind a network that loses packets. Real processes;
//! the cable between them is pulled, or bad.
//!
//! A test plays inside a network namespace with no route out (it starts itself there); the worker sits on an island,
//! a second namespace, with one cable to the server and another to the model and the tools, which stays.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]
#![allow(clippy::print_stderr, reason = "says why it was skipped")]

use std::{
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use ostler_client::{Client, EventBody, EventView, view::AttemptEnd};
use ostler_testing::{
    loopback::pause,
    model_server::{ModelServer, Script},
    program::{Program, find_binary},
    proxy::Proxy,
    tool_server::ToolServer,
};
use serde_json::{Value, json};
use tempfile::TempDir;

const INSIDE: &str = "OSTLER_TEST_INSIDE_NAMESPACE";

/// The one that is pulled.
const CABLE: &str = "server0";

const SERVER: &str = "10.77.0.1";
const PORT: u16 = 7070;
/// Where the model and the tools are heard.
const EFFECTS: &str = "10.78.0.1";
const LEASE: &str = "2s";
/// So many of all packets are lost, in each direction.
const LOSE: &str = "-A INPUT -i server0 -m statistic --mode random --probability 0.3 -j DROP";
/// Long enough for something that has to be said six times.
const LONG_LEASE: &str = "15s";
/// Shorter than the lease: the worker has its result, and nobody to tell.
const TOOL_MS: u32 = 1_000;

const TOKEN: &str = "cut-off-api-token-0123456789abcdef";
const WORKER_TOKEN: &str = "cut-off-worker-token-0123456789abcdef";

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_cut_off_for_longer_than_its_lease_is_fenced_and_works_again() {
    if is_inside("a_worker_cut_off_for_longer_than_its_lease_is_fenced_and_works_again", &["true"]) {
        be_cut_off().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_behind_a_network_that_loses_a_third_of_all_does_its_work_once() {
    // The kernel may lack this.
    let lose: Vec<_> = ["iptables"].into_iter().chain(LOSE.split(' ')).collect();
    if is_inside("a_worker_behind_a_network_that_loses_a_third_of_all_does_its_work_once", &lose) {
        lose_packets().await;
    }
}

/// Whether this process is in a namespace of its own. If not, the test is played in another one that is, unless none can be
/// made in which this command works.
fn is_inside(test: &str, needed: &[&str]) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let may = Command::new("unshare").arg("--net").args(needed).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        eprintln!(
            "SKIPPED: no network namespace can be made here, or {needed:?} does not work there; as root it may"
        );
        return false;
    }
    let this = std::env::current_exe().unwrap();
    let mut inside = Command::new("unshare");
    inside.arg("--net").arg(this).args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
    assert!(inside.status().unwrap().success(), "it failed inside its namespace");
    false
}

async fn lose_packets() {
    let island = Island::make();
    let world = World::start(&island, LONG_LEASE).await;
    let mut worker = world.worker("lossy").behind("nsenter", ["--target", &island.id(), "--net", "--"]);
    succeed(Command::new("iptables").args(LOSE.split(' ')));
    island.run("iptables", LOSE);
    worker.start().unwrap();
    let names = ["first", "second", "third"];
    for name in names {
        world.create(name).await;
    }
    for name in names {
        let log = world.log_of_ended(name).await;
        assert!(log.iter().map(|event| event.seq).eq(1..=log.len() as u64), "{name} has gaps");
        let steps: Vec<u32> = finished(&log).into_iter().map(|(step, _)| step).collect();
        assert_eq!(steps, [0, 1, 2], "{name}");
        assert_eq!(attempts(&log), ["lossy: -"], "{name}: its lease is long enough for that");
    }
    // What is said again on the way is not done again.
    let calls = world.tools.calls();
    assert_eq!(calls.values().map(|call| call.count).collect::<Vec<_>>(), [1; 3]);
    assert_eq!(world.model.desk().all().received, 2 * 3);
    assert!(n_dropped() > 0, "nothing was lost");
    assert_eq!(worker.stop().await.unwrap().code(), Some(0));
}

/// Packets that were lost on this side.
fn n_dropped() -> u64 {
    let listed = Command::new("iptables").args(["-L", "INPUT", "-v", "-n", "-x"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let rule = listed.lines().find(|line| line.contains("DROP") && line.contains(CABLE)).expect("the rule");
    rule.split_whitespace().next().unwrap().parse().unwrap()
}

async fn be_cut_off() {
    let island = Island::make();
    let world = World::start(&island, LEASE).await;
    let mut lonely = world.worker("lonely").behind("nsenter", ["--target", &island.id(), "--net", "--"]);
    lonely.start().unwrap();

    world.create("first").await;
    until("the tool is called", async || world.tools.desk().all().inflight == 1).await;
    island.pull_the_cable();
    let mut other = world.worker("other");
    other.start().unwrap();
    let log = world.log_of_ended("first").await;
    assert_eq!(attempts(&log), ["lonely: lost", "other: -"]);
    assert_eq!(finished(&log), [(0, 1), (1, 2), (2, 2)], "steps, and the attempts that finished them");
    // The lost attempt made the call, and it may be made again: twice under one request id, and no more.
    let calls = world.tools.calls();
    assert_eq!(calls.values().map(|call| (call.count, call.distinct_bodies)).collect::<Vec<_>>(), [(2, 1)]);
    let asked = world.model.desk().all().received;
    assert_eq!(asked, 2, "the model was asked again for what it had said");

    // What the worker sent into the void is delivered now.
    island.mend_the_cable();
    assert_eq!(other.stop().await.unwrap().code(), Some(0));
    world.create("second").await;
    let second = world.log_of_ended("second").await;
    assert_eq!(attempts(&second), ["lonely: -"]);
    assert_eq!(world.client.all_events("first").await.unwrap(), log, "a late write is in the log");
    assert_eq!(world.model.desk().all().received, asked + 2);
    assert!(n_lines(&lonely, "lost touch") > 0, "it did not notice");
    assert_eq!(lonely.stop().await.unwrap().code(), Some(0));
}

/// A namespace behind two cables.
struct Island(Child);

impl Island {
    fn make() -> Self {
        ip("link set lo up");
        let mut unshare = Command::new("unshare");
        let keeper = unshare.args(["--net", "sleep", "infinity"]).spawn().unwrap();
        let island = Self(keeper);
        let ours = std::fs::read_link("/proc/self/ns/net").unwrap();
        let its = format!("/proc/{}/ns/net", island.id());
        // It has entered its namespace once it is another one.
        while std::fs::read_link(&its).is_ok_and(|its| its == ours) {
            std::thread::yield_now();
        }
        island.inside("link set lo up");
        for (cable, net) in [(CABLE, "10.77.0"), ("effects0", "10.78.0")] {
            ip(&format!("link add {cable} type veth peer name {cable} netns {}", island.id()));
            ip(&format!("addr add {net}.1/24 dev {cable}"));
            ip(&format!("link set {cable} up"));
            island.inside(&format!("addr add {net}.2/24 dev {cable}"));
            island.inside(&format!("link set {cable} up"));
        }
        island
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }

    fn inside(&self, arguments: &str) {
        self.run("ip", arguments);
    }

    fn run(&self, program: &str, arguments: &str) {
        let mut nsenter = Command::new("nsenter");
        succeed(nsenter.args(["--target", &self.id(), "--net", program]).args(arguments.split(' ')));
    }

    fn pull_the_cable(&self) {
        ip(&format!("link set {CABLE} down"));
    }

    fn mend_the_cable(&self) {
        ip(&format!("link set {CABLE} up"));
    }
}

impl Drop for Island {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ip(arguments: &str) {
    succeed(Command::new("ip").args(arguments.split(' ')));
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The server, and the model and the tools, on this side of the cables.
struct World {
    folder: TempDir,
    client: Client,
    model: ModelServer,
    tools: ToolServer,
    _server: Program,
    _doors: [Proxy; 2],
}

impl World {
    async fn start(_: &Island, lease: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), TOKEN).unwrap();
        std::fs::write(folder.path().join("worker-token"), WORKER_TOKEN).unwrap();
        let model = ModelServer::start(Script::Plan).await.unwrap();
        let tools = ToolServer::start().await.unwrap();
        let (to_model, model_url) = door(&model.base_url()).await;
        let (to_tools, tool_url) = door(&tools.tool_url(&format!("slow-lookup?ms={TOOL_MS}"))).await;
        let address = SocketAddr::new(SERVER.parse().unwrap(), PORT);
        let mut server = program(&folder, "server", "server")
            .args(["--listen", &address.to_string(), "--insecure", "--lease", lease])
            .args(["--token-file".into(), folder.path().join("token")]);
        server.start().unwrap();
        server.wait_until_ready(address).await.unwrap();
        let client = Client::new(&format!("http://{address}"), TOKEN).unwrap();
        declare(&client, &model_url, &tool_url).await;
        Self { folder, client, model, tools, _server: server, _doors: [to_model, to_tools] }
    }

    fn worker(&self, name: &str) -> Program {
        let server = format!("http://{SERVER}:{PORT}");
        program(&self.folder, "worker", name).args(["--servers", &server, "--worker-name", name])
    }

    async fn create(&self, name: &str) {
        let plan = "plan: tool lookup {\"q\":\"a\"}, text=\"done\"";
        let spec = json!({ "agent": "helper", "idempotency_key": name, "input": { "message": plan } });
        self.client.create_task(&manifest("Task", name, spec)).await.unwrap();
    }

    async fn log_of_ended(&self, task: &str) -> Vec<EventView> {
        let is_ended = async || self.client.task(task).await.is_ok_and(|task| task.is_ended());
        until("the task ends", is_ended).await;
        assert!(self.client.task(task).await.unwrap().succeeded());
        self.client.all_events(task).await.unwrap()
    }
}

fn program(folder: &TempDir, command: &str, name: &str) -> Program {
    Program::new(&find_binary().unwrap(), folder.path().join(format!("{name}.log")))
        .args([command])
        .args(["--data".into(), folder.path().join(name)])
        .args(["--worker-token-file".into(), folder.path().join("worker-token")])
}

/// Lets those on the island reach what listens on loopback here; gives the address they know it by.
async fn door(url: &str) -> (Proxy, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let proxy = Proxy::start_on(EFFECTS.parse().unwrap(), address.parse().unwrap()).await.unwrap();
    let url = format!("http://{}/{path}", proxy.address());
    (proxy, url)
}

async fn declare(client: &Client, model_url: &str, tool_url: &str) {
    let endpoint = json!({
        "provider": "openai", "base_url": model_url, "default_model": "scripted", "allowPrivate": true,
    });
    let tool = json!({
        "type": "http", "endpoint": tool_url, "allowPrivate": true, "idempotent": true,
        "description": "Answers a question.",
        "input_schema": { "type": "object", "properties": { "q": { "type": "string" } } },
    });
    let agent = json!({ "model_ref": "scripted", "prompt": "Do as planned.", "tools": ["lookup"] });
    for (kind, name, spec) in
        [("ModelEndpoint", "scripted", endpoint), ("Tool", "lookup", tool), ("Agent", "helper", agent)]
    {
        client.apply(&manifest(kind, name, spec)).await.unwrap();
    }
}

fn manifest(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "ostler.dev/v1", "kind": kind, "metadata": { "name": name }, "spec": spec })
}

/// Who tried, and how it ended if it wasn't with the run.
fn attempts(events: &[EventView]) -> Vec<String> {
    let mut attempts: Vec<String> = Vec::new();
    for event in events {
        match &event.body {
            EventBody::AttemptStarted { worker, .. } => attempts.push(format!("{worker}: -")),
            EventBody::AttemptEnded { end, .. } => {
                let last = attempts.last_mut().expect("an attempt began");
                *last = last.replace('-', if *end == AttemptEnd::Lost { "lost" } else { "given up" });
            }
            _ => {}
        }
    }
    attempts
}

/// Each finished step with the attempt that finished it.
fn finished(events: &[EventView]) -> Vec<(u32, u32)> {
    let step = |event: &EventView| match &event.body {
        EventBody::StepFinished(step) => Some((step.step, step.attempt)),
        _ => None,
    };
    events.iter().filter_map(step).collect()
}

fn n_lines(program: &Program, words: &str) -> usize {
    let log = std::fs::read_to_string(program.log()).unwrap_or_default();
    log.lines().filter(|line| line.contains(words)).count()
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            pause(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "in vain: {what}");
}
