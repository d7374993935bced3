//! Answers as servers write them, and as strangers might.

use super::*;

fn question() -> Question {
    Question::new(7, "Www.Example.com.", Family::V4).unwrap()
}

/// An answer to `question` with these flags and records behind it.
fn answer(question: &Question, flags: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = question.to_bytes();
    bytes.truncate(bytes.len() - 11);
    bytes[2..4].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&(records.len() as u16).to_be_bytes());
    bytes[10..12].copy_from_slice(&[0, 0]);
    bytes.extend(records.concat());
    bytes
}

/// `owner` as bytes of the wire; 0xc00c refers to the question's name.
fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let numbers = [kind, 1, 0, 0, data.len() as u16];
    let mut bytes = owner.to_vec();
    bytes.extend(numbers.into_iter().flat_map(u16::to_be_bytes));
    bytes.extend_from_slice(data);
    bytes
}

const SAME: &[u8] = &[0xc0, 0x0c];
const OTHER: &[u8] = b"\x05other\x03net\x00";

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn addresses_and_aliases_are_read() {
    let question = question();
    let direct = answer(&question, 0x8180, &[record(SAME, 1, &[1, 2, 3, 4]), record(SAME, 1, &[5, 6, 7, 8])]);
    let found = Reply::Found { addresses: addresses(&["1.2.3.4", "5.6.7.8"]), alias: None };
    assert_eq!(question.read(&direct), Ok(found));
    let through = [record(OTHER, 1, &[9, 9, 9, 9]), record(SAME, 5, OTHER)];
    let found = Reply::Found { addresses: addresses(&["9.9.9.9"]), alias: None };
    assert_eq!(question.read(&answer(&question, 0x8180, &through)), Ok(found));
    let alone = answer(&question, 0x8180, &[record(SAME, 5, OTHER)]);
    let found = Reply::Found { addresses: vec![], alias: Some("other.net".to_owned()) };
    assert_eq!(question.read(&alone), Ok(found));
}

#[test]
fn addresses_of_others_do_not_count() {
    let question = question();
    let records = [record(OTHER, 1, &[1, 2, 3, 4]), record(SAME, 28, &[0; 16]), record(SAME, 16, b"\x01x")];
    let found = Reply::Found { addresses: vec![], alias: None };
    assert_eq!(question.read(&answer(&question, 0x8180, &records)), Ok(found));
}

#[test]
fn what_a_server_says_instead_is_told_apart() {
    let question = question();
    let read = |flags| question.read(&answer(&question, flags, &[]));
    assert_eq!(read(0x8183), Ok(Reply::NoSuchName));
    assert_eq!(read(0x8380), Ok(Reply::Truncated));
    assert_eq!(read(0x8182), Ok(Reply::Refused(2)));
}

#[test]
fn an_answer_to_something_else_is_none() {
    let question = question();
    let good = answer(&question, 0x8180, &[record(SAME, 1, &[1, 2, 3, 4])]);
    let others = [
        Question::new(8, "www.example.com", Family::V4),
        Question::new(7, "example.com", Family::V4),
        Question::new(7, "www.example.com", Family::V6),
    ];
    for other in others {
        assert_eq!(other.unwrap().read(&good), Err(Unreadable));
    }
    assert_eq!(question.read(&answer(&question, 0x0100, &[])), Err(Unreadable), "a question");
}

#[test]
fn circles_come_to_an_end() {
    let question = question();
    let to_itself = answer(&question, 0x8180, &[record(SAME, 5, SAME)]);
    assert_eq!(question.read(&to_itself), Err(Unreadable));
    let at = answer(&question, 0x8180, &[]).len() as u16;
    let reference = (0xc000 | at).to_be_bytes();
    let looping = answer(&question, 0x8180, &[record(&reference, 1, &[1, 2, 3, 4])]);
    assert_eq!(question.read(&looping), Err(Unreadable));
}

#[test]
fn nothing_that_comes_in_does_harm() {
    let question = question();
    let good = answer(
        &question,
        0x8180,
        &[record(SAME, 5, OTHER), record(OTHER, 1, &[1, 2, 3, 4]), record(OTHER, 28, &[1; 16])],
    );
    for length in 0..good.len() {
        assert!(question.read(&good[..length]).is_err(), "cut at {length}");
    }
    for place in 0..good.len() {
        for byte in 0..=255 {
            let mut bent = good.clone();
            bent[place] = byte;
            // It may be readable or not; it must not do more than that.
            let _ = question.read(&bent);
        }
    }
}

#[test]
fn only_names_can_be_asked_for() {
    let long = format!("{}.com", "x".repeat(64));
    let longer = ["x"; 128].join(".");
    for name in ["", ".", "a..b", "a b", "ü.example", long.as_str(), longer.as_str(), "a\n"] {
        assert!(Question::new(1, name, Family::V4).is_none(), "{name}");
    }
    assert!(Question::new(1, "_dmarc.xn--tda.example", Family::V6).is_some());
}
