//! What happens on the server, as it happens: resources that change, tasks that move, workers that come and go.

use futures_util::StreamExt;
use ostler_client::{Client, EventQuery, Watched};
use serde_json::Value;

use crate::{
    app::App, clock, error::CommandError, exit::Exit, follow::keep_trying, format::Plain, paint::Tone, text,
};

pub async fn watch(app: &App, client: &Client, after: u64, format: Plain) -> Result<Exit, CommandError> {
    let query = EventQuery { since: (after > 0).then_some(after), ..EventQuery::default() };
    let mut stream = client.watch_events(&query);
    if format == Plain::Table {
        let head = columns("TIME", "TYPE", "OBJECT", "WHAT");
        app.output.data(app.output.paint().tone(Tone::Strong, &head))?;
    }
    while let Some(item) = stream.next().await {
        match item? {
            Watched::Came(event) => show(app, &event, format)?,
            Watched::Reconnecting { attempt, wait, error } => {
                let why = keep_trying(attempt, error)?;
                app.output.note(format!("{why}; trying again in {}", clock::took(wait)));
            }
        }
    }
    Ok(Exit::Ok)
}

fn show(app: &App, event: &Value, format: Plain) -> Result<(), CommandError> {
    if format == Plain::Json {
        return app.output.json_line(event);
    }
    let field = |name: &str| text::one_line(event.get(name).and_then(Value::as_str).unwrap_or_default());
    let object = match (field("kind").to_lowercase(), field("namespace")) {
        (kind, space) if space.is_empty() => format!("{kind}/{}", field("name")),
        (kind, space) => format!("{kind}/{}.{space}", field("name")),
    };
    // What happened is why one looks: where there is no room for it, the line goes on.
    app.output.data(columns(&field("timestamp"), &field("type"), &object, &field("message")))
}

/// Wide enough for what they hold, so that a line never has to wait for the next one.
fn columns(time: &str, kind: &str, object: &str, what: &str) -> String {
    format!("{time:<24}   {kind:<22}   {object:<32}   {what}").trim_end().to_owned()
}
