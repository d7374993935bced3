//! How it goes, and what came of it.

use std::{
    fmt,
    sync::Mutex,
    time::{Duration, Instant},
};

use super::{
    Settings,
    faults::{Fault, Hands},
};
use crate::load::{Figures, Journal, Verdict};

const SAY_EVERY: Duration = Duration::from_secs(10);

/// From so long on, every kind of fault has to have been met.
const COVERAGE_FROM: Duration = Duration::from_mins(5);

/// Says now and then how it goes.
pub struct Progress {
    say: Option<fn(&str)>,
    began: Instant,
    figures: Figures,
    said_at: Mutex<Instant>,
}

impl Progress {
    pub fn new(settings: &Settings, began: Instant, figures: Figures) -> Self {
        Self { say: settings.progress, began, figures, said_at: Mutex::new(began) }
    }

    pub fn look(&self, journal: &Journal, hands: &Hands<'_>) {
        let mut said_at = self.said_at.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(say) = self.say.filter(|_| said_at.elapsed() >= SAY_EVERY) else { return };
        *said_at = Instant::now();
        let n_faults: u32 = hands.survived().iter().map(|(_, n)| n).sum();
        let (accepted, live) = (self.figures.answered(), self.figures.live());
        let (n_steps, attempts) = (journal.finished().len(), journal.attempts());
        let n_wrong = journal.violations().count();
        say(&format!(
            "{:>4} s: {n_faults} faults, {accepted} tasks accepted, {live} live, {n_steps} steps, {} attempts lost, \
             {} given up{}",
            self.began.elapsed().as_secs(),
            attempts.n_lost,
            attempts.n_yielded,
            if n_wrong == 0 { String::new() } else { format!(", {n_wrong} WRONG") },
        ));
    }
}

/// What came of it.
pub struct Outcome {
    pub verdict: Verdict,
    pub survived: Vec<(Fault, u32)>,
    /// Attempts that were lost to a lease, and those that were given up.
    pub attempts: (u64, u64),
    /// Both while nothing but clocks were touched.
    pub lost_by_clocks: u64,
    /// Events that bear the time of a clock that was off.
    pub n_off: u64,
    /// Requests that were sent again.
    pub again: u64,
    /// Starts of a server that failed because its database was away.
    pub n_false_starts: u32,
    /// What this machine could not do.
    pub skipped: Vec<Fault>,
    /// Tasks that were given an input while they were worked on.
    pub n_given: usize,
    /// As many were to be created.
    pub tasks: u64,
    pub duration: Duration,
    pub elapsed: Duration,
}

impl Outcome {
    fn count(&self, wanted: Fault) -> u32 {
        self.survived.iter().filter(|(fault, _)| *fault == wanted).map(|(_, n)| n).sum()
    }

    /// Everything that is wrong; empty if all holds.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = self.verdict.failures.clone();
        if (self.verdict.n_tasks as u64) < self.tasks {
            let (n_tasks, tasks) = (self.verdict.n_tasks, self.tasks);
            failures.push(format!(
                "only {n_tasks} of {tasks} tasks were there to be hurt: the others waited too long"
            ));
        }
        if self.lost_by_clocks > 0 {
            let n = self.lost_by_clocks;
            failures.push(format!("{n} attempts ended while nothing but calendars jumped"));
        }
        let n_pauses = self.count(Fault::WorkerPausedPastLease) + self.count(Fault::WorkerPaused);
        if self.verdict.n_late > n_pauses as usize {
            let n_late = self.verdict.n_late;
            failures.push(format!(
                "{n_late} calls of finished steps came late, and workers were paused {n_pauses} times"
            ));
        }
        let n_jumps = self.count(Fault::ClockForward) + self.count(Fault::ClockBack);
        if n_jumps > 10 && self.n_off == 0 {
            failures.push(format!("clocks jumped {n_jumps} times, and no event bears such a time"));
        }
        if self.duration >= COVERAGE_FROM {
            let missing = self.survived.iter().filter(|(fault, n)| *n == 0 && !self.skipped.contains(fault));
            failures.extend(missing.map(|(fault, _)| format!("not once: {}", fault.name())));
        }
        failures
    }

    /// A line for each kind of fault.
    pub fn faults(&self) -> Vec<String> {
        let line = |(fault, n): &(Fault, u32)| match self.skipped.contains(fault) {
            true => format!("{:>28}  skipped: needs mounts of its own, or libfaketime", fault.name()),
            false => format!("{:>28}  survived {n} times", fault.name()),
        };
        let starts =
            format!("{:>28}  {} starts failed, and were tried again", "no database", self.n_false_starts);
        self.survived.iter().map(line).chain([starts]).collect()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { n_tasks, n_succeeded, n_cancelled, n_steps, .. } = &self.verdict;
        let Verdict { n_repeated, n_gaps, n_unknown, n_late, .. } = &self.verdict;
        let n_faults: u32 = self.survived.iter().map(|(_, n)| n).sum();
        let n_kinds = self.survived.iter().filter(|(_, n)| *n > 0).count();
        write!(
            formatter,
            "chaos: {n_faults} faults of {n_kinds} kinds, {n_succeeded} of {n_tasks} tasks succeeded, "
        )?;
        write!(formatter, "{n_cancelled} cancelled, {} given an input, ", self.n_given)?;
        write!(
            formatter,
            "{n_steps} steps, {n_repeated} repeated, {n_gaps} gaps, {n_unknown} outcome_unknown, "
        )?;
        write!(
            formatter,
            "{} attempts lost, {} given up, {n_late} late calls, ",
            self.attempts.0, self.attempts.1
        )?;
        write!(formatter, "{} requests sent again, {:.0} s", self.again, self.elapsed.as_secs_f64())
    }
}
