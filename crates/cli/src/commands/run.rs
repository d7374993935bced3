//! `ostler run`: gives an agent something to do and follows it live.

use std::collections::BTreeMap;

use clap::ValueEnum;
use ostler_client::{Client, ClientError, CreatedTask, FieldProblem, TaskView};
use ostler_spec::{GoDuration, Kind};
use serde_json::{Value, json};

use super::missing::{self, or_explain};
use crate::{
    app::App,
    error::CommandError,
    exit::Exit,
    follow::{End, Ended, follow},
    input,
    paint::Tone,
    text, words,
};

/// Gives an agent or a system something to do, and follows it live
///
/// task/NAME runs what a template declares, or once more what a task that has ended was asked for: a new task under the
/// next number, NAME-run-1 and so on. A message, --input and the rest say what is to be otherwise this time.
///
/// On a terminal each step shows as it happens. In a pipe, progress goes to stderr as plain lines and the
/// agent's answer alone to stdout. Ctrl-C leaves the task running.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The agent, or the system (system/NAME where an agent has the same name), or task/NAME
    #[arg(value_name = "AGENT")]
    subject: String,

    /// What to tell it; several words are joined, - reads stdin
    message: Vec<String>,

    /// Continue the conversation of this name, or begin it
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// More input, may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    input: Vec<(String, String)>,

    /// A label for the task, may be repeated
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = key_value)]
    label: Vec<(String, String)>,

    /// Who goes first when there is a queue; by default normal
    #[arg(long, value_enum)]
    priority: Option<Priority>,

    /// Give up after this long, counted from now: 30s, 5m, 1h30m
    #[arg(long, value_name = "DURATION", value_parser = super::some_time)]
    deadline: Option<GoDuration>,

    /// What to call the task; without it, a name is made up
    #[arg(long, value_name = "NAME", value_parser = super::name)]
    name: Option<String>,

    /// Print the task's name and leave it to itself
    #[arg(short, long)]
    detach: bool,

    /// What to print at the end: the answer, or the whole task
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Priority {
    Low,
    Normal,
    High,
    Urgent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  ostler run hello \"Say hello to the world.\"
  ostler run hello Say it again --session greetings
  git diff | ostler run reviewer - > review.md
  ostler run system/report --input topic=sales --input quarter=Q3 \\
      --deadline 10m --label team=sales
  ostler run task/daily-digest --input day=Monday
  task=$(ostler run -d hello \"Later.\") && ostler logs -f \"$task\"";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let created = match Subject::read(&arguments.subject)? {
        Subject::Task(name) => again(&client, &arguments, &name).await?,
        subject => anew(&client, &arguments, &subject, app).await?,
    };
    if !arguments.detach {
        return watch(app, &client, &created, arguments.output).await;
    }
    match arguments.output {
        Format::Text => app.output.data(&created.metadata.name)?,
        Format::Json => app.output.json(&task(&client, &created).await?)?,
    }
    if app.output.terminal.stderr.is_terminal {
        app.output.note(come_back(&created.metadata.name));
    }
    Ok(Exit::Ok)
}

async fn anew(
    client: &Client,
    arguments: &Arguments,
    subject: &Subject,
    app: &App,
) -> Result<TaskView, CommandError> {
    let message = message(&arguments.message)?;
    if message.as_deref().is_none_or(|message| message.trim().is_empty()) && arguments.input.is_empty() {
        let what = if message.is_some() { "the message is empty" } else { "there is no MESSAGE" };
        return Err(CommandError::new(Exit::Usage, format!("there is nothing to do: {what}"))
            .with_remedy("say what it is to do, or give --input KEY=VALUE"));
    }
    match create(client, arguments, subject, message).await {
        Ok(CreatedTask { task, existed }) => {
            if existed {
                app.output.note(same_again(&task));
            }
            Ok(task)
        }
        Err(error) => match &arguments.name {
            Some(name) if error.code() == Some("conflict") => {
                Err(CommandError::from(error).with_remedy(name_taken(name)))
            }
            _ => Err(explain(client, subject, error).await),
        },
    }
}

/// Two requests can't have one name.
fn name_taken(name: &str) -> String {
    format!(
        "it is another request, as `ostler describe task/{name}` tells: choose another --name, or leave it out and one is \
         made up"
    )
}

/// What a template or an ended task says is run, but for what is said otherwise here.
async fn again(client: &Client, arguments: &Arguments, name: &str) -> Result<TaskView, CommandError> {
    if arguments.name.is_some() {
        let message = format!("task/{name} is run under its next number, so there is no place for --name");
        return Err(CommandError::new(Exit::Usage, message)
            .with_remedy(format!("leave --name out: the new task is called {name}-run-1 or the like")));
    }
    let message = message(&arguments.message)?;
    let mut manifest = manifest(arguments, None, message.as_deref());
    manifest["metadata"]["name"] = json!(name);
    match client.rerun(&manifest).await {
        Err(error) if is_about_flags(&error) => Err(by_flags(&error)),
        task => or_explain(client, Kind::Task, name, task).await,
    }
}

/// Follows the task to its end and prints what it gave.
pub async fn watch(
    app: &App,
    client: &Client,
    task_view: &TaskView,
    format: Format,
) -> Result<Exit, CommandError> {
    let name = &task_view.metadata.name;
    let ended = match follow(app, client, task_view).await? {
        End::Task(ended) => *ended,
        End::Detached => {
            app.output.note(format!("left task {name}, which goes on"));
            app.output.note(come_back(name));
            return Ok(Exit::Interrupted);
        }
    };
    app.output.note(app.output.error_paint().tone(Tone::of_state(&ended.state.name), &summary(name, &ended)));
    if format == Format::Json {
        app.output.json(&task(client, task_view).await?)?;
    } else if let Some(answer) = &ended.output {
        let is_terminal = app.output.terminal.stdout.is_terminal;
        if is_terminal {
            app.output.note("");
        }
        let answer = answer.strip_suffix('\n').unwrap_or(answer);
        app.output.data(if is_terminal { text::harmless(answer) } else { answer.into() })?;
    }
    match Exit::of_task(&ended.state.name) {
        Exit::Ok => Ok(Exit::Ok),
        exit => Err(failed(name, &ended, exit)),
    }
}

/// Who is to do it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    /// A template, or a task that has ended.
    Task(String),
    Agent(String),
    System(String),
    /// An agent, or a system if no agent has that name.
    Either(String),
}

impl Subject {
    fn read(word: &str) -> Result<Self, CommandError> {
        let Some((kind, name)) = word.split_once('/') else { return Ok(Subject::Either(word.to_owned())) };
        match super::target::kind(kind) {
            Ok(Kind::Agent) => Ok(Subject::Agent(name.to_owned())),
            Ok(Kind::AgentSystem) => Ok(Subject::System(name.to_owned())),
            Ok(Kind::Task) => Ok(Subject::Task(name.to_owned())),
            Ok(other) => {
                Err(CommandError::new(Exit::Usage, format!("{} are not given tasks", other.plural()))
                    .with_remedy("name an agent, a system, or task/NAME"))
            }
            // An agent of another namespace.
            Err(_) => Ok(Subject::Agent(word.to_owned())),
        }
    }

    fn name(&self) -> &str {
        match self {
            Subject::Task(name) | Subject::Agent(name) | Subject::System(name) | Subject::Either(name) => {
                name
            }
        }
    }
}

async fn create(
    client: &Client,
    arguments: &Arguments,
    subject: &Subject,
    message: Option<String>,
) -> Result<CreatedTask, ClientError> {
    let field = if matches!(subject, Subject::System(_)) { "system" } else { "agent" };
    let name = subject.name();
    let created = client.create_task(&manifest(arguments, Some((field, name)), message.as_deref())).await;
    match created {
        // Most often it is an agent, so a system is looked for only now.
        Err(error) if is_reference(&error) && matches!(subject, Subject::Either(_)) => {
            match client.get(Kind::AgentSystem, name).await {
                Ok(_) => {
                    client.create_task(&manifest(arguments, Some(("system", name)), message.as_deref())).await
                }
                Err(_) => Err(error),
            }
        }
        other => other,
    }
}

fn is_reference(error: &ClientError) -> bool {
    matches!(error.code(), Some("bad_reference" | "not_found"))
}

/// What is asked for: of whom, unless it is known already, and nothing that wasn't given.
fn manifest(arguments: &Arguments, subject: Option<(&str, &str)>, message: Option<&str>) -> Value {
    let pairs = |pairs: &[(String, String)]| pairs.iter().cloned().collect::<BTreeMap<_, _>>();
    let mut input = pairs(&arguments.input);
    input.extend(message.map(|message| ("message".to_owned(), message.to_owned())));
    let mut spec = json!({ "input": input });
    if let Some((field, name)) = subject {
        spec[field] = json!(name);
    }
    if let Some(priority) = arguments.priority.and_then(|priority| priority.to_possible_value()) {
        spec["priority"] = json!(priority.get_name());
    }
    if let Some(session) = &arguments.session {
        spec["session"] = json!(session);
    }
    if let Some(deadline) = &arguments.deadline {
        spec["deadline"] = json!(deadline);
    }
    let mut manifest = json!({ "apiVersion": "ostler.dev/v1", "kind": "Task", "metadata": {}, "spec": spec });
    if let Some(name) = &arguments.name {
        manifest["metadata"]["name"] = json!(name);
    }
    if !arguments.label.is_empty() {
        manifest["metadata"]["labels"] = json!(pairs(&arguments.label));
    }
    manifest
}

fn message(words: &[String]) -> Result<Option<String>, CommandError> {
    match words {
        [] => Ok(None),
        [dash] if dash == "-" => input::read_stdin().map(Some),
        words => Ok(Some(words.join(" "))),
    }
}

/// The task as the server tells it, every field of it.
async fn task(client: &Client, task: &TaskView) -> Result<Value, ClientError> {
    client.get(Kind::Task, &task.metadata.uid).await
}

/// A name that isn't there is most often a slip of the finger.
async fn explain(client: &Client, subject: &Subject, error: ClientError) -> CommandError {
    if is_about_flags(&error) {
        return by_flags(&error);
    }
    let names_somebody = is_reference(&error);
    let command_error = CommandError::from(error);
    if !names_somebody {
        return command_error;
    }
    let kinds: &[Kind] = match subject {
        Subject::Agent(_) => &[Kind::Agent],
        Subject::System(_) => &[Kind::AgentSystem],
        Subject::Task(_) => &[Kind::Task],
        Subject::Either(_) => &[Kind::Agent, Kind::AgentSystem],
    };
    match missing::meant(client, kinds, subject.name()).await {
        Some(remedy) => command_error.with_remedy(remedy),
        None => command_error,
    }
}

/// What the server calls by the field of a manifest was written by flag.
const FIELDS: [(&str, &str); 6] = [
    ("/metadata/name", "--name"),
    ("/metadata/labels", "--label"),
    ("/spec/session", "--session"),
    ("/spec/deadline", "--deadline"),
    ("/spec/input/message", "MESSAGE"),
    ("/spec/input", "--input"),
];

/// The flag, and what of it is meant where it takes several.
fn flag_of(path: &str) -> Option<(&'static str, &str)> {
    FIELDS.into_iter().find_map(|(field, flag)| match path.strip_prefix(field)? {
        "" => Some((flag, "")),
        below => Some((flag, below.strip_prefix('/')?)),
    })
}

fn is_about_flags(error: &ClientError) -> bool {
    let problems = error.problem().map(|problem| &problem.problems[..]).unwrap_or_default();
    !problems.is_empty() && problems.iter().all(|problem| flag_of(&problem.path).is_some())
}

fn by_flags(error: &ClientError) -> CommandError {
    let problems = error.problem().into_iter().flat_map(|problem| &problem.problems);
    let line = |problem: &FieldProblem| {
        let (flag, key) = flag_of(&problem.path)?;
        let key = if key.is_empty() { String::new() } else { format!(" {key}") };
        Some(format!("{flag}{key}: {}", problem.message))
    };
    CommandError::new(Exit::Usage, "not accepted").with_details(problems.filter_map(line))
}

/// The same request under a name is the same task, whether it has ended or not.
fn same_again(task: &TaskView) -> String {
    let name = &task.metadata.name;
    let state = match task.is_ended() {
        true => format!("{}; `ostler run task/{name}` runs it once more", state_words(&task.status.state)),
        false => "goes on".to_owned(),
    };
    format!("task {name} was asked for before, in the same words, and nothing new was begun: it {state}")
}

fn come_back(name: &str) -> String {
    format!("  ostler logs -f {name}   # to come back\n  ostler cancel {name}    # to stop it")
}

/// `task hello-1 succeeded in 1.42s, 3 steps, 231 tokens`
fn summary(name: &str, ended: &Ended) -> String {
    let took = crate::clock::took_ms(ended.took_ms);
    let steps = if ended.steps == 1 { "1 step".to_owned() } else { format!("{} steps", ended.steps) };
    let state = state_words(&ended.state.name);
    format!("task {name} {state} after {took}, {steps}, {}", words::tokens(&ended.usage))
}

fn failed(name: &str, ended: &Ended, exit: Exit) -> CommandError {
    let why = match (&ended.failure, &ended.state.reason) {
        (Some(failure), _) => words::end(&ended.state.name, failure),
        (None, Some(reason)) => reason.clone(),
        (None, None) => state_words(&ended.state.name).to_owned(),
    };
    let remedy =
        format!("`ostler trace {name}` shows its steps, `ostler retry {name}` asks for the same again");
    CommandError::new(exit, why).with_remedy(remedy)
}

fn state_words(state: &str) -> &str {
    match state {
        "succeeded" => "succeeded",
        "failed" => "failed",
        "dead_letter" => "used up its retries",
        "cancelled" => "was cancelled",
        "dropped" => "was dropped",
        other => other,
    }
}

pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_told_by_its_own_flag_alone() {
        assert_eq!(flag_of("/metadata/name"), Some(("--name", "")));
        assert_eq!(flag_of("/spec/input/message"), Some(("MESSAGE", "")));
        assert_eq!(flag_of("/spec/input/messages"), Some(("--input", "messages")));
        assert_eq!((flag_of("/metadata/namespace"), flag_of("/spec/agent")), (None, None));
    }
}
