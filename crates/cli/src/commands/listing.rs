//! Lists of any length, page by page.

use ostler_client::{Client, PageRequest};
use ostler_spec::Kind;
use serde_json::Value;

use crate::error::CommandError;

/// The most a server gives at once.
const PAGE: usize = 1000;

/// Part of a list.
pub struct Listed {
    pub items: Vec<Value>,
    pub has_more: bool,
}

/// At most `limit` of a kind, of those that the selector takes.
pub async fn list(
    client: &Client,
    kind: Kind,
    selector: Option<&str>,
    limit: usize,
) -> Result<Listed, CommandError> {
    let mut items = Vec::new();
    let mut after = None;
    loop {
        let wanted = (limit - items.len()).min(PAGE);
        if wanted == 0 {
            return Ok(Listed { items, has_more: after.is_some() });
        }
        let selector = selector.map(str::to_owned);
        // Workers are few, and told at once.
        let limit = (kind != Kind::Worker).then_some(wanted);
        let request = PageRequest { limit, after: after.take(), selector };
        let page = client.list(kind, &request).await?;
        items.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(Listed { items, has_more: false });
        }
    }
}

/// All of a kind in the client's namespace.
pub async fn all(client: &Client, kind: Kind) -> Result<Vec<Value>, CommandError> {
    Ok(list(client, kind, None, usize::MAX).await?.items)
}

/// `metadata.name`
pub fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.namespace`
pub fn namespace_of(object: &Value) -> &str {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default()
}
