//! One version per dependency: a library that our crates name themselves is built once. Two versions that
//! only others' dependencies ask for are not ours to settle and pass.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The versions that our crates resolve to, by library.
pub type Versions = BTreeMap<String, BTreeSet<String>>;

/// Every library we name in more than one version.
pub fn check(versions: &Versions) -> Vec<String> {
    let twice = versions.iter().filter(|(_, versions)| versions.len() > 1);
    twice.map(|(name, versions)| format!("{name}: {}", join(versions))).collect()
}

fn join(versions: &BTreeSet<String>) -> String {
    versions.iter().map(String::as_str).collect::<Vec<_>>().join(" and ")
}

/// Reads the answer of `cargo metadata`, which holds the whole resolved tree.
pub fn direct_versions(metadata: &Value) -> Result<Versions> {
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let named: BTreeMap<&str, (&str, &str)> = packages.iter().filter_map(named).collect();
    let ours = metadata["workspace_members"].as_array().context("cargo metadata has no members")?;
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata resolved nothing")?;
    let mut versions = Versions::new();
    for node in nodes.iter().filter(|node| ours.contains(&node["id"])) {
        let dependencies = node["dependencies"].as_array().context("a node has no dependencies")?;
        for (name, version) in dependencies.iter().filter_map(|id| named.get(id.as_str()?)) {
            versions.entry((*name).to_owned()).or_default().insert((*version).to_owned());
        }
    }
    Ok(versions)
}

fn named(package: &Value) -> Option<(&str, (&str, &str))> {
    Some((package["id"].as_str()?, (package["name"].as_str()?, package["version"].as_str()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check_tree(second_user: &str) -> Vec<String> {
        let metadata = json!({
            "packages": [
                {"id": "a", "name": "ostler-a", "version": "0.1.0"},
                {"id": "b", "name": "ostler-b", "version": "0.1.0"},
                {"id": "other", "name": "other", "version": "3.0.0"},
                {"id": "http1", "name": "http", "version": "1.0.0"},
                {"id": "http0", "name": "http", "version": "0.2.0"},
            ],
            "workspace_members": ["a", "b"],
            "resolve": {"nodes": [
                {"id": "a", "dependencies": ["http1", "other"]},
                {"id": second_user, "dependencies": ["http0"]},
            ]},
        });
        check(&direct_versions(&metadata).expect("a tree"))
    }

    #[test]
    fn two_versions_named_by_us_are_found() {
        assert_eq!(check_tree("b"), ["http: 0.2.0 and 1.0.0"]);
    }

    #[test]
    fn a_second_version_that_another_library_brings_passes() {
        assert_eq!(check_tree("other"), Vec::<String>::new());
    }
}
