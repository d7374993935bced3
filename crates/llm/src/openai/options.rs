//! The options of an endpoint: which there are, and what each must look like. An option we don't know is
//! refused, since one that is quietly left out is found much later.

use std::{collections::BTreeMap, time::Duration};

use ostler_kernel::{Failure, plan::ModelPlan};
use ostler_net::Timeouts;
use serde_json::{Number, Value};

use crate::failure;

#[derive(Debug)]
pub(super) struct Options {
    /// Fields of the body.
    pub(super) fields: BTreeMap<&'static str, Value>,
    pub(super) timeouts: Timeouts,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Number,
    Integer,
    Flag,
    Text,
    Object,
    /// One text, or a JSON list of them.
    Texts,
    /// Ours, not the vendor's: milliseconds to wait.
    Wait(fn(&mut Timeouts) -> &mut Duration),
}

const KNOWN: [(&str, Shape); 25] = [
    ("connect_timeout_ms", Shape::Wait(|timeouts| &mut timeouts.connect)),
    ("first_byte_timeout_ms", Shape::Wait(|timeouts| &mut timeouts.first_byte)),
    ("idle_timeout_ms", Shape::Wait(|timeouts| &mut timeouts.idle)),
    ("timeout_ms", Shape::Wait(|timeouts| &mut timeouts.total)),
    ("frequency_penalty", Shape::Number),
    ("logit_bias", Shape::Object),
    ("max_completion_tokens", Shape::Integer),
    ("max_tokens", Shape::Integer),
    ("metadata", Shape::Object),
    ("parallel_tool_calls", Shape::Flag),
    ("presence_penalty", Shape::Number),
    ("prompt_cache_key", Shape::Text),
    ("prompt_cache_retention", Shape::Text),
    ("reasoning_effort", Shape::Text),
    ("response_format", Shape::Object),
    ("safety_identifier", Shape::Text),
    ("seed", Shape::Integer),
    ("service_tier", Shape::Text),
    ("stop", Shape::Texts),
    ("store", Shape::Flag),
    ("temperature", Shape::Number),
    ("top_p", Shape::Number),
    ("user", Shape::Text),
    ("verbosity", Shape::Text),
    ("web_search_options", Shape::Object),
];

/// A model that thinks may be silent for long.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(10),
    first_byte: Duration::from_secs(120),
    idle: Duration::from_secs(120),
    total: Duration::from_secs(1800),
};

impl Options {
    pub(super) fn read(endpoint: &ModelPlan) -> Result<Self, Failure> {
        let mut options = Self { fields: BTreeMap::new(), timeouts: TIMEOUTS };
        for (name, text) in &endpoint.options {
            let Some((name, shape)) = KNOWN.iter().find(|(known, _)| known == name) else {
                let known = KNOWN.map(|(name, _)| name);
                return Err(failure::unknown_option(&endpoint.endpoint, name, &known));
            };
            options
                .take(name, *shape, text.trim())
                .ok_or_else(|| failure::invalid_option(&endpoint.endpoint, name, shape.expected()))?;
        }
        Ok(options)
    }

    fn take(&mut self, name: &'static str, shape: Shape, text: &str) -> Option<()> {
        let value = match shape {
            Shape::Wait(timeout) => {
                let millis = text.parse().ok().filter(|millis| *millis > 0)?;
                *timeout(&mut self.timeouts) = Duration::from_millis(millis);
                return Some(());
            }
            Shape::Number => Value::Number(serde_json::from_str::<Number>(text).ok()?),
            Shape::Integer => Value::Number(text.parse::<i64>().ok()?.into()),
            Shape::Flag => Value::Bool(text.parse().ok()?),
            Shape::Text => Value::String(text.to_owned()),
            Shape::Object => serde_json::from_str(text).ok().filter(Value::is_object)?,
            Shape::Texts if text.starts_with('[') => {
                Value::from(serde_json::from_str::<Vec<String>>(text).ok()?)
            }
            Shape::Texts => Value::String(text.to_owned()),
        };
        self.fields.insert(name, value);
        Some(())
    }
}

impl Shape {
    fn expected(self) -> &'static str {
        match self {
            Shape::Number => "a number",
            Shape::Integer => "a whole number",
            Shape::Flag => "true or false",
            Shape::Text => "a text",
            Shape::Object => "a JSON object",
            Shape::Texts => "a text or a JSON list of texts",
            Shape::Wait(_) => "a number of milliseconds above 0",
        }
    }
}

#[cfg(test)]
mod tests {
    use ostler_kernel::ErrorClass;
    use serde_json::json;

    use super::*;

    fn read(options: &[(&str, &str)]) -> Result<Options, Failure> {
        let pair = |(name, text): &(&str, &str)| (name.to_string(), text.to_string());
        Options::read(&ModelPlan {
            endpoint: "main".into(),
            provider: "openai".into(),
            base_url: String::new(),
            model: "m".into(),
            options: options.iter().map(pair).collect(),
            secret_ref: None,
            allow_private: false,
        })
    }

    #[test]
    fn each_option_gets_its_type() {
        let options = read(&[
            ("temperature", "0.25"),
            ("max_tokens", "64"),
            ("seed", "-3"),
            ("parallel_tool_calls", "false"),
            ("user", "42"),
            ("stop", "[\"a\", \"b\"]"),
            ("response_format", "{\"type\": \"json_object\"}"),
            ("idle_timeout_ms", "250"),
        ]);
        let options = options.unwrap();
        let expected = json!({
            "max_tokens": 64, "parallel_tool_calls": false, "response_format": {"type": "json_object"},
            "seed": -3, "stop": ["a", "b"], "temperature": 0.25, "user": "42",
        });
        assert_eq!(serde_json::to_value(&options.fields).unwrap(), expected);
        assert_eq!(options.timeouts, Timeouts { idle: Duration::from_millis(250), ..TIMEOUTS });
        assert_eq!(read(&[("stop", "END")]).unwrap().fields["stop"], "END");
    }

    #[test]
    fn what_is_unknown_or_of_the_wrong_type_is_refused_by_name() {
        let cases = [
            ("temprature", "1", "model_option_unknown"),
            ("temperature", "warm", "model_option_invalid"),
            ("max_tokens", "1.5", "model_option_invalid"),
            ("store", "yes", "model_option_invalid"),
            ("metadata", "[]", "model_option_invalid"),
            ("stop", "[1]", "model_option_invalid"),
            ("timeout_ms", "0", "model_option_invalid"),
        ];
        for (name, text, code) in cases {
            let failure = read(&[(name, text)]).unwrap_err();
            assert_eq!((failure.class, failure.code.as_str()), (ErrorClass::Permanent, code));
            assert!(failure.message.contains(&format!("`{name}`")), "{failure}");
        }
    }
}
