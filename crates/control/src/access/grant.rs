//! What someone was given: a role, and the namespaces it holds for.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks.
    Reader,
    /// Declares resources and sends tasks.
    Writer,
    /// Says what was found out about a resource.
    Controller,
    /// Decides about the system and those who may use it.
    Admin,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown role {0:?}; there are reader, writer, controller and admin")]
pub struct UnknownRole(String);

impl Role {
    pub const ALL: [Self; 4] = [Self::Reader, Self::Writer, Self::Controller, Self::Admin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Writer => "writer",
            Self::Controller => "controller",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Where a role holds. On the wire a list of names; `["*"]` is all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub enum Namespaces {
    All,
    Only(BTreeSet<String>),
}

const ALL: &str = "*";

impl Namespaces {
    pub fn has(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(namespace),
        }
    }

    pub fn are_all(&self) -> bool {
        *self == Self::All
    }
}

impl From<Vec<String>> for Namespaces {
    fn from(names: Vec<String>) -> Self {
        if names.iter().any(|name| name == ALL) { Self::All } else { Self::Only(names.into_iter().collect()) }
    }
}

impl From<Namespaces> for Vec<String> {
    fn from(namespaces: Namespaces) -> Self {
        match namespaces {
            Namespaces::All => vec![ALL.to_owned()],
            Namespaces::Only(names) => names.into_iter().collect(),
        }
    }
}

/// As in a sentence.
impl fmt::Display for Namespaces {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => out.write_str("all namespaces"),
            Self::Only(names) => {
                out.write_str(if names.len() == 1 { "namespace " } else { "namespaces " })?;
                out.write_str(&names.iter().cloned().collect::<Vec<_>>().join(", "))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub role: Role,
    pub namespaces: Namespaces,
}

impl Grant {
    /// Everything, everywhere.
    pub fn whole() -> Self {
        Self { role: Role::Admin, namespaces: Namespaces::All }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_include_those_before_them() {
        assert!(Role::ALL.is_sorted());
        for role in Role::ALL {
            assert_eq!(role.name().parse(), Ok(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        }
        for text in ["", "Admin", "root", "admin "] {
            assert!(text.parse::<Role>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_star_is_every_namespace_and_no_name_is_none() {
        let read = |text: &str| serde_json::from_str::<Namespaces>(text).unwrap();
        assert!(read(r#"["a","*"]"#).are_all() && read(r#"["*"]"#).has("anything"));
        let some = read(r#"["b","a","b"]"#);
        assert!(some.has("a") && !some.has("c") && !some.has("*") && !some.are_all());
        assert_eq!(some.to_string(), "namespaces a, b");
        assert!(!read("[]").has("default"), "what is missing is not all");
    }
}
