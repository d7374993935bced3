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

fn resolve(written: &Written, folder: &Path, variables: &[(&str, &str)]) -> Resolved {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    written.resolve_at(&Place { folder, variable: &variable }).unwrap()
}

fn connect(written: &Written, folder: &Path) -> Result<Connection, CommandError> {
    resolve(written, folder, &[]).connection()
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
fn flags_go_before_variables_before_profiles_before_folders() {
    let folder = Folder::new()
        .running(".ostler", "http://127.0.0.1:1")
        .file(".ostler/token", "file")
        .file("home/ostler/profiles.yaml", PROFILES);
    let home = folder.at("home").display().to_string();
    let check = |written: &Written, more: &[(&str, &str)], server: (&str, &str), token: (&str, &str)| {
        let mut variables = vec![("XDG_CONFIG_HOME", home.as_str())];
        variables.extend(more);
        let found = resolve(written, &folder.at(""), &variables);
        let said = |said: Result<Said, CommandError>| said.map(|said| (said.text, said.from)).unwrap();
        let of = |(text, from): (&str, &str)| (text.to_owned(), from.to_owned());
        assert_eq!((said(found.server), said(found.token)), (of(server), of(token)));
    };
    let none = Written::default();
    let prod = Written { profile: Some("prod".into()), ..Written::default() };
    let flag = Written { server: Some("http://localhost:9".into()), ..prod.clone() };
    let here = folder.at(".ostler/server.json").display().to_string();
    let token = folder.at(".ostler/token").display().to_string();
    check(&none, &[], ("http://127.0.0.1:1", &here), ("file", &token));
    check(&none, &[("ORLOJ_SERVER", "http://o")], ("http://127.0.0.1:1", &here), ("file", &token));
    let prod_server = ("https://prod.example", "profile prod");
    check(&prod, &[("KEY", "k")], prod_server, ("k", "KEY, which profile prod names"));
    check(
        &none,
        &[("OSTLER_PROFILE", "prod"), ("KEY", "k")],
        prod_server,
        ("k", "KEY, which profile prod names"),
    );
    let variables = [("OSTLER_SERVER", "http://localhost:8"), ("OSTLER_TOKEN", " variable\n")];
    check(&prod, &variables, ("http://localhost:8", "OSTLER_SERVER"), ("variable", "OSTLER_TOKEN"));
    check(&flag, &variables, ("http://localhost:9", "--server"), ("variable", "OSTLER_TOKEN"));
    check(&flag, &[], ("http://localhost:9", "--server"), ("file", &token));
}

const PROFILES: &str = "profiles:\n  prod:\n    server: https://prod.example\n    token_env: KEY\n    namespace: team\n  fixed:\n    server: https://fixed.example/\n    token: secret\n";

#[test]
fn a_profiles_token_goes_to_no_other_server() {
    let folder = Folder::new().file("home/ostler/profiles.yaml", PROFILES);
    let home = folder.at("home").display().to_string();
    let variables = [("XDG_CONFIG_HOME", home.as_str())];
    let fixed = Written { profile: Some("fixed".into()), ..Written::default() };
    let found = resolve(&fixed, &folder.at(""), &variables).connection().unwrap();
    assert_eq!((found.url.as_str(), found.token.as_str()), ("https://fixed.example/", "secret"));
    let other = Written { server: Some("https://other.example".into()), ..fixed };
    let refused = resolve(&other, &folder.at(""), &variables).connection().unwrap_err();
    assert_eq!(refused.exit(), Exit::Unauthorized);
    let prod = Written { profile: Some("prod".into()), ..Written::default() };
    let found = resolve(&prod, &folder.at(""), &variables);
    assert_eq!(found.namespace.text, "team");
    assert_eq!(found.connection().unwrap_err().exit(), Exit::Unauthorized, "KEY is not set");
}

#[test]
fn those_who_come_from_elsewhere_are_understood() {
    let folder = Folder::new().file("x", "");
    let variables = [("ORLOJ_SERVER", "http://o"), ("ORLOJ_API_TOKEN", "a"), ("ORLOJCTL_API_TOKEN", "b")];
    let found = resolve(&Written::default(), &folder.at(""), &variables).connection().unwrap();
    assert_eq!((found.url.as_str(), found.token.as_str()), ("http://o", "b"));
}

#[test]
fn a_token_found_by_chance_stays_on_this_machine() {
    let folder = Folder::new().running(".ostler", "http://127.0.0.1:1").file(".ostler/token", "file");
    for url in ["https://example.com", "http://127.0.0.1@example.com/", "http://localhost.example.com:80"] {
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
