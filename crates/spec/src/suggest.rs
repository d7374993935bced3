//! "Did you mean": the nearest of a set of valid names.

/// Longer words are not compared: nobody mistypes a name of that length, and hostile input might.
const MAX_LENGTH: usize = 64;

/// The candidate with the fewest edits, if that is few for the length of the word.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_LENGTH {
        return None;
    }
    let word = folded(word);
    let allowed = (word.len() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (edits(&word, &folded(candidate)), candidate))
        .filter(|(edits, candidate)| *edits <= allowed && *edits < candidate.len())
        .min_by_key(|(edits, candidate)| (*edits, candidate.len().abs_diff(word.len())))
        .map(|(_, candidate)| candidate)
}

/// Case and separators do not count as a difference.
fn folded(word: &str) -> Vec<char> {
    word.chars()
        .filter(|character| !matches!(character, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

/// A word that only goes on where the other stops counts as one edit: `secret` is near `secretRef`.
fn edits(word: &[char], candidate: &[char]) -> usize {
    let shorter = word.len().min(candidate.len());
    if shorter >= 4 && word[..shorter] == candidate[..shorter] {
        return usize::from(word.len() != candidate.len());
    }
    distance(word, candidate)
}

/// Edits between two words: insert, delete, replace, swap two neighbours.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before_last = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut current = vec![row + 1; right.len() + 1];
        for (column, other) in right.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            let mut edits = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && *letter == right[column - 1] && left[row - 1] == *other;
            if swapped {
                edits = edits.min(before_last[column - 1] + 1);
            }
            current[column + 1] = edits;
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_near_and_leaves_the_far() {
        let names = ["limits", "tools", "prompt", "model_ref"];
        assert_eq!(nearest("limts", names), Some("limits"));
        assert_eq!(nearest("tolos", names), Some("tools"));
        assert_eq!(nearest("ModelRef", names), Some("model_ref"));
        assert_eq!(nearest("model_reference", names), Some("model_ref"));
        assert_eq!(nearest("temperature", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest(&"x".repeat(10_000), names), None);
    }
}
