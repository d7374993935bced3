//! Looks at objects that are declared together, before the first of them is put in place: whatever one refers to is there or
//! comes with it, and a task could be accepted. All mistakes are told at once.

use std::collections::BTreeSet;

use ostler_spec::{Kind, Path, Problem, Resource, Spec, TaskMode};
use ostler_store::{StoreExt, TaskRef};

use super::{
    Beside, key,
    put::{check_keepable, check_said_version, next_document, says_the_same},
};
use crate::{Control, ControlError, NewTask};

/// What would become of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Created,
    Configured,
    Unchanged,
}

/// What is wrong with one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Mistake {
    /// Which one.
    pub item: usize,
    pub problem: Problem,
}

impl Fate {
    pub fn name(self) -> &'static str {
        match self {
            Fate::Created => "created",
            Fate::Configured => "configured",
            Fate::Unchanged => "unchanged",
        }
    }
}

impl Control {
    /// What would become of each, or all that is wrong with them. Nothing is written.
    pub async fn check_together(
        &self,
        batch: &[Resource],
    ) -> Result<Result<Vec<Fate>, Vec<Mistake>>, ControlError> {
        let (mut fates, mut mistakes, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (item, resource) in batch.iter().enumerate() {
            let mut problems = self.mistakes_in(resource, Beside(batch)).await?;
            if !seen.insert((resource.kind(), resource.key())) {
                let message = format!("{} {} is declared twice", resource.kind(), resource.key());
                problems.push(Problem::new(Path::of("metadata.name"), message));
            }
            if problems.is_empty() {
                match self.fate(resource, Beside(batch)).await {
                    Ok(fate) => fates.push(fate),
                    Err(error) => problems.push(as_problem(error)?),
                }
            }
            mistakes.extend(problems.into_iter().map(|problem| Mistake { item, problem }));
        }
        Ok(if mistakes.is_empty() { Ok(fates) } else { Err(mistakes) })
    }

    async fn mistakes_in(
        &self,
        resource: &Resource,
        beside: Beside<'_>,
    ) -> Result<Vec<Problem>, ControlError> {
        let mut problems = match check_keepable(resource).and_then(|()| self.check_provider(resource)) {
            Ok(()) => Vec::new(),
            Err(ControlError::Invalid(problems)) => problems,
            Err(error) => vec![Problem { path: Path::of("kind"), ..as_problem(error)? }],
        };
        problems.extend(self.lost_references(resource, beside).await?);
        problems.extend(self.endless(resource, beside).await?);
        Ok(problems)
    }

    /// What is wrong with a task, or with what makes tasks, beside the system that is to work on them.
    pub(super) async fn endless(
        &self,
        resource: &Resource,
        beside: Beside<'_>,
    ) -> Result<Option<Problem>, ControlError> {
        let Some((namespace, name)) = resource.system_asked() else { return Ok(None) };
        match self.spec(Kind::AgentSystem, namespace, name, beside).await? {
            Some(Spec::AgentSystem(system)) => Ok(resource.mistake_beside(&system)),
            Some(_) | None => Ok(None),
        }
    }

    async fn fate(&self, resource: &Resource, beside: Beside<'_>) -> Result<Fate, ControlError> {
        match &resource.spec {
            Spec::Task(task) if task.mode == TaskMode::Run => self.fate_of_task(resource, beside).await,
            _ => self.fate_of_resource(resource).await,
        }
    }

    async fn fate_of_resource(&self, resource: &Resource) -> Result<Fate, ControlError> {
        let metadata = &resource.metadata;
        let key = key(resource.kind(), &metadata.namespace, &metadata.name);
        let former = self.store.resource(key.clone()).await?;
        check_said_version(resource, former.as_ref())?;
        Ok(match former {
            None => {
                self.check_no_task(&key).await?;
                Fate::Created
            }
            Some(former) if says_the_same(&former.document, &next_document(resource)) => Fate::Unchanged,
            Some(_) => Fate::Configured,
        })
    }

    /// A task is accepted once: the same request under the same name is there already.
    async fn fate_of_task(&self, resource: &Resource, beside: Beside<'_>) -> Result<Fate, ControlError> {
        let Some(new) = NewTask::from_resource(resource.clone()) else { return Ok(Fate::Created) };
        let (namespace, name) = (new.namespace.clone(), resource.metadata.name.clone());
        let there = self.store.task(TaskRef::Name { namespace, name: name.clone() }).await?;
        let unnamed = NewTask { name: None, ..new.clone() };
        let tried = self.try_task_beside(if there.is_some() { unnamed } else { new }, beside).await?;
        match there {
            None => Ok(Fate::Created),
            Some(row) if row.task.request.asks_the_same(&tried.request) => Ok(Fate::Unchanged),
            Some(_) => Err(ControlError::NameTaken { name }),
        }
    }
}

/// What its sender can mend; anything else is no mistake of theirs.
pub(super) fn as_problem(error: ControlError) -> Result<Problem, ControlError> {
    let path = match &error {
        ControlError::NameTaken { .. } | ControlError::Conflict(_) => Path::of("metadata.name"),
        ControlError::NotFound { .. } | ControlError::BadReference(_) | ControlError::NotAvailable(_) => {
            Path::of("spec")
        }
        ControlError::Invalid(problems) => match problems.first() {
            Some(first) => return Ok(first.clone()),
            None => Path::default(),
        },
        ControlError::Store(_)
        | ControlError::WrongKeys(_)
        | ControlError::KeysInUse(_)
        | ControlError::TooMany { .. }
        | ControlError::Ended { .. }
        | ControlError::NotEnded { .. }
        | ControlError::Contended => return Err(error),
    };
    Ok(Problem::new(path, error.to_string()))
}
