//! The screen on a real terminal: one loop owns the state; keys and looks at the server come to it as happenings.

use std::{
    io::{self, Stdout},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ostler_client::{ClientError, StepView};
use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor, event, execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};
use tokio::sync::{mpsc, watch};

use super::{
    draw::{self, Look},
    feed::Feed,
    keys,
    picture::Picture,
    state::{Link, State},
};
use crate::{app::App, error::CommandError, exit::Exit};

/// What can happen to the screen.
enum Happening {
    Saw(Picture),
    Missed(ClientError),
    Steps {
        uid: String,
        steps: Vec<StepView>,
    },
    Key(event::KeyEvent),
    /// The window has another size, or something else asks for a new picture.
    Redraw,
}

const ROOM: usize = 64;

/// How often whoever reads keys looks whether it is still wanted.
const KEY_PATIENCE: Duration = Duration::from_millis(100);

pub async fn run(mut state: State, feed: Feed, app: &App) -> Result<Exit, CommandError> {
    let (happens, mut happenings) = mpsc::channel(ROOM);
    let keys = Keys::read(happens.clone());
    let mut screen = Screen::open()?;
    let look = Look { has_colour: app.output.terminal.stdout.has_colour, has_keys: true, is_whole: false };
    let following = feed.follow(async || {
        let happening = match feed.look().await {
            Ok(picture) => Happening::Saw(picture),
            Err(error) => Happening::Missed(error),
        };
        // The screen is gone: then so are we, at the next await.
        let _ = happens.send(happening).await;
    });
    let (wanted, wants) = watch::channel(None);
    let fetching = fetch_steps(&feed, wants, &happens);
    let showing = async {
        screen.draw(&state, look)?;
        while let Some(happening) = happenings.recv().await {
            let goes_on = match happening {
                Happening::Saw(picture) => {
                    state.saw(picture, app.now_ms());
                    true
                }
                Happening::Missed(error) => {
                    state.missed(error.to_string());
                    true
                }
                Happening::Steps { uid, steps } => {
                    state.steps_came(&uid, steps);
                    true
                }
                Happening::Key(key) => match keys::action(key, state.is_filtering) {
                    Some(action) => state.act(action),
                    None => true,
                },
                Happening::Redraw => true,
            };
            if !goes_on {
                return Ok(());
            }
            ask_for_steps(&state, &wanted);
            screen.draw(&state, look)?;
        }
        Ok(())
    };
    let shown: Result<(), CommandError> = tokio::select! {
        shown = showing => shown,
        () = following => Ok(()),
        () = fetching => Ok(()),
    };
    drop(screen);
    drop(keys);
    shown.map(|()| Exit::Ok)
}

/// A task whose steps are to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    namespace: String,
    uid: String,
    /// The picture that they belong to.
    at: i64,
}

/// The steps of the task that is open, each time the picture is a new one.
fn ask_for_steps(state: &State, wanted: &watch::Sender<Option<Wanted>>) {
    let Some(detail) = &state.detail else { return };
    if state.link != Link::Live || detail.steps_at == Some(state.now_ms) {
        return;
    }
    let (namespace, uid) = (detail.row.namespace.clone(), detail.row.uid.clone());
    let want = Some(Wanted { namespace, uid, at: state.now_ms });
    wanted.send_if_modified(|former| {
        let is_new = *former != want;
        *former = want;
        is_new
    });
}

/// Fetches what is wanted beside the screen, which goes on whether the server answers or not.
async fn fetch_steps(
    feed: &Feed,
    mut wants: watch::Receiver<Option<Wanted>>,
    happens: &mpsc::Sender<Happening>,
) {
    while wants.changed().await.is_ok() {
        loop {
            let Some(want) = wants.borrow_and_update().clone() else { break };
            let mut others = wants.clone();
            let another = |now: &Option<Wanted>| now.as_ref().is_some_and(|now| now.uid != want.uid);
            let steps = tokio::select! {
                steps = feed.steps(&want.namespace, &want.uid) => steps,
                // Somebody has turned to another task meanwhile.
                Ok(_) = others.wait_for(another) => continue,
            };
            if let Ok(steps) = steps {
                // The screen is gone: then so are we, at the next await.
                let _ = happens.send(Happening::Steps { uid: want.uid, steps }).await;
            }
            break;
        }
    }
}

/// A thread that waits for keys, as terminals give them only to who stands still for them.
struct Keys {
    is_over: Arc<AtomicBool>,
}

impl Keys {
    fn read(happens: mpsc::Sender<Happening>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let happening = match event::poll(KEY_PATIENCE)
                    .and_then(|is_there| is_there.then(event::read).transpose())
                {
                    Ok(Some(event::Event::Key(key))) => Happening::Key(key),
                    Ok(Some(event::Event::Resize(..))) => Happening::Redraw,
                    Ok(_) => continue,
                    Err(_) => return,
                };
                if happens.blocking_send(happening).is_err() {
                    return;
                }
            }
        });
        Self { is_over }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// The terminal while it is ours; dropping it gives it back as it was.
struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    fn open() -> Result<Self, CommandError> {
        let failed = |error: io::Error| CommandError::error(format!("can't draw on the terminal: {error}"));
        enable_raw_mode().map_err(failed)?;
        let opened = execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match opened {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                give_back();
                Err(failed(error))
            }
        }
    }

    fn draw(&mut self, state: &State, look: Look) -> Result<(), CommandError> {
        let drawn = self.0.draw(|frame| {
            let area = frame.area();
            draw::picture(state, look, area, frame.buffer_mut());
        });
        drawn.map(drop).map_err(|error| CommandError::error(format!("can't draw on the terminal: {error}")))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    // If that fails there is nobody left to tell.
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}
