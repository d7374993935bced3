//! The tricks, as they stand in `testing/fixtures/ssrf/tricks.txt`.

use std::{collections::BTreeSet, fmt, str::FromStr};

use anyhow::{Context as _, Result, bail, ensure};

const TRICKS: &str = include_str!("../../fixtures/ssrf/tricks.txt");

/// Where a trick leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To a host that everybody may call: it has to work.
    Public,
    /// To a private or loopback address; with `allowPrivate` it has to work.
    Private,
    /// The same, but whether anything can be there differs from machine to machine.
    Special,
    /// To where clouds hand out credentials: never.
    Metadata,
    /// Nowhere: it is no address, or no name, or not for this client.
    Nowhere,
    /// To a public host at first, and later to a private one.
    Rebind,
    /// To a public host at first, and later to metadata.
    RebindMetadata,
}

#[derive(Debug, Clone)]
pub(crate) struct Trick {
    line: usize,
    pub(crate) class: String,
    pub(crate) kind: Kind,
    url: String,
}

impl Kind {
    pub(crate) fn is_alive_without_a_check(self) -> bool {
        matches!(self, Kind::Private | Kind::Metadata | Kind::Rebind | Kind::RebindMetadata)
    }
}

impl Trick {
    /// The address to call. Each attempt has a name of its own, so that the world can tell them apart.
    pub(crate) fn url(&self, name: &str) -> String {
        self.url.replace("{n}", name)
    }

    /// A name that changes its mind has to be asked for more than once.
    pub(crate) fn n_calls(&self) -> usize {
        if matches!(self.kind, Kind::Rebind | Kind::RebindMetadata) { 3 } else { 1 }
    }

    /// Somebody has to be asked where it leads.
    pub(crate) fn has_a_name(&self) -> bool {
        self.url.contains(".test") || self.url.to_lowercase().contains("local")
    }
}

impl fmt::Display for Trick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} ({}, {:?}) {:?}", self.line, self.class, self.kind, self.url)
    }
}

/// All of them, in the order of the file.
pub(crate) fn all() -> Result<Vec<Trick>> {
    let lines = TRICKS.lines().enumerate().map(|(index, line)| (index + 1, line));
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let tricks: Vec<Trick> = lines.map(|(number, line)| read(number, line)).collect::<Result<_>>()?;
    let distinct: BTreeSet<&str> = tricks.iter().map(|trick| trick.url.as_str()).collect();
    ensure!(distinct.len() == tricks.len(), "a trick is there twice");
    Ok(tricks)
}

/// Every port that some trick names, and those that go without saying.
pub(crate) fn ports(tricks: &[Trick]) -> Vec<u16> {
    let named = tricks.iter().filter_map(|trick| {
        let behind = trick.url.rsplit(':').next()?;
        let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|port| *port != 0)
    });
    let ports: BTreeSet<u16> = named.chain([80, 443]).collect();
    ports.into_iter().collect()
}

/// `class kind address`, with `\s`, `\t`, `\r`, `\n`, `\0` and `\\` for what can't stand in a line.
fn read(line: usize, text: &str) -> Result<Trick> {
    let mut parts = text.split_whitespace();
    let (class, kind, url) = (parts.next(), parts.next(), parts.next());
    let (Some(class), Some(kind), Some(url), None) = (class, kind, url, parts.next()) else {
        bail!("line {line} of the tricks is not `class kind address`");
    };
    let kind = kind.parse().with_context(|| format!("line {line} of the tricks"))?;
    Ok(Trick { line, class: class.to_owned(), kind, url: unescaped(url) })
}

impl FromStr for Kind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "public" => Kind::Public,
            "private" => Kind::Private,
            "special" => Kind::Special,
            "metadata" => Kind::Metadata,
            "nowhere" => Kind::Nowhere,
            "rebind" => Kind::Rebind,
            "rebind-metadata" => Kind::RebindMetadata,
            _ => bail!("nothing leads to {text:?}"),
        })
    }
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' { characters.next() } else { None };
        plain.push(match escaped {
            Some('s') => ' ',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('n') => '\n',
            Some('0') => '\0',
            Some(other) => other,
            None => character,
        });
    }
    plain
}
