//! What can only be a key, and what can be something else, one row each.

use super::*;

const LETTERS: &str = "0a1b2c3d4e5f6g7h8i9jAKBLCMDNEOFPGQHRISJT";

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(hidden(text), expected, "of {text:?}");
}

#[test]
fn what_can_only_be_a_key_is_hidden_wherever_it_stands() {
    for first in ["sk-", "sk-ant-api03-", "sk-proj-", "sk_live_", "ghp_", "github_pat_", "xoxb-", "AIza"] {
        let shown = first.replace("api03-", "");
        for (before, behind) in
            [("", ""), ("it is ", ", I think"), ("\"", "\""), ("KEY=", "\n"), ("/", "?x=1"), ("ü", "ü")]
        {
            let text = format!("{before}{first}{LETTERS}{behind}");
            check(&text, &format!("{before}{shown}{HIDDEN}{behind}"));
        }
    }
    check("AKIAIOSFODNN7EXAMPLE and ASIAIOSFODNN7EXAMPLE", "AKIA[REDACTED] and ASIA[REDACTED]");
    check("Authorization: Bearer 0123456789abcdef01234/+=\n", "Authorization: Bearer [REDACTED]\n");
    check("-H 'authorization: bearer 0123456789abcdef01234'", "-H 'authorization: bearer [REDACTED]'");
    check("jwt=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig_-1;", "jwt=eyJ[REDACTED];");
}

#[test]
fn a_private_key_is_hidden_line_by_line() {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    for kind in ["", "RSA ", "EC ", "OPENSSH "] {
        let (begin, end) =
            (format!("-----BEGIN {kind}PRIVATE KEY-----"), format!("-----END {kind}PRIVATE KEY-----"));
        for broken in ["\n", "\r\n", "\\n", "\\\\r\\\\n", " ", "\n    "] {
            let lines = format!("{broken}{line}{broken}{line}{broken}AQ=={broken}");
            check(&format!("a {begin}{lines}{end} b"), &format!("a {begin}{HIDDEN}{end} b"));
        }
        check(&format!("{{\"k\":\"{begin}\\n{line}\"}}"), &format!("{{\"k\":\"{begin}{HIDDEN}\"}}"));
        check(
            &format!("{{\\\"k\\\":\\\"{begin}\\\\n{line}\\\"}}"),
            &format!("{{\\\"k\\\":\\\"{begin}{HIDDEN}\\\"}}"),
        );
    }
    let block = "-----BEGIN PGP PRIVATE KEY BLOCK-----";
    check(&format!("{block}\n\n{line}\n=abcd\n-----END"), &format!("{block}[REDACTED]-----END"));
}

#[test]
fn what_can_be_something_else_stays() {
    for text in [
        "Authorization: Bearer $TOKEN",
        "headers = {\"Authorization\": \"Bearer \" + token}",
        "Bearer YOUR_ACCESS_TOKEN_GOES_HERE",
        "the bearer of this letter of 1996",
        "<div class=\"sk-cube-grid-animation-large-2x sk-circle12\">",
        "risk-0123456789abcdef0123456789",
        "sk-0123456789",
        "sk-ant-...",
        "ask for an sk-... key",
        "AKIAX and AKIAIOSFODNN7EXAMPLEISLONGER",
        "if pem.startswith(\"-----BEGIN RSA PRIVATE KEY-----\"):",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "a -----BEGIN PRIVATE KEY----- line is what such a file begins with, and then comes base64",
        "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n",
        "-----BEGIN PUBLIC KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n",
        "eyJhbGciOiJIUzI1NiJ9 is the beginning of one",
        "eyJrZXkiOiJ2YWx1ZSJ9.e30.abc",
        "ghp_short1",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ] {
        assert!(matches!(hidden(text), Cow::Borrowed(_)), "{text:?} is shown as {:?}", hidden(text));
    }
}

#[test]
fn what_is_held_back_is_little() {
    let mut shapes = Shapes::default();
    for piece in ["eyJ", "sk-", "Bearer "] {
        assert_eq!(shapes.push(piece), piece, "its first letters are no secret");
        let letters = "a".repeat(LONGEST_PART + 1);
        assert_eq!(
            shapes.push(&letters),
            letters,
            "{piece}: so long a word without a digit or a dot is none"
        );
        assert_eq!(shapes.push(" "), " ");
    }
    assert_eq!(shapes.push("sk-"), "sk-");
    let shown: String = (0..1000).map(|_| shapes.push("a1b2")).collect();
    assert_eq!(shown, HIDDEN, "however long it is, nothing of it is kept");
    assert!(shapes.held.is_empty() && shapes.before.len() <= BEFORE);
}
