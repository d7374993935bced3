//! `ostler secret check`: where a secret would be found, never what it is.

use ostler_spec::{DEFAULT_NAMESPACE, Kind, SecretRef};
use serde_json::{Map, Value};

use crate::{
    app::App,
    commands::doctor::server::{is_set, variables_of_server},
    error::CommandError,
    exit::Exit,
};

/// Says where a secret is found, as an endpoint or a tool would find it; never its value
///
/// First what the server keeps counts, then the environment of the worker: OSTLER_SECRET_<NAME> for the namespace default,
/// OSTLER_SECRET_<NAMESPACE>__<NAME> for others. The environment can be looked at only where the server runs in this folder.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  ostler secret check openai-key\n  ostler secret check team/github:token"
)]
pub struct Arguments {
    /// [NAMESPACE/]NAME[:KEY], as in secretRef
    #[arg(value_name = "REF")]
    reference: String,
}

pub async fn run(arguments: &Arguments, app: &App) -> Result<Exit, CommandError> {
    let named: SecretRef = arguments
        .reference
        .parse()
        .map_err(|error| CommandError::new(Exit::Usage, format!("{:?}: {error}", arguments.reference)))?;
    let client = app.client()?;
    let home = match client.namespace() {
        "" => DEFAULT_NAMESPACE.to_owned(),
        namespace => namespace.to_owned(),
    };
    let namespace = named.namespace.clone().unwrap_or_else(|| home.clone());
    let key = named.key_or_default();
    let set = set_command(&named, &namespace, &home);
    match client.in_namespace(namespace.clone()).get(Kind::Secret, &named.name).await {
        Ok(secret) => {
            let data = secret.pointer("/spec/data").and_then(Value::as_object);
            let keys: Vec<&String> = data.into_iter().flat_map(Map::keys).collect();
            if keys.iter().any(|known| *known == key) {
                app.output.data(format!("found: kept by the server, as {namespace}/{}:{key}", named.name))?;
                return Ok(Exit::Ok);
            }
            let has = keys.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(", ");
            return Err(CommandError::error(format!(
                "{namespace}/{} is kept by the server and has no key {key}; it has {has}",
                named.name
            ))
            .with_remedy(format!("`{set}` adds it")));
        }
        Err(error) if error.code() == Some("not_found") => {}
        Err(error) => return Err(error.into()),
    }
    in_environment(&SecretRef { namespace: Some(namespace), ..named }, &set, app)
}

/// What puts it in place, typed where this command was.
fn set_command(named: &SecretRef, namespace: &str, home: &str) -> String {
    let key = named.key.as_ref().map(|key| format!(" --key {key}")).unwrap_or_default();
    let elsewhere = if namespace == home { String::new() } else { format!(" -n {namespace}") };
    format!("ostler secret set {}{key}{elsewhere}", named.name)
}

fn in_environment(named: &SecretRef, set: &str, app: &App) -> Result<Exit, CommandError> {
    let reference = named.to_string();
    let variable = ostler_worker::secret_variable(&reference);
    let variables = variables_of_server(&app.written.data_folder());
    let missing =
        |what: String| Err(CommandError::error(what).with_remedy(format!("`{set}` has the server keep it")));
    match (variable, variables) {
        (Some(variable), Some(variables)) if is_set(&variables, &reference) => {
            app.output.data(format!("found: in the server's environment, as {variable}"))?;
            Ok(Exit::Ok)
        }
        (Some(variable), Some(_)) => missing(format!(
            "not found: {reference} is not kept, and the server's environment has no {variable}"
        )),
        (Some(variable), None) => missing(format!(
            "not found: {reference} is not kept; whether the worker's environment has {variable} can't be seen from here"
        )),
        (None, _) => missing(format!("not found: {reference} is not kept, and can't be a variable")),
    }
}
