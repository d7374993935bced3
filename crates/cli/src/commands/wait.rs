//! `ostler wait`: until objects are as a script needs them.

use std::{fmt, str::FromStr, time::Duration};

use ostler_client::Client;
use ostler_spec::{GoDuration, Kind};
use serde_json::Value;

use super::{
    missing,
    target::{Target, targets},
};
use crate::{app::App, error::CommandError, exit::Exit, kind_words::KindWords};

/// Waits until objects are as they should be
///
/// Ends with 0 once all of them are, with 8 if that takes too long. Who waits for a task to succeed and sees it end
/// otherwise is told by the exit code of `run`: 3 failed, 4 dead letter, 5 cancelled. A task that is not there is told at
/// once, but with --for=created; workers and declared objects may still come. A server that restarts meanwhile is waited
/// for too.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A kind and names, or kind/name, several of them
    #[arg(value_name = "KIND/NAME", required = true, value_parser = KindWords, hide_possible_values = true)]
    what: Vec<String>,

    /// What to wait for: created, succeeded, ended, ready, deleted, or any field as status.phase=Running
    #[arg(long = "for", value_name = "CONDITION", default_value = "ended")]
    condition: Condition,

    /// No longer than this
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    timeout: GoDuration,
}

const EXAMPLES: &str = "\
Examples:
  ostler wait task/report --for=succeeded
  ostler wait tasks one two three --timeout 1h
  ostler wait worker/gpu-1 --for=ready
  ostler wait task/report --for=status.state=waiting --timeout 30s
  ostler wait task/nightly-run-7 --for=created && ostler logs -f nightly-run-7
  ostler delete agent hello && ostler wait agent/hello --for=deleted";

/// Between two looks. One person who waits costs a server nothing.
const PAUSE: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    /// It is there.
    Created,
    Succeeded,
    Ended,
    Ready,
    Deleted,
    Field {
        pointer: String,
        value: String,
    },
}

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let deadline = app.runtime.monotonic() + arguments.timeout.get();
    let wanted = match targets(&arguments.what) {
        Ok(wanted) => wanted,
        Err(error) => return Err(missing::explain_kind(app, &arguments.what, error).await),
    };
    for target in &wanted {
        let Some(name) = &target.name else {
            return Err(CommandError::new(Exit::Usage, format!("which {}?", target.kind.singular()))
                .with_remedy("name one or more: KIND/NAME"));
        };
        check(&arguments.condition, target)?;
        if app.output.terminal.stderr.is_terminal {
            app.output.note(format!("waiting for {} to be {}", target.title(), arguments.condition));
        }
        wait(&arguments, target, name, &client, deadline, app).await?;
        app.output.data(format!("{} {}", target.title(), arguments.condition))?;
    }
    Ok(Exit::Ok)
}

fn check(condition: &Condition, target: &Target) -> Result<(), CommandError> {
    match (condition, target.kind) {
        (Condition::Succeeded | Condition::Ended, kind) if kind != Kind::Task => {
            let message = format!("{} neither succeed nor end", kind.plural());
            Err(CommandError::new(Exit::Usage, message).with_remedy("try --for=ready or --for=deleted"))
        }
        _ => Ok(()),
    }
}

async fn wait(
    arguments: &Arguments,
    target: &Target,
    name: &str,
    client: &Client,
    deadline: Duration,
    app: &App,
) -> Result<(), CommandError> {
    loop {
        let seen = client.get(target.kind, name).await;
        let last = match seen {
            Ok(object) if arguments.condition.holds(&object) => return Ok(()),
            Ok(object) => {
                if let Some(otherwise) = ended_otherwise(&arguments.condition, target, &object) {
                    return Err(otherwise);
                }
                state_of(&object)
            }
            Err(error) if error.code() == Some("not_found") => match arguments.condition {
                Condition::Deleted => return Ok(()),
                // Nobody begins a task because somebody waits for it: the name is wrong, or it was forgotten.
                Condition::Succeeded | Condition::Ended | Condition::Field { .. }
                    if target.kind == Kind::Task =>
                {
                    return Err(missing::explain(client, target.kind, name, error).await);
                }
                Condition::Created
                | Condition::Succeeded
                | Condition::Ended
                | Condition::Ready
                | Condition::Field { .. } => "not there".to_owned(),
            },
            Err(error) if error.may_pass() => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        if app.runtime.monotonic() >= deadline {
            return Err(too_late(arguments, target, &last));
        }
        app.runtime.sleep(PAUSE).await;
    }
}

/// A task that has ended will not succeed any more.
fn ended_otherwise(condition: &Condition, target: &Target, object: &Value) -> Option<CommandError> {
    if *condition != Condition::Succeeded || !Condition::Ended.holds(object) {
        return None;
    }
    let state = state_of(object);
    let remedy = format!("`ostler describe {}` tells why", target.title());
    Some(
        CommandError::new(Exit::of_task(&state), format!("{} ended as {state}", target.title()))
            .with_remedy(remedy),
    )
}

fn too_late(arguments: &Arguments, target: &Target, last: &str) -> CommandError {
    let message = format!(
        "{} is not {} after {}; it is {last}",
        target.title(),
        arguments.condition,
        arguments.timeout
    );
    CommandError::new(Exit::TimedOut, message).with_remedy("--timeout gives it longer")
}

/// The finer state where there is one.
fn state_of(object: &Value) -> String {
    let found = ["/status/state", "/status/phase"].iter().find_map(|path| object.pointer(path)?.as_str());
    found.unwrap_or("there").to_owned()
}

impl Condition {
    fn holds(&self, object: &Value) -> bool {
        let phase = object.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
        match self {
            Condition::Created => true,
            Condition::Succeeded => phase == "Succeeded",
            Condition::Ended => matches!(phase, "Succeeded" | "Failed" | "DeadLetter"),
            Condition::Ready => phase == "Ready",
            Condition::Deleted => false,
            Condition::Field { pointer, value } => match object.pointer(pointer) {
                Some(Value::String(text)) => text == value,
                Some(other) => value.parse::<Value>().is_ok_and(|value| value == *other),
                None => value.is_empty(),
            },
        }
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "created" => Ok(Condition::Created),
            "succeeded" => Ok(Condition::Succeeded),
            "ended" => Ok(Condition::Ended),
            "ready" => Ok(Condition::Ready),
            "deleted" => Ok(Condition::Deleted),
            _ => match text.split_once('=') {
                Some((path, value)) if !path.is_empty() => {
                    let pointer = path.trim_start_matches('.').replace('~', "~0").replace('.', "/");
                    Ok(Condition::Field { pointer: format!("/{pointer}"), value: value.to_owned() })
                }
                _ => Err("expected created, succeeded, ended, ready, deleted, or FIELD=VALUE".to_owned()),
            },
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Created => f.write_str("created"),
            Condition::Succeeded => f.write_str("succeeded"),
            Condition::Ended => f.write_str("ended"),
            Condition::Ready => f.write_str("ready"),
            Condition::Deleted => f.write_str("deleted"),
            Condition::Field { pointer, value } => {
                write!(f, "{}={value}", pointer.trim_start_matches('/').replace('/', "."))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_are_read_and_judged() {
        let task = json!({"spec": {"input": {"n": "1"}, "max_turns": 3}, "status": {"phase": "Failed"}});
        let holds = |text: &str| text.parse::<Condition>().unwrap().holds(&task);
        assert!(holds("ended") && !holds("succeeded") && !holds("ready") && !holds("deleted"));
        assert!(holds("status.phase=Failed") && holds("spec.max_turns=3") && holds("spec.none="));
        assert!(!holds("status.phase=Ready"));
        for wrong in ["", "soon", "=x"] {
            assert!(wrong.parse::<Condition>().is_err(), "{wrong}");
        }
        assert_eq!("a.b=c".parse::<Condition>().unwrap().to_string(), "a.b=c");
    }
}
