//! Declared objects: apply, get, list, delete. A Task is applied by creating it (see `commands`).

use ostler_kernel::resource::{self, ResourceKey, StoredResource};
use ostler_spec::{Kind, Problem, Resource, Spec};
use ostler_store::StoreExt;
use serde_json::{Value as Json, json};

use crate::{Control, ControlError};

const TRIES: usize = 16;

impl Control {
    /// Puts the resource in place. `metadata.resourceVersion`, if it is given, must be the present one. What of
    /// it this version can't do stands in its status, and is refused when it is used.
    pub async fn apply(&self, resource: Resource) -> Result<Resource, ControlError> {
        check_keepable(&resource)?;
        let key = key(resource.kind(), &resource.metadata.namespace, &resource.metadata.name);
        for _ in 0..TRIES {
            let former = self.store.resource(key.clone()).await?;
            check_version(&resource, former.as_ref())?;
            let stored = self.next_version(&key, &resource, former.as_ref());
            let version = former.map(|former| former.version);
            if self.commit(resource::put(stored.clone(), version)).await?.is_ok() {
                self.changed(resource.kind()).await?;
                return restore(&stored);
            }
        }
        Err(ControlError::Contended)
    }

    pub async fn resource(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Resource>, ControlError> {
        let stored = self.store.resource(key(kind, namespace, name)).await?;
        stored.as_ref().map(restore).transpose()
    }

    pub async fn resources(
        &self,
        kind: Kind,
        namespace: Option<String>,
        after: Option<(String, String)>,
        limit: usize,
    ) -> Result<Vec<Resource>, ControlError> {
        let stored = self.store.resources(kind.name().to_owned(), namespace, after, limit).await?;
        stored.iter().map(restore).collect()
    }

    pub async fn delete(&self, kind: Kind, namespace: &str, name: &str) -> Result<(), ControlError> {
        let key = key(kind, namespace, name);
        if self.store.resource(key.clone()).await?.is_none() {
            return Err(ControlError::NotFound { kind: kind.name(), name: name.to_owned() });
        }
        let deleted = self.commit(resource::delete(key, None)).await?;
        deleted.map_err(|refusal| ControlError::Conflict(refusal.to_string()))?;
        self.changed(kind).await
    }

    /// Whoever set a quota finds it in force.
    async fn changed(&self, kind: Kind) -> Result<(), ControlError> {
        if kind == Kind::Quota { self.read_quotas().await } else { Ok(()) }
    }

    pub(crate) async fn spec(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Spec>, ControlError> {
        Ok(self.resource(kind, namespace, name).await?.map(|resource| resource.spec))
    }

    fn next_version(
        &self,
        key: &ResourceKey,
        resource: &Resource,
        former: Option<&StoredResource>,
    ) -> StoredResource {
        let mut document = serde_json::to_value(resource).unwrap_or_default();
        keep_status(&mut document, former);
        let same_spec = former.is_some_and(|former| former.document.get("spec") == document.get("spec"));
        let generation = former.map_or(0, |former| former.generation);
        StoredResource {
            key: key.clone(),
            version: former.map_or(0, |former| former.version) + 1,
            generation: if same_spec { generation } else { generation + 1 },
            created_at: former.map_or_else(|| self.runtime.now(), |former| former.created_at),
            document,
        }
    }
}

fn key(kind: Kind, namespace: &str, name: &str) -> ResourceKey {
    ResourceKey { kind: kind.name().to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

/// A worker registers itself; and what is secret is not kept where it could be read.
fn check_keepable(resource: &Resource) -> Result<(), ControlError> {
    match resource.kind() {
        Kind::Worker => Err(ControlError::Invalid(resource.unsupported())),
        Kind::Secret | Kind::SealedSecret => {
            let message = "secrets are not kept in this version: give them to `ostler up` in its environment, as \
                           OSTLER_SECRET_<NAME>";
            Err(ControlError::NotAvailable(message.to_owned()))
        }
        _ => Ok(()),
    }
}

/// What was found out about a resource is not a manifest's to say.
fn keep_status(document: &mut Json, former: Option<&StoredResource>) {
    let Some(parts) = document.as_object_mut() else { return };
    parts.remove("status");
    if let Some(status) = former.and_then(|former| former.document.get("status")) {
        parts.insert("status".to_owned(), status.clone());
    }
}

/// Whether it can be used, where nobody has said more.
fn first_status(resource: &Resource) -> Json {
    let problems = resource.unsupported();
    let generation = resource.metadata.generation;
    if problems.is_empty() {
        return json!({"phase": "Ready", "observedGeneration": generation});
    }
    json!({"phase": "Error", "lastError": words(&problems), "observedGeneration": generation})
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

fn check_version(resource: &Resource, former: Option<&StoredResource>) -> Result<(), ControlError> {
    let Some(wanted) = &resource.metadata.resource_version else { return Ok(()) };
    let present = former.map_or(0, |former| former.version).to_string();
    if *wanted == present {
        return Ok(());
    }
    Err(ControlError::Conflict(format!(
        "{} {:?} is at version {present}, not {wanted}: get it again and repeat the change",
        resource.kind().name(),
        resource.metadata.name
    )))
}

/// The document with what the store knows about it.
fn restore(stored: &StoredResource) -> Result<Resource, ControlError> {
    let mut resource: Resource = serde_json::from_value(stored.document.clone()).map_err(|error| {
        ControlError::Conflict(format!("the stored {} can't be read: {error}", stored.key.name))
    })?;
    resource.metadata.resource_version = Some(stored.version.to_string());
    resource.metadata.generation = Some(stored.generation);
    resource.metadata.created_at = Some(stored.created_at.to_string());
    if resource.status.is_none() {
        resource.status = Some(first_status(&resource));
    }
    Ok(resource)
}
