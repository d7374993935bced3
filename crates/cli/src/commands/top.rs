//! `ostler top`: a live screen of the queue, the runs, tokens, cost and workers.

mod detail;
mod draw;
mod feed;
mod keys;
mod live;
mod picture;
mod state;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{app::App, error::CommandError, exit::Exit};

use self::{draw::Look, feed::Feed, state::State};

/// Shows what is going on, live: queue, tasks, tokens, cost, workers
///
/// Keys: arrows or j and k choose a task, enter shows its steps, s sorts by another column, / filters by name, agent or
/// state, p holds the picture still, q ends. If the server goes away, the screen says so and goes on when it is back.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Tasks of all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Print one picture as plain text, and end
    #[arg(long)]
    once: bool,

    /// Only tasks whose name, agent or state has this in it
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,

    /// By which column to sort
    #[arg(long, value_enum, default_value_t = state::Sort::Age)]
    sort: state::Sort,
}

const EXAMPLES: &str = "\
Examples:
  ostler top
  ostler top -A --sort cost
  ostler top --once --filter running    # for scripts";

/// What `--once` draws on if there is no terminal to ask.
const ROWS: u16 = 40;

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let mut client = app.client()?;
    if arguments.all_namespaces {
        client = client.in_namespace("*");
    }
    let namespace = if arguments.all_namespaces { "all namespaces" } else { client.namespace() };
    let title = format!("{} {namespace}", client.base_url().trim_end_matches('/'));
    let state = State::new(title, arguments.filter, arguments.sort);
    let feed = Feed::new(client, app.runtime.clone());
    if arguments.once {
        return once(state, &feed, app).await;
    }
    if !app.output.terminal.can_redraw(app.output.terminal.stdout) {
        return Err(CommandError::new(Exit::Usage, "there is no terminal to draw on")
            .with_remedy("`ostler top --once` prints one picture as text"));
    }
    live::run(state, feed, app).await
}

async fn once(mut state: State, feed: &Feed, app: &App) -> Result<Exit, CommandError> {
    state.saw(feed.look().await?, app.now_ms());
    state.select_none();
    let room = app.output.room();
    let look = Look { has_colour: false, has_keys: false, is_whole: room.is_none() };
    // A pipe takes any width, so nothing is cut off for it.
    let columns = room.map_or_else(|| draw::columns_needed(&state).max(80), |room| room.columns);
    let area = Rect::new(0, 0, u16::try_from(columns).unwrap_or(u16::MAX), ROWS);
    let mut buffer = Buffer::empty(area);
    draw::picture(&state, look, area, &mut buffer);
    let mut lines = draw::lines(&buffer);
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    app.output.lines(&lines)?;
    Ok(Exit::Ok)
}
