//! Who names something that is not there: a task for them would be refused.

use std::collections::BTreeSet;

use ostler_client::Client;
use ostler_spec::Kind;
use serde_json::Value;

use super::Check;
use crate::{
    commands::{
        describe::{aliases, references},
        listing::{self, name_of, namespace_of},
    },
    error::CommandError,
};

/// Who names whom, and where.
const NAMED: [(Kind, &str, Kind); 3] = [
    (Kind::Agent, "/spec/model_ref", Kind::ModelEndpoint),
    (Kind::Agent, "/spec/tools", Kind::Tool),
    (Kind::AgentSystem, "/spec/agents", Kind::Agent),
];

pub async fn check(client: &Client) -> Check {
    match missing(client).await {
        Ok(found) if found.is_empty() => Check::ok("references", "all lead somewhere"),
        Ok(found) => {
            Check::warn("references", found.join(", "), "declare what is missing: `ostler apply -f FILE`")
        }
        Err(error) => Check::unseen("references", error),
    }
}

async fn missing(client: &Client) -> Result<Vec<String>, CommandError> {
    let mut found = Vec::new();
    for (kind, path, named) in NAMED {
        let there = listing::all(client, named).await?;
        let there: BTreeSet<String> = there.iter().flat_map(names).collect();
        for object in listing::all(client, kind).await? {
            let is_gone = |name: &String| {
                let whole = whole(&object, name);
                is_seen(client, &whole) && !there.contains(&whole)
            };
            let gone = references(&object, path).into_iter().filter(is_gone);
            let title = format!("{}/{}", kind.singular(), name_of(&object));
            found.extend(
                gone.map(|name| format!("{title} names {}/{name}, which is not there", named.singular())),
            );
        }
    }
    Ok(found)
}

/// What it can be named by; an endpoint by its aliases too.
fn names(object: &Value) -> Vec<String> {
    let (home, aliases) = (namespace_of(object), aliases(object).map(|(alias, _)| alias));
    std::iter::once(name_of(object)).chain(aliases).map(|name| format!("{home}/{name}")).collect()
}

/// What is in another namespace than the one that was looked at may well be there.
fn is_seen(client: &Client, whole: &str) -> bool {
    let home = whole.split_once('/').map(|(home, _)| home);
    client.namespace() == "*" || home == Some(client.namespace())
}

/// A reference without a namespace means the one it stands in.
fn whole(object: &Value, name: &str) -> String {
    if name.contains('/') { name.to_owned() } else { format!("{}/{name}", namespace_of(object)) }
}
