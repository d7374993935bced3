//! `ostler get -w`: what is there, then a row for everything that changes. A connection that drops is made again, and
//! nothing is shown twice because of it.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use ostler_client::{Change, ChangeKind, Client, WatchQuery, Watched};
use ostler_spec::Kind;
use serde_json::{Value, json};

use super::{
    Arguments,
    columns::{self, text_at},
};
use crate::{
    app::App,
    clock,
    commands::{
        listing::{list, name_of},
        missing::or_explain,
        target::Target,
    },
    error::CommandError,
    exit::Exit,
    follow::keep_trying,
    format::Format,
};

pub async fn run(
    arguments: &Arguments,
    target: &Target,
    client: &Client,
    app: &App,
) -> Result<Exit, CommandError> {
    let (name, selector) = (target.name.clone(), arguments.selector.clone());
    let query = WatchQuery { name, selector, templates: arguments.templates };
    let mut rows = Rows {
        app,
        arguments,
        kind: target.kind,
        is_named: target.name.is_some(),
        seen: BTreeMap::new(),
        known_until_ms: None,
        widths: Vec::new(),
    };
    if arguments.output.is_table() {
        // A table needs to know how wide its columns are before its first row.
        rows.begin(client, target).await?;
    }
    let mut stream = client.watch(target.kind, &query);
    while let Some(item) = stream.next().await {
        match item? {
            Watched::Came(change) => rows.take(&change)?,
            Watched::Reconnecting { attempt, wait, error } => {
                let why = keep_trying(attempt, error)?;
                app.output.note(format!("{why}; trying again in {}", clock::took(wait)));
            }
        }
    }
    Ok(Exit::Ok)
}

struct Rows<'a> {
    app: &'a App,
    arguments: &'a Arguments,
    kind: Kind,
    /// One was named, so whatever comes is meant.
    is_named: bool,
    /// The version of each that was shown last.
    seen: BTreeMap<(String, String), String>,
    /// There are too many to show them all: those that were made before this are shown once they change.
    known_until_ms: Option<i64>,
    widths: Vec<usize>,
}

impl Rows<'_> {
    /// Shows what is there.
    async fn begin(&mut self, client: &Client, target: &Target) -> Result<(), CommandError> {
        let objects = match &target.name {
            Some(name) => {
                let object = client.get(target.kind, name).await;
                vec![or_explain(client, target.kind, name, object).await?]
            }
            None => {
                let listing = self.arguments.listing(target.kind);
                let (selector, limit) = (self.arguments.selector.as_deref(), self.arguments.limit(listing));
                let listed = list(client, listing, selector, limit).await?;
                if listed.has_more {
                    self.known_until_ms = listed.items.iter().filter_map(created_ms).max();
                }
                listed.items
            }
        };
        for object in &objects {
            self.seen.insert(key(object), text_at(object, "/metadata/resourceVersion"));
        }
        let table = columns::table(self.kind, &objects, self.look());
        let (paint, room) = (self.app.output.paint(), self.app.output.room());
        self.widths = table.steady_widths(room);
        self.app.output.note_left_out(&table, room);
        self.app.output.lines(&table.lines_in(&self.widths, paint, room))
    }

    fn take(&mut self, change: &Change) -> Result<(), CommandError> {
        let Change { kind, resource } = change;
        let version = text_at(resource, "/metadata/resourceVersion");
        if !self.is_wanted(*kind, resource) {
            return Ok(());
        }
        let known = match kind {
            ChangeKind::Deleted => {
                self.seen.remove(&key(resource));
                None
            }
            // After a new connection a server may tell what we know.
            _ => self.seen.insert(key(resource), version.clone()),
        };
        let is_old = || created_ms(resource) <= self.known_until_ms;
        let is_left_out =
            *kind == ChangeKind::Added && known.is_none() && self.known_until_ms.is_some() && is_old();
        if is_left_out || known.is_some_and(|known| known == version && !version.is_empty()) {
            return Ok(());
        }
        self.show(*kind, resource)
    }

    /// Of tasks that are gone the name alone comes, and a template may have had it: it counts whether it was shown.
    fn is_wanted(&self, kind: ChangeKind, resource: &Value) -> bool {
        self.kind != Kind::Task
            || self.is_named
            || kind != ChangeKind::Deleted
            || self.seen.contains_key(&key(resource))
    }

    fn show(&mut self, kind: ChangeKind, resource: &Value) -> Result<(), CommandError> {
        let output = self.app.output;
        let title = || format!("{}/{}", self.kind.singular(), name_of(resource));
        match self.arguments.output {
            Format::Json => output.json_line(&json!({ "type": kind, "resource": resource })),
            Format::Yaml => {
                output.data("---")?;
                output.yaml(resource)
            }
            Format::Name => output.data(format!("{} {}", title(), word(kind))),
            Format::Table | Format::Wide => {
                let table = columns::table(self.kind, std::slice::from_ref(resource), self.look());
                let line = table.next_line(&mut self.widths, output.paint(), output.room());
                let mark = if kind == ChangeKind::Deleted { "   (deleted)" } else { "" };
                output.data(format!("{}{mark}", line.unwrap_or_default()))
            }
        }
    }

    fn look(&self) -> columns::Look {
        self.arguments.look(self.arguments.output == Format::Wide, self.app)
    }
}

fn created_ms(object: &Value) -> Option<i64> {
    clock::parse(&text_at(object, "/metadata/createdAt"))
}

fn key(object: &Value) -> (String, String) {
    (text_at(object, "/metadata/namespace"), text_at(object, "/metadata/name"))
}

fn word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Updated => "updated",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Other => "changed",
    }
}
