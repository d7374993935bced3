//! `ostler top`: as text for scripts, and on a real terminal with keys.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "somebody sits in front of a real terminal")]

mod support;

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::{Read, Write},
    num::NonZero,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    process::{Child, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    process::Signal,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use support::{Up, ostler, run};

const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: NonZero<u16> = NonZero::new(24).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(80).unwrap();

#[test]
fn one_picture_is_plain_text() {
    let up = Up::with_hello();
    up.ostler(["run", "hello", "hi", "--name", "one"]).ok();
    let shown = up.ostler(["top", "--once"]);
    let text = shown.ok();
    assert!(text.starts_with(&format!("ostler top  {} default  live\n", up.url())), "{text}");
    for words in
        ["tasks   queued 0   running 0", "tokens  ", "local", "Ready", "0/64", "one", "hello", "succeeded"]
    {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let long = "a-task-with-a-name-that-is-too-long-for-eighty-columns-beside-all-the-rest";
    up.ostler(["run", "hello", "hi", "--name", long]).ok();
    let whole = up.ostler(["top", "--once"]);
    assert!(whole.ok().contains(&format!("\n{long} hello ")), "{whole:?}");
    let other = up.ostler(["top", "--once", "--filter", "nobody"]);
    assert!(other.ok().contains("no task matches the filter"), "{other:?}");
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let up = Up::with_hello();
    run(ostler(up.folder()).arg("top")).failed(2, &["no terminal", "--once"]);
    up.stop();
}

/// A command on a terminal of its own, with somebody who reads and types.
struct Seat {
    child: Child,
    keys: File,
    came: mpsc::Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Seat {
    fn take(up: &Up) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let path = ptsname(&ours, Vec::new()).unwrap();
        let theirs: OwnedFd = OpenOptions::new()
            .read(true)
            .write(true)
            .open(OsStr::from_bytes(path.as_bytes()))
            .unwrap()
            .into();
        tcsetwinsize(
            &theirs,
            Winsize { ws_row: ROWS.get(), ws_col: COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 },
        )
        .unwrap();
        let stdio = || Stdio::from(theirs.try_clone().unwrap());
        let mut command = ostler(up.folder());
        command.arg("top").env("NO_COLOR", "1").env("TERM", "xterm");
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        let keys = File::from(ours.try_clone().unwrap());
        let (sender, came) = mpsc::channel();
        let mut screen = File::from(ours);
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = screen.read(&mut piece) {
                if sender.send(piece[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keys, came, screen: vt100::Parser::new(ROWS, COLUMNS, 0) }
    }

    /// Until a person would read it: what is sent are only the letters that changed, so they are drawn first.
    fn wait_for(&mut self, words: &str) {
        let began = Instant::now();
        while !self.screen.screen().contents().contains(words) {
            // The picture may change for ever, and never say it.
            let left = PATIENCE.saturating_sub(began.elapsed());
            let Ok(piece) = self.came.recv_timeout(left) else {
                panic!("no {words:?} in\n{}", self.screen.screen().contents())
            };
            self.screen.process(&piece);
        }
    }

    /// Until it lets go of its terminal.
    fn wait_for_end(&mut self) {
        let began = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(began.elapsed());
            match self.came.recv_timeout(left) {
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    self.child.kill().unwrap();
                    panic!("it goes on:\n{}", self.screen.screen().contents())
                }
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }
}

#[test]
fn a_screen_follows_its_keys_and_outlives_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let address = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().to_string()
    };
    let up = Up::start_at(folder.path(), &address);
    up.ostler(["apply", "-f", &support::example("hello/agent.yaml")]).ok();
    up.ostler(["run", "hello", "hi", "--name", "first"]).ok();
    let mut seat = Seat::take(&up);
    seat.wait_for("first");
    seat.press("\r");
    seat.wait_for("mock-1");
    seat.press("\u{1b}");
    seat.wait_for("choose");
    up.signal(Signal::KILL);
    seat.wait_for("reconnecting");
    drop(up);
    let up = Up::start_at(folder.path(), &address);
    seat.wait_for("live");
    up.ostler(["run", "hello", "hi", "--name", "second"]).ok();
    seat.wait_for("second");
    seat.press("q");
    assert_eq!(seat.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_server_that_hangs_keeps_nobody_at_the_screen() {
    let up = Up::with_hello();
    up.ostler(["run", "hello", "hi", "--name", "first"]).ok();
    let mut seat = Seat::take(&up);
    seat.wait_for("first");
    up.signal(Signal::STOP);
    seat.press("\r");
    seat.press("q");
    seat.wait_for_end();
    assert_eq!(seat.child.wait().unwrap().code(), Some(0));
    up.signal(Signal::CONT);
}
