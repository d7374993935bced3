//! The reference says of each kind what this version can't do; here that is held against what the kinds themselves
//! say of the manifests that use it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

use std::collections::BTreeSet;
use std::fs;

use ostler_spec::{Kind, Segment, kinds, later, parse};

/// Every part that some manifest was told of, by kind.
fn told() -> BTreeSet<(Kind, Vec<Step>)> {
    let mut told = BTreeSet::new();
    let full = kinds().map(|info| format!("tests/full/{}.yaml", info.kind.singular()));
    let single = fs::read_dir("tests/broken").unwrap().map(|entry| entry.unwrap().path());
    let single = single.map(|path| path.to_str().unwrap().to_owned());
    for path in full.chain(single.filter(|path| path.contains("/later-"))) {
        let text = fs::read_to_string(&path).unwrap();
        for resource in parse(&path, &text).unwrap_or_else(|problems| panic!("{problems:#?}")) {
            for problem in resource.unsupported() {
                told.insert((resource.kind(), problem.path.0.iter().map(Step::from).collect()));
            }
        }
    }
    told
}

/// A step of a path, without the number of an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Field(String),
    Item,
}

impl From<&Segment> for Step {
    fn from(segment: &Segment) -> Self {
        match segment {
            Segment::Field(name) => Self::Field(name.clone()),
            Segment::Index(_) => Self::Item,
        }
    }
}

fn fits(listed: &str, path: &[Step]) -> bool {
    let steps: Vec<&str> = listed.split('.').collect();
    let fits = |(step, segment): (&&str, &Step)| match segment {
        Step::Field(name) => *step == "*" || step == name,
        Step::Item => *step == "*",
    };
    steps.len() == path.len() && steps.iter().zip(path).all(fits)
}

#[test]
fn what_is_refused_when_used_is_listed_and_the_other_way_round() {
    let told = told();
    let unlisted: Vec<_> =
        told.iter().filter(|(kind, path)| !later(*kind).iter().any(|later| fits(later.path, path))).collect();
    assert!(unlisted.is_empty(), "not in src/later.rs: {unlisted:#?}");
    let unused: Vec<_> = kinds()
        .flat_map(|info| later(info.kind).iter().map(move |later| (info.kind, later.path)))
        .filter(|(kind, listed)| !told.iter().any(|(other, path)| other == kind && fits(listed, path)))
        .collect();
    assert!(unused.is_empty(), "listed in src/later.rs, and no manifest under tests is told so: {unused:#?}");
}
