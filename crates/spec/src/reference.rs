//! How one resource names another: `name` or `namespace/name`, and `[namespace/]name[:key]` for secrets.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A named resource, in the namespace of the one that names it unless it says another.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    pub namespace: Option<String>,
    pub name: String,
}

/// A value of a secret. Only the reference: resolving it is the vault's affair.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretRef {
    pub namespace: Option<String>,
    pub name: String,
    pub key: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    #[error("expected a reference such as \"name\" or \"namespace/name\"")]
    Malformed,
    #[error("expected a secret reference such as \"name\", \"name:key\" or \"namespace/name:key\"")]
    MalformedSecret,
}

impl Reference {
    pub fn named(name: impl Into<String>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// Leaves out the namespace if it is the one that the reference stands in.
    pub(crate) fn settle(&mut self, own: &str) {
        self.namespace.take_if(|namespace| namespace == own);
    }

    /// The namespace this points into, for a resource that lives in `own`.
    pub fn namespace_or<'a>(&'a self, own: &'a str) -> &'a str {
        self.namespace.as_deref().unwrap_or(own)
    }
}

impl SecretRef {
    /// The key inside the secret; `value` unless named.
    pub fn key_or_default(&self) -> &str {
        self.key.as_deref().unwrap_or("value")
    }
}

impl JsonSchema for Reference {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Reference".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"^\s*([^\s/]+/)?[^\s/]+\s*$", "examples": ["name", "namespace/name"]})
    }
}

impl JsonSchema for SecretRef {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SecretRef".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = r"^\s*([^\s/]+/)?[^\s/:]+(:[^\s/:]+)?\s*$";
        json_schema!({"type": "string", "pattern": pattern, "examples": ["name", "namespace/name:key"]})
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let (namespace, name) = split_namespace(text.trim()).ok_or(ReferenceError::Malformed)?;
        Ok(Self { namespace, name: name.to_owned() })
    }
}

impl FromStr for SecretRef {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let (namespace, rest) = split_namespace(text.trim()).ok_or(ReferenceError::MalformedSecret)?;
        let (name, key) = match rest.split_once(':') {
            Some((name, key)) => (name, Some(key)),
            None => (rest, None),
        };
        if name.is_empty() || key.is_some_and(|key| key.is_empty() || key.contains(':')) {
            return Err(ReferenceError::MalformedSecret);
        }
        Ok(Self { namespace, name: name.to_owned(), key: key.map(str::to_owned) })
    }
}

fn split_namespace(text: &str) -> Option<(Option<String>, &str)> {
    let forbidden = |character: char| character.is_whitespace() || character.is_control();
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    let wrong = name.is_empty() || name.contains('/') || namespace == Some("") || text.contains(forbidden);
    if wrong { None } else { Some((namespace.map(str::to_owned), name)) }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_namespace(out, self.namespace.as_deref())?;
        out.write_str(&self.name)
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_namespace(out, self.namespace.as_deref())?;
        out.write_str(&self.name)?;
        match &self.key {
            Some(key) => write!(out, ":{key}"),
            None => Ok(()),
        }
    }
}

fn write_namespace(out: &mut fmt::Formatter<'_>, namespace: Option<&str>) -> fmt::Result {
    match namespace {
        Some(namespace) => write!(out, "{namespace}/"),
        None => Ok(()),
    }
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for SecretRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_read_and_print() {
        for text in ["mock", "team-a/mock", "memory.read"] {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), text);
        }
        let other: Reference = "team-a/mock".parse().unwrap();
        assert_eq!(other.namespace_or("default"), "team-a");
        assert_eq!(Reference::named("mock").namespace_or("default"), "default");
        for text in ["", "/", "a/", "/a", "a/b/c", "a b", "a\u{0}b"] {
            assert_eq!(text.parse::<Reference>(), Err(ReferenceError::Malformed), "{text:?}");
        }
    }

    #[test]
    fn secret_references_name_a_key() {
        let full: SecretRef = "team-a/openai:token".parse().unwrap();
        assert_eq!(
            (full.namespace.as_deref(), full.name.as_str(), full.key_or_default()),
            (Some("team-a"), "openai", "token")
        );
        assert_eq!(full.to_string(), "team-a/openai:token");
        assert_eq!("OPENAI_API_KEY".parse::<SecretRef>().unwrap().key_or_default(), "value");
        for text in ["", ":key", "name:", "a:b:c", "a/b/c:d", "a/:d"] {
            assert_eq!(text.parse::<SecretRef>(), Err(ReferenceError::MalformedSecret), "{text:?}");
        }
    }
}
