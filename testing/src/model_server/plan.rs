//! Plans: what the model shall do, written into the user's own message, so that a crash test or a benchmark
//! states it within the task and the server needs no other set-up.
//!
//! ```text
//! look it up. plan: tool lookup {"q":"a"}, tool + tool add {"x":1} fault=429:1 latency=50, text="all done"
//!
//! plan   = "plan:" turn *("," turn), up to the end of the line
//! turn   = part *("+" part) *option
//! part   = "tool" [name] [JSON object] | "text=" value | "refusal=" value
//! option = "think=" value | "redacted=" value | "fault=" name [":" times] | "latency=" ms
//!        | "chunk=" characters | "pace=" ms | "finish=" reason
//!        | "usage=" prompt "/" completion ["/" cache read ["/" cache write ["/" reasoning]]]
//! reason = "stop" | "tool_calls" | "length" | "content_filter" | "refusal" | "pause"
//! value  = a JSON string, or characters without space, comma and plus
//! ```
//!
//! A `tool` without a name is the first tool on offer. The plan is the latest one a user message holds; the
//! turn played is the number of assistant messages since then. Once it is over, or without one, the model
//! echoes the last user message.

use std::str::FromStr;
use std::time::Duration;

use serde::de::IgnoredAny;

use super::conversation::{Conversation, Said, Speaker};
use super::fault::UnknownFault;
use super::script::{Call, FaultPlan, Finish, Turn, Usage};

/// What a plan can't say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Neither a part nor an option of a turn.
    #[error("`{0}` is neither a part nor an option of a turn")]
    UnknownWord(String),
    /// A turn without a part.
    #[error("turn {0} says nothing")]
    EmptyTurn(usize),
    /// Arguments or a quoted value that are not JSON.
    #[error("not JSON: `{0}`")]
    NotJson(String),
    /// A number that is none.
    #[error("not a number: `{0}`")]
    NotNumber(String),
    /// A fault nobody knows.
    #[error(transparent)]
    Fault(#[from] UnknownFault),
}

/// The turn that the latest plan of `request` has for it, or an echo.
pub fn turn(request: &Conversation<'_>) -> Result<Turn, PlanError> {
    let mut n_spoken = 0;
    for message in request.messages.iter().rev() {
        if message.by == Speaker::Model {
            n_spoken += 1;
        } else if message.by == Speaker::User
            && let Some(found) = planned(message, n_spoken)
        {
            return found.map(|turn| turn.unwrap_or_else(|| echo(request)));
        }
    }
    Ok(echo(request))
}

/// Reads the turns of a plan, from behind `plan:` to the end of the line.
pub fn read(plan: &str) -> Result<Vec<Turn>, PlanError> {
    let mut reader = Reader { rest: plan.lines().next().unwrap_or_default() };
    let mut turns = Vec::new();
    loop {
        turns.push(reader.turn(turns.len() + 1)?);
        if !reader.skip(',') {
            break;
        }
    }
    match reader.rest.trim() {
        "" => Ok(turns),
        rest => Err(PlanError::UnknownWord(rest.to_owned())),
    }
}

fn planned(message: &Said<'_>, index: usize) -> Option<Result<Option<Turn>, PlanError>> {
    // Two messages in a row come as one: the first is of a run that ended before anybody answered.
    let (_, plan) = message.text.lines().rev().find_map(|line| line.split_once("plan:"))?;
    Some(read(plan).map(|mut turns| (index < turns.len()).then(|| turns.swap_remove(index))))
}

fn echo(request: &Conversation<'_>) -> Turn {
    let said: String = request.last_user_text().chars().take(200).collect();
    Turn::text(format!("you said: {said}"))
}

struct Reader<'p> {
    rest: &'p str,
}

impl<'p> Reader<'p> {
    fn turn(&mut self, number: usize) -> Result<Turn, PlanError> {
        let mut turn = Turn::default();
        let mut n_parts = 0;
        loop {
            self.skip('+');
            match self.word() {
                "" => break,
                "tool" => {
                    turn.calls.push(self.call()?);
                    n_parts += 1;
                }
                word => n_parts += usize::from(self.setting(word, &mut turn)?),
            }
        }
        if n_parts == 0 { Err(PlanError::EmptyTurn(number)) } else { Ok(turn) }
    }

    fn call(&mut self) -> Result<Call, PlanError> {
        let before = self.rest;
        let mut name = Some(self.word()).filter(|word| !word.is_empty());
        if name.is_some_and(|word| word.contains('=')) {
            // An option of the turn, not the name of a tool.
            self.rest = before;
            name = None;
        }
        let arguments = if self.rest.trim_start().starts_with('{') { self.json()? } else { "{}" };
        Ok(Call { name: name.map(str::to_owned), arguments: arguments.to_owned() })
    }

    /// Takes `key=value` in; true if it is a part rather than an option.
    fn setting(&mut self, word: &str, turn: &mut Turn) -> Result<bool, PlanError> {
        let unknown = || PlanError::UnknownWord(word.to_owned());
        let (key, value) = word.split_once('=').ok_or_else(unknown)?;
        match key {
            "text" => turn.text = Some(self.value(value)?),
            "refusal" => turn.refusal = Some(self.value(value)?),
            "think" => *turn = std::mem::take(turn).thinking(self.value(value)?),
            "redacted" => *turn = std::mem::take(turn).redacted_thinking(self.value(value)?),
            "finish" => turn.finish = Some(finish(value).ok_or_else(unknown)?),
            "fault" => turn.fault = Some(fault(value)?),
            "latency" => turn.latency = Duration::from_millis(number(value)?),
            "chunk" => turn.chunk = Some(number::<usize>(value)?.max(1)),
            "pace" => turn.pace = Duration::from_millis(number(value)?),
            "usage" => turn.usage = Some(usage(value)?),
            _ => return Err(unknown()),
        }
        Ok(matches!(key, "text" | "refusal"))
    }

    /// A bare value, or the JSON string that follows an empty one.
    fn value(&mut self, bare: &str) -> Result<String, PlanError> {
        if !bare.is_empty() || !self.rest.starts_with('"') {
            return Ok(bare.to_owned());
        }
        let json = self.json()?;
        serde_json::from_str(json).map_err(|_| PlanError::NotJson(json.to_owned()))
    }

    /// The JSON value at the front.
    fn json(&mut self) -> Result<&'p str, PlanError> {
        let rest = self.rest.trim_start();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        let read = values.next().is_some_and(|value| value.is_ok());
        let (json, behind) = rest.split_at(values.byte_offset());
        if !read {
            return Err(PlanError::NotJson(rest.to_owned()));
        }
        self.rest = behind;
        Ok(json)
    }

    /// The word at the front, up to a space, a separator or the beginning of JSON; empty before a separator.
    fn word(&mut self) -> &'p str {
        let rest = self.rest.trim_start();
        let ends = |character: char| character.is_whitespace() || matches!(character, ',' | '+' | '{' | '"');
        let (word, behind) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        self.rest = behind;
        word
    }

    fn skip(&mut self, separator: char) -> bool {
        let behind = self.rest.trim_start().strip_prefix(separator);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }
}

fn fault(value: &str) -> Result<FaultPlan, PlanError> {
    match value.split_once(':') {
        None => Ok(FaultPlan { fault: value.parse()?, times: None }),
        Some((name, times)) => Ok(FaultPlan { fault: name.parse()?, times: Some(number(times)?) }),
    }
}

fn finish(value: &str) -> Option<Finish> {
    Some(match value {
        "stop" => Finish::Stop,
        "tool_calls" => Finish::ToolCalls,
        "length" => Finish::Length,
        "content_filter" => Finish::ContentFilter,
        "refusal" => Finish::Refusal,
        "pause" => Finish::Pause,
        _ => return None,
    })
}

fn usage(value: &str) -> Result<Usage, PlanError> {
    let mut counts = [0; 5];
    for (index, count) in value.split('/').enumerate() {
        let place = counts.get_mut(index).ok_or_else(|| PlanError::NotNumber(value.to_owned()))?;
        *place = number::<u32>(count)?.into();
    }
    let [prompt_tokens, completion_tokens, cache_read, cache_write, reasoning] = counts;
    Ok(Usage { prompt_tokens, completion_tokens, cache_read, cache_write, reasoning })
}

fn number<N: FromStr>(text: &str) -> Result<N, PlanError> {
    text.parse().map_err(|_| PlanError::NotNumber(text.to_owned()))
}
