//! Collects the problems of one text while its documents are read, each with the place and path it was met at.

use crate::node::Mark;
use crate::problem::{Location, Path, Problem, Segment};

/// More problems than this are not listed: a hostile file must not cost memory in proportion to its mistakes.
const MAX_PROBLEMS: usize = 1000;

pub(crate) struct Reader {
    file: Option<String>,
    trail: Vec<Segment>,
    problems: Vec<Problem>,
    muted: bool,
}

impl Reader {
    pub fn of_file(file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..Self::of_value() }
    }

    /// For values that come without a text.
    pub fn of_value() -> Self {
        Self { file: None, trail: Vec::new(), problems: Vec::new(), muted: false }
    }

    /// Runs `read` one step further down the path.
    pub fn within<T>(&mut self, segment: Segment, read: impl FnOnce(&mut Self) -> T) -> T {
        self.enter(segment);
        let result = read(self);
        self.leave();
        result
    }

    /// The two halves of `within`, for callers that hold the reader inside something else.
    pub fn enter(&mut self, segment: Segment) {
        self.trail.push(segment);
    }

    pub fn leave(&mut self) {
        self.trail.pop();
    }

    /// Runs `read` without listening: its subject was already refused as a whole.
    pub fn quietly<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.muted, true);
        let result = read(self);
        self.muted = before;
        result
    }

    pub fn report(&mut self, at: Option<Mark>, message: impl Into<String>) {
        self.report_with(at, message, None);
    }

    pub fn report_with(&mut self, at: Option<Mark>, message: impl Into<String>, suggestion: Option<String>) {
        let mut problem = Problem::new(Path(self.trail.clone()), message);
        problem.suggestion = suggestion;
        self.add(at, problem);
    }

    /// A problem that was found without a place.
    pub fn add(&mut self, at: Option<Mark>, mut problem: Problem) {
        if self.muted || self.is_full() {
            return;
        }
        if let (Some(file), Some(mark)) = (&self.file, at) {
            problem.location = Some(Location { file: file.clone(), line: mark.line, column: mark.column });
        }
        self.problems.push(problem);
        if self.is_full() {
            self.problems.push(Problem::new(Path::default(), "too many problems, the rest are not listed"));
        }
    }

    /// Once full, looking for further problems and suggestions is wasted work.
    pub fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// Everything reported, in the order of the text.
    pub fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| match &problem.location {
            Some(location) => (location.line, location.column),
            None => (u32::MAX, u32::MAX),
        });
        self.problems
    }
}
