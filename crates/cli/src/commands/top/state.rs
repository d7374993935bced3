//! All that the screen shows and all that can change it. Drawing looks at it, keys and looks at the server move it.

use std::collections::BTreeMap;

use clap::ValueEnum;
use ostler_client::StepView;

use super::picture::{Picture, Row};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Those under way first, the newest on top
    #[default]
    Age,
    Name,
    State,
    Tokens,
    Cost,
}

impl Sort {
    pub fn name(self) -> &'static str {
        match self {
            Sort::Age => "age",
            Sort::Name => "name",
            Sort::State => "state",
            Sort::Tokens => "tokens",
            Sort::Cost => "cost",
        }
    }

    pub fn next(self) -> Self {
        match self {
            Sort::Age => Sort::Name,
            Sort::Name => Sort::State,
            Sort::State => Sort::Tokens,
            Sort::Tokens => Sort::Cost,
            Sort::Cost => Sort::Age,
        }
    }
}

/// How it stands with the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    Live,
    /// It does not answer; so many looks have failed.
    Lost {
        tries: u32,
        why: String,
    },
}

/// The task whose steps are shown.
#[derive(Debug, Clone)]
pub struct Detail {
    pub row: Row,
    /// None until they were asked for.
    pub steps: Option<Vec<StepView>>,
    /// The picture that they belong to.
    pub steps_at: Option<i64>,
}

pub struct State {
    pub title: String,
    pub picture: Picture,
    pub now_ms: i64,
    pub link: Link,
    pub sort: Sort,
    pub filter: String,
    /// The filter is being written.
    pub is_filtering: bool,
    pub is_paused: bool,
    /// The place in the rows; none is chosen in a picture for scripts.
    pub selected: Option<usize>,
    pub detail: Option<Detail>,
    /// Tokens per minute, as the last looks tell it.
    pub rate: Option<u64>,
    meter: Meter,
    last_tokens: Option<(i64, u64)>,
}

/// Adds up the tokens that tasks have come to use while somebody looked. Tasks come into the picture and leave it, so that
/// the sum of those in it says nothing about time.
#[derive(Default)]
struct Meter {
    /// Of each task in the picture before.
    before: Option<BTreeMap<String, u64>>,
    /// When the youngest task was made that was ever in the picture.
    youngest: String,
    counted: u64,
}

impl Meter {
    fn read(&mut self, picture: &Picture) -> u64 {
        let now: BTreeMap<String, u64> =
            picture.tasks.iter().map(|task| (task.metadata.uid.clone(), task.status.usage.total())).collect();
        let Meter { before, youngest, counted } = self;
        for task in before.iter().flat_map(|before| picture.tasks.iter().map(move |task| (before, task))) {
            let (before, task) = task;
            let total = task.status.usage.total();
            // One that was there all the time, and is only now in the picture, may have used its tokens long ago.
            let is_new = task.metadata.created_at > *youngest;
            let former = before.get(&task.metadata.uid).copied().unwrap_or(if is_new { 0 } else { total });
            *counted = counted.saturating_add(total.saturating_sub(former));
        }
        let newest = picture.tasks.iter().map(|task| &task.metadata.created_at).max();
        if let Some(newest) = newest.filter(|newest| *newest > youngest) {
            youngest.clone_from(newest);
        }
        *before = Some(now);
        *counted
    }
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Quit,
    Up,
    Down,
    First,
    Last,
    Sort,
    Pause,
    Open,
    Back,
    Filter,
    Letter(char),
    Erase,
}

impl State {
    pub fn new(title: String, filter: String, sort: Sort) -> Self {
        Self {
            title,
            picture: Picture::default(),
            now_ms: 0,
            link: Link::Live,
            sort,
            filter,
            is_filtering: false,
            is_paused: false,
            selected: Some(0),
            detail: None,
            rate: None,
            meter: Meter::default(),
            last_tokens: None,
        }
    }

    pub fn rows(&self) -> Vec<Row> {
        self.picture.rows(&self.filter, self.sort, self.now_ms)
    }

    pub fn select_none(&mut self) {
        self.selected = None;
    }

    /// A look at the server went well.
    pub fn saw(&mut self, picture: Picture, now_ms: i64) {
        self.link = Link::Live;
        if self.is_paused {
            return;
        }
        let tokens = self.meter.read(&picture);
        if let Some((at, before)) = self.last_tokens
            && now_ms > at
        {
            let since = now_ms.saturating_sub(at).unsigned_abs().max(1);
            self.rate = Some(tokens.saturating_sub(before).saturating_mul(60_000) / since);
        }
        if self.last_tokens.is_none_or(|(at, _)| now_ms.saturating_sub(at) >= RATE_OVER_MS) {
            self.last_tokens = Some((now_ms, tokens));
        }
        self.picture = picture;
        self.now_ms = now_ms;
        self.keep_in_sight();
    }

    /// It did not.
    pub fn missed(&mut self, why: String) {
        let tries = match &self.link {
            Link::Live => 1,
            Link::Lost { tries, .. } => tries + 1,
        };
        self.link = Link::Lost { tries, why };
    }

    pub fn steps_came(&mut self, uid: &str, steps: Vec<StepView>) {
        if let Some(detail) = &mut self.detail
            && detail.row.uid == uid
        {
            detail.steps = Some(steps);
            detail.steps_at = Some(self.now_ms);
        }
    }

    /// Whether the screen goes on.
    pub fn act(&mut self, action: Action) -> bool {
        match action {
            Action::Quit => return false,
            Action::Up => self.move_to(|place| place.saturating_sub(1)),
            Action::Down => self.move_to(|place| place + 1),
            Action::First => self.move_to(|_| 0),
            Action::Last => self.move_to(|_| usize::MAX),
            Action::Sort => self.sort = self.sort.next(),
            Action::Pause => self.is_paused = !self.is_paused,
            Action::Open if self.is_filtering => self.is_filtering = false,
            Action::Open => self.open(),
            Action::Back => self.back(),
            Action::Filter => self.is_filtering = true,
            Action::Letter(letter) => self.filter.push(letter),
            Action::Erase => self.filter.truncate(self.filter.char_indices().last().map_or(0, |(at, _)| at)),
        }
        self.keep_in_sight();
        true
    }

    fn move_to(&mut self, place: impl Fn(usize) -> usize) {
        self.selected = Some(place(self.selected.unwrap_or_default()));
    }

    fn open(&mut self) {
        let row = self.selected.and_then(|place| self.rows().into_iter().nth(place));
        self.detail = row.map(|row| Detail { row, steps: None, steps_at: None });
    }

    /// One step out: of the filter's line, of the task, of the filter.
    fn back(&mut self) {
        if self.is_filtering {
            self.is_filtering = false;
            self.filter.clear();
        } else if self.detail.take().is_none() {
            self.filter.clear();
        }
    }

    fn keep_in_sight(&mut self) {
        let last = self.rows().len().saturating_sub(1);
        self.selected = self.selected.map(|place| place.min(last));
    }
}

/// The rate is that of so long at most.
const RATE_OVER_MS: i64 = 15_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn picture(tasks: &[(&str, u32, u64)]) -> Picture {
        let task = |(uid, made, tokens): &(&str, u32, u64)| {
            serde_json::from_value(json!({
                "apiVersion": "ostler.dev/v1", "kind": "Task",
                "metadata": {
                    "name": uid, "namespace": "default", "uid": uid, "resourceVersion": "1",
                    "createdAt": format!("2026-01-01T00:00:{made:02}Z"),
                },
                "spec": { "agent": "a", "input": {} },
                "status": { "state": "running", "usage": { "input_tokens": tokens, "output_tokens": 0 } },
            }))
            .unwrap()
        };
        Picture { tasks: tasks.iter().map(task).collect(), ..Picture::default() }
    }

    #[test]
    fn the_rate_is_of_what_was_used_while_somebody_looked() {
        let mut state = State::new(String::new(), String::new(), Sort::Age);
        state.saw(picture(&[("a", 1, 5_000), ("b", 2, 100)]), 0);
        assert_eq!(state.rate, None);
        // The large one falls out of the picture; a new one comes, and the other goes on.
        state.saw(picture(&[("b", 2, 300), ("c", 3, 50)]), 1_000);
        assert_eq!(state.rate, Some(250 * 60));
        // One that was there before anybody looked comes into it.
        state.saw(picture(&[("b", 2, 300), ("c", 3, 60), ("old", 1, 9_000)]), 2_000);
        assert_eq!(state.rate, Some(260 * 30));
    }
}
