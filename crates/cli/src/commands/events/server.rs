use futures_util::StreamExt;
use ostler_client::{Client, EventQuery, Watched};
use ostler_spec::Kind;
use serde_json::Value;

use crate::{
    app::App,
    clock,
    error::CommandError,
    exit::Exit,
    follow::keep_trying,
    format::Plain,
    table::{Cell, Table},
};

/// Which events are shown, and how.
pub struct Look {
    pub after: u64,
    pub format: Plain,
    /// They may be of any namespace, so each says of which.
    pub with_namespace: bool,
}

pub async fn watch(app: &App, client: &Client, look: &Look) -> Result<Exit, CommandError> {
    let query = EventQuery { since: (look.after > 0).then_some(look.after), ..EventQuery::default() };
    let mut stream = client.watch_events(&query);
    let mut rows = Rows { app, look, widths: Vec::new() };
    rows.begin()?;
    while let Some(item) = stream.next().await {
        match item? {
            Watched::Came(event) => rows.show(&event)?,
            Watched::Reconnecting { attempt, wait, error } => {
                let why = keep_trying(attempt, error)?;
                app.output.note(format!("{why}; trying again in {}", clock::took(wait)));
            }
        }
    }
    Ok(Exit::Ok)
}

const ROOM_FOR_DAYS: usize = 120;

struct Rows<'a> {
    app: &'a App,
    look: &'a Look,
    widths: Vec<usize>,
}

impl Rows<'_> {
    /// Prints the head, above columns as wide as those that usually come.
    fn begin(&mut self) -> Result<(), CommandError> {
        if self.look.format == Plain::Json {
            return Ok(());
        }
        let (paint, room) = (self.app.output.paint(), self.app.output.room());
        let usual = ["0000-00-00T00:00:00.000Z", "default", "resource.created", "task/a-short-name", ""];
        let mut sample = self.table();
        sample.row(self.cells(usual.map(str::to_owned)));
        self.widths = sample.widths(room);
        self.app.output.note_left_out(&sample, room);
        self.app.output.lines(&self.table().lines_in(&self.widths, paint, room))
    }

    fn show(&mut self, event: &Value) -> Result<(), CommandError> {
        let output = self.app.output;
        if self.look.format == Plain::Json {
            return output.json_line(event);
        }
        let field = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut table = self.table();
        let object = object(&field("kind"), &field("name"));
        table.row(self.cells([
            field("timestamp"),
            field("namespace"),
            field("type"),
            object,
            field("message"),
        ]));
        let line = table.next_line(&mut self.widths, output.paint(), output.room());
        output.data(line.unwrap_or_default().trim_end())
    }

    fn table(&self) -> Table {
        let namespace = self.look.with_namespace.then_some("NAMESPACE");
        Table::new(["TIME"].into_iter().chain(namespace).chain(["TYPE", "OBJECT", "WHAT"]))
    }

    fn cells(&self, [time, namespace, kind, object, what]: [String; 5]) -> impl Iterator<Item = Cell> {
        let namespace = self.look.with_namespace.then_some(namespace);
        // Where there is little room, whoever watches knows which day it is.
        let is_narrow = self.app.output.room().is_some_and(|room| room.columns < ROOM_FOR_DAYS);
        let time = match time.split_once('T').filter(|_| is_narrow) {
            Some((_, of_day)) => of_day.to_owned(),
            None => time,
        };
        [Some(time), namespace, Some(kind), Some(object), Some(what)].into_iter().flatten().map(Cell::from)
    }
}

/// As other commands take it: `task/hello-1`.
fn object(kind: &str, name: &str) -> String {
    let kind = Kind::from_word(kind).map_or_else(|| kind.to_lowercase(), Kind::singular);
    format!("{kind}/{name}")
}
