//! A name that isn't there is most often a slip of the finger, or stands in another namespace.

use futures_util::{StreamExt, stream};
use ostler_client::{Client, ClientError, PageRequest};
use ostler_spec::Kind;

use super::listing::{self, name_of, namespace_of};
use crate::{app::App, error::CommandError, suggest};

/// As many names as a near one is looked for among.
const LOOKED_AT: usize = 1000;

/// Kinds asked about at a time.
const AT_ONCE: usize = 8;

/// The answer, or the error with what was probably meant.
pub async fn or_explain<T>(
    client: &Client,
    kind: Kind,
    name: &str,
    answer: Result<T, ClientError>,
) -> Result<T, CommandError> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(error) => Err(explain(client, kind, name, error).await),
    }
}

/// The error, and the nearest name there is, if it is about one that isn't there.
pub async fn explain(client: &Client, kind: Kind, name: &str, error: ClientError) -> CommandError {
    let is_missing = error.code() == Some("not_found");
    let error = CommandError::from(error);
    if !is_missing {
        return error;
    }
    match meant(client, &[kind], name).await {
        Some(remedy) => error.with_remedy(remedy),
        None => error,
    }
}

/// The same for what is no resource: the names there are have to be given.
pub fn explain_among(error: ClientError, name: &str, known: &[String]) -> CommandError {
    let is_missing = error.code() == Some("not_found");
    let error = CommandError::from(error);
    match suggest::nearest(name, known.iter().map(String::as_str)).filter(|_| is_missing) {
        Some(near) => error.with_remedy(format!("did you mean {near}?")),
        None => error,
    }
}

/// The same, where another kind may have the name: what to write then.
pub async fn or_offer<T>(
    client: &Client,
    (kind, name): (Kind, &str),
    (other, command): (Kind, &str),
    answer: Result<T, ClientError>,
) -> Result<T, CommandError> {
    let error = match answer {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    if error.code() == Some("not_found") && client.get(other, name).await.is_ok() {
        let word = other.singular();
        let a = article(&word);
        let remedy = format!("there is {a} {word} of that name: `ostler {command} {word}/{name}`");
        return Err(CommandError::from(error).with_remedy(remedy));
    }
    Err(explain(client, kind, name, error).await)
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// A word that is no kind may be the name of something: what to write then, where one kind alone has it.
pub async fn explain_kind(app: &App, words: &[String], error: CommandError) -> CommandError {
    let ([name], Ok(client)) = (words, app.client()) else { return error };
    let client = &client;
    let asked = stream::iter(Kind::ALL).map(|kind| async move { (*kind, client.get(*kind, name).await) });
    let answers: Vec<_> = asked.buffered(AT_ONCE).collect().await;
    let mut having = answers.into_iter().filter(|(_, answer)| answer.is_ok());
    match (having.next(), having.next()) {
        (Some((kind, _)), None) => error.with_remedy(format!("did you mean {}/{name}?", kind.singular())),
        _ => error,
    }
}

/// What to do about a name that none of the kinds has: none, where nothing can be found out.
pub async fn meant(client: &Client, kinds: &[Kind], name: &str) -> Option<String> {
    let here = names(client, kinds).await?;
    if kinds == [Kind::Task] && is_template(client, name).await {
        return Some(format!("it is a template, which others are made from: `ostler run task/{name}`"));
    }
    if here.iter().any(|known| known.name == name) {
        return None;
    }
    if kinds == [Kind::Session] && is_conversation(client, name).await {
        return Some(
            "it is a conversation that no manifest declares: `ostler get sessions --live` shows it"
                .to_owned(),
        );
    }
    let found = here.iter().map(|known| known.name.as_str());
    if let Some(near) = suggest::nearest(name, found)
        && let Some(known) = here.iter().find(|known| known.name == near)
    {
        return Some(format!("did you mean {}? {}", known.title(kinds), lists([known.kind])));
    }
    // Those who are not let in elsewhere are not told what is there.
    let everywhere = names(&client.clone().in_namespace("*"), kinds).await.unwrap_or_default();
    let namespace = client.namespace();
    if let Some(Known { namespace: home, .. }) = everywhere.iter().find(|known| known.name == name) {
        return Some(format!("it is in namespace {home}: -n {home}"));
    }
    if here.is_empty() {
        let words = kinds.iter().map(|kind| kind.plural()).collect::<Vec<_>>().join(" or ");
        return Some(format!("there are no {words} in namespace {namespace}; {}", first(kinds)));
    }
    let has_some = |kind: &Kind| here.iter().any(|known| known.kind == *kind);
    Some(lists(kinds.iter().copied().filter(has_some)))
}

/// Something of a kind that was looked through.
struct Known {
    kind: Kind,
    namespace: String,
    name: String,
}

impl Known {
    /// Its name; with its kind where that is not the first that is thought of.
    fn title(&self, kinds: &[Kind]) -> String {
        match kinds.first() == Some(&self.kind) {
            true => self.name.clone(),
            false => format!("{}/{}", word(self.kind), self.name),
        }
    }
}

/// As people call one of them: what is long has a shorter word.
fn word(kind: Kind) -> String {
    if kind == Kind::AgentSystem { "system".to_owned() } else { kind.singular() }
}

/// `ostler get agents` lists them.
fn lists(kinds: impl IntoIterator<Item = Kind>) -> String {
    let command = |kind| match kind {
        Kind::Secret => "`ostler secret list`".to_owned(),
        Kind::AgentSystem => "`ostler get systems`".to_owned(),
        other => format!("`ostler get {}`", other.plural()),
    };
    let commands: Vec<String> = kinds.into_iter().map(command).collect();
    let verb = if commands.len() == 1 { "lists" } else { "list" };
    format!("{} {verb} them", commands.join(" and "))
}

async fn is_template(client: &Client, name: &str) -> bool {
    let task = client.get(Kind::Task, name).await;
    task.is_ok_and(|task| listing::is_template(&task))
}

async fn is_conversation(client: &Client, name: &str) -> bool {
    let request = PageRequest { limit: Some(LOOKED_AT), ..PageRequest::default() };
    let known = client.sessions(&request).await;
    known.is_ok_and(|known| known.items.iter().any(|session| session.metadata.name == name))
}

/// The namespace that was probably meant, where nothing lives in the one that was named.
pub async fn namespace(client: &Client) -> Option<String> {
    let (here, known) = (client.namespace(), client.namespaces().await.ok()?);
    if known.iter().any(|name| name == here) {
        return None;
    }
    suggest::nearest(here, known.iter().map(String::as_str)).map(str::to_owned)
}

/// How there comes to be one.
fn first(kinds: &[Kind]) -> &'static str {
    match kinds {
        [Kind::Task] => "`ostler run AGENT MESSAGE` makes one",
        [Kind::Session] => "conversations, which no manifest declares, are in `ostler get sessions --live`",
        [Kind::Worker] => "`ostler worker` starts one",
        [Kind::Secret] => "`ostler secret set NAME` keeps one, `ostler secret list` lists them",
        _ => "`ostler apply -f FILE` declares one",
    }
}

/// All of these kinds that a near name is looked for among.
async fn names(client: &Client, kinds: &[Kind]) -> Option<Vec<Known>> {
    let mut names = Vec::new();
    for kind in kinds {
        // Workers are few, and told at once.
        let limit = (*kind != Kind::Worker).then_some(LOOKED_AT);
        let request = PageRequest { limit, ..PageRequest::default() };
        let mut found = client.list(*kind, &request).await.ok()?.items;
        if *kind == Kind::Task {
            found.extend(client.templates(&request).await.ok()?.items);
        }
        names.extend(found.iter().map(|it| Known {
            kind: *kind,
            namespace: namespace_of(it).to_owned(),
            name: name_of(it).to_owned(),
        }));
    }
    Some(names)
}
