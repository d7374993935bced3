//! A nameserver that says what `testing/fixtures/ssrf/names.txt` scripts: something else each time it is asked, too
//! much, nothing, or the truth.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, Ipv6Addr},
    sync::{Mutex, PoisonError},
};

const SCRIPTS: &str = include_str!("../../fixtures/ssrf/names.txt");

/// What is said of a name: one step per time that it is asked for, the last of them from then on.
pub struct Names {
    scripts: BTreeMap<String, Vec<Vec<String>>>,
    /// How often a question was asked.
    asked: Mutex<BTreeMap<(String, u16), usize>>,
}

const A: u16 = 1;
const ALIAS: u16 = 5;
const AAAA: u16 = 28;

/// A reference to the question's name.
const SAME: [u8; 2] = [0xc0, 0x0c];

/// What fits in a datagram by the old rules.
const DATAGRAM: usize = 512;

impl Default for Names {
    fn default() -> Self {
        let lines = SCRIPTS.lines().filter(|line| !line.starts_with('#'));
        let scripts = lines.filter_map(|line| line.split_once(':')).map(|(name, steps)| {
            let step = |step: &str| step.split(',').map(|record| record.trim().to_owned()).collect();
            (name.trim().to_owned(), steps.split(';').map(step).collect())
        });
        Self { scripts: scripts.collect(), asked: Mutex::default() }
    }
}

impl Names {
    /// The answer to a question in the bytes of the wire; none for what is no question, or is to be left unanswered.
    pub fn answer(&self, question: &[u8], over_stream: bool) -> Option<Vec<u8>> {
        let (name, end) = read_name(question)?;
        let kind = u16::from_be_bytes([*question.get(end)?, *question.get(end + 1)?]);
        let step = self.step(&name, kind, over_stream);
        let mut code = 0u16;
        let mut records = Vec::new();
        match &step {
            None => code = 3,
            Some(step) => {
                for record in step {
                    match record.as_str() {
                        "SILENCE" => return None,
                        "NXDOMAIN" => code = 3,
                        "SERVFAIL" => code = 2,
                        "EMPTY" => {}
                        other => records.extend(record_bytes(other, kind)?),
                    }
                }
            }
        }
        Some(reply(question.get(..end + 4)?, code, &records, over_stream))
    }

    /// A truncated answer is asked for again: that is the same time.
    fn step(&self, name: &str, kind: u16, over_stream: bool) -> Option<Vec<String>> {
        let is_number =
            |label: &str| label.strip_prefix('n').is_some_and(|digits| digits.parse::<u32>().is_ok());
        let labels: Vec<&str> = name.split('.').collect();
        let behind = labels.iter().position(|label| is_number(label)).map_or(0, |number| number + 1);
        let script = &labels.get(behind..)?.join(".");
        if let Some(record) = written_in_the_name(script) {
            return Some(vec![record]);
        }
        let steps = self.scripts.get(script)?;
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asked.entry((name.to_owned(), kind)).or_default();
        let time = if over_stream { count.saturating_sub(1) } else { *count };
        *count += usize::from(!over_stream);
        steps.get(time).or(steps.last()).cloned()
    }
}

/// `10-1-2-3.ip.test`, `xfd00--1x.ip.test`: an address with dashes.
fn written_in_the_name(name: &str) -> Option<String> {
    let dashed = name.strip_suffix(".ip.test")?;
    let dashed = dashed.rsplit('.').next().unwrap_or(dashed);
    let v4 = dashed.replace('-', ".");
    if v4.parse::<Ipv4Addr>().is_ok() {
        return Some(format!("A {v4}"));
    }
    let v6 = dashed.trim_matches('x').replace('-', ":");
    v6.parse::<Ipv6Addr>().ok().map(|address| format!("AAAA {address}"))
}

fn reply(question: &[u8], code: u16, records: &[Vec<u8>], over_stream: bool) -> Vec<u8> {
    let length: usize = records.iter().map(Vec::len).sum();
    let is_cut = !over_stream && question.len() + length > DATAGRAM;
    let records = if is_cut { &[][..] } else { records };
    let mut bytes = question.get(..2).unwrap_or_default().to_vec();
    let flags = 0x8180 | code | if is_cut { 0x0200 } else { 0 };
    for number in [flags, 1, u16::try_from(records.len()).unwrap_or(u16::MAX), 0, 0] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend_from_slice(question.get(12..).unwrap_or_default());
    bytes.extend(records.concat());
    bytes
}

/// The records of one word of a script, as far as they answer a question of this kind.
fn record_bytes(text: &str, kind: u16) -> Option<Vec<Vec<u8>>> {
    let mut parts = text.split(' ');
    let (word, value) = (parts.next()?, parts.next().unwrap_or_default());
    let records = match word {
        "A" => vec![record(&SAME, A, &value.parse::<Ipv4Addr>().ok()?.octets())],
        "AAAA" => vec![record(&SAME, AAAA, &value.parse::<Ipv6Addr>().ok()?.octets())],
        "CNAME" => vec![record(&SAME, ALIAS, &name_bytes(value))],
        // Of another name: an alias's, or nobody's.
        "OF" => {
            let address = parts.next()?.parse::<Ipv4Addr>().ok()?;
            vec![record(&name_bytes(value), A, &address.octets())]
        }
        "LINK" => vec![record(&name_bytes(value), ALIAS, &name_bytes(parts.next()?))],
        "MANY" => (0..value.parse::<u16>().ok()?).map(|_| record(&SAME, A, &[8, 8, 8, 8])).collect(),
        _ => return None,
    };
    let answers = match word {
        "AAAA" => kind == AAAA,
        "CNAME" | "LINK" => true,
        _ => kind == A,
    };
    Some(if answers { records } else { Vec::new() })
}

fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = owner.to_vec();
    // Of the internet, to be kept for no time at all.
    for number in [kind, 1, 0, 0, u16::try_from(data.len()).unwrap_or_default()] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend_from_slice(data);
    bytes
}

fn name_bytes(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| {
        let length = u8::try_from(label.len()).unwrap_or_default();
        std::iter::once(length).chain(label.bytes()).collect::<Vec<u8>>()
    });
    labels.chain([0]).collect()
}

/// The name that is asked for, in lower case, and where it ends.
fn read_name(question: &[u8]) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    let mut at = 12;
    loop {
        let length = usize::from(*question.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join(".").to_lowercase(), at));
        }
        labels.push(String::from_utf8_lossy(question.get(at..at + length)?).into_owned());
        at += length;
    }
}
