use ostler_kernel::{RunId, conversation::ToolCallRef};
use serde_json::json;

use super::*;

fn run() -> RunId {
    RunId::from_bytes([1; 16])
}

fn said(text: &str) -> Entry {
    Entry { role: Role::Assistant, ..Entry::user(run(), text) }
}

fn asked_again() -> Entry {
    Entry { step: Some(0), ..Entry::user(run(), "again") }
}

fn result(tool: &str, is_error: bool) -> Entry {
    let call = ToolCallRef { id: "c".into(), name: tool.into() };
    Entry::tool_result(run(), 1, &call, "given".into(), is_error)
}

fn colour() -> Rules {
    let schema =
        json!({"type": "object", "properties": {"colour": {"enum": ["red"]}}, "required": ["colour"]});
    Rules { output_schema: Some(schema), ..Rules::default() }
}

fn contract() -> Rules {
    let contract = vec!["search".into(), "publish".into()];
    Rules { contract, markers: vec!["DONE".into()], ..Rules::default() }
}

#[track_caller]
fn fits(rules: &Rules, past: &[&Entry], text: &str) -> (String, Option<String>) {
    match judge(rules, past, text, true) {
        Judged::Fits { output, violation } => (output, violation),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn again(rules: &Rules, past: &[&Entry], text: &str) -> String {
    match judge(rules, past, text, true) {
        Judged::Again { complaint } => complaint,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn fails(rules: &Rules, past: &[&Entry], text: &str, calls_left: bool) -> Failure {
    match judge(rules, past, text, calls_left) {
        Judged::Fails(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_rules_anything_is_an_output() {
    assert_eq!(fits(&Rules::default(), &[], " any\nthing "), (" any\nthing ".to_owned(), None));
}

#[test]
fn what_fits_the_schema_is_kept_as_json_alone() {
    for text in ["{\"colour\":\"red\"}", "  {\"colour\":\"red\"}\n", "```json\n{\"colour\":\"red\"}\n```"] {
        assert_eq!(fits(&colour(), &[], text).0, "{\"colour\":\"red\"}", "{text}");
    }
    // To the letter: a number is not rounded on its way.
    let any = Rules { output_schema: Some(json!({"type": "number"})), ..Rules::default() };
    assert_eq!(fits(&any, &[], "12345678901234567890.10").0, "12345678901234567890.10");
}

#[test]
fn what_does_not_fit_is_told_once_with_all_that_is_wrong() {
    let rules = colour();
    let complaint = again(&rules, &[], "{\"colour\":\"green\"}");
    assert!(complaint.contains("/colour: ") && complaint.contains("\"enum\":[\"red\"]"), "{complaint}");
    assert!(again(&rules, &[], "The colour is red.").contains("not JSON"));
    let (first, asked) = (said("red"), asked_again());
    let failure = fails(&rules, &[&first, &asked], "still red", true);
    assert_eq!(failure.code, "output_schema_violation");
    assert!(!failure.is_retryable());
    assert_eq!(fits(&rules, &[&first, &asked], "{\"colour\":\"red\"}").0, "{\"colour\":\"red\"}");
}

#[test]
fn what_people_say_in_between_is_no_second_ask() {
    let (first, person) = (said("red"), Entry::user(run(), "and?"));
    assert!(again(&colour(), &[&first, &person], "red").contains("not JSON"));
}

#[test]
fn with_no_call_left_nobody_is_asked_again() {
    assert_eq!(fails(&colour(), &[], "red", false).code, "output_schema_violation");
    assert_eq!(fails(&contract(), &[], "red", false).code, "agent_contract_violation");
}

#[test]
fn a_contract_wants_each_tool_to_have_worked_and_every_marker() {
    let rules = contract();
    let (search, publish, failed) =
        (result("search", false), result("publish", false), result("publish", true));
    assert_eq!(fits(&rules, &[&publish, &search], "DONE."), ("DONE.".to_owned(), None));
    let complaint = again(&rules, &[&search, &failed], "well");
    assert!(complaint.contains("did not work: publish;") && complaint.contains("\"DONE\""), "{complaint}");
    assert!(!again(&rules, &[&search], "DONE").contains("does not contain"));
}

#[test]
fn a_contract_is_asked_for_as_often_as_the_model_may_be_called() {
    let rules = contract();
    let (first, asked) = (said("well"), asked_again());
    again(&rules, &[&first, &asked, &first, &asked], "well");
}

#[test]
fn an_observed_contract_is_told_and_lets_the_run_end() {
    let rules = Rules { on_violation: OnViolation::Observe, ..contract() };
    let (output, violation) = fits(&rules, &[], "well");
    assert_eq!(output, "well");
    assert!(violation.unwrap().contains("search, publish"));
    let strict = Rules { output_schema: colour().output_schema, ..rules };
    again(&strict, &[], "well");
}

#[test]
fn a_breach_of_both_is_told_in_one() {
    let rules = Rules { output_schema: colour().output_schema, ..contract() };
    let complaint = again(&rules, &[], "well");
    assert!(complaint.contains("What is lacking") && complaint.contains("not JSON"), "{complaint}");
}

#[test]
fn tools_outside_a_contract_are_named() {
    let call = |name: &str| StepKind::tool(ToolCallRef { id: "c".into(), name: name.into() }, "{}", true);
    assert_eq!(outside(&contract(), &[call("search"), call("publish")]), None);
    assert_eq!(outside(&Rules::default(), &[call("anything")]), None);
    let told = outside(&contract(), &[call("search"), call("delete")]).unwrap();
    assert_eq!(told, "it calls delete; its contract has search, publish");
}
