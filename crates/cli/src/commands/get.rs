//! `ostler get`: lists declared objects and tasks, or shows some of them; with `-w`, as they change.

mod columns;
mod watch;

use ostler_client::Client;
use ostler_spec::{Kind, KindInfo, kinds};
use serde_json::Value;

use super::{
    listing::{self, Listed, Listing, name_of, there_are_more},
    missing,
    target::{Target, is_namespaces, targets},
};
use crate::{
    app::App,
    error::CommandError,
    exit::Exit,
    format::Format,
    kind_words::KindWords,
    table::{Cell, Table},
};

use columns::Look;
pub use columns::phase_tone;

/// Lists objects of a kind, or shows some of them
///
/// Kinds are agents, agent-systems (systems), model-endpoints (models), tools, tasks, workers and all others that a
/// manifest may declare; singular, plural or short. `ostler get all` goes through everything that was declared, `ostler
/// get namespaces` lists the namespaces in which something lives.
///
/// Tasks are those that were asked for: a template, which is kept and never run, is shown by its name and listed with
/// --templates. Sessions are those that a manifest declares: conversations that somebody began, which need no manifest,
/// are listed with --live.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = with_kinds())]
pub struct Arguments {
    /// A kind and perhaps names, or kind/name, several of them
    #[arg(value_name = "KIND [NAME]", required = true, value_parser = KindWords, hide_possible_values = true)]
    what: Vec<String>,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,

    /// Only those with these labels: team=a,tier!=test,owner,!old
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = super::selector)]
    selector: Option<String>,

    /// Of tasks, the templates
    #[arg(long, conflicts_with = "live")]
    templates: bool,

    /// Of sessions, the conversations: with whom, how many runs, when last
    #[arg(long)]
    live: bool,

    /// From all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Go on and show what changes, until Ctrl-C; with -o json one object per line
    #[arg(short, long)]
    watch: bool,

    /// At most so many (of tasks the newest; by default 100 of those, and all of anything else)
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    limit: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  ostler get agents
  ostler get agent hello -o yaml
  ostler get agent/hello model/mock
  ostler get tasks -A -o wide
  ostler get tasks -l 'team=sales,!draft' -w
  ostler get tasks --templates
  ostler get sessions --live
  ostler get tasks -o json | jq -r '.[].status.state'";

/// The examples, and below them every kind with its shorter words.
fn with_kinds() -> String {
    let widest = kinds().map(|info| info.plural.len()).max().unwrap_or_default();
    let line = |info: &KindInfo| {
        let line = format!("  {:widest$}  {}", info.plural, info.short_names.join(", "));
        format!("{}\n", line.trim_end())
    };
    let list: String = kinds().map(line).collect();
    format!("{EXAMPLES}\n\nKinds, and shorter words for them:\n{}", list.trim_end_matches('\n'))
}

const TASKS: usize = 100;

/// What can be listed and is no kind.
enum Other {
    All,
    Namespaces,
}

impl Other {
    fn read(what: &[String]) -> Option<Self> {
        match what {
            [word] if word == "all" => Some(Other::All),
            [word] if is_namespaces(word) => Some(Other::Namespaces),
            _ => None,
        }
    }
}

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let other = Other::read(&arguments.what);
    if arguments.watch && other.is_some() {
        let message = format!("{:?} is no kind, and is not watched", arguments.what[0]);
        return Err(CommandError::new(Exit::Usage, message)
            .with_remedy("-w watches one kind, or one object: `ostler get agents -w`"));
    }
    let mut client = app.client()?;
    if arguments.all_namespaces {
        client = client.in_namespace("*");
    }
    match other {
        Some(Other::All) => return everything(&arguments, &client, app).await,
        Some(Other::Namespaces) => return namespaces(&arguments, &client, app).await,
        None => {}
    }
    let wanted = match targets(&arguments.what) {
        Ok(wanted) => wanted,
        Err(error) => return Err(missing::explain_kind(app, &arguments.what, error).await),
    };
    arguments.check(&wanted)?;
    match &wanted[..] {
        [one] if arguments.watch => watch::run(&arguments, one, &client, app).await,
        [Target { kind, name: None }] => {
            let listing = arguments.listing(*kind);
            let is_shown = some(&arguments, listing, &client, app).await?;
            if !is_shown {
                nothing(app, listing, &client, &arguments).await;
            }
            Ok(Exit::Ok)
        }
        named => several(&arguments, named, &client, app).await,
    }
}

/// The list of them; whether there was anything to show.
async fn some(
    arguments: &Arguments,
    listing: Listing,
    client: &Client,
    app: &App,
) -> Result<bool, CommandError> {
    let (selector, limit) = (arguments.selector.as_deref(), arguments.limit(listing));
    let Listed { items, has_more } = listing::list(client, listing, selector, limit).await?;
    if items.is_empty() && arguments.output.is_table() {
        return Ok(false);
    }
    show(app, listing.kind(), &items, arguments, false)?;
    if has_more {
        app.output.note(there_are_more(items.len()));
    }
    Ok(true)
}

async fn nothing(app: &App, listing: Listing, client: &Client, arguments: &Arguments) {
    let place = match arguments.all_namespaces {
        true => String::new(),
        false => format!(" in namespace {}", client.namespace()),
    };
    let selected = arguments.selector.as_ref().map(|labels| format!(" with {labels}")).unwrap_or_default();
    let more = match listing {
        Listing::Kind(Kind::Session) => "; --live lists conversations",
        Listing::Kind(_) | Listing::Templates | Listing::Conversations => "",
    };
    app.output.note(format!("no {}{selected}{place}{more}", listing.plural()));
    if !arguments.all_namespaces
        && let Some(near) = missing::namespace(client).await
    {
        app.output.note(format!("nothing lives in {}; did you mean -n {near}?", client.namespace()));
    }
}

/// Those that were named, each kind in a table of its own.
async fn several(
    arguments: &Arguments,
    wanted: &[Target],
    client: &Client,
    app: &App,
) -> Result<Exit, CommandError> {
    let mut groups: Vec<(Kind, Vec<Value>)> = Vec::new();
    let mut exit = Exit::Ok;
    for Target { kind, name } in wanted {
        match client.get(*kind, name.as_deref().unwrap_or_default()).await {
            Ok(object) => match groups.iter_mut().find(|(known, _)| known == kind) {
                Some((_, objects)) => objects.push(object),
                None => groups.push((*kind, vec![object])),
            },
            // The others are shown all the same.
            Err(error) if wanted.len() > 1 && error.code() == Some("not_found") => {
                let name = name.as_deref().unwrap_or_default();
                app.output.tell(&missing::explain(client, *kind, name, error).await);
                exit = Exit::Error;
            }
            Err(error) => {
                return Err(missing::explain(client, *kind, name.as_deref().unwrap_or_default(), error).await);
            }
        }
    }
    show_groups(app, &groups, wanted.len(), arguments)?;
    Ok(exit)
}

fn show_groups(
    app: &App,
    groups: &[(Kind, Vec<Value>)],
    n_wanted: usize,
    arguments: &Arguments,
) -> Result<(), CommandError> {
    match (groups, arguments.output) {
        ([(_, objects)], Format::Json) if n_wanted == 1 => {
            objects.iter().try_for_each(|one| app.output.json(one))
        }
        (groups, Format::Json) => {
            app.output.json(&groups.iter().flat_map(|(_, objects)| objects).collect::<Vec<_>>())
        }
        (groups, Format::Yaml) => {
            let all: Vec<&Value> = groups.iter().flat_map(|(_, objects)| objects).collect();
            arguments.output.print(app.output, &all, |_| String::new(), |_| Table::new([]))
        }
        (groups, Format::Table | Format::Wide | Format::Name) => {
            for (place, (kind, objects)) in groups.iter().enumerate() {
                if place > 0 && arguments.output.is_table() {
                    app.output.data("")?;
                }
                show(app, *kind, objects, arguments, groups.len() > 1)?;
            }
            Ok(())
        }
    }
}

/// Everything but workers, which are not declared; of tasks, the templates.
async fn everything(arguments: &Arguments, client: &Client, app: &App) -> Result<Exit, CommandError> {
    let mut groups = Vec::new();
    for kind in Kind::ALL.iter().copied().filter(|kind| *kind != Kind::Worker) {
        let listing = if kind == Kind::Task { Listing::Templates } else { Listing::Kind(kind) };
        let found = listing::list(client, listing, arguments.selector.as_deref(), usize::MAX).await?;
        if !found.items.is_empty() {
            groups.push((kind, found.items));
        }
    }
    if groups.is_empty() && arguments.output.is_table() {
        app.output.note("nothing is declared; `ostler init` makes a project to begin with");
    }
    show_groups(app, &groups, 2, arguments)?;
    Ok(Exit::Ok)
}

/// They are not declared: whatever lives in one makes it.
async fn namespaces(arguments: &Arguments, client: &Client, app: &App) -> Result<Exit, CommandError> {
    let names = client.namespaces().await?;
    let name = |name: &String| format!("namespace/{name}");
    arguments.output.print(app.output, &names, name, |_| {
        let mut table = Table::new(["NAME"]);
        names.iter().for_each(|name| table.row([Cell::new(name)]));
        table
    })?;
    Ok(Exit::Ok)
}

fn show(
    app: &App,
    kind: Kind,
    objects: &[Value],
    arguments: &Arguments,
    with_kind: bool,
) -> Result<(), CommandError> {
    let name = |object: &Value| format!("{}/{}", kind.singular(), name_of(object));
    let table = |wide| columns::table(kind, objects, Look { with_kind, ..arguments.look(wide, app) });
    arguments.output.print(app.output, objects, name, table)
}

impl Arguments {
    /// Refuses what does not go together.
    fn check(&self, wanted: &[Target]) -> Result<(), CommandError> {
        let refuse = |message: &str| Err(CommandError::new(Exit::Usage, message));
        let is_named = wanted.iter().any(|target| target.name.is_some());
        let is_one = |kind| matches!(wanted, [target] if target.kind == kind);
        if is_named && (self.all_namespaces || self.selector.is_some()) {
            return Err(CommandError::new(Exit::Usage, "a name stands for one object")
                .with_remedy("leave out the name, or -A and -l"));
        }
        if self.templates && (is_named || !is_one(Kind::Task)) {
            return refuse("--templates goes with `tasks`, and no name");
        }
        if self.live && (is_named || !is_one(Kind::Session)) {
            return refuse("--live goes with `sessions`, and no name");
        }
        if self.live && (self.watch || self.selector.is_some()) {
            return refuse("conversations have no labels, and are not watched");
        }
        if self.watch && wanted.len() != 1 {
            return refuse("-w watches one kind, or one object");
        }
        Ok(())
    }

    fn listing(&self, kind: Kind) -> Listing {
        match (self.templates, self.live) {
            (true, _) => Listing::Templates,
            (_, true) => Listing::Conversations,
            (false, false) => Listing::Kind(kind),
        }
    }

    /// How many are shown at most.
    fn limit(&self, listing: Listing) -> usize {
        self.limit.unwrap_or(if listing == Listing::Kind(Kind::Task) { TASKS } else { usize::MAX })
    }

    fn look(&self, wide: bool, app: &App) -> Look {
        Look {
            wide,
            with_namespace: self.all_namespaces,
            with_kind: false,
            keeps_empty: self.watch,
            now_ms: app.now_ms(),
        }
    }
}
