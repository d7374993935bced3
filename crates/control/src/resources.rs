//! Declared objects: get, list, delete, and what is known of each. Putting them in place is in `resources/put.rs`. A Task is
//! applied by creating it (see `commands`), but for a template, which is kept like any other resource.

mod beside;
mod check;
mod floor;
mod put;
mod references;
mod status;

use ostler_kernel::{
    Bundle, Selector,
    resource::{self, ResourceKey, StoredResource},
};
use ostler_spec::{Kind, Problem, Resource, Spec};
use ostler_store::{ResourceFilter, StoreExt};

pub(crate) use self::status::Looked;
pub use self::{
    beside::Beside,
    check::{Fate, Mistake},
    put::{Effect, Precondition},
};
use crate::{Control, ControlError};

const TRIES: usize = 16;

/// A page of a list.
#[derive(Debug, Clone, Default)]
pub struct ResourcePage {
    pub namespace: Option<String>,
    /// The namespace and name behind which to go on.
    pub after: Option<(String, String)>,
    pub labels: Selector,
    pub limit: usize,
}

impl Control {
    /// With its status.
    pub async fn resource(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Resource>, ControlError> {
        match self.declared(kind, namespace, name).await? {
            Some(resource) => self.judged(resource, &mut Looked::default()).await.map(Some),
            None => Ok(None),
        }
    }

    /// For whoever has no use for its status.
    pub(crate) async fn declared(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Resource>, ControlError> {
        let stored = self.store.resource(key(kind, namespace, name)).await?;
        stored.as_ref().map(restore).transpose()
    }

    /// For whoever has no use for their status.
    pub(crate) async fn resources(
        &self,
        kind: Kind,
        namespace: Option<String>,
        after: Option<(String, String)>,
        limit: usize,
    ) -> Result<Vec<Resource>, ControlError> {
        let page = ResourcePage { namespace, after, limit, ..ResourcePage::default() };
        self.stored_page(kind, page).await?.iter().map(restore).collect()
    }

    /// Those whose labels are asked for, by namespace and name, each with its status; as many as the limit says, if there are
    /// so many.
    pub async fn page(&self, kind: Kind, page: ResourcePage) -> Result<Vec<Resource>, ControlError> {
        let (mut found, mut looked) = (Vec::new(), Looked::default());
        for stored in self.stored_page(kind, page).await? {
            found.push(self.judged(restore(&stored)?, &mut looked).await?);
        }
        Ok(found)
    }

    async fn stored_page(&self, kind: Kind, page: ResourcePage) -> Result<Vec<StoredResource>, ControlError> {
        let ResourcePage { namespace, after, labels, limit } = page;
        let filter = ResourceFilter { kind: kind.name().to_owned(), namespace, after, labels, limit };
        Ok(self.store.resources(filter).await?)
    }

    pub async fn delete(&self, kind: Kind, namespace: &str, name: &str) -> Result<(), ControlError> {
        self.delete_if(kind, namespace, name, &Precondition::Any).await
    }

    /// Deletes the version that is meant.
    pub async fn delete_if(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        precondition: &Precondition,
    ) -> Result<(), ControlError> {
        let key = key(kind, namespace, name);
        for _ in 0..TRIES {
            let missing = || ControlError::NotFound { kind: kind.name(), name: name.to_owned() };
            let former = self.store.resource(key.clone()).await?.ok_or_else(missing)?;
            precondition.check(&former)?;
            let (floor, now) = (self.floor(&key).await?, self.runtime.now());
            let bundle = floor.raise(resource::delete_and_tell(&former, now), former.version, now);
            if self.commit(bundle).await?.is_ok() {
                return self.changed(kind).await;
            }
        }
        Err(ControlError::Contended)
    }

    /// Every namespace that something lives in, and the default one.
    pub async fn namespaces(&self) -> Result<Vec<String>, ControlError> {
        let mut names = self.store.namespaces().await?;
        if let Err(place) = names.binary_search_by(|name| name.as_str().cmp(ostler_spec::DEFAULT_NAMESPACE)) {
            names.insert(place, ostler_spec::DEFAULT_NAMESPACE.to_owned());
        }
        Ok(names)
    }

    /// Whoever set a quota finds it in force.
    async fn changed(&self, kind: Kind) -> Result<(), ControlError> {
        if kind == Kind::Quota { self.read_quotas().await } else { Ok(()) }
    }

    /// What was told of a resource long ago is told no more. If that fails, the next chapter does it.
    async fn forget_chapter(&self, stored: &StoredResource) -> Result<(), ControlError> {
        let bundle: Option<Bundle> = resource::forget_chapter(&stored.key, stored.version);
        if let Some(bundle) = bundle {
            self.store.commit(vec![bundle]).await?;
        }
        Ok(())
    }
}

pub(crate) fn key(kind: Kind, namespace: &str, name: &str) -> ResourceKey {
    ResourceKey { kind: kind.name().to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

/// What this version can't do of what is about to be used.
pub(crate) fn check_available(kind: Kind, name: &str, spec: &Spec) -> Result<(), ControlError> {
    let problems = spec.unsupported();
    if problems.is_empty() {
        return Ok(());
    }
    Err(ControlError::NotAvailable(format!("{}/{name}: {}", kind.singular(), words(&problems))))
}

fn words(problems: &[Problem]) -> String {
    let each = problems.iter().map(|problem| format!("{}: {}", problem.path, problem.message));
    each.collect::<Vec<_>>().join("; ")
}

/// The document with what the store knows about it, and the status only if somebody has said it.
pub(crate) fn restore(stored: &StoredResource) -> Result<Resource, ControlError> {
    let mut resource: Resource = serde_json::from_value(stored.document.clone()).map_err(|error| {
        ControlError::Conflict(format!("the stored {} can't be read: {error}", stored.key.name))
    })?;
    resource.metadata.resource_version = Some(stored.version.to_string());
    resource.metadata.generation = Some(stored.generation);
    resource.metadata.created_at = Some(stored.created_at.to_string());
    // What is sealed is not shown either: it would be worth keeping until its key is known.
    if let Spec::Secret(secret) = &mut resource.spec {
        *secret = secret.shown();
    }
    Ok(resource)
}
