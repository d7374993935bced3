//! Lets the server look at everything together before the first object is put in place: nothing is done by halves. What is
//! too much for one look is looked at in parts.

use std::collections::BTreeSet;

use ostler_client::{Checked, Client, ClientError, FieldProblem};
use ostler_spec::{Origin, Path, Resource};

use super::parts::{self, Part};
use crate::{error::CommandError, manifests::title, output::Output};

/// What would become of each; or all mistakes, with file and line. None if the server is of a version that can't tell, or if
/// one of them is too much for it.
pub async fn check(
    client: &Client,
    resources: &[Resource],
    origins: &[Origin],
    output: &Output,
) -> Result<Option<Vec<Checked>>, CommandError> {
    let parts = parts::divide(resources, parts::BOUNDS);
    let (mut fates, mut mistakes, mut is_complete) = (Vec::new(), BTreeSet::new(), true);
    for part in &parts {
        let numbers: Vec<usize> = part.numbers().collect();
        match look(client, resources, &numbers).await? {
            Look::Fine(checked) => fates.extend(checked.into_iter().take(part.subjects.len())),
            Look::Mistakes(found) => {
                // What is looked at beside several parts is wrong only once.
                let told = found.into_iter().map(|mistake| {
                    let number = mistake.item.and_then(|item| numbers.get(item)).copied();
                    (number, line(&mistake, number, resources, origins))
                });
                mistakes.extend(told);
            }
            Look::NoSuchRoute => return Ok(None),
            Look::TooLarge => {
                is_complete = false;
                note_unseen(part, resources, output);
            }
        }
        if parts.len() > 1 && output.terminal.stderr.is_terminal {
            let upto = part.subjects.last().map_or(0, |last| last + 1);
            output.note(format!("checked {upto} of {}", resources.len()));
        }
    }
    let message = match mistakes.len() {
        0 => return Ok(is_complete.then_some(fates)),
        1 => "a mistake in the manifests; nothing was applied".to_owned(),
        count => format!("{count} mistakes in the manifests; nothing was applied"),
    };
    Err(CommandError::error(message).with_details(mistakes.into_iter().map(|(_, line)| line)))
}

enum Look {
    Fine(Vec<Checked>),
    Mistakes(Vec<FieldProblem>),
    NoSuchRoute,
    TooLarge,
}

async fn look(client: &Client, resources: &[Resource], numbers: &[usize]) -> Result<Look, CommandError> {
    let batch: Vec<&Resource> = numbers.iter().map(|number| &resources[*number]).collect();
    match client.check(&batch).await {
        Ok(checked) => Ok(Look::Fine(checked)),
        Err(error) if error.code() == Some("unknown_route") => Ok(Look::NoSuchRoute),
        Err(error) if error.code() == Some("body_too_large") => Ok(Look::TooLarge),
        Err(ClientError::Problem(problem)) if !problem.problems.is_empty() => {
            Ok(Look::Mistakes(problem.problems))
        }
        Err(error) => Err(error.into()),
    }
}

fn note_unseen(part: &Part, resources: &[Resource], output: &Output) {
    for number in &part.subjects {
        let title = title(&resources[*number]);
        output
            .note(format!("note: {title} is checked when it is applied: with what it names it is too large"));
    }
}

/// As mistakes that are found without a server.
fn line(mistake: &FieldProblem, number: Option<usize>, resources: &[Resource], origins: &[Origin]) -> String {
    let path = Path::from_pointer(&mistake.path);
    let place = number.and_then(|number| origins.get(number)).and_then(|origin| origin.locate(&path));
    let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
    let subject = number.and_then(|number| resources.get(number));
    let subject = subject.map(|resource| format!("{}: ", title(resource))).unwrap_or_default();
    let hint = mistake.suggestion.as_ref().map(|name| format!(", did you mean \"{name}\"?"));
    format!("{place}{subject}{path}: {}{}", mistake.message, hint.unwrap_or_default())
}
