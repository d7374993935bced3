//! Follows a task until it ends: on a terminal as a picture that moves, in a pipe as lines.

mod board;
mod screen;

use std::{pin::pin, time::Duration};

use futures_util::StreamExt;
use ostler_client::{
    Client, ClientError, EventBody, EventView, Followed, TaskView,
    view::{FailureView, StateName, UsageView},
};

use self::{board::Board, screen::Screen};
use crate::{app::App, clock, error::CommandError, output::Output, words};

/// How following ended.
pub enum End {
    Task(Box<Ended>),
    /// The person left; the task goes on.
    Detached,
}

pub struct Ended {
    pub state: StateName,
    pub output: Option<String>,
    pub failure: Option<FailureView>,
    pub usage: UsageView,
    /// From the moment it was accepted.
    pub took_ms: i64,
    /// Steps finished.
    pub steps: usize,
}

/// About five minutes of nobody there.
const TRIES: u32 = 60;

/// What to say about a connection that dropped, unless it is time to give up.
pub fn keep_trying(attempt: u32, error: ClientError) -> Result<String, CommandError> {
    if attempt < TRIES { Ok(error.to_string()) } else { Err(error.into()) }
}

/// How often the picture moves.
const FRAME: Duration = Duration::from_millis(80);

/// Shows the task from its beginning to its end.
pub async fn follow(app: &App, client: &Client, task: &TaskView) -> Result<End, CommandError> {
    let mut show = Show::new(app, client, &task.metadata.uid);
    let mut stream = client.follow(&task.metadata.uid, 0);
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    let mut frame = app.runtime.sleep(FRAME);
    let mut log = Log { first_ms: None, steps: 0 };
    loop {
        tokio::select! {
            biased;
            _ = &mut interrupted => return Ok(End::Detached),
            () = &mut frame => {
                show.redraw();
                frame = app.runtime.sleep(FRAME);
            }
            item = stream.next() => match item {
                Some(Ok(Followed::Event(event))) => {
                    if let Some(ended) = log.take(&event) {
                        return Ok(End::Task(Box::new(ended)));
                    }
                    show.event(&event).await;
                }
                Some(Ok(Followed::Delta(delta))) => show.delta(&delta),
                Some(Ok(Followed::Reconnecting { attempt, wait, error })) => {
                    show.reconnecting(attempt, wait, &keep_trying(attempt, error)?);
                }
                Some(Err(error)) => return Err(error.into()),
                None => return Err(CommandError::error("the server stopped showing the task before it ended")),
            }
        }
    }
}

/// What the end of a task is told with.
struct Log {
    first_ms: Option<i64>,
    steps: usize,
}

impl Log {
    fn take(&mut self, event: &EventView) -> Option<Ended> {
        let first_ms = *self.first_ms.get_or_insert(event.at_ms);
        match &event.body {
            EventBody::StepFinished(_) => {
                self.steps += 1;
                None
            }
            EventBody::TaskEnded { state, output, failure, usage } => Some(Ended {
                state: state.clone(),
                output: output.clone(),
                failure: failure.clone(),
                usage: *usage,
                took_ms: event.at_ms.saturating_sub(first_ms),
                steps: self.steps,
            }),
            _ => None,
        }
    }
}

/// Who watches.
enum Show<'a> {
    Terminal { board: Board, screen: Screen, client: &'a Client, task: &'a str },
    Pipe { output: Output },
}

impl<'a> Show<'a> {
    fn new(app: &App, client: &'a Client, task: &'a str) -> Self {
        let output = app.output;
        if !output.terminal.can_redraw(output.terminal.stderr) {
            return Show::Pipe { output };
        }
        let board = Board::new(app.runtime.clone());
        Show::Terminal { board, screen: Screen::new(output.terminal), client, task }
    }

    async fn event(&mut self, event: &EventView) {
        match self {
            Show::Pipe { output } => output.note(words::progress(event)),
            Show::Terminal { board, screen, client, task } => {
                let lines = board.event(event, screen.look());
                screen.keep(&lines);
                // Only here the log doesn't name what begins.
                if let EventBody::AttemptStarted { step, .. } = &event.body {
                    let steps = client.steps(task).await.unwrap_or_default();
                    board.attempt(*step, &steps);
                }
                screen.draw(&board.lines(screen.look()));
            }
        }
    }

    fn delta(&mut self, delta: &ostler_client::DeltaView) {
        match self {
            Show::Pipe { .. } => {}
            Show::Terminal { board, .. } => board.delta(delta),
        }
    }

    fn reconnecting(&mut self, attempt: u32, wait: Duration, why: &str) {
        match self {
            Show::Pipe { output } => {
                output.note(format!("{why}; trying again in {} (try {attempt})", clock::took(wait)));
            }
            Show::Terminal { board, .. } => board.reconnecting(attempt, why),
        }
    }

    fn redraw(&mut self) {
        match self {
            Show::Pipe { .. } => {}
            Show::Terminal { board, screen, .. } => screen.draw(&board.lines(screen.look())),
        }
    }
}
