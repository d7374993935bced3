//! What stands behind the question mark of an address. Nothing is guessed: a name that a route does not know,
//! one given twice, or a value out of its range is refused; and so is a namespace that the caller is not let into, here
//! where every handler has to ask for it.

use axum::extract::{FromRequestParts, Path};
use http::{HeaderMap, HeaderName, request::Parts};
use ostler_control::Effect;
use ostler_kernel::Selector;
use ostler_spec::{DEFAULT_NAMESPACE, check_namespace};

use crate::{
    access::{Caller, Identity},
    problem::Problem,
};

pub const DEFAULT_LIMIT: usize = 100;
pub const MAX_LIMIT: usize = 1000;

#[derive(Debug)]
pub struct Parameters {
    given: Vec<(String, String)>,
    caller: Result<Caller, Problem>,
}

/// Which namespaces a list shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    One(String),
    All,
}

impl Parameters {
    /// Refuses every name but these.
    pub fn only(self, known: &[&str]) -> Result<Self, Problem> {
        match self.given.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(self),
            Some((name, _)) if known.is_empty() => {
                Err(Problem::bad_parameter(format!("unknown parameter {name:?}; this route takes none")))
            }
            Some((name, _)) => Err(Problem::bad_parameter(format!(
                "unknown parameter {name:?}; this route takes {}",
                known.join(", ")
            ))),
        }
    }

    /// Who asks. Routes that ask for nothing may have nobody.
    pub fn caller(&self) -> Result<&Caller, Problem> {
        self.caller.as_ref().map_err(Clone::clone)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The namespace, if one is named.
    pub fn namespace(&self) -> Result<Option<&str>, Problem> {
        let Some(namespace) = self.get("namespace") else { return Ok(None) };
        let bad = |message| Problem::bad_parameter(format!("namespace: {message}"));
        if namespace == "*" {
            return Err(bad("\"*\" is for lists; this route needs one namespace".to_owned()));
        }
        check_namespace(namespace).map_err(bad)?;
        Ok(Some(namespace))
    }

    pub fn namespace_or_default(&self) -> Result<&str, Problem> {
        let namespace = self.namespace()?.unwrap_or(DEFAULT_NAMESPACE);
        self.caller()?.check_namespace(namespace)?;
        Ok(namespace)
    }

    /// The namespaces that a list is to show, each of which the caller is let into.
    pub fn scope(&self) -> Result<Scope, Problem> {
        match self.get("namespace") {
            Some("*") => self.caller()?.check_all_namespaces().map(|()| Scope::All),
            _ => Ok(Scope::One(self.namespace_or_default()?.to_owned())),
        }
    }

    pub fn limit(&self) -> Result<usize, Problem> {
        Ok(self.limit_as(&["limit"])?.unwrap_or(DEFAULT_LIMIT))
    }

    /// How many at most, under one of these names, if that is asked for.
    pub fn limit_as(&self, names: &[&'static str]) -> Result<Option<usize>, Problem> {
        let Some(text) = self.one_of(names)? else { return Ok(None) };
        let name = names.iter().find(|name| self.get(name).is_some()).unwrap_or(&"limit");
        let limit = digits(text).and_then(|text| text.parse().ok());
        limit.filter(|limit| (1..=MAX_LIMIT).contains(limit)).map(Some).ok_or_else(|| {
            Problem::bad_parameter(format!("{name}: expected a number from 1 to {MAX_LIMIT}, found {text:?}"))
        })
    }

    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                Err(Problem::bad_parameter(format!("{name}: expected true or false, found {other:?}")))
            }
        }
    }

    /// One value that may be given under several names, but under one of them.
    pub fn one_of(&self, names: &[&'static str]) -> Result<Option<&str>, Problem> {
        let mut given = names.iter().filter_map(|name| self.get(name));
        match (given.next(), given.next()) {
            (Some(_), Some(_)) => {
                Err(Problem::bad_parameter(format!("{} are two names of one parameter", names.join(" and "))))
            }
            (first, _) => Ok(first),
        }
    }

    /// Which labels are asked for.
    pub fn selector(&self) -> Result<Selector, Problem> {
        let text = self.one_of(&["labelSelector", "labels"])?.unwrap_or_default();
        text.parse().map_err(|error| Problem::bad_parameter(format!("labelSelector: {error}")))
    }

    /// Whether something is to be done, or only tried.
    pub fn effect(&self) -> Result<Effect, Problem> {
        self.one_of(&["dry_run", "dryRun"])?;
        let is_dry = self.flag("dry_run")? || self.flag("dryRun")?;
        Ok(if is_dry { Effect::DryRun } else { Effect::Real })
    }

    /// Whatever becomes of it: a namespace that is named is one that the caller is let into.
    fn check_named(&self) -> Result<(), Problem> {
        match (self.get("namespace"), &self.caller) {
            (Some("*"), Ok(caller)) => caller.check_all_namespaces(),
            (Some(namespace), Ok(caller)) => caller.check_namespace(namespace),
            (None, _) | (_, Err(_)) => Ok(()),
        }
    }

    /// A place in a log: 0 is before its first event.
    pub fn place(&self, name: &str) -> Result<Option<u64>, Problem> {
        self.get(name).map(|text| place(name, text)).transpose()
    }
}

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The last event that a reader who comes back has seen.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let text = String::from_utf8_lossy(value.as_bytes());
    place("Last-Event-ID", &text).map(Some)
}

/// The same where an id that was never given begins anew: a browser that is refused never comes back.
pub fn last_event_id_given(headers: &HeaderMap) -> Option<u64> {
    last_event_id(headers).unwrap_or_default()
}

/// Reads a place in a log, wherever it was given.
pub fn place(name: &str, text: &str) -> Result<u64, Problem> {
    let number =
        digits(text).and_then(|text| text.parse::<i64>().ok()).and_then(|number| number.try_into().ok());
    number.ok_or_else(|| {
        Problem::bad_parameter(format!("{name}: expected the number of an event, found {text:?}"))
    })
}

/// Rust would also take a sign.
fn digits(text: &str) -> Option<&str> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

impl<S: Sync> FromRequestParts<S> for Parameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut given: Vec<(String, String)> = Vec::new();
        let pairs = parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if given.iter().any(|(known, _)| *known == name) {
                return Err(Problem::bad_parameter(format!("{name}: given twice")));
            }
            given.push((name, value));
        }
        // As in a manifest, what is empty is not set.
        given.retain(|(_, value)| !value.is_empty());
        let parameters = Self { given, caller: Identity::of(&parts.extensions) };
        parameters.check_named()?;
        Ok(parameters)
    }
}

/// Undoes the escapes of a query.
fn decode(text: &str) -> Result<String, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let (byte, left) = match (first, tail) {
            (b'%', [high, low, left @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, left),
                _ => (b'%', tail),
            },
            (b'+', _) => (b' ', tail),
            _ => (*first, tail),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8(bytes).map_err(|_| Problem::bad_utf8("the query"))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| digit.try_into().ok())
}

/// The name in an address.
pub struct Name(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(_) => Err(Problem::bad_utf8("the path")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn parse(query: &str) -> Result<Parameters, Problem> {
        let identity = Identity(Ok(Caller::server()));
        let request =
            http::Request::builder().uri(format!("/x?{query}")).extension(identity).body(()).unwrap();
        Parameters::from_request_parts(&mut request.into_parts().0, &()).await
    }

    #[tokio::test]
    async fn escapes_are_undone() {
        let parameters = parse("a=x%20y+z&b=%C3%A4&c&d=100%&e=%zz").await.unwrap();
        let values = ["a", "b", "c", "d", "e", "f"].map(|name| parameters.get(name));
        assert_eq!(values, [Some("x y z"), Some("ä"), None, Some("100%"), Some("%zz"), None]);
    }

    #[tokio::test]
    async fn what_cannot_be_meant_is_refused() {
        for query in ["a=%ff", "a=1&a=2"] {
            assert!(parse(query).await.is_err(), "{query} was taken");
        }
        for limit in ["0", "1001", "-1", "+5", "x", "1.5", "99999999999999999999999"] {
            assert!(parse(&format!("limit={limit}")).await.unwrap().limit().is_err(), "{limit} was taken");
        }
        for place in ["-1", "x", "9223372036854775808", "1e3"] {
            assert!(
                parse(&format!("after={place}")).await.unwrap().place("after").is_err(),
                "{place} was taken"
            );
        }
        assert!(parse("namespace=a/b").await.unwrap().scope().is_err());
        assert!(parse("namespace=&namespace=a").await.is_err());
        assert_eq!(parse("limit=&after=").await.unwrap().limit().unwrap(), DEFAULT_LIMIT);
        assert!(parse("namespace=+").await.unwrap().scope().is_err());
        let unset = parse("namespace=").await.unwrap().scope().unwrap();
        assert_eq!(unset, Scope::One(DEFAULT_NAMESPACE.to_owned()));
        assert!(parse("namespace=*").await.unwrap().namespace().is_err());
        assert_eq!(parse("namespace=*").await.unwrap().scope().unwrap(), Scope::All);
        assert!(parse("stat=queued").await.unwrap().only(&["state"]).is_err());
    }
}
