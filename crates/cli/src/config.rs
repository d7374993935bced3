//! Which server, with which token, in which namespace: what was written (flags and variables) and what it
//! means here. Resolved once per command; nothing else looks at these variables.

use std::{
    env, fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{error::CommandError, exit::Exit};

/// Where `ostler up` keeps everything, unless told otherwise.
pub const DATA_FOLDER: &str = ".ostler";

/// Written by a server once it is ready, removed when it stops.
const SERVER_FILE: &str = "server.json";
const TOKEN_FILE: &str = "token";
const TOKEN_VARIABLE: &str = "OSTLER_TOKEN";

const FIND_HELP: &str = "start one with `ostler up`, or name one with --server or OSTLER_SERVER";

/// As it was written, by flag or by variable.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Where")]
pub struct Written {
    /// The server's address; without it, the one that runs in the nearest `.ostler` folder
    #[arg(long, global = true, env = "OSTLER_SERVER", value_name = "URL")]
    pub server: Option<String>,

    /// The data folder, instead of `.ostler` here or above
    #[arg(long, global = true, env = "OSTLER_DATA", value_name = "FOLDER")]
    pub data: Option<PathBuf>,

    /// The namespace to work in (without it, `default`)
    #[arg(short, long, global = true, env = "OSTLER_NAMESPACE", value_name = "NAME")]
    pub namespace: Option<String>,
}

/// What it means.
#[derive(Debug, PartialEq, Eq)]
pub struct Connection {
    pub url: String,
    pub token: String,
    pub namespace: String,
}

/// The parts of `server.json` that concern us.
#[derive(Debug, Deserialize)]
struct ServerFile {
    url: String,
}

impl Written {
    /// The folder in which `ostler up` works.
    pub fn data_folder(&self) -> PathBuf {
        self.data().map_or_else(|| PathBuf::from(DATA_FOLDER), Path::to_path_buf)
    }

    /// What was asked for, if anything was.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|name| !name.is_empty())
    }

    /// The connection all this stands for, seen from the current folder.
    pub fn connection(&self) -> Result<Connection, CommandError> {
        let folder = env::current_dir().map_err(|error| {
            CommandError::error(format!("the current folder can't be determined: {error}"))
        })?;
        let token = env::var(TOKEN_VARIABLE).ok();
        self.connection_from(&folder, token)
    }

    /// The address of the server that runs in the nearest data folder, or in the one that was named.
    pub fn server_here(&self) -> Result<String, CommandError> {
        let folder = env::current_dir().map_err(|error| {
            CommandError::error(format!("the current folder can't be determined: {error}"))
        })?;
        self.server_from(&folder).map(|(url, _)| url)
    }

    fn connection_from(&self, folder: &Path, token: Option<String>) -> Result<Connection, CommandError> {
        let (url, data) = self.server_from(folder)?;
        let token = match token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()) {
            Some(token) => token,
            None => read_token(data.as_deref(), &url)?,
        };
        let namespace = self.namespace().unwrap_or(ostler_spec::DEFAULT_NAMESPACE).to_owned();
        Ok(Connection { url, token, namespace })
    }

    /// The server's address, and the data folder whose token it takes.
    fn server_from(&self, folder: &Path) -> Result<(String, Option<PathBuf>), CommandError> {
        let written = self.server.as_deref().filter(|url| !url.is_empty());
        if let Some(url) = written {
            let data = match self.data() {
                Some(data) => Some(data.to_path_buf()),
                // A token found by chance is sent to nobody but this machine.
                None if is_loopback(url) => running_above(folder).or_else(|| data_folders(folder).next()),
                None => None,
            };
            return Ok((url.to_owned(), data));
        }
        let data = match self.data() {
            Some(data) => data.to_path_buf(),
            None => {
                running_above(folder).ok_or_else(|| nobody_runs(data_folders(folder).next().as_deref()))?
            }
        };
        let server = read_server(&data)?;
        Ok((server.url, Some(data)))
    }

    /// The data folder that was named, if one was.
    pub fn data(&self) -> Option<&Path> {
        self.data.as_deref().filter(|folder| !folder.as_os_str().is_empty())
    }
}

/// Data folders here and above, the nearest first.
fn data_folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    folder.ancestors().map(|folder| folder.join(DATA_FOLDER)).filter(|data| data.is_dir())
}

fn running_above(folder: &Path) -> Option<PathBuf> {
    data_folders(folder).find(|data| data.join(SERVER_FILE).is_file())
}

fn read_server(data: &Path) -> Result<ServerFile, CommandError> {
    let path = data.join(SERVER_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(nobody_runs(Some(data))),
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

fn read_token(data: Option<&Path>, url: &str) -> Result<String, CommandError> {
    let remedy = format!("set {TOKEN_VARIABLE}, or give the server's data folder with --data");
    let Some(data) = data else {
        let message = format!("no token for {url}");
        return Err(CommandError::new(Exit::Unauthorized, message).with_remedy(remedy));
    };
    let path = data.join(TOKEN_FILE);
    let token = fs::read_to_string(&path).map_err(|error| {
        let message = format!("no token for {url}: can't read {}: {error}", path.display());
        CommandError::new(Exit::Unauthorized, message).with_remedy(remedy)
    })?;
    Ok(token.trim().to_owned())
}

/// Whether the address of a server is one of this machine.
fn is_loopback(url: &str) -> bool {
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
mod tests {
    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn running(self, path: &str, url: &str) -> Self {
            self.file(&format!("{path}/{SERVER_FILE}"), &format!("{{\"url\":\"{url}\",\"pid\":1}}"))
        }

        fn file(self, path: &str, text: &str) -> Self {
            let path = self.at(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            self
        }
    }

    fn connect(written: &Written, folder: &Path) -> Result<Connection, CommandError> {
        written.connection_from(folder, None)
    }

    #[test]
    fn the_nearest_folder_with_a_server_wins() {
        let folder = Folder::new()
            .running(".ostler", "http://outer")
            .file(".ostler/token", "outer-token\n")
            .file("a/.ostler/store.db", "")
            .file("a/b/c/x", "");
        let found = connect(&Written::default(), &folder.at("a/b/c")).unwrap();
        assert_eq!((found.url.as_str(), found.token.as_str()), ("http://outer", "outer-token"));
        assert_eq!(found.namespace, "default");

        let folder = folder.running("a/.ostler", "http://inner").file("a/.ostler/token", "t");
        assert_eq!(connect(&Written::default(), &folder.at("a/b/c")).unwrap().url, "http://inner");
    }

    #[test]
    fn flags_go_before_folders_and_variables_before_files() {
        let folder = Folder::new().running(".ostler", "http://127.0.0.1:1").file(".ostler/token", "file");
        let written = Written { server: Some("http://localhost:9".into()), ..Written::default() };
        let found = written.connection_from(&folder.at(""), Some(" variable\n".into())).unwrap();
        assert_eq!((found.url.as_str(), found.token.as_str()), ("http://localhost:9", "variable"));
        assert_eq!(connect(&written, &folder.at("")).unwrap().token, "file");
    }

    #[test]
    fn a_token_found_by_chance_stays_on_this_machine() {
        let folder = Folder::new().running(".ostler", "http://127.0.0.1:1").file(".ostler/token", "file");
        for url in ["https://example.com", "http://127.0.0.1@example.com/", "http://localhost.example.com:80"]
        {
            let written = Written { server: Some(url.into()), ..Written::default() };
            let refused = connect(&written, &folder.at("")).unwrap_err();
            assert_eq!(refused.exit(), Exit::Unauthorized, "{url}");
            let data = Some(folder.at(".ostler"));
            assert_eq!(connect(&Written { data, ..written }, &folder.at("")).unwrap().token, "file");
        }
        assert!(is_loopback("http://[::1]:7070/x") && is_loopback("HTTP://LOCALHOST"));
    }

    #[test]
    fn no_server_is_told_with_what_to_do() {
        let folder = Folder::new().file("x", "");
        let CommandError::Said(complaint) = connect(&Written::default(), &folder.at("")).unwrap_err() else {
            panic!("said nothing");
        };
        assert_eq!(complaint.exit, Exit::Unreachable);
        assert!(complaint.remedy.unwrap().contains("ostler up"));
    }
}
