//! `ostler describe`: one object, for people.

use ostler_client::WorkerView;

use super::{target::Target, workers};
use crate::{app::App, error::CommandError, exit::Exit, paint::Tone};

/// Tells all there is to know about one object
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What kind of object it is, or KIND/NAME
    #[arg(value_name = "KIND")]
    kind: String,

    #[arg(value_name = "NAME")]
    name: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  ostler describe worker gpu-1
  ostler describe agent/hello";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let (word, name) = match (arguments.kind.split_once('/'), arguments.name) {
        (Some((word, name)), None) => (word.to_owned(), Some(name.to_owned())),
        (_, name) => (arguments.kind, name),
    };
    let client = app.client()?;
    if matches!(word.to_ascii_lowercase().as_str(), "worker" | "workers") {
        let name = name.ok_or_else(|| nameless("worker"))?;
        describe_worker(app, &client.worker(&name).await?)?;
        return Ok(Exit::Ok);
    }
    let target = Target::new(&word, name)?;
    let name = target.name.ok_or_else(|| nameless(&target.kind.singular()))?;
    app.output.yaml(&client.get(target.kind, &name).await?)?;
    Ok(Exit::Ok)
}

fn nameless(kind: &str) -> CommandError {
    CommandError::new(Exit::Usage, format!("which {kind}? Give its name"))
}

fn describe_worker(app: &App, worker: &WorkerView) -> Result<(), CommandError> {
    let WorkerView { metadata, spec, status } = worker;
    let labels = metadata.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let models = &spec.capabilities.supported_models;
    let any = if models.is_empty() {
        "any".to_owned()
    } else {
        models.iter().cloned().collect::<Vec<_>>().join(",")
    };
    let lines = [
        ("name", metadata.name.clone()),
        ("status", workers::condition(worker)),
        ("seen", workers::seen(app, worker)),
        ("runs", format!("{} of {}", status.current_tasks, spec.max_concurrent_tasks)),
        ("region", spec.region.clone()),
        ("capabilities", workers::capabilities(worker)),
        ("models", any),
        ("labels", labels.collect::<Vec<_>>().join(",")),
        ("version", status.version.clone()),
        ("started", format!("{}, for the {}. time", metadata.created_at, status.incarnation)),
    ];
    for (title, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        let title = app.output.paint().tone(Tone::Quiet, &format!("{title:<14}"));
        app.output.data(format!("{title}{}", crate::text::one_line(value)))?;
    }
    Ok(())
}
