//! What a peer of another version reads and writes, as files: `fixtures/present` holds every message as this version
//! writes it, `fixtures/previous` as the released version before did, which servers and workers of this one must get
//! along with while they are brought up to date one by one.
//!
//! `WRITE_FIXTURES=1 cargo test -p ostler-link compatibility` writes the present ones anew after a message has changed;
//! `WRITE_FIXTURES=release` the previous ones too, once a version is released.

mod samples;

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use serde_json::Value;

use crate::{Request, grpc::Answer};

/// A message, as it stands on the wire.
#[expect(clippy::large_enum_variant, reason = "a few dozen samples")]
enum Message {
    Request(Request),
    Answer(Answer),
}

impl Message {
    fn write(&self) -> Value {
        match self {
            Message::Request(request) => serde_json::to_value(request).unwrap(),
            Message::Answer(answer) => serde_json::to_value(answer).unwrap(),
        }
    }

    /// Reads one of the same sort, and writes it again.
    fn read(name: &str, text: &str) -> Result<Value, serde_json::Error> {
        let message = if name.starts_with("request-") {
            Message::Request(serde_json::from_str(text)?)
        } else {
            Message::Answer(serde_json::from_str(text)?)
        };
        Ok(message.write())
    }
}

#[test]
fn messages_are_written_as_the_fixtures_say() {
    let samples = samples::all();
    match env::var("WRITE_FIXTURES").as_deref() {
        Ok("release") => ["present", "previous"].iter().for_each(|set| write(set, &samples)),
        Ok(_) => write("present", &samples),
        Err(_) => {}
    }
    let written: BTreeMap<String, Value> =
        samples.iter().map(|(name, message)| (name.clone(), message.write())).collect();
    let present: BTreeMap<String, Value> = fixtures("present")
        .into_iter()
        .map(|(name, text)| (name, serde_json::from_str(&text).unwrap()))
        .collect();
    for name in written.keys().chain(present.keys()) {
        assert_eq!(
            written.get(name),
            present.get(name),
            "{name} is not written as its fixture says. If that is meant, and a peer that is one version older can read \
             it (a new field has a default, none was renamed or removed): WRITE_FIXTURES=1 cargo test -p ostler-link \
             compatibility"
        );
    }
}

#[test]
fn messages_of_the_version_before_are_read_and_nothing_of_them_is_lost() {
    if env::var_os("WRITE_FIXTURES").is_some() {
        // The other test may be writing them at this moment.
        return;
    }
    for (name, text) in fixtures("previous") {
        let again = Message::read(&name, &text).unwrap_or_else(|error| {
            panic!(
                "{name}, as the version before writes it, is not understood: {error}. A new field needs \
                 #[serde(default)]; what an older peer sends can't be removed or renamed until VERSIONS in grpc.rs \
                 leaves that version behind."
            )
        });
        let before: Value = serde_json::from_str(&text).unwrap();
        if let Some(place) = lacking(&before, &again) {
            panic!(
                "{name}: {place} was written by the version before, and this one writes it no more, or writes something \
                 else. An older peer needs it: keep it, until VERSIONS in grpc.rs leaves that version behind."
            );
        }
    }
}

/// Where `now` lacks something that was there before.
fn lacking(before: &Value, now: &Value) -> Option<String> {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => before.iter().find_map(|(key, value)| {
            let deeper = now.get(key).map_or(Some(String::new()), |now| lacking(value, now))?;
            Some(format!(".{key}{deeper}"))
        }),
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            let pairs = before.iter().zip(now).enumerate();
            pairs.filter_map(|(at, (before, now))| Some(format!("[{at}]{}", lacking(before, now)?))).next()
        }
        (before, now) => (before != now).then(String::new),
    }
}

fn folder(set: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(set)
}

/// Each file of a set, by its name.
fn fixtures(set: &str) -> Vec<(String, String)> {
    let folder = folder(set);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut fixtures: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_stem().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    assert!(!fixtures.is_empty(), "{} is empty", folder.display());
    fixtures.sort();
    fixtures
}

fn write(set: &str, samples: &[(String, Message)]) {
    let folder = folder(set);
    // None is left of a message that is no more.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (name, message) in samples {
        let text = serde_json::to_string_pretty(&message.write()).unwrap();
        fs::write(folder.join(format!("{name}.json")), text + "\n").unwrap();
    }
}
