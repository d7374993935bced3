//! Watches resources and tasks: first those that are there, then every change. Driven by the log of all, so a watch
//! goes on behind the position it ended at, over a restart and on another server.
//!
//! The promise: whoever applies what a watch says, in order, has every resource as it is or was a moment ago, and none
//! that is gone. What changed several times may be told once. A watch that goes on may tell again what its reader knew,
//! and may tell of the end of something its reader never saw.

mod templates;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use ostler_kernel::{
    Event, EventBody, Selector, TaskId,
    event::{Change, ResourceChanged},
    resource::StoredResource,
};
use ostler_spec::{Kind, Resource, TaskMode};
use ostler_store::{ResourceFilter, StoreError, StoreExt, TaskFilter, TaskRef, TaskRow};

use crate::{
    Control, ControlError,
    log::LogFollower,
    resources::{Looked, restore},
};

use templates::Templates;

/// What is watched.
#[derive(Debug, Clone)]
pub struct Watched {
    pub kind: Kind,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub labels: Selector,
    /// Of Tasks, those that are run or the templates; without it, both.
    pub mode: Option<TaskMode>,
    /// Of those that are there at first, only what was written later than this version.
    pub newer_than: u64,
}

/// What became of something.
#[derive(Debug, Clone)]
pub enum Sight {
    Added(Seen),
    Updated(Seen),
    Deleted(Gone),
}

#[derive(Debug, Clone)]
pub enum Seen {
    Resource(Box<Resource>),
    Task(Box<TaskRow>),
}

#[derive(Debug, Clone)]
pub struct Gone {
    /// Unless it was ours.
    pub api_version: Option<String>,
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    pub version: u64,
}

/// What a watch has to say.
#[derive(Debug)]
pub enum Told {
    /// Something that was there when the watch began.
    First(Sight),
    /// All that was there was told; from here a watch can go on.
    Complete {
        position: u64,
    },
    Then {
        position: u64,
        sight: Sight,
    },
}

/// Tasks that a watch begins with: the newest. Of those before, only changes are told.
const FIRST_TASKS: usize = 1000;

const AT_ONCE: usize = 500;

pub struct Watch {
    control: Arc<Control>,
    watched: Watched,
    log: LogFollower,
    first: First,
    ready: VecDeque<Told>,
    /// Taken from the log, and not yet looked into to its end.
    pending: Option<Arc<Event>>,
    /// As far as the log was looked through.
    position: u64,
    /// Up to here the reader may know what the log no longer tells.
    catches_up_to: u64,
    /// What was told at first, with its version: up to this position the log tells the same again.
    shown: BTreeMap<(String, String), u64>,
    shown_upto: u64,
    /// Where only tasks are watched, or only templates.
    templates: Option<Templates>,
}

/// How much of what was there at first has been told.
enum First {
    Resources { after: Option<(String, String)> },
    Tasks,
    Done,
}

impl Control {
    /// Begins with what is there, or goes on behind a position.
    pub async fn watch(
        self: &Arc<Self>,
        watched: Watched,
        after: Option<u64>,
    ) -> Result<Watch, ControlError> {
        let after = match after {
            Some(after) if self.has_position(after).await? => Some(after),
            _ => None,
        };
        let end = self.log_end().await?;
        let first = match (after, watched.mode) {
            (Some(_), _) => First::Done,
            (None, Some(TaskMode::Run)) => First::Tasks,
            (None, Some(TaskMode::Template) | None) => First::Resources { after: None },
        };
        let templates = match watched.mode {
            Some(_) => Some(self.templates(watched.namespace.clone()).await?),
            None => None,
        };
        Ok(Watch {
            control: Arc::clone(self),
            log: self.follow_all(after.unwrap_or(end)),
            watched,
            first,
            ready: VecDeque::new(),
            pending: None,
            position: after.unwrap_or(end),
            shown: BTreeMap::new(),
            shown_upto: 0,
            templates,
            catches_up_to: if after.is_some() { end } else { 0 },
        })
    }
}

impl Watch {
    /// As far as the log was looked through for this watch.
    pub fn position(&self) -> Option<u64> {
        matches!(self.first, First::Done).then_some(self.position)
    }

    /// What comes next; never ends by itself. Nothing is lost if it is dropped half-way.
    pub async fn next(&mut self) -> Result<Told, ControlError> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Ok(told);
            }
            match &self.first {
                First::Resources { after } => {
                    let after = after.clone();
                    self.show_resources(after).await?;
                }
                First::Tasks => self.show_tasks().await?,
                First::Done => {
                    let event = match &self.pending {
                        Some(event) => Arc::clone(event),
                        None => Arc::clone(self.pending.insert(self.log.next().await?)),
                    };
                    let sight = self.sight(&event).await?;
                    (self.pending, self.position) = (None, event.position);
                    self.note(&event);
                    if let Some(sight) = sight.filter(|_| !self.was_shown(&event)) {
                        return Ok(Told::Then { position: event.position, sight });
                    }
                }
            }
        }
    }

    async fn show_resources(&mut self, after: Option<(String, String)>) -> Result<(), ControlError> {
        let Watched { kind, namespace, labels, .. } = &self.watched;
        let filter = ResourceFilter {
            kind: kind.name().to_owned(),
            namespace: namespace.clone(),
            after,
            labels: labels.clone(),
            limit: AT_ONCE,
        };
        let page = self.control.store.resources(filter).await?;
        let next = page.last().map(|last| (last.key.namespace.clone(), last.key.name.clone()));
        let is_last = page.len() < AT_ONCE;
        let mut looked = Looked::default();
        for stored in page.iter().filter(|stored| self.watched.begins_with(stored)) {
            let resource = self.control.judged(restore(stored)?, &mut looked).await?;
            let seen = Seen::Resource(Box::new(resource));
            self.shown.insert((stored.key.namespace.clone(), stored.key.name.clone()), stored.version);
            self.ready.push_back(Told::First(Sight::Added(seen)));
        }
        match (is_last, self.watched.kind, self.watched.mode) {
            (false, _, _) => self.first = First::Resources { after: next },
            (true, Kind::Task, None) => self.first = First::Tasks,
            (true, _, _) => self.complete(),
        }
        Ok(())
    }

    async fn show_tasks(&mut self) -> Result<(), ControlError> {
        let Watched { namespace, name, labels, newer_than, .. } = &self.watched;
        let filter = TaskFilter {
            namespace: namespace.clone(),
            labels: labels.clone(),
            limit: FIRST_TASKS,
            look_at: Some(10 * FIRST_TASKS),
            ..TaskFilter::default()
        };
        let mut rows = match (name, namespace) {
            (Some(name), Some(namespace)) => {
                let (namespace, name) = (namespace.clone(), name.clone());
                let row = self.control.store.task(TaskRef::Name { namespace, name }).await?;
                row.into_iter().filter(|row| labels.matches(&row.task.request.labels)).collect()
            }
            _ => self.control.store.tasks(filter).await?,
        };
        rows.retain(|row| row.task.version > *newer_than && self.watched.is_called(&row.task.name));
        let rows = rows.into_iter().rev();
        self.ready.extend(rows.map(|row| Told::First(Sight::Added(Seen::Task(Box::new(row))))));
        self.complete();
        Ok(())
    }

    fn complete(&mut self) {
        self.first = First::Done;
        self.shown_upto = self.control.store.watch().borrow().position;
        self.ready.push_back(Told::Complete { position: self.position });
    }

    /// Whether it was told at first already.
    fn was_shown(&mut self, event: &Event) -> bool {
        if event.position > self.shown_upto {
            self.shown.clear();
        }
        let EventBody::ResourceChanged(changed) = &event.body else { return false };
        if is_of_ended_task(changed) {
            return false;
        }
        let place = (changed.namespace.clone(), changed.name.clone());
        if changed.change == Change::Deleted {
            self.shown.remove(&place);
            return false;
        }
        self.shown.get(&place).is_some_and(|version| changed.version <= *version)
    }

    fn note(&mut self, event: &Event) {
        if let (Some(templates), EventBody::ResourceChanged(changed)) = (&mut self.templates, &event.body)
            && changed.kind == Kind::Task.name()
        {
            templates.note(changed);
        }
    }

    async fn sight(&self, event: &Event) -> Result<Option<Sight>, ControlError> {
        match &event.body {
            EventBody::ResourceChanged(changed) => self.resource_changed(changed, event.position).await,
            // These write no row of their task.
            EventBody::StepFinished(_) | EventBody::InputAccepted { .. } => Ok(None),
            _ if self.watched.kind != Kind::Task || self.watched.mode == Some(TaskMode::Template) => Ok(None),
            body => {
                let is_new = matches!(body, EventBody::TaskAccepted { .. });
                self.task_changed(event.task, is_new).await
            }
        }
    }

    async fn resource_changed(
        &self,
        changed: &ResourceChanged,
        position: u64,
    ) -> Result<Option<Sight>, ControlError> {
        let ResourceChanged { kind, namespace, name, api_version, change, version, labels, former_labels } =
            changed;
        let watched = &self.watched;
        if *kind != watched.kind.name() || !watched.is_in(namespace) || !watched.is_called(name) {
            return Ok(None);
        }
        let is_template = self.templates.as_ref().and_then(|templates| templates.has(changed, position));
        if is_template.is_some_and(|is_template| is_template != (watched.mode == Some(TaskMode::Template))) {
            return Ok(None);
        }
        let knew = *change != Change::Created && watched.labels.matches(former_labels);
        if *change == Change::Deleted || !watched.labels.matches(labels) {
            // Of what was told in between, and is forgotten, the reader may have known it.
            let may_have_known = knew || position <= self.catches_up_to;
            let (api_version, kind) = (api_version.clone(), watched.kind);
            let (namespace, name) = (namespace.clone(), name.clone());
            let gone = Gone { api_version, kind, namespace, name, version: *version };
            return Ok(may_have_known.then_some(Sight::Deleted(gone)));
        }
        if is_of_ended_task(changed) {
            let place = TaskRef::Name { namespace: namespace.clone(), name: name.clone() };
            let row = self.control.store.task(place).await?;
            return Ok(row.map(|row| Sight::Updated(Seen::Task(Box::new(row)))));
        }
        let Some(resource) = self.control.resource(watched.kind, namespace, name).await? else {
            return Ok(None);
        };
        if !watched.labels.matches(&resource.metadata.labels) {
            return Ok(None);
        }
        let seen = Seen::Resource(Box::new(resource));
        Ok(Some(if knew { Sight::Updated(seen) } else { Sight::Added(seen) }))
    }

    async fn task_changed(&self, task: TaskId, is_new: bool) -> Result<Option<Sight>, ControlError> {
        let watched = &self.watched;
        let Some(row) = self.control.store.task(TaskRef::Id(task)).await? else { return Ok(None) };
        let is_meant = watched.is_in(&row.task.namespace)
            && watched.is_called(&row.task.name)
            && watched.labels.matches(&row.task.request.labels);
        let seen = Seen::Task(Box::new(row));
        Ok(is_meant.then_some(if is_new { Sight::Added(seen) } else { Sight::Updated(seen) }))
    }
}

/// A task that was put out of sight. Of a template nothing is found out, so it has no such change.
fn is_of_ended_task(changed: &ResourceChanged) -> bool {
    changed.kind == Kind::Task.name() && changed.change == Change::Status
}

impl Watched {
    fn is_in(&self, namespace: &str) -> bool {
        self.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
    }

    fn is_called(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|wanted| wanted == name)
    }

    fn begins_with(&self, stored: &StoredResource) -> bool {
        stored.version > self.newer_than && self.is_called(&stored.key.name)
    }
}

/// Every event of the store, each with the task it belongs to.
pub struct EventWatch {
    control: Arc<Control>,
    log: LogFollower,
    /// Taken from the log, and not yet given.
    pending: Option<Arc<Event>>,
    position: u64,
    tasks: BTreeMap<TaskId, Option<Place>>,
}

/// A namespace and a name.
pub type Place = (String, String);

/// Whose name is kept at hand.
const KNOWN_TASKS: usize = 1024;

impl Control {
    /// Every event behind a position, or from now on.
    pub async fn watch_events(self: &Arc<Self>, after: Option<u64>) -> Result<EventWatch, ControlError> {
        let after = match after {
            Some(after) if self.has_position(after).await? => after,
            // Of a store that was put back, perhaps: what comes from now on is told.
            Some(_) | None => self.log_end().await?,
        };
        let (control, log) = (Arc::clone(self), self.follow_all(after));
        Ok(EventWatch { control, log, pending: None, position: after, tasks: BTreeMap::new() })
    }
}

impl EventWatch {
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next event, with the place of its task. Never ends by itself; nothing is lost if it is dropped half-way.
    pub async fn next(&mut self) -> Result<(Arc<Event>, Option<Place>), StoreError> {
        let event = match &self.pending {
            Some(event) => Arc::clone(event),
            None => Arc::clone(self.pending.insert(self.log.next().await?)),
        };
        let place = self.place(&event).await?;
        (self.pending, self.position) = (None, event.position);
        Ok((event, place))
    }

    async fn place(&mut self, event: &Event) -> Result<Option<Place>, StoreError> {
        if let EventBody::ResourceChanged(changed) = &event.body {
            return Ok(Some((changed.namespace.clone(), changed.name.clone())));
        }
        if let Some(known) = self.tasks.get(&event.task) {
            return Ok(known.clone());
        }
        if self.tasks.len() >= KNOWN_TASKS {
            self.tasks.clear();
        }
        let row = self.control.store.task(TaskRef::Id(event.task)).await?;
        let place = row.map(|row| (row.task.namespace, row.task.name));
        self.tasks.insert(event.task, place.clone());
        Ok(place)
    }
}
