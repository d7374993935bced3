//! Reads JSON more strictly than most: a key that is given twice is a mistake, not a choice for us to make.

use std::fmt;

use http::StatusCode;
use ostler_spec::MAX_DEPTH;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::problem::Problem;

/// The value of a text.
pub fn read(text: &str) -> Result<Value, Problem> {
    check_depth(text)?;
    serde_json::from_str(text).map(|Strict(value)| value).map_err(|error| bad_json(&error))
}

/// Only whether it is JSON, for a reader that looks for keys given twice by itself.
pub fn check(text: &str) -> Result<(), Problem> {
    check_depth(text)?;
    serde_json::from_str::<Value>(text).map(drop).map_err(|error| bad_json(&error))
}

/// Before anything that goes down into it: a stack has an end.
fn check_depth(text: &str) -> Result<(), Problem> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let detail = format!("the body is nested deeper than {MAX_DEPTH} levels");
            return Err(Problem::new(StatusCode::BAD_REQUEST, "too_deep", detail));
        }
    }
    Ok(())
}

fn bad_json(error: &serde_json::Error) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad_json", format!("the body is not valid JSON: {error}"))
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if members.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} is given twice")));
            }
            let Strict(value) = map.next_value()?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_serde_reads() {
        for text in
            ["null", r#"{"a":[1,-2,3.5,true,"x\"[{",{"b":{}}],"c":null}"#, "18446744073709551615", "\"\""]
        {
            assert_eq!(read(text).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_ambiguous_broken_or_too_deep() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"[{"b":{"a":1,"a":1}}]"#,
            "",
            "{",
            "{}{}",
            "{'a':1}",
            "[1,]",
            "\"\\ud800\"",
            "NaN",
        ] {
            assert!(format!("{:?}", read(text).unwrap_err()).contains("bad_json"), "{text}");
        }
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&deep(MAX_DEPTH)).is_ok());
        for levels in [MAX_DEPTH + 1, 100_000] {
            assert!(format!("{:?}", read(&deep(levels)).unwrap_err()).contains("too_deep"));
            assert!(format!("{:?}", check(&deep(levels)).unwrap_err()).contains("too_deep"));
        }
        assert!(check(&format!("\"{}\"", "[".repeat(100_000))).is_ok(), "brackets in a string are text");
    }
}
