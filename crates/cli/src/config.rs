//! Which server, with which token, in which namespace: what was written (flags, variables, profiles) and what it
//! means here. Resolved once per command; nothing else looks at these variables.

use std::{
    env, fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
};

use clap::builder::NonEmptyStringValueParser;
use ostler_client::Client;
use serde::Deserialize;

use crate::{
    error::CommandError,
    exit::Exit,
    profiles::{self, Profile, Profiles},
    terminal::Colour,
};

/// Where `ostler up` keeps everything, unless told otherwise.
pub const DATA_FOLDER: &str = ".ostler";

/// Written by a server once it is ready, removed when it stops.
const SERVER_FILE: &str = "server.json";
const TOKEN_FILE: &str = "token";

const SERVER_VARIABLE: &str = "OSTLER_SERVER";
const DATA_VARIABLE: &str = "OSTLER_DATA";
const NAMESPACE_VARIABLE: &str = "OSTLER_NAMESPACE";
const PROFILE_VARIABLE: &str = "OSTLER_PROFILE";
const TOKEN_VARIABLE: &str = "OSTLER_TOKEN";
const CA_VARIABLE: &str = "OSTLER_CA";

/// Of those who come from elsewhere; they count last.
const FOREIGN_SERVERS: [&str; 2] = ["ORLOJCTL_SERVER", "ORLOJ_SERVER"];
const FOREIGN_TOKENS: [&str; 2] = ["ORLOJCTL_API_TOKEN", "ORLOJ_API_TOKEN"];

const FIND_HELP: &str = "start one with `ostler up`, or name one with --server, OSTLER_SERVER or a profile";

/// As it was written, by flag.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Where")]
pub struct Written {
    /// The server's address; without it, the one that runs in the nearest `.ostler` folder [env: OSTLER_SERVER]
    #[arg(long, global = true, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub server: Option<String>,

    /// The data folder, instead of `.ostler` here or above [env: OSTLER_DATA]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub data: Option<PathBuf>,

    /// The profile to use, instead of the current one [env: OSTLER_PROFILE]
    #[arg(long, global = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub profile: Option<String>,

    /// The namespace to work in (without it, `default`) [env: OSTLER_NAMESPACE]
    #[arg(short, long, global = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub namespace: Option<String>,

    /// When to use colours; `auto` means on a terminal, and not where NO_COLOR is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    pub color: Colour,
}

/// What it means.
#[derive(Debug, PartialEq, Eq)]
pub struct Connection {
    pub url: String,
    pub token: String,
    pub namespace: String,
    /// A file with who vouches for the server.
    pub ca: Option<PathBuf>,
}

/// A value, and who said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub text: String,
    pub from: String,
}

/// Everything that leads to a server, each part with who said so.
#[derive(Debug)]
pub struct Resolved {
    pub profile: Option<Said>,
    pub server: Result<Said, CommandError>,
    pub token: Result<Said, CommandError>,
    pub namespace: Said,
    pub ca: Option<Said>,
    /// The data folder that the server or its token was found in.
    pub data: Option<PathBuf>,
    /// The profiles can't be read, and what is above was found without them.
    pub unread: Option<CommandError>,
}

/// The profile that counts, if one does.
#[derive(Debug, Default)]
struct Chosen {
    name: Option<Said>,
    profile: Profile,
    /// The profiles can't be read.
    unread: Option<CommandError>,
}

/// Where a command was given: its folder and its variables.
pub struct Place<'a> {
    pub folder: &'a Path,
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// The parts of `server.json` that concern us.
#[derive(Debug, Deserialize)]
pub struct ServerFile {
    pub url: String,
    #[serde(default)]
    pub pid: Option<u32>,
}

impl Written {
    /// The folder in which `ostler up` works.
    pub fn data_folder(&self) -> PathBuf {
        self.data().unwrap_or_else(|| PathBuf::from(DATA_FOLDER))
    }

    /// The same, with who said so.
    pub fn said_data_folder(&self) -> Said {
        let default = || Said { text: DATA_FOLDER.to_owned(), from: "default".to_owned() };
        self.said_data(&variable).unwrap_or_else(default)
    }

    /// The data folder that was named, if one was.
    pub fn data(&self) -> Option<PathBuf> {
        self.named_data(&variable)
    }

    /// The server that this command names by its flag.
    pub fn flagged_server(&self) -> Option<String> {
        by_flag("--server", self.server.as_deref()).map(|said| said.text)
    }

    /// The server that was named, if one was.
    pub fn named_server(&self) -> Option<String> {
        self.said_server(&variable).map(|said| said.text)
    }

    /// The namespace that this command asks for by flag or variable.
    pub fn namespace(&self) -> Option<String> {
        self.said_namespace(&variable).map(|said| said.text)
    }

    /// What is wrong with the flags by themselves.
    pub fn check(&self) -> Result<(), CommandError> {
        by_flag("--server", self.server.as_deref()).as_ref().map_or(Ok(()), check_address)?;
        by_flag("--namespace", self.namespace.as_deref()).as_ref().map_or(Ok(()), check_namespace)
    }

    /// The address of the server that all this leads to.
    pub fn server_here(&self) -> Result<String, CommandError> {
        self.resolve()?.server.map(|said| said.text)
    }

    /// All of it, seen from the current folder.
    pub fn resolve(&self) -> Result<Resolved, CommandError> {
        let folder = env::current_dir().map_err(|error| {
            CommandError::error(format!("the current folder can't be determined: {error}"))
        })?;
        self.resolve_at(&Place { folder: &folder, variable: &variable })
    }

    fn resolve_at(&self, place: &Place<'_>) -> Result<Resolved, CommandError> {
        let Chosen { name, profile, mut unread } = self.chosen_profile(place)?;
        // A profile comes before a server that is found near by, so nobody is sent there because it can't be read.
        let is_said = self.said_server(place.variable).is_some() || self.named_data(place.variable).is_some();
        let found = match unread.take_if(|_| !is_said) {
            Some(error) => Err(error),
            None => self.find_server(place, name.as_ref(), &profile),
        };
        // What is not found without the profiles may stand in them.
        let mut missing = |error| unread.take().unwrap_or(error);
        let (server, data) = match found {
            Ok((said, data)) => (Ok(said), data),
            Err(error) => (Err(missing(error)), None),
        };
        let token = match &server {
            Ok(server) => {
                let found = find_token(place, name.as_ref(), &profile, &server.text, data.as_deref());
                found.map_err(missing)
            }
            Err(_) => Err(CommandError::Quiet(Exit::Unreachable)),
        };
        let of_profile = |text: &Option<String>| {
            let said = |text: &String| Said { text: text.clone(), from: from_profile(name.as_ref()) };
            text.as_ref().map(said)
        };
        let namespace = self.said_namespace(place.variable).or_else(|| of_profile(&profile.namespace));
        let default = || Said { text: ostler_spec::DEFAULT_NAMESPACE.to_owned(), from: "default".to_owned() };
        let ca = by_variable(place.variable, CA_VARIABLE).or_else(|| of_profile(&profile.ca));
        let namespace = namespace.unwrap_or_else(default);
        Ok(Resolved { profile: name, server, token, namespace, ca, data, unread })
    }

    fn chosen_profile(&self, place: &Place<'_>) -> Result<Chosen, CommandError> {
        let said = by_flag("--profile", self.profile.as_deref())
            .or_else(|| by_variable(place.variable, PROFILE_VARIABLE));
        let read = profiles::file(place.variable)
            .map_or_else(|| Ok(Profiles::default()), |path| Profiles::read(&path));
        let profiles = match read {
            Ok(profiles) => profiles,
            // Who names none may do without them.
            Err(error) if said.is_none() => {
                return Ok(Chosen { unread: Some(error), ..Chosen::default() });
            }
            Err(error) => return Err(error),
        };
        let current =
            || profiles.current.clone().map(|text| Said { text, from: "ostler profile use".into() });
        match said.or_else(current) {
            None => Ok(Chosen::default()),
            Some(name) => {
                let profile = profiles.get(&name.text)?.clone();
                Ok(Chosen { name: Some(name), profile, unread: None })
            }
        }
    }

    /// The server's address, and the data folder whose token it takes.
    fn find_server(
        &self,
        place: &Place<'_>,
        name: Option<&Said>,
        profile: &Profile,
    ) -> Result<(Said, Option<PathBuf>), CommandError> {
        let named_data = self.named_data(place.variable);
        // A token found by chance is sent to nobody but this machine.
        let near = |url: &str| match &named_data {
            Some(data) => Some(data.clone()),
            None if is_loopback(url) => {
                running_above(place.folder).or_else(|| data_folders(place.folder).next())
            }
            None => None,
        };
        if let Some(said) = self.said_server(place.variable) {
            let data = near(&said.text);
            return Ok((said, data));
        }
        if let Some(data) = &named_data {
            return in_data_folder(data).map(|said| (said, Some(data.clone())));
        }
        if let Some(url) = &profile.server {
            let said = Said { text: url.clone(), from: from_profile(name) };
            return Ok((said, near(url)));
        }
        if let Some(data) = running_above(place.folder) {
            return in_data_folder(&data).map(|said| (said, Some(data)));
        }
        let foreign = FOREIGN_SERVERS.iter().find_map(|name| by_variable(place.variable, name));
        foreign
            .map(|said| (said, None))
            .ok_or_else(|| nobody_runs(data_folders(place.folder).next().as_deref()))
    }

    fn said_server(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<Said> {
        by_flag("--server", self.server.as_deref()).or_else(|| by_variable(variable, SERVER_VARIABLE))
    }

    fn said_namespace(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<Said> {
        by_flag("--namespace", self.namespace.as_deref())
            .or_else(|| by_variable(variable, NAMESPACE_VARIABLE))
    }

    fn named_data(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let flag = self.data.clone().filter(|folder| !folder.as_os_str().is_empty());
        flag.or_else(|| by_variable(variable, DATA_VARIABLE).map(|said| PathBuf::from(said.text)))
    }

    fn said_data(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<Said> {
        let flag = self.data.as_ref().map(|folder| folder.display().to_string());
        by_flag("--data", flag.as_deref()).or_else(|| by_variable(variable, DATA_VARIABLE))
    }
}

impl Resolved {
    pub fn connection(self) -> Result<Connection, CommandError> {
        let server = self.server?;
        check_address(&server)?;
        check_namespace(&self.namespace)?;
        let token = self.token?;
        check_token(&token)?;
        let ca = self.ca.map(|ca| PathBuf::from(ca.text));
        Ok(Connection { url: server.text, token: token.text, namespace: self.namespace.text, ca })
    }
}

/// Before anything is said about a token for it.
fn check_address(server: &Said) -> Result<(), CommandError> {
    let Said { text, from } = server;
    if Client::check_address(text).is_ok() {
        return Ok(());
    }
    let host = if text.contains('/') { "HOST:PORT" } else { text };
    Err(CommandError::new(Exit::Usage, format!("{text:?} is not the address of a server (from {from})"))
        .with_remedy(format!("write it as http://{host}, or https://{host}")))
}

/// All of them are asked for by a sign that is no name.
fn check_namespace(namespace: &Said) -> Result<(), CommandError> {
    let Said { text, from } = namespace;
    let odd =
        |why| CommandError::new(Exit::Usage, format!("{text:?} can't be a namespace (from {from}): {why}"));
    if text == "*" { Ok(()) } else { ostler_spec::check_namespace(text).map_err(odd) }
}

/// What can't be sent would be told as a connection that failed.
fn check_token(token: &Said) -> Result<(), CommandError> {
    let Said { text, from } = token;
    let what = match text.chars().find(|character| character.is_control()) {
        None => return Ok(()),
        Some('\n' | '\r') => "a line break",
        Some(_) => "a control character",
    };
    Err(CommandError::new(Exit::Unauthorized, format!("the token from {from} is malformed: it holds {what}"))
        .with_remedy("a token is one line, as `ostler token create` prints it"))
}

fn find_token(
    place: &Place<'_>,
    name: Option<&Said>,
    profile: &Profile,
    url: &str,
    data: Option<&Path>,
) -> Result<Said, CommandError> {
    if let Some(said) = by_variable(place.variable, TOKEN_VARIABLE) {
        return Ok(said);
    }
    // A profile's token is for that profile's server.
    let same = |server: &String| server.trim_end_matches('/') == url.trim_end_matches('/');
    if profile.server.as_ref().is_some_and(same) {
        let from = from_profile(name);
        if let Some(token) = &profile.token {
            return Ok(Said { text: token.trim().to_owned(), from });
        }
        if let Some(variable) = &profile.token_env {
            let missing = || {
                CommandError::new(Exit::Unauthorized, format!("no token for {url}: {variable} is not set"))
                    .with_remedy(format!("{from} names that variable; set it"))
            };
            let said = by_variable(place.variable, variable).ok_or_else(missing)?;
            return Ok(Said { from: format!("{variable}, which {from} names"), ..said });
        }
    }
    let foreign = || FOREIGN_TOKENS.iter().find_map(|name| by_variable(place.variable, name));
    read_token(data, url).or_else(|error| foreign().ok_or(error))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn by_flag(flag: &str, text: Option<&str>) -> Option<Said> {
    let text = text.filter(|text| !text.is_empty())?;
    Some(Said { text: text.to_owned(), from: flag.to_owned() })
}

fn by_variable(variable: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<Said> {
    let text = variable(name)?.trim().to_owned();
    (!text.is_empty()).then(|| Said { text, from: name.to_owned() })
}

fn from_profile(name: Option<&Said>) -> String {
    name.map_or_else(String::new, |name| format!("profile {}", name.text))
}

/// Data folders here and above, the nearest first.
fn data_folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    folder.ancestors().map(|folder| folder.join(DATA_FOLDER)).filter(|data| data.is_dir())
}

fn running_above(folder: &Path) -> Option<PathBuf> {
    data_folders(folder).find(|data| data.join(SERVER_FILE).is_file())
}

fn in_data_folder(data: &Path) -> Result<Said, CommandError> {
    let server = read_server(data)?;
    Ok(Said { text: server.url, from: data.join(SERVER_FILE).display().to_string() })
}

/// What the server of a data folder says of itself.
pub fn read_server(data: &Path) -> Result<ServerFile, CommandError> {
    let path = data.join(SERVER_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(nobody_runs(Some(data))),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let message = format!("{} is a file, and no data folder", data.display());
            return Err(CommandError::new(Exit::Usage, message)
                .with_remedy("--data and OSTLER_DATA name the folder that `ostler up` keeps everything in"));
        }
        Err(error) => return Err(CommandError::error(format!("can't read {}: {error}", path.display()))),
    };
    serde_json::from_str(&text).map_err(|error| {
        CommandError::error(format!("{} is not what a server writes: {error}", path.display()))
    })
}

fn nobody_runs(data: Option<&Path>) -> CommandError {
    let message = match data {
        Some(data) => format!("no server runs on {}", data.display()),
        None => format!("no server found: there is no {DATA_FOLDER} folder here or above"),
    };
    CommandError::new(Exit::Unreachable, message).with_remedy(FIND_HELP)
}

fn read_token(data: Option<&Path>, url: &str) -> Result<Said, CommandError> {
    let remedy = format!(
        "set {TOKEN_VARIABLE}, give the server's data folder with --data, or keep it in a profile: `ostler profile set --help`"
    );
    let Some(data) = data else {
        let message = format!("no token for {url}");
        return Err(CommandError::new(Exit::Unauthorized, message).with_remedy(remedy));
    };
    let path = data.join(TOKEN_FILE);
    let token = fs::read_to_string(&path).map_err(|error| {
        let message = format!("no token for {url}: can't read {}: {error}", path.display());
        CommandError::new(Exit::Unauthorized, message).with_remedy(remedy)
    })?;
    Ok(Said { text: token.trim().to_owned(), from: path.display().to_string() })
}

/// Whether the address of a server is one of this machine.
pub fn is_loopback(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // Whatever stands before an @ is not the host.
    let Some(host) = authority.rsplit('@').next() else { return false };
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests;
