//! Whether a resource can be used, where nobody has said more of it. That is found out when it is looked at: so it is true at
//! once when what was missing is there, and when what was there is gone. Whoever says more can't say that what is not built
//! works.

use std::collections::BTreeMap;

use ostler_spec::{Kind, Problem, Resource};
use serde_json::{Value as Json, json};

use super::{Beside, references::Found, words};
use crate::{Control, ControlError};

/// What was looked for already: those of a page often name the same.
#[derive(Debug, Default)]
pub(crate) struct Looked(BTreeMap<(Kind, String, String), Found>);

/// So much that is wrong is named.
const TOLD: usize = 10;

impl Control {
    pub(crate) async fn judged(
        &self,
        mut resource: Resource,
        looked: &mut Looked,
    ) -> Result<Resource, ControlError> {
        let mut problems = resource.unsupported();
        match resource.status.take() {
            Some(written) => resource.status = Some(completed(written, &resource, &problems)),
            None => {
                self.add_missing(&resource, looked, &mut problems).await?;
                resource.status = Some(status(&resource, &problems));
            }
        }
        Ok(resource)
    }

    async fn add_missing(
        &self,
        resource: &Resource,
        looked: &mut Looked,
        problems: &mut Vec<Problem>,
    ) -> Result<(), ControlError> {
        let own = &resource.metadata.namespace;
        for named in resource.references() {
            let (home, name) = (named.reference.namespace_or(own), &named.reference.name);
            let place = (named.kind, home.to_owned(), name.clone());
            if !looked.0.contains_key(&place) {
                let found = self.find(&named, own, Beside::default()).await?;
                looked.0.insert(place.clone(), found);
            }
            problems.extend(looked.0.get(&place).and_then(|found| found.problem(&named, own)));
        }
        Ok(())
    }
}

/// What somebody has written, with what is so whatever they say: what is not built doesn't work. It holds for this spec, so
/// that is the generation it was found out of, unless they name another.
fn completed(mut written: Json, resource: &Resource, not_built: &[Problem]) -> Json {
    let Some(parts) = written.as_object_mut() else { return written };
    if let Json::Object(found) = status(resource, not_built) {
        let is_unsaid =
            parts.get("observedGeneration").is_none_or(|said| said.is_null() || *said == json!(0));
        let counts =
            |name: &str| if name == "observedGeneration" { is_unsaid } else { !not_built.is_empty() };
        parts.extend(found.into_iter().filter(|(name, _)| counts(name)));
    }
    written
}

fn status(resource: &Resource, problems: &[Problem]) -> Json {
    let generation = resource.metadata.generation;
    let (told, left_out) = problems.split_at(problems.len().min(TOLD));
    match (told, left_out) {
        ([], _) => json!({"phase": "Ready", "observedGeneration": generation}),
        (told, []) => error(&words(told), generation),
        (told, left_out) => error(&format!("{}; and {} more", words(told), left_out.len()), generation),
    }
}

fn error(words: &str, generation: Option<u64>) -> Json {
    json!({"phase": "Error", "lastError": words, "observedGeneration": generation})
}
