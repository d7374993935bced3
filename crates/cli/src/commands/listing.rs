//! Lists of any length, page by page.

use ostler_client::{Client, Page, PageRequest};
use ostler_spec::Kind;
use serde_json::{Value, json};

use crate::error::CommandError;

/// The most a server gives at once.
const PAGE: usize = 1000;

/// What is listed, where the name of a kind stands for two things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Tasks that were asked for, and of any other kind what was declared.
    Kind(Kind),
    /// Tasks that are kept and never run.
    Templates,
    /// Sessions that somebody has spoken in, whether they were declared or not.
    Conversations,
}

impl Listing {
    pub fn kind(self) -> Kind {
        match self {
            Listing::Kind(kind) => kind,
            Listing::Templates => Kind::Task,
            Listing::Conversations => Kind::Session,
        }
    }

    /// What to call several of them.
    pub fn plural(self) -> &'static str {
        match self {
            Listing::Kind(kind) => kind.plural(),
            Listing::Templates => "templates",
            Listing::Conversations => "conversations",
        }
    }
}

impl From<Kind> for Listing {
    fn from(kind: Kind) -> Self {
        Listing::Kind(kind)
    }
}

/// Part of a list.
pub struct Listed {
    pub items: Vec<Value>,
    pub has_more: bool,
}

/// At most `limit` of them, of those that the selector takes.
pub async fn list(
    client: &Client,
    listing: impl Into<Listing>,
    selector: Option<&str>,
    limit: usize,
) -> Result<Listed, CommandError> {
    let listing = listing.into();
    let mut items = Vec::new();
    let mut after = None;
    loop {
        let wanted = (limit - items.len()).min(PAGE);
        if wanted == 0 {
            return Ok(Listed { items, has_more: after.is_some() });
        }
        let selector = selector.map(str::to_owned);
        // Workers are few, and told at once.
        let limit = (listing.kind() != Kind::Worker).then_some(wanted);
        let request = PageRequest { limit, after: after.take(), selector };
        let page = page(client, listing, &request).await?;
        items.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(Listed { items, has_more: false });
        }
    }
}

async fn page(client: &Client, listing: Listing, request: &PageRequest) -> Result<Page<Value>, CommandError> {
    Ok(match listing {
        Listing::Kind(kind) => client.list(kind, request).await?,
        Listing::Templates => client.templates(request).await?,
        Listing::Conversations => {
            let Page { items, next } = client.sessions(request).await?;
            Page { items: items.iter().map(|session| json!(session)).collect(), next }
        }
    })
}

/// What to say below a list that was cut off behind so many. How many there are nobody has counted: that would cost more than
/// the list.
pub fn there_are_more(shown: usize) -> String {
    format!(
        "there are more than these {shown}; --limit {} shows up to that many",
        shown.saturating_mul(10).max(10)
    )
}

/// All of a kind in the client's namespace.
pub async fn all(client: &Client, kind: Kind) -> Result<Vec<Value>, CommandError> {
    Ok(list(client, kind, None, usize::MAX).await?.items)
}

/// Whether a Task is kept and never run.
pub fn is_template(task: &Value) -> bool {
    task.pointer("/spec/mode").and_then(Value::as_str) == Some("template")
}

/// `metadata.name`
pub fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.namespace`
pub fn namespace_of(object: &Value) -> &str {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default()
}
