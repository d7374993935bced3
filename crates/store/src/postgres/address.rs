//! The address of a database as text: whether it is one, and where passwords stand in it.

use std::{borrow::Cow, ops::Range};

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;

use super::{OpenError, tls::Wanted};

/// Whether it is an address. Files that it names are not looked at.
pub fn check(url: &str) -> Result<(), OpenError> {
    let (rest, _) = Wanted::take(url)?;
    let database: Config = rest.parse().map_err(OpenError::Url)?;
    match database.get_hosts().is_empty() && database.get_hostaddrs().is_empty() {
        true => Err(OpenError::NoHost),
        false => Ok(()),
    }
}

/// The address without its passwords. It need not be one: what is refused is shown too.
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    let mut seen = 0;
    for Range { start, end } in passwords(text) {
        // Where it is not clear what is meant, one place may reach into the next.
        if start >= seen {
            shown.push_str(&text[seen..start]);
            shown.push_str("***");
        }
        seen = seen.max(end);
    }
    shown.push_str(&text[seen..]);
    shown
}

/// What must not be shown of an address, in the forms in which it may stand somewhere.
pub fn hidden(text: &str) -> Vec<String> {
    let forms = |place: Range<usize>| {
        let written = &text[place];
        [written.to_owned(), decoded(written).into_owned()]
    };
    passwords(text).into_iter().flat_map(forms).collect()
}

/// Before the host, and as a parameter, which may be written as anything that decodes to its name. By where they begin.
fn passwords(text: &str) -> Vec<Range<usize>> {
    let begins = text.find("://").map_or(0, |at| at + "://".len());
    let (user, host) = who(&text[begins..]).map_or((begins..begins, begins), |length| {
        let ends = begins + length;
        (begins..ends, ends + 1)
    });
    let of_user = text[user.clone()].find(':').map(|colon| user.start + colon + 1..user.end);
    let in_parameters = [begins, host].into_iter().flat_map(|from| in_parameters(text, from));
    let mut places: Vec<_> =
        of_user.into_iter().chain(in_parameters).filter(|place| !place.is_empty()).collect();
    places.sort_by_key(|place| (place.start, place.end));
    places.dedup();
    places
}

/// How much of it says who we are: all before an `@`. A password may have one, too, if it was not written as it should be;
/// behind the host there may be others that mean nothing.
fn who(rest: &str) -> Option<usize> {
    let first = rest.find('@')?;
    let place = &rest[first..];
    let host = &place[..place.find(['/', '?']).unwrap_or(place.len())];
    Some(first + host.rfind('@').unwrap_or(0))
}

fn in_parameters(text: &str, from: usize) -> Vec<Range<usize>> {
    let Some(query) = text[from..].find('?') else { return in_words(text, from) };
    let mut places = Vec::new();
    let mut begins = from + query + 1;
    for pair in text[begins..].split('&') {
        let ends = begins + pair.len();
        match pair.split_once('=') {
            Some((name, _)) if is_password(name) => places.push(begins + name.len() + 1..ends),
            Some(_) | None => {}
        }
        begins = ends + 1;
    }
    places
}

/// Of `host=h password=p`, which other programs take. Where such a value ends only they know.
fn in_words(text: &str, from: usize) -> Vec<Range<usize>> {
    let rest = &text[from..];
    let lower = rest.to_ascii_lowercase();
    let value = lower.find("password").and_then(|at| Some(at + lower[at..].find('=')? + 1));
    value.map(|at| from + at..text.len()).into_iter().collect()
}

fn is_password(name: &str) -> bool {
    decoded(name).to_ascii_lowercase().ends_with("password")
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown_wherever_it_stands() {
        for (text, expected) in [
            ("postgres://user:geheim@host/db?x=1", "postgres://user:***@host/db?x=1"),
            (
                "postgres://h/d?user=o&password=geheim&sslmode=off",
                "postgres://h/d?user=o&password=***&sslmode=off",
            ),
            ("postgres://h/d?pass%77ord=geheim", "postgres://h/d?pass%77ord=***"),
            ("postgres://h/d?sslpassword=ge?heim", "postgres://h/d?sslpassword=***"),
            ("postgres://u:ge@heim@h/d?password=geheim", "postgres://u:***@h/d?password=***"),
            ("postgres://u:ge/heim@h/d", "postgres://u:***@h/d"),
            ("postgres://u:ge?heim@h/d?password=geheim", "postgres://u:***@h/d?password=***"),
            ("postgres://h:5432/d?password=ge@heim", "postgres://h:***"),
            ("postgres://u:geheim@h/d?application_name=a@b", "postgres://u:***@h/d?application_name=a@b"),
            ("postgres://u:geheim@", "postgres://u:***@"),
            ("mysql:u:geheim@h", "mysql:***@h"),
            ("host=h password = 'geheim wort'", "host=h password =***"),
            ("postgres://u@h/d", "postgres://u@h/d"),
            (
                "postgres://u@h:5432,other:5433/d?options=-c%20x",
                "postgres://u@h:5432,other:5433/d?options=-c%20x",
            ),
            ("", ""),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn it_is_hidden_as_it_is_and_as_it_was_written() {
        assert_eq!(hidden("postgres://u:p%40ss@h/d"), ["p%40ss", "p@ss"]);
        assert_eq!(hidden("postgres://h/d?user=u&password=p%26ss"), ["p%26ss", "p&ss"]);
        assert!(hidden("postgres://u@h/d").is_empty());
    }

    #[test]
    fn what_the_database_is_asked_with_is_hidden() {
        for url in
            ["postgres://u:p%40ss@h/d", "postgres://h/d?user=u&pass%77ord=p%26ss", "postgres://u:p/w@h/d"]
        {
            let config: Config = url.parse().expect("an address");
            let password = config.get_password().expect("a password");
            let hidden = hidden(url);
            assert!(hidden.iter().any(|form| form.as_bytes() == password), "{hidden:?}");
        }
    }

    #[test]
    fn what_is_no_address_is_told_before_anything_is_dialled() {
        for url in [
            "postgres://h:x/d",
            "postgres://h/d?sslmode=bogus",
            "postgres://h/d?nonsense=1",
            "postgres:///d",
            "h=1",
        ] {
            assert!(check(url).is_err(), "{url}");
        }
        for url in ["postgres://u:p@h/d?sslmode=verify-full&sslrootcert=/nowhere", "postgresql://%2Frun/d"] {
            assert!(check(url).is_ok(), "{url}");
        }
    }
}
