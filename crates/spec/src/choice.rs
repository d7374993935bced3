//! Values chosen from a short list of words, and how any typed value is read from a word.

use crate::duration::{DurationError, GoDuration};
use crate::reference::{Reference, ReferenceError, SecretRef};

/// A value that a manifest writes as one word.
pub(crate) trait FromText: Sized {
    /// Whether an unquoted number or boolean is taken as its own text.
    const LOOSE: bool = false;

    /// `expected ...`, for a value that is not even text.
    fn expected() -> String;

    fn from_text(text: &str) -> Result<Self, Complaint>;
}

/// Why a word was refused; the caller adds what it found.
pub(crate) struct Complaint {
    pub expected: String,
    pub suggestion: Option<String>,
}

impl Complaint {
    pub fn new(expected: impl ToString) -> Self {
        Self { expected: expected.to_string(), suggestion: None }
    }
}

impl FromText for String {
    fn expected() -> String {
        "expected a string".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Complaint> {
        let text = text.trim();
        if text.is_empty() {
            Err(Complaint::new("expected a string that is not empty"))
        } else {
            Ok(text.to_owned())
        }
    }
}

/// Text that may look like a number or a boolean, such as a version.
pub(crate) struct Loose(pub String);

impl FromText for Loose {
    const LOOSE: bool = true;

    fn expected() -> String {
        String::expected()
    }

    fn from_text(text: &str) -> Result<Self, Complaint> {
        String::from_text(text).map(Self)
    }
}

/// Text kept to the letter, however it looks.
pub(crate) struct Verbatim(pub String);

impl FromText for Verbatim {
    const LOOSE: bool = true;

    fn expected() -> String {
        String::expected()
    }

    fn from_text(text: &str) -> Result<Self, Complaint> {
        Ok(Self(text.to_owned()))
    }
}

impl FromText for GoDuration {
    const LOOSE: bool = true;

    fn expected() -> String {
        DurationError::Malformed.to_string()
    }

    fn from_text(text: &str) -> Result<Self, Complaint> {
        text.parse().map_err(|error: DurationError| {
            let in_seconds = format!("{}s", text.trim());
            let suggestion = in_seconds.parse::<Self>().is_ok().then_some(in_seconds);
            Complaint { expected: error.to_string(), suggestion }
        })
    }
}

impl FromText for Reference {
    fn expected() -> String {
        ReferenceError::Malformed.to_string()
    }

    fn from_text(text: &str) -> Result<Self, Complaint> {
        text.parse().map_err(|error: ReferenceError| Complaint::new(error))
    }
}

impl FromText for SecretRef {
    fn expected() -> String {
        ReferenceError::MalformedSecret.to_string()
    }

    fn from_text(text: &str) -> Result<Self, Complaint> {
        text.parse().map_err(|error: ReferenceError| Complaint::new(error))
    }
}

/// Declares an enum whose variants are words on the wire: read in any case, written as given here.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $word:literal $(| $alias:literal)* ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $( $(#[$variant_meta])* $variant ),+ }

        impl $name {
            /// Every value, in the order declared.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.as_str())
            }
        }

        impl crate::choice::FromText for $name {
            fn expected() -> String {
                crate::choice::expected_one_of(&[$($word),+])
            }

            fn from_text(text: &str) -> Result<Self, crate::choice::Complaint> {
                let text = text.trim();
                $( if text.eq_ignore_ascii_case($word) $(|| text.eq_ignore_ascii_case($alias))* {
                    return Ok(Self::$variant);
                } )+
                Err(crate::choice::Complaint {
                    expected: Self::expected(),
                    suggestion: crate::suggest::nearest(text, [$($word),+]).map(str::to_owned),
                })
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "enum": [$($word $(, $alias)*),+]})
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <String as serde::Deserialize>::deserialize(deserializer)?;
                <Self as crate::choice::FromText>::from_text(&word)
                    .map_err(|complaint| serde::de::Error::custom(complaint.expected))
            }
        }
    };
}
pub(crate) use choice;

pub(crate) fn expected_one_of(words: &[&str]) -> String {
    match words {
        [only] => format!("expected {only}"),
        _ => format!("expected one of {}", words.join(", ")),
    }
}
