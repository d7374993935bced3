//! Whatever text arrives, reading it ends in resources or in problems that point into it.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use ostler_spec::{GoDuration, Resource, from_json, parse};
use proptest::prelude::*;

const VALID: &str = include_str!("../../../examples/weather/weather.yaml");

fn check(text: &str) -> Result<(), TestCaseError> {
    match parse("f", text) {
        Ok(resources) => {
            for resource in resources {
                let value = serde_json::to_value(&resource).unwrap();
                prop_assert_eq!(&from_json(&value).unwrap(), &resource);
                prop_assert_eq!(&serde_json::from_value::<Resource>(value).unwrap(), &resource);
            }
        }
        Err(problems) => {
            prop_assert!(!problems.is_empty());
            // A lone carriage return ends a line in YAML.
            let lines = u32::try_from(text.matches(['\n', '\r']).count()).unwrap() + 1;
            for problem in problems {
                let location = problem.location.unwrap();
                prop_assert!(location.line >= 1 && location.line <= lines && location.column >= 1);
            }
        }
    }
    Ok(())
}

/// Pieces that a YAML or JSON reader may stumble over.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "kind: ",
        "Agent",
        "Tool",
        "metadata:",
        "name: ",
        "spec:",
        "model_ref",
        "limits",
        "timeout: ",
        "5s",
        "\n",
        "\n  ",
        "\n    ",
        "\t",
        "- ",
        ": ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\"",
        "'",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "!x ",
        "|\n",
        ">-\n",
        "? ",
        "---\n",
        "...\n",
        "#",
        "%YAML 1.2\n",
        "null",
        "true",
        "1e999",
        "-0",
        "0x",
        "\\u00",
        "é",
        "\u{feff}",
        "\u{0}",
        "\r",
        "\\",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn text_of_awkward_pieces(text in pieces()) {
        check(&text)?;
    }

    #[test]
    fn a_good_manifest_with_a_piece_replaced(start in 0..VALID.len(), length in 0..40usize, piece in pieces()) {
        let end = (start + length).min(VALID.len());
        let text = format!("{}{piece}{}", &VALID[..start], &VALID[end..]);
        check(&text)?;
    }

    #[test]
    fn json_of_awkward_pieces(text in pieces()) {
        check(&format!("{{{text}"))?;
        check(&format!("[{text}]"))?;
    }

    #[test]
    fn durations_print_what_they_read(nanos in 0..i64::MAX as u64) {
        let text = format!("{nanos}ns");
        let duration: GoDuration = text.parse().unwrap();
        prop_assert_eq!(duration.to_string().parse::<GoDuration>().unwrap(), duration);
        prop_assert_eq!(u128::from(nanos), duration.get().as_nanos());
    }

    #[test]
    fn duration_text_never_panics(text in "[-+0-9.nuµmsh ]{0,20}") {
        let _ = text.parse::<GoDuration>();
        let _ = parse("f", &format!("kind: Task\nmetadata: {{name: a}}\nspec: {{agent: a, deadline: '{text}'}}"));
    }
}
