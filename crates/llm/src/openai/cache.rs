//! The vendor's prompt cache. From gpt-5.6 on a request says how far a prompt is the same from call to call; before, and
//! elsewhere, nobody can be told.

use serde::Serialize;

/// Marks the end of a part of the prompt that comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Breakpoint {
    mode: &'static str,
}

pub(crate) const BREAKPOINT: Breakpoint = Breakpoint { mode: "explicit" };

/// How many of the last messages of the user are marked: the one before the last is where the call before has ended.
pub(crate) const MARKED_TURNS: usize = 2;

/// Whether a model of the vendor's own knows the marks, as far as its name tells.
pub(super) fn has_breakpoints(model: &str) -> bool {
    let Some(version) = model.strip_prefix("gpt-") else { return false };
    let mut numbers =
        version.split(|letter: char| !letter.is_ascii_digit()).map(|digits| digits.parse().ok());
    let (major, minor): (Option<u32>, Option<u32>) = (numbers.next().flatten(), numbers.next().flatten());
    // Behind a dash stands no version.
    let minor = minor.filter(|_| version.contains('.')).unwrap_or(0);
    major.is_some_and(|major| (major, minor) >= (5, 6)) && !model.contains("chat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_knows_the_marks_is_told_by_the_name() {
        for model in ["gpt-5.6", "gpt-5.6-sol", "gpt-5.10-mini", "gpt-6", "gpt-6.1"] {
            assert!(has_breakpoints(model), "{model}");
        }
        for model in [
            "gpt-5.5",
            "gpt-5.5-2026-04-23",
            "gpt-5",
            "gpt-5-2025-08-07",
            "gpt-4o",
            "o3",
            "gpt-4.1-2025-04-14",
            "x",
            "",
        ] {
            assert!(!has_breakpoints(model), "{model}");
        }
    }
}
