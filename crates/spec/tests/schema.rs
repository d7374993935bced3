//! The schemas under `schema/` are those of this version, and mean what the reader means: each kind's file under
//! `full/` uses everything there is, is taken by both, and nothing stands in a schema that it doesn't use.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at once")]

use std::collections::BTreeSet;
use std::{env, fs};

use ostler_spec::{Kind, Resource, kinds, parse, schema};
use serde_json::{Value, json};

fn full(kind: Kind) -> String {
    let path = format!("tests/full/{}.yaml", kind.singular());
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn documents(kind: Kind) -> Vec<Value> {
    let text = full(kind);
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

fn check_file(name: &str, schema: &Value) {
    let path = format!("../../schema/{name}");
    let text = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if env::var_os("WRITE_FIXTURES").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "{path} is not this version's: WRITE_FIXTURES=1 cargo test -p ostler-spec --test schema"
    );
}

#[test]
fn the_files_are_of_this_version() {
    for info in kinds() {
        check_file(&schema::file_name(info.kind), &schema::of(info.kind));
    }
    check_file("manifest.json", &schema::of_all());
    let files = fs::read_dir("../../schema").unwrap().count();
    // One for all of them, and the description of the API.
    assert_eq!(files, kinds().len() + 2, "a file of a kind that is no more");
}

#[test]
fn full_manifests_are_taken_by_reader_and_schema_alike() {
    for info in kinds() {
        let name = format!("{}.yaml", info.kind.singular());
        let resources = parse(&name, &full(info.kind)).unwrap_or_else(|problems| panic!("{problems:#?}"));
        assert!(resources.iter().all(|resource| resource.kind() == info.kind), "{name}");
        let validator = jsonschema::validator_for(&schema::of(info.kind)).unwrap();
        let wire = resources.iter().map(|resource| serde_json::to_value(resource).unwrap());
        for document in documents(info.kind).into_iter().chain(wire) {
            let errors: Vec<String> = validator
                .iter_errors(&document)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{name}: {errors:#?}");
        }
    }
}

#[test]
fn examples_are_taken_by_reader_and_schema_alike() {
    let mut count = 0;
    for folder in fs::read_dir("../../examples").unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).into_iter().flatten() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                count += 1;
                check_alike(&path.to_string_lossy(), &fs::read_to_string(&path).unwrap());
            }
        }
    }
    assert!(count > 20, "only {count} manifests found");
}

/// Refused by neither.
fn check_alike(name: &str, text: &str) {
    let resources = parse(name, text).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let documents: Vec<Value> = documents.into_iter().filter(|document| !document.is_null()).collect();
    assert_eq!(documents.len(), resources.len(), "{name}");
    for (resource, document) in resources.iter().zip(&documents) {
        let errors = errors(resource.kind(), document);
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

fn errors(kind: Kind, document: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&schema::of(kind)).unwrap();
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn what_is_required_may_be_written_in_either_spelling() {
    let manifests = [
        (Kind::Agent, json!({"modelRef": "m"})),
        (Kind::ModelEndpoint, json!({"defaultModel": "m"})),
        (Kind::Tool, json!({"type": "a2a", "a2a": {"agentUrl": "https://a.example/x"}})),
        (
            Kind::Tool,
            json!({"type": "cli", "cli": {"command": "c", "image": "i", "envFrom": [{"name": "K", "secret_ref": "s"}]}}),
        ),
        (Kind::TaskWebhook, json!({"taskRef": "t", "auth": {"secretRef": "s"}})),
        (Kind::TaskApproval, json!({"taskRef": "t", "checkpointId": "c"})),
        (Kind::EvalRun, json!({"datasetRef": "d", "system": "s"})),
        (Kind::ContextAdapter, json!({"toolRef": "t"})),
    ];
    for (kind, spec) in manifests {
        let document = json!({"kind": kind.name(), "metadata": {"name": "it"}, "spec": spec});
        ostler_spec::from_json(&document).unwrap_or_else(|problems| panic!("{document}: {problems:#?}"));
        assert_eq!(errors(kind, &document), Vec::<String>::new(), "{document}");
    }
}

#[test]
fn what_is_required_is_missed() {
    for (kind, spec) in [
        (Kind::Agent, json!({"prompt": "p"})),
        (Kind::Tool, json!({"type": "a2a", "a2a": {"protocolVersion": "1"}})),
        (Kind::Tool, json!({"type": "cli", "cli": {"image": "i"}})),
    ] {
        let document = json!({"kind": kind.name(), "metadata": {"name": "it"}, "spec": spec});
        assert!(ostler_spec::from_json(&document).is_err(), "{document}");
        assert_ne!(errors(kind, &document), Vec::<String>::new(), "{document}");
    }
    let required = schema::of(Kind::TaskApproval);
    assert_eq!(schema::required(&required["$defs"]["TaskApprovalSpec"]), ["task_ref", "checkpoint_id"]);
}

#[test]
fn full_manifests_read_back_as_they_were_written() {
    for info in kinds() {
        for resource in parse("full.yaml", &full(info.kind)).unwrap() {
            let value = serde_json::to_value(&resource).unwrap();
            assert_eq!(ostler_spec::from_json(&value).unwrap(), resource);
            assert_eq!(serde_json::from_value::<Resource>(value).unwrap(), resource);
        }
    }
}

#[test]
fn nothing_stands_in_a_schema_that_is_not_used() {
    for info in kinds() {
        let schema = schema::of(info.kind);
        let mut declared = BTreeSet::new();
        collect_declared(&schema, &schema["properties"]["spec"], "spec", &mut declared, 0);
        let mut used = BTreeSet::new();
        for document in documents(info.kind) {
            collect_used(&document["spec"], "spec", &mut used);
        }
        let unused: Vec<&String> = declared.iter().filter(|path| !used.contains(*path)).collect();
        assert!(unused.is_empty(), "{}: {unused:#?}", info.name);
    }
}

/// Every place that a schema names, without the second spelling; `*` stands for an item or for a name people choose.
fn collect_declared(root: &Value, schema: &Value, path: &str, found: &mut BTreeSet<String>, depth: usize) {
    // A schema inside the input of a tool, or a task in a schedule, is a world of its own.
    if depth > 6 {
        return;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.trim_start_matches("#/$defs/");
        return collect_declared(root, &root["$defs"][name], path, found, depth + 1);
    }
    for choice in schema["anyOf"].as_array().into_iter().flatten() {
        collect_declared(root, choice, path, found, depth + 1);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let about = property["description"].as_str().unwrap_or_default();
        if is_second_spelling(about) {
            continue;
        }
        let path = format!("{path}.{name}");
        collect_declared(root, property, &path, found, depth + 1);
        found.insert(path);
    }
    if schema["items"].is_object() {
        collect_declared(root, &schema["items"], &format!("{path}.*"), found, depth + 1);
    }
    if schema["additionalProperties"].is_object() {
        collect_declared(root, &schema["additionalProperties"], &format!("{path}.*"), found, depth + 1);
    }
}

fn is_second_spelling(about: &str) -> bool {
    about.strip_prefix("The same as ").is_some_and(|rest| rest.ends_with('.') && !rest.contains(' '))
}

fn collect_used(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    found.insert(path.to_owned());
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                collect_used(member, &format!("{path}.{name}"), found);
                collect_used(member, &format!("{path}.*"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_used(item, &format!("{path}.*"), found)),
        _ => {}
    }
}
