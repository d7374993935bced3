//! Which names are templates', for a watch of tasks alone or of templates alone. The two share their names, one of them at a time.

use std::collections::BTreeSet;

use ostler_kernel::{
    Selector,
    event::{Change, ResourceChanged},
};
use ostler_spec::Kind;
use ostler_store::{ResourceFilter, StoreExt};

use super::AT_ONCE;
use crate::{Control, ControlError};

/// What is a template: of what is deleted the log tells the name alone, and tasks and templates share those.
pub(super) struct Templates {
    names: BTreeSet<(String, String)>,
    /// Up to here a name may have stood for something else.
    doubtful_upto: u64,
}

impl Control {
    /// Those that are there now.
    pub(super) async fn templates(&self, namespace: Option<String>) -> Result<Templates, ControlError> {
        let (mut names, mut after) = (BTreeSet::new(), None);
        loop {
            let (kind, namespace) = (Kind::Task.name().to_owned(), namespace.clone());
            let labels = Selector::default();
            let filter = ResourceFilter { kind, namespace, after, labels, limit: AT_ONCE };
            let page = self.store.resources(filter).await?;
            let is_last = page.len() < AT_ONCE;
            after = page.last().map(|last| (last.key.namespace.clone(), last.key.name.clone()));
            names.extend(page.into_iter().map(|stored| (stored.key.namespace, stored.key.name)));
            if is_last {
                return Ok(Templates { names, doubtful_upto: self.log_end().await? });
            }
        }
    }
}

impl Templates {
    /// Whether it is a template that changed; none where nobody can tell.
    pub(super) fn has(&self, changed: &ResourceChanged, position: u64) -> Option<bool> {
        match changed.change {
            Change::Created | Change::Updated => Some(true),
            Change::Status => Some(false),
            Change::Deleted if position <= self.doubtful_upto => None,
            Change::Deleted => Some(self.names.contains(&(changed.namespace.clone(), changed.name.clone()))),
        }
    }

    pub(super) fn note(&mut self, changed: &ResourceChanged) {
        let place = (changed.namespace.clone(), changed.name.clone());
        match changed.change {
            Change::Created | Change::Updated => drop(self.names.insert(place)),
            Change::Deleted => drop(self.names.remove(&place)),
            // Of a template nothing is found out.
            Change::Status => {}
        }
    }
}
