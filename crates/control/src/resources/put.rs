//! Puts resources in place: applied, replaced, renamed, and what was found out about them.

use std::collections::BTreeSet;

use ostler_kernel::{
    Bundle, Expect, ResourceId,
    event::Change,
    resource::{ResourceKey, StoredResource, put_and_tell, rename_and_tell},
};
use ostler_spec::{Kind, PROVIDERS, Path, Problem, Resource, Spec, nearest};
use ostler_store::{StoreExt, TaskRef};
use serde_json::Value as Json;

use super::{Beside, Looked, TRIES, key, restore};
use crate::{Control, ControlError, commands::create_task::check_no_uid};

/// Whether a change is made, or only checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Real,
    /// Everything is checked, nothing is written; the answer is what would be.
    DryRun,
}

/// Which version a change is meant for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// Whatever it is now.
    Any,
    Version(String),
}

impl Precondition {
    pub(super) fn check(&self, former: &StoredResource) -> Result<(), ControlError> {
        self.check_place(&former.key, former.version)
    }

    /// Where nothing is, there is version 0.
    fn check_place(&self, key: &ResourceKey, present: u64) -> Result<(), ControlError> {
        match self {
            Precondition::Any => Ok(()),
            Precondition::Version(wanted) => check_version(key, wanted, present),
        }
    }
}

impl Control {
    /// Puts the resource in place. `metadata.resourceVersion`, if it is given, must be the present one; where nothing is, it
    /// tells where the manifest came from, and is of no account. What of it this version can't do stands in its status, and is
    /// refused when it is used.
    pub async fn apply(&self, resource: Resource) -> Result<Resource, ControlError> {
        self.apply_if(resource, &Precondition::Any, Effect::Real).await
    }

    /// The same where the caller says which version is meant, or only what it would come to.
    pub async fn apply_if(
        &self,
        resource: Resource,
        precondition: &Precondition,
        effect: Effect,
    ) -> Result<Resource, ControlError> {
        self.check_acceptable(&resource, effect).await?;
        let key = key(resource.kind(), &resource.metadata.namespace, &resource.metadata.name);
        for _ in 0..TRIES {
            let former = self.store.resource(key.clone()).await?;
            match precondition {
                Precondition::Any => check_said_version(&resource, former.as_ref())?,
                Precondition::Version(_) => {
                    precondition.check_place(&key, former.as_ref().map_or(0, |former| former.version))?;
                }
            }
            let sealed = self.sealed(&resource, former.as_ref(), effect).await?;
            let (stored, bundle) = match &former {
                Some(former) => {
                    let stored = self.next_version(key.clone(), &sealed, Some(former));
                    if says_the_same(&former.document, &stored.document) {
                        return self.judged(restore(former)?, &mut Looked::default()).await;
                    }
                    let now = self.runtime.now();
                    (stored.clone(), put_and_tell(stored, Some(former), Change::Updated, now))
                }
                None => self.made(self.next_version(key.clone(), &sealed, None), None).await?,
            };
            if let Some(resource) = self.put(&stored, bundle, effect).await? {
                return Ok(resource);
            }
        }
        Err(ControlError::Contended)
    }

    /// Under a name that is free it begins at a version that nobody has seen; if it had another name, its version rises too. A
    /// template can't have the name of a task.
    async fn made(
        &self,
        stored: StoredResource,
        former: Option<&StoredResource>,
    ) -> Result<(StoredResource, Bundle), ControlError> {
        let (floor, now) = (self.floor(&stored.key).await?, self.runtime.now());
        let stored = StoredResource { version: floor.first().max(stored.version), ..stored };
        let bundle = match former {
            None => put_and_tell(stored.clone(), None, Change::Created, now),
            Some(former) => {
                let renaming = rename_and_tell(stored.clone(), former, now);
                self.floor(&former.key).await?.raise(renaming, former.version, now)
            }
        };
        let bundle = self.beside_tasks(&stored.key, floor.under(bundle)).await?;
        Ok((stored, bundle))
    }

    async fn beside_tasks(&self, key: &ResourceKey, bundle: Bundle) -> Result<Bundle, ControlError> {
        if key.kind != Kind::Task.name() {
            return Ok(bundle);
        }
        self.check_no_task(key).await?;
        Ok(bundle.expect(Expect::TaskName { namespace: key.namespace.clone(), name: key.name.clone() }))
    }

    /// A template can't have the name of a task.
    pub(super) async fn check_no_task(&self, key: &ResourceKey) -> Result<(), ControlError> {
        let (namespace, name) = (key.namespace.clone(), key.name.clone());
        let reference = TaskRef::Name { namespace, name: name.clone() };
        if key.kind == Kind::Task.name() && self.store.task(reference).await?.is_some() {
            return Err(ControlError::NameTaken { name });
        }
        Ok(())
    }

    async fn check_acceptable(&self, resource: &Resource, effect: Effect) -> Result<(), ControlError> {
        check_keepable(resource)?;
        if resource.kind() == Kind::Task {
            check_no_uid(&resource.metadata.name)?;
        }
        self.check_provider(resource)?;
        if let Some(problem) = self.endless(resource, Beside::default()).await? {
            return Err(ControlError::Invalid(vec![problem]));
        }
        match effect {
            Effect::Real => self.check_members(resource).await,
            Effect::DryRun => Ok(()),
        }
    }

    /// A vendor that nobody knows is a slip of the pen.
    pub(super) fn check_provider(&self, resource: &Resource) -> Result<(), ControlError> {
        let Spec::ModelEndpoint(endpoint) = &resource.spec else { return Ok(()) };
        let ours = self.config.providers.iter().map(String::as_str);
        let known: BTreeSet<&str> = ours.chain(PROVIDERS.iter().copied()).collect();
        if self.config.providers.is_empty() || known.contains(endpoint.provider.trim()) {
            return Ok(());
        }
        let suggestion = nearest(&endpoint.provider, known.iter().copied()).map(str::to_owned);
        let names = Vec::from_iter(known).join(", ");
        let message = format!("unknown provider {:?}; known are {names}", endpoint.provider);
        let problem = Problem { suggestion, ..Problem::new(Path::of("spec.provider"), message) };
        Err(ControlError::Invalid(vec![problem]))
    }

    /// Puts the resource in the place of the one with this name, which must be there. Under another name it is renamed.
    pub async fn replace(
        &self,
        name: &str,
        resource: Resource,
        precondition: &Precondition,
        effect: Effect,
    ) -> Result<Resource, ControlError> {
        self.check_acceptable(&resource, effect).await?;
        let (kind, namespace) = (resource.kind(), resource.metadata.namespace.clone());
        let (place, target) = (key(kind, &namespace, name), key(kind, &namespace, &resource.metadata.name));
        for _ in 0..TRIES {
            let former = self.present(&place).await?;
            precondition.check(&former)?;
            let sealed = self.sealed(&resource, Some(&former), effect).await?;
            let stored = self.next_version(target.clone(), &sealed, Some(&former));
            let (stored, bundle) = if target == place {
                if says_the_same(&former.document, &stored.document) {
                    return self.judged(restore(&former)?, &mut Looked::default()).await;
                }
                let now = self.runtime.now();
                (stored.clone(), put_and_tell(stored, Some(&former), Change::Updated, now))
            } else {
                self.check_free(&target).await?;
                self.made(stored, Some(&former)).await?
            };
            if let Some(resource) = self.put(&stored, bundle, effect).await? {
                return Ok(resource);
            }
        }
        Err(ControlError::Contended)
    }

    /// Writes down what was found out about a resource. It stands until the spec changes.
    pub async fn set_status(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        status: Json,
        precondition: &Precondition,
    ) -> Result<Resource, ControlError> {
        let place = key(kind, namespace, name);
        for _ in 0..TRIES {
            let former = self.present(&place).await?;
            precondition.check(&former)?;
            let mut stored = StoredResource { version: former.version + 1, ..former.clone() };
            if let Some(parts) = stored.document.as_object_mut() {
                parts.insert("status".to_owned(), status.clone());
            }
            let bundle = put_and_tell(stored.clone(), Some(&former), Change::Status, self.runtime.now());
            if let Some(resource) = self.put(&stored, bundle, Effect::Real).await? {
                return Ok(resource);
            }
        }
        Err(ControlError::Contended)
    }

    /// Commits it. None if someone was quicker.
    async fn put(
        &self,
        stored: &StoredResource,
        bundle: Bundle,
        effect: Effect,
    ) -> Result<Option<Resource>, ControlError> {
        let resource = restore(stored)?;
        if effect == Effect::Real {
            if self.commit(bundle).await?.is_err() {
                return Ok(None);
            }
            self.forget_chapter(stored).await?;
            self.changed(resource.kind()).await?;
        }
        self.judged(resource, &mut Looked::default()).await.map(Some)
    }

    async fn present(&self, place: &ResourceKey) -> Result<StoredResource, ControlError> {
        let kind = Kind::from_name(&place.kind).map_or("resource", Kind::name);
        let missing = || ControlError::NotFound { kind, name: place.name.clone() };
        self.store.resource(place.clone()).await?.ok_or_else(missing)
    }

    async fn check_free(&self, target: &ResourceKey) -> Result<(), ControlError> {
        let ResourceKey { kind, name, .. } = target;
        match self.store.resource(target.clone()).await? {
            None => Ok(()),
            Some(_) => Err(ControlError::Conflict(format!("there is a {kind} {name:?} already"))),
        }
    }

    fn next_version(
        &self,
        key: ResourceKey,
        resource: &Resource,
        former: Option<&StoredResource>,
    ) -> StoredResource {
        let mut document = next_document(resource);
        let same_spec = former.is_some_and(|former| former.document.get("spec") == document.get("spec"));
        keep_status(&mut document, former.filter(|_| same_spec));
        let given = former.and_then(|former| former.document.pointer("/metadata/uid")).cloned();
        document["metadata"]["uid"] =
            given.unwrap_or_else(|| ResourceId::new(&*self.runtime).to_string().into());
        let generation = former.map_or(0, |former| former.generation);
        StoredResource {
            key,
            version: former.map_or(0, |former| former.version) + 1,
            generation: if same_spec { generation } else { generation + 1 },
            created_at: former.map_or_else(|| self.runtime.now(), |former| former.created_at),
            document,
        }
    }
}

/// A worker registers itself.
pub(super) fn check_keepable(resource: &Resource) -> Result<(), ControlError> {
    match resource.kind() {
        Kind::Worker => Err(ControlError::Invalid(resource.unsupported())),
        _ => Ok(()),
    }
}

/// What was found out about a resource is not a manifest's to say, and holds for the spec it was found out of.
fn keep_status(document: &mut Json, former: Option<&StoredResource>) {
    let Some(parts) = document.as_object_mut() else { return };
    parts.remove("status");
    if let Some(status) = former.and_then(|former| former.document.get("status")) {
        parts.insert("status".to_owned(), status.clone());
    }
}

pub(super) fn next_document(resource: &Resource) -> Json {
    serde_json::to_value(resource).unwrap_or_default()
}

/// Whether all that a manifest can say is as it was.
pub(super) fn says_the_same(former: &Json, next: &Json) -> bool {
    let parts = ["/apiVersion", "/metadata/labels", "/metadata/annotations", "/spec"];
    parts.iter().all(|part| former.pointer(part) == next.pointer(part))
}

/// What an object says of its version holds where there is one: it was read here, or it comes from elsewhere.
pub(super) fn check_said_version(
    resource: &Resource,
    former: Option<&StoredResource>,
) -> Result<(), ControlError> {
    match (&resource.metadata.resource_version, former) {
        (Some(wanted), Some(former)) => check_version(&former.key, wanted, former.version),
        (None, _) | (_, None) => Ok(()),
    }
}

fn check_version(key: &ResourceKey, wanted: &str, present: u64) -> Result<(), ControlError> {
    if wanted == present.to_string() {
        return Ok(());
    }
    Err(ControlError::Conflict(format!(
        "{} {:?} is at version {present}, not {wanted}: get it again and repeat the change",
        key.kind, key.name
    )))
}
