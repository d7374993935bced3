//! "Did you mean": the nearest of a set of names.

/// As near as clap wants a flag to be before it suggests it.
const NEAR: f64 = 0.7;

pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&word, &candidate.to_lowercase()), candidate))
        .filter(|(nearness, candidate)| *nearness > NEAR && is_slip(&word, &candidate.to_lowercase()))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

/// Of a short word every second letter may be another one and it still counts as near: of those there may be only so many
/// as slip from a hand. One that was not written to its end is meant.
fn is_slip(word: &str, candidate: &str) -> bool {
    let most = match word.chars().count() {
        0..5 => 1,
        5..8 => 2,
        _ => return true,
    };
    candidate.starts_with(word) || strsim::osa_distance(word, candidate) <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_near_and_leaves_the_far() {
        let names = ["agents", "model-endpoints", "tools", "tasks"];
        assert_eq!(nearest("agnet", names), Some("agents"));
        assert_eq!(nearest("Tolls", names), Some("tools"));
        assert_eq!(nearest("xyzzy", names), None);
        assert_eq!(nearest("nope", ["top", "help"]), None);
        assert_eq!(nearest("tops", ["top", "help"]), Some("top"));
        assert_eq!(nearest("helo", ["hello"]), Some("hello"));
        assert_eq!(nearest("mod", names), Some("model-endpoints"));
    }
}
