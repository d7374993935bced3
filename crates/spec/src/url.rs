//! Whether a text can be an address at all. Whether it may be called is judged where calls are made.

/// Accepts `scheme://host...` with one of the given schemes.
pub(crate) fn check(text: &str, schemes: &[&str]) -> Result<(), String> {
    let expected =
        || format!("expected an address such as \"{}://host/path\", found {text:?}", first(schemes));
    let (scheme, rest) = text.split_once("://").ok_or_else(expected)?;
    if !schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(format!("expected an address that starts with {}, found {text:?}", listed(schemes)));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("expected an address without a user or password: name a secret instead".to_owned());
    }
    let host = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let broken = |character: char| character.is_whitespace() || character.is_control();
    if host.is_empty() || text.contains(broken) || !has_good_port(authority) {
        return Err(expected());
    }
    Ok(())
}

/// Whether a text is a host with a port and nothing else, as gRPC writes an address.
pub(crate) fn is_host_and_port(text: &str) -> bool {
    let is_bare = !text.contains(['/', '?', '#']);
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    is_bare && has_port && check(&format!("https://{text}"), &["https"]).is_ok()
}

fn has_good_port(authority: &str) -> bool {
    let behind_host = match authority.rsplit_once(']') {
        Some((_, rest)) => rest,
        None => authority.find(':').map_or("", |colon| &authority[colon..]),
    };
    match behind_host.strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok(),
        None => behind_host.is_empty(),
    }
}

fn first<'a>(schemes: &[&'a str]) -> &'a str {
    schemes.last().copied().unwrap_or("https")
}

fn listed(schemes: &[&str]) -> String {
    schemes.iter().map(|scheme| format!("{scheme}://")).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTP: &[&str] = &["http", "https"];

    #[test]
    fn addresses_pass() {
        for text in [
            "http://127.0.0.1:8890/tool/echo",
            "https://api.openai.com/v1",
            "HTTP://h",
            "http://[::1]:80/x?y",
        ] {
            assert_eq!(check(text, HTTP), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_host_with_a_port_is_an_address_of_its_own() {
        for text in ["localhost:50051", "redact.desk.example:443", "10.0.0.1:1", "[::1]:50051"] {
            assert!(is_host_and_port(text), "{text}");
        }
        for text in [
            "",
            "50051",
            ":50051",
            "localhost",
            "localhost:",
            "h:x",
            "h:99999",
            "::1:80",
            "[::1]",
            "h:1/x",
            "u@h:1",
        ] {
            assert!(!is_host_and_port(text), "{text}");
        }
    }

    #[test]
    fn others_do_not() {
        for text in [
            "",
            "lookup",
            "localhost:80",
            "http://",
            "http:///x",
            "http://:80",
            "http://h:x",
            "http://h:99999",
        ] {
            assert!(check(text, HTTP).is_err(), "{text}");
        }
        for text in ["ftp://h", "http://a b", "http://user:pass@h/", "http://[::1]x"] {
            assert!(check(text, HTTP).is_err(), "{text}");
        }
    }
}
