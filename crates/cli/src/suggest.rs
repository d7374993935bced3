//! "Did you mean": the nearest of a set of names.

/// As near as clap wants a flag to be before it suggests it.
const NEAR: f64 = 0.7;

pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&word, &candidate.to_lowercase()), candidate))
        .filter(|(nearness, _)| *nearness > NEAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
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
    }
}
