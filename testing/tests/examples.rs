//! What stands under `examples/` works as it stands: every manifest is valid, applies and runs, and every command of
//! a README does what it says. Found by walking the folder, so that a new example is covered by itself.

#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Output,
};

use ostler_spec::{Kind, Parsed, Resource, Spec, TaskMode, parse_with_notices};
use ostler_testing::{
    program::{Program, find_binary, free_address},
    tool_server::ToolServer,
};
use tempfile::TempDir;
use tokio::process::Command;

/// Where the manifests expect the tool server of the testing ground.
const TOOL_SERVER: &str = "http://127.0.0.1:8890";

/// A worker that offers what any example asks for.
const OFFER: [&str; 6] = ["--region", "eu-west", "--capabilities", "gpu", "--models", "mock-1"];

#[tokio::test]
async fn every_manifest_is_valid_applies_and_runs() {
    let ground = Ground::start().await;
    for example in ground.examples() {
        let declared = example.declared();
        let namespace = format!("whole-{}", example.name);
        let applied = ground.shell(&namespace, &example.apply()).await;
        assert!(applied.status.success(), "{}: {applied:?}", example.name);
        for task in declared.iter().filter(|resource| is_to_run(resource)) {
            ground.expect_success(&namespace, &task.metadata.name).await;
        }
        // Who has no task of its own is given one.
        for agent in declared.iter().filter(|resource| resource.kind() == Kind::Agent) {
            let name = &agent.metadata.name;
            let ran = ground.shell(&namespace, &format!("ostler run {name} 'What can you do?'")).await;
            assert!(ran.status.success(), "{}: {ran:?}", example.name);
        }
    }
}

#[tokio::test]
async fn all_of_them_fit_into_one_namespace() {
    let ground = Ground::start().await;
    let checked = ground.shell("together", "ostler validate examples").await;
    assert!(checked.status.success(), "{checked:?}");
    let applied = ground.shell("together", "ostler apply -f examples").await;
    assert!(applied.status.success(), "{applied:?}");
}

#[tokio::test]
async fn every_readme_says_what_works() {
    let ground = Ground::start().await;
    for example in ground.examples() {
        let readme =
            fs::read_to_string(example.folder.join("README.md")).expect("each example has a README.md");
        let lines = readme.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 12, "{}: its README has {lines} lines", example.name);
        let commands: Vec<&str> = readme
            .lines()
            .filter_map(|line| line.strip_prefix("    "))
            .filter(|line| line.starts_with("ostler "))
            .collect();
        assert!(!commands.is_empty(), "{}: its README has no command", example.name);
        let ran = ground.shell(&example.name, &commands.join("\n")).await;
        assert!(ran.status.success(), "{}: {ran:?}", example.name);
    }
}

/// A server with a worker, a tool server, and the examples with that one's address in them.
struct Ground {
    folder: TempDir,
    binary: PathBuf,
    address: SocketAddr,
    _server: Program,
    _tools: ToolServer,
}

struct Example {
    name: String,
    folder: PathBuf,
}

impl Ground {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let binary = find_binary().expect("the binary");
        let tools = ToolServer::start().await.expect("a tool server");
        copy(Path::new("../examples"), &folder.path().join("examples"), &tools.base_url());
        let address = free_address().await.expect("a port");
        let data = folder.path().join(".ostler");
        let mut server = Program::new(&binary, folder.path().join("server.log"))
            .args(["--data", &data.to_string_lossy(), "up", "--listen", &address.to_string()])
            .args(OFFER);
        server.start().expect("it starts");
        server.wait_until_ready(address).await.expect("it gets ready");
        Self { folder, binary, address, _server: server, _tools: tools }
    }

    fn examples(&self) -> Vec<Example> {
        let folders = fs::read_dir(self.folder.path().join("examples")).expect("the examples");
        let mut examples: Vec<Example> = folders
            .map(|entry| entry.expect("an entry").path())
            .map(|folder| Example {
                name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                folder,
            })
            .collect();
        examples.sort_by(|one, other| one.name.cmp(&other.name));
        assert!(examples.len() >= 12, "only {} examples found", examples.len());
        examples
    }

    /// As a person would type it, in the folder above `examples`.
    async fn shell(&self, namespace: &str, commands: &str) -> Output {
        let programs = self.binary.parent().unwrap_or(Path::new("."));
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        for name in ["DATA", "TOKEN", "PROFILE", "LOG"] {
            shell.env_remove(format!("OSTLER_{name}"));
        }
        shell.args(["-ec", commands]).current_dir(self.folder.path());
        // It answers a moment before it has written down where it listens.
        shell.env("OSTLER_SERVER", format!("http://{}", self.address));
        shell.env("PATH", path).env("OSTLER_NAMESPACE", namespace);
        shell.output().await.expect("a shell")
    }

    async fn expect_success(&self, namespace: &str, task: &str) {
        let followed = self.shell(namespace, &format!("ostler logs -f {task}")).await;
        assert!(followed.status.success(), "{namespace}/{task}: {followed:?}");
        let shown = self.shell(namespace, &format!("ostler get task {task} -o json")).await;
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        assert_eq!(shown["status"]["state"], "succeeded", "{namespace}/{task}: {shown:#}");
    }
}

impl Example {
    /// Puts everything in place, and starts its tasks: they are named one by one.
    fn apply(&self) -> String {
        let files = manifests(&self.folder).into_iter().map(|path| format!(" -f '{}'", path.display()));
        format!("ostler apply{}", files.collect::<String>())
    }

    /// Everything that its manifests declare, all of which this version can do.
    fn declared(&self) -> Vec<Resource> {
        let mut declared = Vec::new();
        for path in manifests(&self.folder) {
            let text = fs::read_to_string(&path).expect("a manifest");
            let Parsed { resources, notices, .. } = parse_with_notices(&path.to_string_lossy(), &text)
                .unwrap_or_else(|problems| panic!("{problems:#?}"));
            assert!(notices.is_empty(), "{notices:#?}");
            declared.extend(resources);
        }
        assert!(!declared.is_empty(), "{} declares nothing", self.name);
        declared
    }
}

fn is_to_run(resource: &Resource) -> bool {
    matches!(&resource.spec, Spec::Task(task) if task.mode == TaskMode::Run)
}

fn manifests(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("an example");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths
}

/// The whole folder, with another address of the tool server.
fn copy(from: &Path, to: &Path, tool_server: &str) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("the examples") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &target, tool_server);
        } else {
            let text = fs::read_to_string(&path).expect("a text");
            fs::write(&target, text.replace(TOOL_SERVER, tool_server)).expect("a copy");
        }
    }
}
