//! What a disk may hold after a power cut. Everything up to a file's last completed sync is there. Each write
//! behind it was carried out, dropped, or torn by sectors, independently of the others and of their order; files
//! were made and deleted for good only once their folder was synced.
//!
//! Fair to what SQLite assumes of a disk: a write disturbs nothing beside itself.

use std::collections::BTreeMap;

use ostler_store::conformance::dice::Dice;

use super::disk::{FileNumber, Op};

const SECTOR: usize = 512;

/// The disk at a moment of a recording: what is safe, and what is under way.
pub struct Platter<'r> {
    files: BTreeMap<FileNumber, File<'r>>,
    names: BTreeMap<String, FileNumber>,
    /// Creates and deletes since the folder was synced.
    renamings: Vec<&'r Op>,
    /// Decides what a failed sync threw away.
    dice: Dice,
}

#[derive(Default)]
struct File<'r> {
    safe: Vec<u8>,
    under_way: Vec<&'r Op>,
}

/// How much of what was under way arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Nothing,
    Everything,
    /// Each with even chance, and half of those torn.
    Some,
    /// All but one in eight.
    Most,
}

impl<'r> Platter<'r> {
    pub fn new(seed: u64) -> Self {
        Self { files: BTreeMap::new(), names: BTreeMap::new(), renamings: Vec::new(), dice: Dice::new(seed) }
    }

    /// Goes on by one operation.
    pub fn advance(&mut self, op: &'r Op) {
        match op {
            Op::Create { .. } | Op::Delete { .. } => self.renamings.push(op),
            Op::SyncFolder => {
                for op in std::mem::take(&mut self.renamings) {
                    rename(&mut self.names, op);
                }
            }
            Op::Write { file, .. } | Op::Truncate { file, .. } => {
                self.files.entry(*file).or_default().under_way.push(op);
            }
            Op::Sync { file } => {
                let File { safe, under_way } = self.files.entry(*file).or_default();
                for op in under_way.drain(..) {
                    carry_out(safe, op);
                }
            }
            // A system may forget what it could not sync, and then report the next sync as a success.
            Op::FailedSync { file } => {
                let dice = &mut self.dice;
                self.files.entry(*file).or_default().under_way.retain(|_| dice.one_in(2));
            }
        }
    }

    /// The files as they may be found when the power goes now.
    pub fn cut(&self, dice: &mut Dice) -> BTreeMap<String, Vec<u8>> {
        let mood = match dice.below(6) {
            0 => Mood::Nothing,
            1 => Mood::Everything,
            2 | 3 => Mood::Some,
            _ => Mood::Most,
        };
        let mut names = self.names.clone();
        for op in &self.renamings {
            if mood.keeps(dice) {
                rename(&mut names, op);
            }
        }
        let found = names.into_iter().map(|(name, file)| (name, self.content(file, mood, dice)));
        found.collect()
    }

    fn content(&self, file: FileNumber, mood: Mood, dice: &mut Dice) -> Vec<u8> {
        let Some(file) = self.files.get(&file) else { return Vec::new() };
        let mut content = file.safe.clone();
        for op in &file.under_way {
            if mood.keeps(dice) {
                match op {
                    Op::Write { offset, bytes, .. } if mood.tears(dice) => {
                        tear(&mut content, *offset, bytes, dice);
                    }
                    _ => carry_out(&mut content, op),
                }
            }
        }
        content
    }
}

impl Mood {
    fn keeps(self, dice: &mut Dice) -> bool {
        match self {
            Mood::Nothing => false,
            Mood::Everything => true,
            Mood::Some => dice.one_in(2),
            Mood::Most => !dice.one_in(8),
        }
    }

    fn tears(self, dice: &mut Dice) -> bool {
        match self {
            Mood::Nothing | Mood::Everything => false,
            Mood::Some => dice.one_in(2),
            Mood::Most => dice.one_in(8),
        }
    }
}

fn rename(names: &mut BTreeMap<String, FileNumber>, op: &Op) {
    match op {
        Op::Create { name, file } => drop(names.insert(name.clone(), *file)),
        Op::Delete { name } => drop(names.remove(name)),
        Op::SyncFolder | Op::Write { .. } | Op::Truncate { .. } | Op::Sync { .. } | Op::FailedSync { .. } => {
        }
    }
}

fn carry_out(content: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Write { offset, bytes, .. } => put(content, *offset as usize, bytes),
        Op::Truncate { size, .. } => content.resize(*size as usize, 0),
        Op::Create { .. } | Op::Delete { .. } | Op::SyncFolder | Op::Sync { .. } | Op::FailedSync { .. } => {}
    }
}

/// Some of the write's sectors arrive, in any order; or it ends at some byte; or only the file grows.
fn tear(content: &mut Vec<u8>, offset: u64, bytes: &[u8], dice: &mut Dice) {
    let offset = offset as usize;
    if dice.one_in(3) {
        let end = dice.below(bytes.len() as u64 + 1) as usize;
        return put(content, offset, &bytes[..end]);
    }
    let mut at = 0;
    while at < bytes.len() {
        let to_boundary = SECTOR - (offset + at) % SECTOR;
        let end = bytes.len().min(at + to_boundary);
        if dice.one_in(2) {
            put(content, offset + at, &bytes[at..end]);
        }
        at = end;
    }
}

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create() -> Op {
        Op::Create { name: "db".to_owned(), file: 1 }
    }

    fn write(offset: u64, bytes: &[u8]) -> Op {
        Op::Write { file: 1, offset, bytes: bytes.to_vec() }
    }

    /// Every picture that a few hundred cuts at the end of these operations give.
    fn pictures(ops: &[Op]) -> Vec<BTreeMap<String, Vec<u8>>> {
        let mut platter = Platter::new(0);
        ops.iter().for_each(|op| platter.advance(op));
        let mut all: Vec<_> = (0..500).map(|seed| platter.cut(&mut Dice::new(seed))).collect();
        all.sort();
        all.dedup();
        all
    }

    fn of(content: &[u8]) -> BTreeMap<String, Vec<u8>> {
        BTreeMap::from([("db".to_owned(), content.to_vec())])
    }

    #[test]
    fn what_was_synced_is_there() {
        let ops = [create(), write(0, b"ab"), Op::Sync { file: 1 }, Op::SyncFolder];
        assert_eq!(pictures(&ops), [of(b"ab")]);
    }

    #[test]
    fn a_file_may_be_missing_until_its_folder_was_synced() {
        let ops = [create(), write(0, b"ab"), Op::Sync { file: 1 }];
        assert_eq!(pictures(&ops), [BTreeMap::new(), of(b"ab")]);
    }

    #[test]
    fn writes_arrive_in_any_order_or_not_at_all() {
        let ops = [create(), Op::SyncFolder, write(0, b"a"), write(1, b"b")];
        let found = pictures(&ops);
        for expected in [b"".as_slice(), b"a", b"\0b", b"ab"] {
            assert!(found.contains(&of(expected)), "{expected:?}");
        }
        let none_is_foreign =
            |file: &Vec<u8>| file.iter().zip(b"ab").all(|(byte, sent)| [0, *sent].contains(byte));
        assert!(found.iter().flat_map(BTreeMap::values).all(none_is_foreign), "{found:?}");
    }

    #[test]
    fn a_write_may_be_torn_by_sectors() {
        let ops = [create(), Op::SyncFolder, write(0, &[7; 2 * SECTOR])];
        let second_only = [[0; SECTOR], [7; SECTOR]].concat();
        assert!(pictures(&ops).contains(&of(&second_only)));
    }

    #[test]
    fn a_sync_after_a_failed_one_does_not_bring_all_back() {
        let writes: Vec<Op> = (0..16).map(|place| write(place, b"x")).collect();
        let mut ops = vec![create(), Op::SyncFolder];
        ops.extend(writes);
        ops.extend([Op::FailedSync { file: 1 }, Op::Sync { file: 1 }]);
        let found = pictures(&ops);
        assert_eq!(found.len(), 1);
        assert!(found[0]["db"].contains(&0), "some of it was given up");
    }
}
