//! Text that comes in pieces: what may be the beginning of a secret is held back until the rest has come, and hidden if it
//! never does. All pieces together are shown as the whole text would be.

use super::{Redactor, patterns::Rest, shapes::Shapes};

pub struct Flow {
    redactor: Redactor,
    held: String,
    /// What is left when the known values are hidden.
    shapes: Shapes,
}

impl Flow {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: String::new(), shapes: Shapes::default() }
    }

    /// As much as can be shown already.
    pub fn push(&mut self, piece: String) -> String {
        let patterns = self.redactor.patterns();
        if patterns.is_empty() && self.held.is_empty() {
            return self.shapes.push(&piece);
        }
        self.held.push_str(&piece);
        let mut shown = String::new();
        let (upto, _) = patterns.pass(&self.held, &mut shown, Rest::MayCome);
        self.held.drain(..upto);
        self.shapes.push(&shown)
    }

    /// What was held back, once nothing more comes: without what a secret begins with, as the text may have broken off in it.
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        let last = self.shapes.push(&self.redactor.hidden_cut(&held));
        last + &self.shapes.finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(redactor: &Redactor, pieces: &[&str]) -> Vec<String> {
        let mut flow = redactor.flow();
        let mut shown: Vec<String> = pieces.iter().map(|piece| flow.push((*piece).to_owned())).collect();
        shown.push(flow.finish());
        shown
    }

    #[test]
    fn a_secret_in_two_pieces_is_hidden_and_other_text_is_not_late() {
        let redactor = Redactor::default();
        redactor.hide("geheimnis");
        assert_eq!(pieces(&redactor, &["das ge", "heimnis!", " ge"]), ["das ", "[REDACTED]!", " ", "ge"]);
        assert_eq!(pieces(&redactor, &["hello ", "world."]), ["hello ", "world.", ""]);
        assert_eq!(pieces(&redactor, &["geh", "en."]), ["", "gehen.", ""]);
    }

    #[test]
    fn a_secret_that_the_text_breaks_off_in_is_hidden() {
        let redactor = Redactor::default();
        redactor.hide("geheimnis/0123456789");
        assert_eq!(pieces(&redactor, &["das geheim", "nis/012345"]).concat(), "das [REDACTED]");
        assert_eq!(pieces(&redactor, &["das geheim"]).concat(), "das geheim", "as other words begin");
    }

    #[test]
    fn a_key_of_somebody_else_in_pieces_is_hidden_and_what_only_begins_like_one_is_not_late() {
        let redactor = Redactor::default();
        let said = ["it is sk-", "ant-api03-0123", "456789abcdefAB", "_cd, ", "and sk-", "ip sk", "ies"];
        assert_eq!(
            pieces(&redactor, &said),
            ["it is sk-", "ant-", "[REDACTED]", ", ", "and sk-", "ip sk", "ies", ""]
        );
        assert_eq!(pieces(&redactor, &["as ", "a", " sk", "y"]), ["as ", "a", " sk", "y", ""]);
    }

    const PIECES: [&str; 24] = [
        "sk-",
        "sk-ant-",
        "ghp_",
        "AKIA",
        "xoxb-",
        "eyJ",
        ".eyJ",
        "Bear",
        "er ",
        "-----BEGIN ",
        "RSA PRIVATE",
        " KEY-----",
        "-----END RSA PRIVATE KEY-----",
        "IOSFODNN7EXAMPLE",
        "abcdefghijklmnop",
        "0123456789abcdef0123456789abcdef",
        "\n",
        "\\",
        "n",
        " ",
        "ü",
        ".",
        "geheimnis",
        "\"",
    ];

    proptest! {
        #[test]
        fn keys_in_pieces_are_shown_as_in_the_whole(picked in prop::collection::vec((0..PIECES.len(), 1..4_usize), 0..16)) {
            let redactor = Redactor::default();
            redactor.hide("geheimnis");
            let mut whole: String = picked.iter().map(|(nth, _)| PIECES[*nth]).collect();
            let (mut cut, mut rest) = (Vec::new(), whole.as_str());
            for length in picked.iter().map(|(nth, n)| n * (nth + 1)).cycle().take(if rest.is_empty() { 0 } else { 1000 }) {
                let at = rest.floor_char_boundary(length.min(rest.len()));
                cut.push(&rest[..at]);
                rest = &rest[at..];
            }
            cut.push(rest);
            let shown = pieces(&redactor, &cut).concat();
            redactor.clean(&mut whole);
            prop_assert_eq!(shown, whole);
        }

        #[test]
        fn pieces_are_shown_as_the_whole_is(words in prop::collection::vec("(ab|abab|ababac|c|ä|ababac-x){0,3}", 0..12)) {
            let redactor = Redactor::default();
            redactor.hide("ababac");
            redactor.hide("abacabab");
            redactor.hide("ababac-xab");
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let whole = words.concat();
            prop_assert_eq!(pieces(&redactor, &words).concat(), redactor.hidden_cut(&whole).into_owned());
        }
    }
}
