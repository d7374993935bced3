//! Which version a change is meant for: the header If-Match, or else the version in the body.

use http::{HeaderMap, StatusCode, header};
use ostler_control::Precondition;

use crate::problem::Problem;

/// What the header says, if it is there.
pub fn of(headers: &HeaderMap) -> Result<Option<Precondition>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| Problem::bad_utf8("the header If-Match"))?;
    let text = text.trim();
    let text = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
    if text.contains(',') {
        let detail = format!("If-Match: expected one version, found {text:?}");
        return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_parameter", detail));
    }
    Ok(Some(match text {
        "*" => Precondition::Any,
        version => Precondition::Version(version.to_owned()),
    }))
}

/// Whoever replaces something says what it replaces.
pub fn required(headers: &HeaderMap, in_body: Option<String>) -> Result<Precondition, Problem> {
    if let Some(precondition) = of(headers)? {
        return Ok(precondition);
    }
    in_body.map(Precondition::Version).ok_or_else(|| {
        let detail = "the change does not say which version it is made to";
        Problem::new(StatusCode::CONFLICT, "conflict", detail)
            .remedy("send `If-Match: <resourceVersion>`, or `metadata.resourceVersion` as it was read")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Precondition {
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_MATCH, value.parse().unwrap());
        required(&headers, Some("9".to_owned())).unwrap()
    }

    #[test]
    fn quotes_and_weakness_do_not_matter() {
        for value in ["3", "\"3\"", "W/\"3\"", " 3 "] {
            assert_eq!(read(value), Precondition::Version("3".to_owned()), "{value}");
        }
        assert_eq!((read("*"), read("\"*\"")), (Precondition::Any, Precondition::Any));
        let none = HeaderMap::new();
        assert_eq!(required(&none, Some("9".into())).unwrap(), Precondition::Version("9".into()));
        assert!(required(&none, None).is_err());
    }
}
