//! Manifests from files, folders and stdin: what they declare, or everything that is wrong with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use ostler_spec::{
    self as spec, Kind, Location, Origin, Parsed, Problem, Resource, TaskMode, kinds, mistakes_between,
};

use crate::{error::CommandError, input, suggest};

/// One text, and what came of it.
#[derive(Debug)]
pub struct Source {
    /// What mistakes call it.
    pub name: String,
    /// It was not named, but found in a folder that was.
    pub from_folder: bool,
    pub outcome: Result<Parsed, Vec<Problem>>,
}

/// One declared object, and where it stands.
#[derive(Debug)]
pub struct Declared {
    pub resource: Resource,
    pub origin: Origin,
    pub from_folder: bool,
}

/// What files declare, in an order in which it is best applied.
#[derive(Debug)]
pub struct Manifests {
    pub declared: Vec<Declared>,
    /// What of it this version can't do.
    pub notices: Vec<Problem>,
}

impl Declared {
    /// A Task that starts by being applied.
    pub fn would_run(&self) -> bool {
        matches!(&self.resource.spec, ostler_spec::Spec::Task(task) if task.mode == TaskMode::Run)
    }

    /// A Worker registers itself where it is started; a manifest of one tells only how it looked.
    pub fn registers_itself(&self) -> bool {
        self.resource.kind() == Kind::Worker
    }

    /// Whether its namespace was written, and not filled in.
    pub fn names_namespace(&self) -> bool {
        self.origin.says(&ostler_spec::Path::of("metadata.namespace"))
    }

    /// `agent/hello`
    pub fn title(&self) -> String {
        title(&self.resource)
    }
}

/// `agent/hello`
pub fn title(resource: &Resource) -> String {
    format!("{}/{}", resource.kind().singular(), resource.metadata.name)
}

/// Everything in these files; `-` is stdin, and a folder stands for all manifests in it and below.
pub fn read(files: &[PathBuf]) -> Result<Vec<Source>, CommandError> {
    let mut sources = Vec::new();
    for path in files {
        if path.as_os_str() == "-" {
            sources.push(source("<stdin>".to_owned(), false, &input::read_stdin()?));
        } else if path.is_dir() {
            sources.extend(manifests_in(path)?.iter().map(|path| found(path)));
        } else {
            sources.push(named(path));
        }
    }
    look_between(&mut sources);
    Ok(sources)
}

/// The name of a manifest or a folder that was probably meant by one that is not there.
fn near(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| is_manifest(path) || path.is_dir());
    let paths: Vec<PathBuf> = paths.collect();
    // Their endings are near to each other whatever they are called.
    let stem = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let stems: Vec<String> = paths.iter().filter_map(|path| stem(path)).collect();
    let near = suggest::nearest(&stem(path)?, stems.iter().map(String::as_str))?;
    let found = paths.iter().find(|path| stem(path).as_deref() == Some(near))?;
    Some(path.with_file_name(found.file_name()?).display().to_string())
}

/// What is wrong only with several of them together is told of the one that has to change.
fn look_between(sources: &mut [Source]) {
    let outcomes = sources.iter().map(|source| &source.outcome).enumerate();
    let valid = outcomes.filter_map(|(place, outcome)| Some((place, outcome.as_ref().ok()?)));
    let (places, texts): (Vec<usize>, Vec<&Parsed>) = valid.unzip();
    for (text, problem) in mistakes_between(&texts) {
        match &mut sources[places[text]].outcome {
            Err(problems) => problems.push(problem),
            outcome @ Ok(_) => *outcome = Err(vec![problem]),
        }
    }
}

/// What the sources declare together. If there is a mistake in one of them, all mistakes are told, and `consequence`
/// says what was not done because of it.
pub fn together(sources: Vec<Source>, consequence: &str) -> Result<Manifests, CommandError> {
    let problems = mistakes(&sources);
    if !problems.is_empty() {
        let message = match problems.len() {
            1 => format!("a mistake in the manifests; {consequence}"),
            count => format!("{count} mistakes in the manifests; {consequence}"),
        };
        return Err(CommandError::error(message).with_details(problems));
    }
    let mut manifests = Manifests { declared: Vec::new(), notices: Vec::new() };
    let mut seen = BTreeSet::new();
    for Source { from_folder, outcome, .. } in sources {
        let Ok(Parsed { resources, origins, notices }) = outcome else { continue };
        let declared = resources.into_iter().zip(origins);
        let new = declared.filter(|(resource, _)| seen.insert((resource.kind(), resource.key())));
        let new = new.map(|(resource, origin)| Declared { resource, origin, from_folder });
        manifests.declared.extend(new);
        manifests.notices.extend(notices);
    }
    // A task needs its agent, and an agent its model.
    let place = |declared: &Declared| kinds().position(|info| info.kind == declared.resource.kind());
    manifests.declared.sort_by_key(place);
    Ok(manifests)
}

/// Each mistake as a line, those between files too: what two of them declare, they have to declare alike, as projects do that
/// bring the same model.
pub fn mistakes(sources: &[Source]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut seen = BTreeMap::new();
    for Source { name, outcome, .. } in sources {
        match outcome {
            Err(problems) => lines.extend(problems.iter().map(ToString::to_string)),
            Ok(parsed) => {
                for resource in &parsed.resources {
                    let key = (resource.kind(), resource.key());
                    let Some(&(first, same)) = seen.get(&key) else {
                        seen.insert(key, (name, resource));
                        continue;
                    };
                    // A second time in one file is a mistake of that file.
                    if first != name && same != resource {
                        lines.push(format!(
                            "{name}: {} was already declared in {first}, and differs from it",
                            title(resource)
                        ));
                    }
                }
            }
        }
    }
    lines
}

/// A file of a folder: what can't be read of it is told beside the mistakes of the others, and it may be all comments.
fn found(path: &Path) -> Source {
    let name = shown(path);
    match input::text_of(path) {
        Ok(text) if text.lines().all(is_comment) => {
            let declares = Parsed { resources: Vec::new(), origins: Vec::new(), notices: Vec::new() };
            Source { name, from_folder: true, outcome: Ok(declares) }
        }
        Ok(text) => source(name, true, &text),
        Err(why) => unread(name, true, why),
    }
}

/// A file that was named: what can't be read of it is told beside the mistakes of the others, too.
fn named(path: &Path) -> Source {
    let name = shown(path);
    match input::text_of(path) {
        Ok(text) => source(name, false, &text),
        Err(why) if path.exists() => unread(name, false, why),
        Err(why) => match near(path) {
            Some(near) => unread(name, false, format!("{why}, did you mean {near}?")),
            None => unread(name, false, format!("{why}: name a manifest, a folder of them, or - for stdin")),
        },
    }
}

fn unread(name: String, from_folder: bool, why: String) -> Source {
    let start = Location { file: name.clone(), line: 1, column: 1 };
    let message = format!("can't be read: {why}");
    let problem = Problem { location: Some(start), ..Problem::new(spec::Path::default(), message) };
    Source { name, from_folder, outcome: Err(vec![problem]) }
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}').trim();
    line.is_empty() || line.starts_with('#') || line == "---"
}

fn source(name: String, from_folder: bool, text: &str) -> Source {
    let outcome = ostler_spec::parse_with_notices(&name, text);
    Source { name, from_folder, outcome }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// All manifests of a folder and of those in it, sorted; what is hidden is not looked at.
fn manifests_in(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let mut found = Vec::new();
    collect(folder, &mut found)?;
    if found.is_empty() {
        let message = format!("there is no manifest (*.yaml, *.yml, *.json) in {}", folder.display());
        return Err(CommandError::error(message));
    }
    Ok(found)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let cannot = |error: io::Error| CommandError::error(format!("can't read {}: {error}", folder.display()));
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(cannot)?.collect();
    let mut entries = entries.map_err(cannot)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // A link to a folder might lead back here.
        let is_folder = entry.file_type().map_err(cannot)?.is_dir();
        if is_folder {
            collect(&path, found)?;
        } else if is_manifest(&path) && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    const TOOL: &str = "kind: Tool\nmetadata: {name: t}\nspec: {endpoint: 'http://127.0.0.1'}\n";
    const AGENT: &str = "kind: Agent\nmetadata: {name: a}\nspec: {model_ref: m}\n";

    #[test]
    fn a_folder_is_read_to_the_bottom_in_order() {
        let folder = folder(&[
            ("b.yaml", AGENT),
            ("a/z.yml", TOOL),
            (".git/x.yaml", "nonsense: ["),
            ("README.md", "# no manifest"),
        ]);
        let sources = read(&[folder.path().to_owned()]).unwrap();
        let names: Vec<&str> = sources.iter().map(|source| source.name.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["z.yml", "b.yaml"]);
        let manifests = together(sources, "nothing was done").unwrap();
        let titles: Vec<String> = manifests.declared.iter().map(Declared::title).collect();
        assert_eq!(titles, ["tool/t", "agent/a"]);
        assert!(manifests.declared.iter().all(|declared| declared.from_folder && !declared.would_run()));
    }

    #[test]
    fn a_task_is_held_against_the_system_of_another_file() {
        let circle = "kind: AgentSystem\nmetadata: {name: s}\n\
                      spec: {agents: [a, b], graph: {a: {next: b}, b: {next: a}}}\n";
        let task = "kind: Task\nmetadata: {name: t}\nspec: {system: s}\n";
        let folder = folder(&[("system.yaml", circle), ("task.yaml", task)]);
        let sources = read(&[folder.path().to_owned()]).unwrap();
        let [mistake] = &mistakes(&sources)[..] else { panic!("{sources:?}") };
        assert!(mistake.contains("task.yaml:3:") && mistake.contains("(a -> b -> a)"), "{mistake}");
        assert!(sources[0].outcome.is_ok(), "the system may be used with a bound");
        let bound = task.replace("system: s", "system: s, max_turns: 4");
        fs::write(folder.path().join("task.yaml"), bound).unwrap();
        assert!(mistakes(&read(&[folder.path().to_owned()]).unwrap()).is_empty());
    }

    #[test]
    fn two_files_declare_the_same_alike() {
        let folder = folder(&[("one.yaml", AGENT), ("two.yaml", AGENT)]);
        let manifests = together(read(&[folder.path().to_owned()]).unwrap(), "nothing was done").unwrap();
        let titles: Vec<String> = manifests.declared.iter().map(Declared::title).collect();
        assert_eq!(titles, ["agent/a"], "once is enough");
        fs::write(folder.path().join("two.yaml"), AGENT.replace(": m", ": another")).unwrap();
        let sources = read(&[folder.path().to_owned()]).unwrap();
        let [mistake] = &mistakes(&sources)[..] else { panic!("{sources:?}") };
        assert!(mistake.contains("two.yaml: agent/a was already declared in "), "{mistake}");
    }
}
