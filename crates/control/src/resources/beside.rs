//! Objects that are not there yet, but will be if all goes well: what comes with them is looked at as if they were.

use ostler_spec::{Kind, Resource, Spec};

use crate::{Control, ControlError};

/// What is declared together with what is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'a>(pub &'a [Resource]);

impl<'a> Beside<'a> {
    pub fn find(self, kind: Kind, namespace: &str, name: &str) -> Option<&'a Resource> {
        let is_meant = |it: &&Resource| {
            it.kind() == kind && it.metadata.name == name && it.metadata.namespace == namespace
        };
        self.0.iter().find(is_meant)
    }

    /// Those of a kind in a namespace.
    pub fn of(self, kind: Kind, namespace: &str) -> impl Iterator<Item = &'a Resource> {
        self.0.iter().filter(move |it| it.kind() == kind && it.metadata.namespace == namespace)
    }
}

impl Control {
    pub(crate) async fn spec(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        beside: Beside<'_>,
    ) -> Result<Option<Spec>, ControlError> {
        if let Some(declared) = beside.find(kind, namespace, name) {
            return Ok(Some(declared.spec.clone()));
        }
        Ok(self.declared(kind, namespace, name).await?.map(|resource| resource.spec))
    }
}
