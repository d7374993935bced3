//! Whether what a resource names is there.

use ostler_spec::{Kind, Named, Path, Problem, Resource, nearest};
use ostler_store::StoreExt;

use super::{Beside, check::as_problem, key};
use crate::{Control, ControlError, plans::BUILT_IN};

/// Where a reference leads.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    There,
    Nowhere,
    /// To more than one, in these words.
    Unclear(String),
}

/// So many are looked through for a name that was meant.
const NEAR: usize = 1000;

impl Control {
    /// All that is wrong with what it names, each with the name that was meant.
    pub(super) async fn lost_references(
        &self,
        resource: &Resource,
        beside: Beside<'_>,
    ) -> Result<Vec<Problem>, ControlError> {
        let own = &resource.metadata.namespace;
        let mut problems = Vec::new();
        for named in resource.references() {
            let found = self.find(&named, own, beside).await?;
            let Some(problem) = found.problem(&named, own) else { continue };
            let suggestion = match found {
                Found::Nowhere => self.near(&named, own, beside).await?,
                Found::There | Found::Unclear(_) => None,
            };
            problems.push(Problem { suggestion, ..problem });
        }
        Ok(problems)
    }

    /// A system of agents that are not there is no system. Whatever else is missing may come later, and stands in its
    /// status until then. A dry run may be of a system whose agents come with it: there too the status says it.
    pub(super) async fn check_members(&self, resource: &Resource) -> Result<(), ControlError> {
        if resource.kind() != Kind::AgentSystem {
            return Ok(());
        }
        let mut problems = self.lost_references(resource, Beside::default()).await?;
        let agents = Path::of("spec.agents");
        problems.retain(|problem| problem.path.0.starts_with(&agents.0));
        if problems.is_empty() { Ok(()) } else { Err(ControlError::Invalid(problems)) }
    }

    pub(super) async fn find(
        &self,
        named: &Named<'_>,
        own: &str,
        beside: Beside<'_>,
    ) -> Result<Found, ControlError> {
        let (kind, home, name) = (named.kind, named.reference.namespace_or(own), &named.reference.name);
        let is_built_in = kind == Kind::ModelEndpoint && name == BUILT_IN;
        let is_new = beside.find(kind, home, name).is_some();
        if is_built_in || is_new || self.store.resource(key(kind, home, name)).await?.is_some() {
            return Ok(Found::There);
        }
        if kind != Kind::ModelEndpoint {
            return Ok(Found::Nowhere);
        }
        match self.endpoint(home, name, beside).await {
            Ok(Some(_)) => Ok(Found::There),
            Ok(None) => Ok(Found::Nowhere),
            Err(error) => Ok(Found::Unclear(as_problem(error)?.message)),
        }
    }

    /// The name that was meant, as far as one looks.
    async fn near(
        &self,
        named: &Named<'_>,
        own: &str,
        beside: Beside<'_>,
    ) -> Result<Option<String>, ControlError> {
        let home = named.reference.namespace_or(own);
        let stored = self.resources(named.kind, Some(home.to_owned()), None, NEAR).await?;
        let all = stored.iter().chain(beside.of(named.kind, home));
        let names = all.map(|resource| resource.metadata.name.as_str());
        Ok(nearest(&named.reference.name, names).map(str::to_owned))
    }
}

impl Found {
    pub fn problem(&self, named: &Named<'_>, own: &str) -> Option<Problem> {
        let message = match self {
            Found::There => return None,
            Found::Nowhere => {
                let (name, home) = (&named.reference.name, named.reference.namespace_or(own));
                format!("there is no {} {name:?} in namespace {home:?}", named.kind)
            }
            Found::Unclear(words) => words.clone(),
        };
        Some(Problem::new(named.path.clone(), message))
    }
}
