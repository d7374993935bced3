//! The options of an endpoint: which there are, and what each must look like. An option we don't know is refused, since
//! one that is quietly left out is found much later. Each vendor lists its own; those about waiting and headers are ours,
//! and every vendor has them.

use std::{collections::BTreeMap, time::Duration};

use ostler_kernel::{Failure, plan::ModelPlan};
use ostler_net::{HeaderMap, HeaderName, HeaderValue, Timeouts};
use serde_json::{Map, Number, Value};

use crate::failure;

#[derive(Debug)]
pub(crate) struct Options {
    endpoint: String,
    fields: BTreeMap<&'static str, Value>,
    pub(crate) timeouts: Timeouts,
    pub(crate) headers: HeaderMap,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Number,
    Integer,
    Flag,
    Text,
    Object,
    List,
    /// One text, or a JSON list of them.
    Texts,
    Choice(&'static [&'static str]),
    /// Ours, not the vendor's: milliseconds to wait.
    Wait(fn(&mut Timeouts) -> &mut Duration),
    /// Ours too: headers that go along.
    Headers,
}

/// Options by name.
pub(crate) type Known = &'static [(&'static str, Shape)];

const OURS: Known = &[
    ("connect_timeout_ms", Shape::Wait(|timeouts| &mut timeouts.connect)),
    ("first_byte_timeout_ms", Shape::Wait(|timeouts| &mut timeouts.first_byte)),
    ("headers", Shape::Headers),
    ("idle_timeout_ms", Shape::Wait(|timeouts| &mut timeouts.idle)),
    ("timeout_ms", Shape::Wait(|timeouts| &mut timeouts.total)),
];

/// A model that thinks may be silent for long.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(10),
    first_byte: Duration::from_secs(120),
    idle: Duration::from_secs(120),
    total: Duration::from_secs(1800),
};

/// Headers that nobody may set: they hold keys, belong to the connection, or are how a call is made.
const KEPT_HEADERS: [&str; 17] = [
    "accept",
    "accept-encoding",
    "api-key",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
    "x-goog-api-key",
    "x-request-id",
];

impl Options {
    pub(crate) fn read(endpoint: &ModelPlan, known: &[Known]) -> Result<Self, Failure> {
        let mut options = Self {
            endpoint: endpoint.endpoint.clone(),
            fields: BTreeMap::new(),
            timeouts: TIMEOUTS,
            headers: HeaderMap::new(),
        };
        let all = || known.iter().copied().chain([OURS]).flatten();
        for (name, text) in &endpoint.options {
            let Some((name, shape)) = all().find(|(known, _)| known == name) else {
                let mut known: Vec<&str> = all().map(|(name, _)| *name).collect();
                known.sort_unstable();
                return Err(failure::unknown_option(&endpoint.endpoint, name, &known));
            };
            let taken = options.take_text(name, *shape, text);
            taken.ok_or_else(|| options.invalid(name, &shape.expected()))?;
        }
        Ok(options)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name)
    }

    /// One text or several, as a list.
    pub(crate) fn take_list(&mut self, name: &str) -> Option<Value> {
        self.take(name).map(|value| if value.is_array() { value } else { Value::Array(vec![value]) })
    }

    /// Puts an option into a body under the vendor's own name for it.
    pub(crate) fn move_to(&mut self, body: &mut Map<String, Value>, name: &str, field: &str) {
        if let Some(value) = self.take(name) {
            body.insert(field.to_owned(), value);
        }
    }

    /// Calls an option by another name, unless the endpoint does so itself.
    pub(crate) fn rename(&mut self, name: &str, other: &'static str) {
        if let Some(value) = self.take(name) {
            self.fields.entry(other).or_insert(value);
        }
    }

    /// What was not taken, for a body that has the same names.
    pub(crate) fn rest(&self) -> &BTreeMap<&'static str, Value> {
        &self.fields
    }

    pub(crate) fn invalid(&self, name: &str, expected: &str) -> Failure {
        failure::invalid_option(&self.endpoint, name, expected)
    }

    fn take_text(&mut self, name: &'static str, shape: Shape, text: &str) -> Option<()> {
        let value = match shape {
            Shape::Wait(timeout) => {
                let millis = text.parse().ok().filter(|millis| *millis > 0)?;
                *timeout(&mut self.timeouts) = Duration::from_millis(millis);
                return Some(());
            }
            Shape::Headers => {
                self.headers = read_headers(text)?;
                return Some(());
            }
            Shape::Number => Value::Number(serde_json::from_str::<Number>(text).ok()?),
            Shape::Integer => Value::Number(text.parse::<i64>().ok()?.into()),
            Shape::Flag => Value::Bool(text.parse().ok()?),
            Shape::Text => Value::String(text.to_owned()),
            Shape::Choice(choices) => {
                Value::String(choices.iter().find(|choice| *choice == &text)?.to_string())
            }
            Shape::Object => serde_json::from_str(text).ok().filter(Value::is_object)?,
            Shape::List => serde_json::from_str(text).ok().filter(Value::is_array)?,
            Shape::Texts if text.starts_with('[') => {
                Value::from(serde_json::from_str::<Vec<String>>(text).ok()?)
            }
            Shape::Texts => Value::String(text.to_owned()),
        };
        self.fields.insert(name, value);
        Some(())
    }
}

fn read_headers(text: &str) -> Option<HeaderMap> {
    let pairs: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name: HeaderName = name.parse().ok()?;
        let is_kept = KEPT_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("proxy-");
        if is_kept {
            return None;
        }
        headers.insert(name, HeaderValue::from_str(&value).ok()?);
    }
    Some(headers)
}

impl Shape {
    fn expected(self) -> String {
        let plain = match self {
            Shape::Number => "a number",
            Shape::Integer => "a whole number",
            Shape::Flag => "true or false",
            Shape::Text => "a text",
            Shape::Object => "a JSON object",
            Shape::List => "a JSON list",
            Shape::Texts => "a text or a JSON list of texts",
            Shape::Choice(choices) => return format!("one of {}", choices.join(", ")),
            Shape::Wait(_) => "a number of milliseconds above 0",
            Shape::Headers => {
                "a JSON object of names and texts, without those that hold a key or belong to the connection"
            }
        };
        plain.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use ostler_kernel::ErrorClass;
    use serde_json::json;

    use super::*;

    const KNOWN: Known = &[
        ("api", Shape::Choice(&["chat", "responses"])),
        ("max_tokens", Shape::Integer),
        ("metadata", Shape::Object),
        ("parallel_tool_calls", Shape::Flag),
        ("seed", Shape::Integer),
        ("stop", Shape::Texts),
        ("temperature", Shape::Number),
        ("user", Shape::Text),
    ];

    fn read(options: &[(&str, &str)]) -> Result<Options, Failure> {
        let pair = |(name, text): &(&str, &str)| (name.to_string(), text.to_string());
        let endpoint = ModelPlan {
            endpoint: "main".into(),
            provider: "openai".into(),
            base_url: String::new(),
            model: "m".into(),
            options: options.iter().map(pair).collect(),
            secret_ref: None,
            allow_private: false,
            ..ModelPlan::default()
        };
        Options::read(&endpoint, &[KNOWN])
    }

    #[test]
    fn each_option_gets_its_type() {
        let options = read(&[
            ("api", "chat"),
            ("temperature", "0.25"),
            ("max_tokens", "64"),
            ("seed", "-3"),
            ("parallel_tool_calls", "false"),
            ("user", "42"),
            ("stop", "[\"a\", \"b\"]"),
            ("metadata", "{\"type\": \"x\"}"),
            ("idle_timeout_ms", "250"),
            ("headers", "{\"OpenAI-Project\": \"p\"}"),
        ]);
        let mut options = options.unwrap();
        let expected = json!({
            "api": "chat", "max_tokens": 64, "parallel_tool_calls": false, "metadata": {"type": "x"},
            "seed": -3, "stop": ["a", "b"], "temperature": 0.25, "user": "42",
        });
        assert_eq!(serde_json::to_value(options.rest()).unwrap(), expected);
        assert_eq!(options.timeouts, Timeouts { idle: Duration::from_millis(250), ..TIMEOUTS });
        assert_eq!(options.headers["openai-project"], "p");
        assert_eq!(options.take_list("user"), Some(json!(["42"])));
        assert_eq!(read(&[("stop", "END")]).unwrap().rest()["stop"], "END");
    }

    #[test]
    fn the_guide_tells_of_every_option() {
        let guide = include_str!("../../../docs/guides/models.md");
        let vendors = [crate::anthropic::OPTIONS, crate::gemini::OPTIONS, crate::ollama::OPTIONS, OURS];
        for (name, _) in vendors.into_iter().chain(crate::openai::OPTIONS).flatten() {
            let row =
                guide.lines().find(|line| line.starts_with("| `") && line.contains(&format!("`{name}`")));
            assert!(row.is_some() || *name == "api", "docs/guides/models.md has no row for `{name}`");
        }
    }

    #[test]
    fn what_is_unknown_or_of_the_wrong_type_is_refused_by_name() {
        let cases = [
            ("temprature", "1", "model_option_unknown"),
            ("temperature", "warm", "model_option_invalid"),
            ("max_tokens", "1.5", "model_option_invalid"),
            ("parallel_tool_calls", "yes", "model_option_invalid"),
            ("metadata", "[]", "model_option_invalid"),
            ("stop", "[1]", "model_option_invalid"),
            ("timeout_ms", "0", "model_option_invalid"),
            ("api", "assistants", "model_option_invalid"),
            ("headers", "{\"Authorization\": \"Bearer x\"}", "model_option_invalid"),
            ("headers", "{\"x-a\": \"line\\nbreak\"}", "model_option_invalid"),
            ("headers", "{\"proxy-authorization\": \"x\"}", "model_option_invalid"),
        ];
        for (name, text, code) in cases {
            let failure = read(&[(name, text)]).unwrap_err();
            assert_eq!((failure.class, failure.code.as_str()), (ErrorClass::Permanent, code));
            assert!(failure.message.contains(&format!("`{name}`")), "{failure}");
        }
        let failure = read(&[("temprature", "1")]).unwrap_err();
        assert!(failure.message.contains("did you mean `temperature`?"), "{failure}");
    }
}
