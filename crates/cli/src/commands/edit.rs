//! `ostler edit`: a declared object in the person's editor, and back.

mod session;

use ostler_client::{Client, ClientError};
use ostler_spec::{Kind, Problem};
use serde_json::Value;

use self::session::Session;
use super::{
    listing::{is_template, name_of},
    missing,
    target::Target,
};
use crate::{
    app::App,
    document,
    error::{CommandError, with_causes},
    exit::Exit,
    kind_words::KindWords,
    paint::Paint,
    text, unified,
};

/// Opens a declared object in an editor; puts it back when you are done
///
/// The editor is VISUAL, EDITOR or vi. With a mistake in it, or if somebody else has changed the object meanwhile, it
/// opens again with what is wrong as a comment on top; what you wrote is kept. A text that was not changed, or that is
/// empty, changes nothing. Of tasks, templates are edited; those that were accepted never change.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The kind, or kind/name
    #[arg(value_name = "KIND", value_parser = KindWords, hide_possible_values = true)]
    kind: String,

    #[arg(value_name = "NAME")]
    name: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  ostler edit agent hello
  EDITOR='code --wait' ostler edit tool/lookup
  ostler edit task/daily-digest               # a template";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let target = Target::new(&arguments.kind, arguments.name)?;
    let Some(name) = target.name.clone() else {
        let message = format!("which {}? Give its name", target.kind.singular());
        return Err(CommandError::new(Exit::Usage, message));
    };
    if target.kind == Kind::Worker {
        let message = format!("{} are not edited", target.kind.plural());
        return Err(CommandError::new(Exit::Usage, message));
    }
    let client = app.client()?;
    let object =
        missing::or_explain(&client, target.kind, &name, client.get(target.kind, &name).await).await?;
    if target.kind == Kind::Task && !is_template(&object) {
        let message = format!("{} was accepted as it is, and never changes", target.title());
        return Err(CommandError::new(Exit::Usage, message).with_remedy(format!(
            "`ostler retry {name} --set KEY=VALUE` asks for it again with other input"
        )));
    }
    let mut session = Session::begin(app, &target, document::with_version(&object))?;
    let done = talk(app, &client, &target, &name, &mut session).await;
    session.end(done)?;
    Ok(Exit::Ok)
}

/// Goes on until what was written is stored, or nothing is to be.
async fn talk(
    app: &App,
    client: &Client,
    target: &Target,
    name: &str,
    session: &mut Session,
) -> Result<(), CommandError> {
    loop {
        let Some(text) = session.open()? else {
            app.output.note(format!("{} unchanged", target.title()));
            return Ok(());
        };
        let manifest = match read(target.kind, &session.path(), &text) {
            Ok(manifest) => manifest,
            Err(mistakes) => {
                session.refuse("this can't be stored:", mistakes)?;
                continue;
            }
        };
        match store(client, target.kind, name, &manifest).await {
            Ok(stored) => {
                let is_renamed = name_of(&stored) != name;
                let outcome = match is_renamed {
                    false => format!("{} edited", target.title()),
                    true => format!("{} renamed to {}", target.title(), name_of(&stored)),
                };
                app.output.data(outcome)?;
                note_what_is_left(&stored, is_renamed, app);
                return Ok(());
            }
            Err(error) => reconsider(client, target.kind, name, session, error).await?,
        }
    }
}

/// The one object of this kind that the text in the file must hold, or what is wrong with it.
fn read(kind: Kind, file: &str, text: &str) -> Result<Value, Vec<String>> {
    let resources = ostler_spec::parse(file, text).map_err(below_its_words)?;
    match &resources[..] {
        [one] if one.kind() == kind => serde_json::to_value(one).map_err(|error| vec![error.to_string()]),
        [one] => Err(vec![format!("its kind is {} now, expected {kind}", one.kind())]),
        several => Err(vec![format!("there are {} objects in it, expected one", several.len())]),
    }
}

/// Each as a line that stands on top of the text, one line above them all: the text begins so much further down.
fn below_its_words(mut problems: Vec<Problem>) -> Vec<String> {
    let further = u32::try_from(problems.len()).unwrap_or(0) + 1;
    for location in problems.iter_mut().filter_map(|problem| problem.location.as_mut()) {
        location.line += further;
    }
    problems.iter().map(ToString::to_string).collect()
}

/// It is stored, and yet something may be left to do.
fn note_what_is_left(stored: &Value, is_renamed: bool, app: &App) {
    let status = |field: &str| stored.pointer(&format!("/status/{field}")).and_then(Value::as_str);
    if status("phase") == Some("Error") {
        let why = status("lastError").unwrap_or("its status doesn't say why");
        app.output.note(format!("note: it can't be used as it is: {}", text::one_line(why)));
    }
    if is_renamed {
        app.output.note("note: what names it by its old name still does; `ostler doctor` finds that");
    }
}

async fn store(client: &Client, kind: Kind, name: &str, manifest: &Value) -> Result<Value, ClientError> {
    let version = manifest.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    client.replace(kind, name, manifest, version.unwrap_or("*")).await
}

/// What the server refuses may be put right; what has nothing to do with the text ends it.
async fn reconsider(
    client: &Client,
    kind: Kind,
    name: &str,
    session: &mut Session,
    error: ClientError,
) -> Result<(), CommandError> {
    let Some(problem) = error.problem() else { return Err(error.into()) };
    match problem.status {
        409 => {
            let current = client.get(kind, name).await?;
            let theirs = document::with_version(&current);
            let names = unified::Names { before: "as you found it".into(), after: "as it is now".into() };
            let changes = unified::lines(session.found(), &theirs, &names, Paint::new(false));
            let mut words = vec![with_causes(&error), "what is different now, beside your text:".to_owned()];
            words.extend(changes);
            session.found_anew(theirs, current.pointer("/metadata/resourceVersion").and_then(Value::as_str));
            session.refuse(
                "somebody else has changed it meanwhile; close without a change to leave it so:",
                words,
            )
        }
        400 | 413 | 422 => {
            let mut words = vec![problem.to_string()];
            words.extend(problem.problems.iter().map(ToString::to_string));
            session.refuse("the server refuses this:", words)
        }
        _ => Err(error.into()),
    }
}
