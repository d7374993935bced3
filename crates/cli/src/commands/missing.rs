//! A name that isn't there is most often a slip of the finger.

use ostler_client::{Client, ClientError, PageRequest};
use ostler_spec::Kind;

use super::listing::name_of;
use crate::{error::CommandError, suggest};

/// As many names as a near one is looked for among.
const LOOKED_AT: usize = 1000;

/// The error, and the nearest name there is, if it is about one that isn't there.
pub async fn explain(client: &Client, kind: Kind, name: &str, error: ClientError) -> CommandError {
    let is_missing = error.code() == Some("not_found");
    let error = CommandError::from(error);
    if !is_missing || kind == Kind::Worker {
        return error;
    }
    let request = PageRequest { limit: Some(LOOKED_AT), ..PageRequest::default() };
    let Ok(page) = client.list(kind, &request).await else { return error };
    let lists = format!("`ostler get {}` lists them", kind.plural());
    match suggest::nearest(name, page.items.iter().map(name_of)) {
        Some(near) if near != name => error.with_remedy(format!("did you mean {near}? {lists}")),
        _ if page.items.is_empty() => {
            error.with_remedy(format!("there are no {} in namespace {}", kind.plural(), client.namespace()))
        }
        _ => error.with_remedy(lists),
    }
}
