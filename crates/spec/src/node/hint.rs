//! The way out of what a parser complains of: its words say what it met, these what was probably meant.

const HINTS: &[(&str, &str)] = &[
    ("tabs disallowed", "indent with spaces"),
    (
        "mapping values are not allowed",
        "text with \": \" in it needs quotes; otherwise look at the indentation",
    ),
    (
        "simple key expected ':'",
        "a key needs \": \" behind it, and text over several lines the same indentation",
    ),
    ("did not find expected key", "this line is indented differently from those it belongs to"),
    ("did not find expected '-'", "a list holds only items that begin with \"- \""),
    ("unexpected character", "text that begins with it needs quotes"),
    ("unknown anchor", "text that begins with * needs quotes; otherwise give &NAME before *NAME"),
    ("invalid trailing content after", "quote all of the text; inside single quotes write '' for '"),
    ("unknown escape character", "use single quotes, or write \\\\ for \\"),
    ("misplaced bracket", "one is closed that was not opened"),
    ("unclosed bracket", "close it; text that begins with it needs quotes"),
    ("invalid indentation in multiline quoted scalar", "a quote is not closed"),
    ("key must be a string", "put the key in double quotes; no comment and no comma before } is allowed"),
    (
        "expected value",
        "values are \"text\", numbers, true, false, null, lists and objects; no comma before ]",
    ),
    ("expected `,` or", "a comma is missing"),
    ("invalid escape", "write \\\\ for \\"),
    ("end of hex escape", "\\u takes four hexadecimal digits, and half of a pair the other half"),
    ("invalid number", "no zero before other digits"),
    ("control character", "write \\n for a line break"),
    ("trailing characters", "several resources go into a list, with commas between them"),
    ("EOF while parsing", "something is not closed"),
];

/// The complaint, with a way out if one is known.
pub(super) fn explained(complaint: &str) -> String {
    match HINTS.iter().find(|(words, _)| complaint.contains(words)) {
        Some((_, hint)) => format!("{complaint} ({hint})"),
        None => complaint.to_owned(),
    }
}
