//! Unified diffs of short texts: what is gone, what came, and three lines around them.

use crate::paint::{Paint, Tone};

/// Lines shown around a change.
const AROUND: usize = 3;

/// What the two sides are called.
pub struct Names {
    pub before: String,
    pub after: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Remove,
    Add,
}

/// The lines of the diff; none if the texts are the same.
pub fn lines(before: &str, after: &str, names: &Names, paint: Paint) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let edits = edits(&old, &new);
    let hunks = hunks(&edits);
    if hunks.is_empty() {
        return Vec::new();
    }
    let mut out = vec![
        paint.tone(Tone::Strong, &format!("--- {}", names.before)),
        paint.tone(Tone::Strong, &format!("+++ {}", names.after)),
    ];
    for (from, to) in hunks {
        out.extend(hunk(&edits, from, to, &old, &new, paint));
    }
    out
}

/// One change after the other with what stands around it, as `@@ -1,4 +1,5 @@`.
fn hunk(edits: &[Edit], from: usize, to: usize, old: &[&str], new: &[&str], paint: Paint) -> Vec<String> {
    let passed = |edits: &[Edit], other: Edit| edits.iter().filter(|edit| **edit != other).count();
    let (mut at_old, mut at_new) = (passed(&edits[..from], Edit::Add), passed(&edits[..from], Edit::Remove));
    let (n_old, n_new) = (passed(&edits[from..to], Edit::Add), passed(&edits[from..to], Edit::Remove));
    let start = |at: usize, count: usize| if count == 0 { at } else { at + 1 };
    let head = format!("@@ -{},{n_old} +{},{n_new} @@", start(at_old, n_old), start(at_new, n_new));
    let mut out = vec![paint.tone(Tone::Model, &head)];
    for edit in &edits[from..to] {
        match edit {
            Edit::Keep => {
                out.push(format!(" {}", old[at_old]));
                (at_old, at_new) = (at_old + 1, at_new + 1);
            }
            Edit::Remove => {
                out.push(paint.tone(Tone::Bad, &format!("-{}", old[at_old])));
                at_old += 1;
            }
            Edit::Add => {
                out.push(paint.tone(Tone::Good, &format!("+{}", new[at_new])));
                at_new += 1;
            }
        }
    }
    out
}

/// Ranges of edits that hold changes, with what stands around them; those that meet are one.
fn hunks(edits: &[Edit]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (at, _) in edits.iter().enumerate().filter(|(_, edit)| **edit != Edit::Keep) {
        let (from, to) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(edits.len()));
        match hunks.last_mut() {
            Some(last) if last.1 >= from => last.1 = to,
            _ => hunks.push((from, to)),
        }
    }
    hunks
}

/// The most cells of the table below; beyond it, what is between the first and the last change is all new.
const CELLS: usize = 4_000_000;

fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(new).take_while(same).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut edits = vec![Edit::Keep; head];
    if old.len().saturating_mul(new.len()) > CELLS {
        edits.extend(vec![Edit::Remove; old.len()]);
        edits.extend(vec![Edit::Add; new.len()]);
    } else {
        edits.extend(shortest(old, new));
    }
    edits.extend(vec![Edit::Keep; tail]);
    edits
}

/// The longest common subsequence decides; a table is good enough for manifests.
fn shortest(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for (i, line) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            common[i * width + j] = if line == other {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut edits) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        let edit = if i < old.len() && j < new.len() && old[i] == new[j] {
            Edit::Keep
        } else if i < old.len()
            && (j == new.len() || common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            Edit::Remove
        } else {
            Edit::Add
        };
        i += usize::from(edit != Edit::Add);
        j += usize::from(edit != Edit::Remove);
        edits.push(edit);
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, after: &str) -> Vec<String> {
        let names = Names { before: "a".into(), after: "b".into() };
        lines(before, after, &names, Paint::new(false))
    }

    #[test]
    fn what_is_the_same_has_no_diff() {
        assert_eq!(diff("x\ny\n", "x\ny\n"), Vec::<String>::new());
        assert_eq!(diff("", ""), Vec::<String>::new());
    }

    #[test]
    fn changes_stand_among_three_lines_of_what_stayed() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n";
        let expected = [
            "--- a",
            "+++ b",
            "@@ -2,7 +2,7 @@",
            " 2",
            " 3",
            " 4",
            "-5",
            "+five",
            " 6",
            " 7",
            " 8",
            "@@ -10,3 +10,4 @@",
            " 10",
            " 11",
            " 12",
            "+13",
        ];
        assert_eq!(diff(before, after), expected);
    }

    #[test]
    fn long_texts_have_a_diff_too() {
        let text = |word: &str| (0..5_000).map(|line| format!("{word} {line}\n")).collect::<String>();
        let drawn = diff(&format!("same\n{}same\n", text("old")), &format!("same\n{}same\n", text("new")));
        assert_eq!(drawn.len(), 2 + 1 + 10_000 + 2);
        assert_eq!((drawn[3].as_str(), drawn[4].as_str()), (" same", "-old 0"));
    }

    #[test]
    fn what_is_new_or_gone_is_all_one_colour() {
        assert_eq!(diff("", "x\ny\n"), ["--- a", "+++ b", "@@ -0,0 +1,2 @@", "+x", "+y"]);
        assert_eq!(diff("x\n", ""), ["--- a", "+++ b", "@@ -1,1 +0,0 @@", "-x"]);
    }
}
