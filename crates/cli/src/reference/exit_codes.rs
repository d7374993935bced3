//! The page of exit codes, from what `ostler --help` says of them.

use super::markdown::{Table, code, sentence};
use crate::exit;

pub fn page() -> String {
    let mut table = Table::new(["Code", "Meaning"]);
    for (number, meaning) in codes() {
        table.row([code(number), sentence(meaning)]);
    }
    format!(
        "# Exit codes\n\nHow `ostler` ends. They are stable: scripts may decide by them.\n\n{}\n{}\n\n\
         What a task failed of is told by its error code: see [errors](errors.md).\n",
        table.text(),
        apart()
    )
}

/// What is said below the codes: who uses them otherwise.
fn apart() -> String {
    let lines = exit::HELP.lines().skip_while(|line| !line.is_empty() && !line.starts_with('`'));
    lines.collect::<Vec<_>>().join("\n")
}

fn codes() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = exit::HELP.lines().filter_map(|line| line.trim().split_once(' '));
    lines.filter(|(number, _)| number.parse::<u8>().is_ok()).map(|(number, meaning)| (number, meaning.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_is_on_the_page() {
        let found: Vec<&str> = codes().map(|(number, _)| number).collect();
        assert!(found.len() >= 9 && found.contains(&"0") && found.contains(&"130"), "{found:?}");
        let page = page();
        for command in ["`diff` ends with", "`validate` ends with", "`doctor`"] {
            assert!(page.contains(command), "no {command} in {page}");
        }
    }
}
