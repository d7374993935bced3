//! The wire of the name system (RFC 1035): one question out, the addresses of one answer in. What comes in is a
//! stranger's: nothing in it is believed before it was looked at, and no length in it is followed beyond the end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

/// One question, and the number that its answer must carry.
#[derive(Debug, Clone)]
pub(super) struct Question {
    id: u16,
    name: String,
    family: Family,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Addresses, or none, or the name that they are to be asked for.
    Found {
        addresses: Vec<IpAddr>,
        alias: Option<String>,
    },
    NoSuchName,
    /// Only a part fits: ask again over a stream.
    Truncated,
    Refused(u8),
}

/// The answer is not one to our question, or is broken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

const CLASS_INTERNET: u16 = 1;
const TYPE_ALIAS: u16 = 5;
const TYPE_OPTIONS: u16 = 41;

/// As much as surely passes in one datagram.
const DATAGRAM: u16 = 1232;

/// A name in a message may refer to an earlier one; so many times.
const MAX_JUMPS: usize = 32;

/// Names that lead to each other, within one answer.
const MAX_ALIASES: usize = 16;

impl Family {
    fn number(self) -> u16 {
        match self {
            Family::V4 => 1,
            Family::V6 => 28,
        }
    }
}

impl Question {
    /// None if `name` can't be a name: labels of 1 to 63 plain characters, 253 together. It may end in a dot.
    pub(super) fn new(id: u16, name: &str, family: Family) -> Option<Self> {
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_plain = |byte: u8| byte.is_ascii_graphic();
        let good = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_plain);
        let is_name = name.len() <= 253 && name.split('.').all(good);
        is_name.then(|| Self { id, name: name.to_ascii_lowercase(), family })
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(48 + self.name.len());
        // Recursion is wanted; one question, and one record that says how much we can take.
        for number in [self.id, 0x0100, 1, 0, 0, 1] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for label in self.name.split('.') {
            bytes.push(u8::try_from(label.len()).unwrap_or_default());
            bytes.extend_from_slice(label.as_bytes());
        }
        bytes.push(0);
        for number in [self.family.number(), CLASS_INTERNET] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.push(0);
        for number in [TYPE_OPTIONS, DATAGRAM, 0, 0, 0] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// Reads an answer to this question.
    pub(super) fn read(&self, bytes: &[u8]) -> Result<Reply, Unreadable> {
        let mut cursor = Cursor { bytes, at: 0 };
        let id = cursor.number()?;
        let flags = cursor.number()?;
        let n_questions = cursor.number()?;
        let n_answers = cursor.number()?;
        cursor.skip(4)?;
        let is_answer = flags & 0x8000 != 0 && flags & 0x7800 == 0;
        if id != self.id || !is_answer || n_questions != 1 {
            return Err(Unreadable);
        }
        let asked = (cursor.name()?, cursor.number()?, cursor.number()?);
        if asked != (self.name.clone(), self.family.number(), CLASS_INTERNET) {
            return Err(Unreadable);
        }
        match (flags & 0x0200 != 0, (flags & 0x000f) as u8) {
            (true, _) => Ok(Reply::Truncated),
            (false, 0) => self.gather(&mut cursor, n_answers),
            (false, 3) => Ok(Reply::NoSuchName),
            (false, code) => Ok(Reply::Refused(code)),
        }
    }

    fn gather(&self, cursor: &mut Cursor<'_>, n_answers: u16) -> Result<Reply, Unreadable> {
        let mut aliases = Vec::new();
        let mut found = Vec::new();
        for _ in 0..n_answers {
            match cursor.record()? {
                (owner, Data::Alias(alias)) => aliases.push((owner, alias)),
                (owner, Data::Address(address)) if is_of(address, self.family) => {
                    found.push((owner, address));
                }
                (_, Data::Address(_) | Data::Other) => {}
            }
        }
        let name = self.follow(&aliases)?;
        let addresses = found.into_iter().filter(|(owner, _)| owner == name).map(|(_, found)| found);
        let addresses: Vec<IpAddr> = addresses.collect();
        let alias = (addresses.is_empty() && name != self.name).then(|| name.to_owned());
        Ok(Reply::Found { addresses, alias })
    }

    /// The name at the end of the aliases.
    fn follow<'a>(&'a self, aliases: &'a [(String, String)]) -> Result<&'a str, Unreadable> {
        let mut name = self.name.as_str();
        for _ in 0..=MAX_ALIASES {
            match aliases.iter().find(|(owner, _)| owner == name) {
                Some((_, alias)) => name = alias,
                None => return Ok(name),
            }
        }
        Err(Unreadable)
    }
}

fn is_of(address: IpAddr, family: Family) -> bool {
    match family {
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    }
}

enum Data {
    Address(IpAddr),
    Alias(String),
    Other,
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Unreadable> {
        let end = self.at.checked_add(length).ok_or(Unreadable)?;
        let taken = self.bytes.get(self.at..end).ok_or(Unreadable)?;
        self.at = end;
        Ok(taken)
    }

    fn skip(&mut self, length: usize) -> Result<(), Unreadable> {
        self.take(length).map(drop)
    }

    fn number(&mut self) -> Result<u16, Unreadable> {
        let bytes: [u8; 2] = self.take(2)?.try_into().map_err(|_| Unreadable)?;
        Ok(u16::from_be_bytes(bytes))
    }

    /// A name in lower case, without its last dot. It may go on at an earlier place.
    fn name(&mut self) -> Result<String, Unreadable> {
        let mut name = String::new();
        let mut resume = None;
        for _ in 0..=MAX_JUMPS {
            match self.labels(&mut name)? {
                None => {
                    self.at = resume.unwrap_or(self.at);
                    return Ok(name);
                }
                Some(earlier) => {
                    resume.get_or_insert(self.at);
                    self.at = earlier;
                }
            }
        }
        Err(Unreadable)
    }

    /// Reads labels up to the end of the name, or up to a reference to where it goes on.
    fn labels(&mut self, name: &mut String) -> Result<Option<usize>, Unreadable> {
        loop {
            let [length] = self.take(1)? else { return Err(Unreadable) };
            match length {
                0 => return Ok(None),
                1..=63 => {
                    let label = self.take(usize::from(*length))?;
                    if !label.iter().all(u8::is_ascii_graphic) || name.len() + label.len() > 253 {
                        return Err(Unreadable);
                    }
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name.extend(label.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
                }
                192.. => {
                    let [low] = self.take(1)? else { return Err(Unreadable) };
                    return Ok(Some((usize::from(length & 0x3f) << 8) | usize::from(*low)));
                }
                64..=191 => return Err(Unreadable),
            }
        }
    }

    fn record(&mut self) -> Result<(String, Data), Unreadable> {
        let owner = self.name()?;
        let (kind, class) = (self.number()?, self.number()?);
        // How long it may be kept: nothing is.
        self.skip(4)?;
        let length = usize::from(self.number()?);
        let end = self.at.checked_add(length).ok_or(Unreadable)?;
        let data = match (class, kind) {
            (CLASS_INTERNET, TYPE_ALIAS) => Data::Alias(self.name()?),
            (CLASS_INTERNET, 1) => Data::Address(Ipv4Addr::from(self.array::<4>()?).into()),
            (CLASS_INTERNET, 28) => Data::Address(Ipv6Addr::from(self.array::<16>()?).into()),
            _ => {
                self.skip(length)?;
                Data::Other
            }
        };
        if self.at != end { Err(Unreadable) } else { Ok((owner, data)) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        self.take(N)?.try_into().map_err(|_| Unreadable)
    }
}

#[cfg(test)]
mod tests;
