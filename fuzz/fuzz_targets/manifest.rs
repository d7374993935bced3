//! The manifest reader, given anything: it ends in resources that mean the same when they are written out and read
//! again, or in problems that point into the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ostler_spec::{Problem, Resource, from_json, parse, parse_with_notices};

fuzz_target!(|text: &str| match parse_with_notices("f", text) {
    Ok(parsed) => {
        assert!(!parsed.resources.is_empty(), "nothing was read, and nothing complained of");
        check_places(text, &parsed.notices);
        parsed.resources.iter().for_each(check_same);
    }
    Err(problems) => {
        assert!(!problems.is_empty(), "refused without a reason");
        check_places(text, &problems);
    }
});

/// Written out in every way there is, it reads as it was.
fn check_same(resource: &Resource) {
    let value = serde_json::to_value(resource).expect("a resource is JSON");
    assert_eq!(from_json(&value).as_ref(), Ok(resource), "as a value: {value}");
    let restored: Resource = serde_json::from_value(value.clone()).expect("a store reads it");
    assert_eq!(&restored, resource, "as a store's document: {value}");
    assert_eq!(parse("f", &value.to_string()).as_deref(), Ok(std::slice::from_ref(resource)), "as JSON: {value}");
    let yaml = serde_saphyr::to_string(resource).expect("a resource is YAML");
    assert_eq!(parse("f", &yaml).as_deref(), Ok(std::slice::from_ref(resource)), "as YAML:\n{yaml}");
}

/// A lone carriage return ends a line in YAML.
fn check_places(text: &str, problems: &[Problem]) {
    let lines = text.matches(['\n', '\r']).count() + 1;
    for problem in problems {
        assert!(!problem.to_string().is_empty());
        let Some(location) = &problem.location else { continue };
        let is_inside = location.line >= 1 && location.line as usize <= lines && location.column >= 1;
        assert!(is_inside, "{problem}: the text has {lines} lines");
    }
}
