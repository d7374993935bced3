//! The members of a body that is no manifest, each in both spellings: `new_password` and `newPassword`. What nobody has
//! asked for is refused at the end.

use http::HeaderMap;
use ostler_control::access::{Namespaces, Role};
use ostler_spec::check_namespace;
use serde_json::{Map, Value};

use crate::{json, manifest, parameters::Parameters, problem::Problem};

pub struct Fields(Map<String, Value>);

impl Fields {
    /// Of a request whose address takes no parameters.
    pub fn begin(parameters: Parameters, headers: &HeaderMap, body: &[u8]) -> Result<Self, Problem> {
        parameters.only(&[])?;
        Self::read(headers, body)
    }

    /// The same where all of it may be left out.
    pub fn begin_optional(parameters: Parameters, headers: &HeaderMap, body: &[u8]) -> Result<Self, Problem> {
        if body.trim_ascii().is_empty() {
            parameters.only(&[])?;
            return Ok(Self(Map::new()));
        }
        Self::begin(parameters, headers, body)
    }

    fn read(headers: &HeaderMap, body: &[u8]) -> Result<Self, Problem> {
        manifest::expect_json(headers)?;
        match json::read(manifest::text(body)?)? {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(Problem::invalid_body("", "expected an object")),
        }
    }

    /// A member under its name or another that it goes by. None if it is not there, or null.
    fn take(&mut self, names: &[&'static str]) -> Result<Option<Value>, Problem> {
        let mut found = None;
        for name in names.iter().flat_map(|name| spellings(name)) {
            match self.0.remove(&name) {
                None | Some(Value::Null) => {}
                Some(_) if found.is_some() => return Err(Problem::invalid_body(&name, "given twice")),
                Some(value) => found = Some(value),
            }
        }
        Ok(found)
    }

    pub fn text(&mut self, names: &[&'static str]) -> Result<Option<String>, Problem> {
        match self.take(names)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Problem::invalid_body(names[0], "expected a string")),
        }
    }

    pub fn required(&mut self, names: &[&'static str]) -> Result<String, Problem> {
        self.text(names)?.ok_or_else(|| Problem::invalid_body(names[0], "is missing"))
    }

    /// A text that a rule of ours holds for.
    pub fn checked(
        &mut self,
        names: &[&'static str],
        check: impl FnOnce(&str) -> Result<(), String>,
    ) -> Result<String, Problem> {
        let text = self.required(names)?;
        check(&text).map_err(|message| Problem::invalid_body(names[0], message))?;
        Ok(text)
    }

    pub fn role(&mut self) -> Result<Option<Role>, Problem> {
        let role = self.text(&["role"])?;
        let read = |text: String| text.parse().map_err(|error| invalid("role", &error));
        role.map(read).transpose()
    }

    /// A list of names; `*` is all.
    pub fn namespaces(&mut self) -> Result<Option<Namespaces>, Problem> {
        let refuse = |message: &str| Problem::invalid_body("namespaces", message);
        let Some(value) = self.take(&["namespaces"])? else { return Ok(None) };
        let Value::Array(items) = value else { return Err(refuse("expected a list of names")) };
        let mut names = Vec::new();
        for item in items {
            let Value::String(name) = item else { return Err(refuse("expected a list of names")) };
            if name != "*" {
                check_namespace(&name).map_err(|message| refuse(&message))?;
            }
            names.push(name);
        }
        if names.is_empty() {
            return Err(refuse("expected at least one name, or \"*\" for all"));
        }
        Ok(Some(Namespaces::from(names)))
    }

    /// Refuses what was not asked for.
    pub fn end(self) -> Result<(), Problem> {
        match self.0.into_iter().find(|(_, value)| !value.is_null()) {
            None => Ok(()),
            Some((name, _)) => Err(Problem::invalid_body(&name, "unknown field")),
        }
    }
}

pub fn invalid(field: &str, error: &dyn std::fmt::Display) -> Problem {
    Problem::invalid_body(field, error.to_string())
}

fn spellings(name: &str) -> Vec<String> {
    let mut camel = String::new();
    for (index, word) in name.split('_').enumerate() {
        let mut letters = word.chars();
        match letters.next() {
            Some(first) if index > 0 => camel.extend(first.to_uppercase().chain(letters)),
            _ => camel.push_str(word),
        }
    }
    if camel == name { vec![camel] } else { vec![name.to_owned(), camel] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        Fields::read(&HeaderMap::new(), text.as_bytes()).unwrap()
    }

    #[test]
    fn both_spellings_are_read_and_what_is_left_is_refused() {
        for text in [r#"{"new_password":"x"}"#, r#"{"newPassword":"x","other":null}"#] {
            let mut fields = fields(text);
            assert_eq!(fields.required(&["new_password"]).unwrap(), "x");
            assert!(fields.end().is_ok());
        }
        assert!(fields(r#"{"new_password":"x","newPassword":"x"}"#).required(&["new_password"]).is_err());
        assert!(fields(r#"{"x":1}"#).end().is_err());
        assert!(fields("{}").required(&["x"]).is_err() && fields(r#"{"x":1}"#).text(&["x"]).is_err());
        assert!(Fields::read(&HeaderMap::new(), b"[]").is_err());
    }

    #[test]
    fn namespaces_are_names_or_all() {
        let read = |text: &str| fields(&format!(r#"{{"namespaces":{text}}}"#)).namespaces();
        assert!(read("[\"*\"]").unwrap().unwrap().are_all());
        assert!(read("[\"a\"]").unwrap().unwrap().has("a"));
        assert!(read("null").unwrap().is_none());
        for text in ["[]", "\"a\"", "[1]", "[\"a/b\"]", "[\"\"]", "{}"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
