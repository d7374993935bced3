//! Lets the server look at everything together before the first object is put in place: nothing is done by halves.

use ostler_client::{Checked, Client, ClientError, FieldProblem};
use ostler_spec::{Origin, Path, Resource};

use crate::{error::CommandError, manifests::title};

/// What would become of each; or all mistakes, with file and line. None if the server is of a version that can't tell.
pub async fn check(
    client: &Client,
    resources: &[Resource],
    origins: &[Origin],
) -> Result<Option<Vec<Checked>>, CommandError> {
    let problem = match client.check(resources).await {
        Ok(checked) => return Ok(Some(checked)),
        Err(error) if error.code() == Some("unknown_route") => return Ok(None),
        Err(ClientError::Problem(problem)) if !problem.problems.is_empty() => problem,
        Err(error) => return Err(error.into()),
    };
    let lines = problem.problems.iter().map(|mistake| line(mistake, resources, origins));
    let message = match problem.problems.len() {
        1 => "a mistake in the manifests; nothing was applied".to_owned(),
        count => format!("{count} mistakes in the manifests; nothing was applied"),
    };
    Err(CommandError::error(message).with_details(lines))
}

/// As mistakes that are found without a server.
fn line(mistake: &FieldProblem, resources: &[Resource], origins: &[Origin]) -> String {
    let path = Path::from_pointer(&mistake.path);
    let item = mistake.item.unwrap_or(usize::MAX);
    let place = origins.get(item).and_then(|origin| origin.locate(&path));
    let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
    let subject = resources.get(item).map(|resource| format!("{}: ", title(resource))).unwrap_or_default();
    let hint = mistake.suggestion.as_ref().map(|name| format!(", did you mean \"{name}\"?"));
    format!("{place}{subject}{path}: {}{}", mistake.message, hint.unwrap_or_default())
}
