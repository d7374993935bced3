//! What is hidden, and what is not, one row each.

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(redact(text), expected, "of {text:?}");
    assert_eq!(redact(expected), expected, "a second time");
}

#[test]
fn keys_are_hidden_wherever_they_stand() {
    check("Incorrect API key provided: sk-proj-abc****wxyz.", "Incorrect API key provided: [REDACTED]");
    check("authorization=abcdef", "authorization=[REDACTED]");
    check("X-Api-Key: 12345 was wrong", "X-Api-Key: [REDACTED] was wrong");
    check(r#"{"api_key": "12345", "n": 1}"#, r#"{"api_key": "[REDACTED]", "n": 1}"#);
    check("?api_key=a&access_token=b&x=c", "?api_key=[REDACTED]&access_token=[REDACTED]&x=c");
    check("client_secret='hush' password: p4ss", "client_secret='[REDACTED]' password: [REDACTED]");
    check("jwt eyJhbGciOiJIUzI1NiJ9.e30.abc", "jwt [REDACTED]");
}

#[test]
fn credentials_are_hidden_to_the_end_of_their_line() {
    for (credentials, shown) in [
        ("Bearer abc.def-1", "Bearer [REDACTED]"),
        ("bearer abc def", "bearer [REDACTED]"),
        ("Token abc123", "Token [REDACTED]"),
        ("ApiKey abc:123", "ApiKey [REDACTED]"),
        ("Basic dXNlcjpwYXNz==", "Basic [REDACTED]"),
        ("Frobnicate abc 123", "[REDACTED]"),
        ("abc123", "[REDACTED]"),
        (
            "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu/s3/aws4_request, SignedHeaders=host;date, Signature=f00",
            "AWS4-HMAC-SHA256 [REDACTED]",
        ),
        (r#"Digest username="me", uri="/a,b", response="6629""#, "Digest [REDACTED]"),
    ] {
        for label in ["Authorization", "authorization", "Proxy-Authorization"] {
            check(&format!("{label}: {credentials}"), &format!("{label}: {shown}"));
            check(
                &format!("> {label}: {credentials}\r\n> Host: here\n"),
                &format!("> {label}: {shown}\r\n> Host: here\n"),
            );
        }
    }
    check("Set-Cookie: sid=abc; Path=/\nServer: x", "Set-Cookie: [REDACTED]\nServer: x");
}

#[test]
fn credentials_in_quotes_end_with_them() {
    check(
        r#"curl -H "Authorization: Token abc123" http://x/"#,
        r#"curl -H "Authorization: Token [REDACTED]" http://x/"#,
    );
    check(
        "{'Authorization': 'Token abc 123', 'Host': 'x'}",
        "{'Authorization': 'Token [REDACTED]', 'Host': 'x'}",
    );
    check(
        r#"{"headers":["Authorization: Digest username=\"me\", response=\"6629\"","Host: x"]}"#,
        r#"{"headers":["Authorization: Digest [REDACTED]","Host: x"]}"#,
    );
    check(
        r#"{"sent":"GET / HTTP/1.1\r\nAuthorization: ApiKey a:b\r\nHost: x"}"#,
        r#"{"sent":"GET / HTTP/1.1\r\nAuthorization: ApiKey [REDACTED]\r\nHost: x"}"#,
    );
    check(r#"{"authorization":["Bearer abc"],"n":1}"#, r#"{"authorization":["Bearer [REDACTED]"],"n":1}"#);
    check("map[Authorization:[Token abc123] Host:[x]]", "map[Authorization:[Token [REDACTED]] Host:[x]]");
}

#[test]
fn of_pairs_in_a_line_only_the_one_is_hidden() {
    check(
        "WARN authorization=Bearer abc url=http://x/",
        "WARN authorization=Bearer [REDACTED] url=http://x/",
    );
    check("WARN authorization=abc url=http://x/", "WARN authorization=[REDACTED] url=http://x/");
    check("?authorization=abc&x=1", "?authorization=[REDACTED]&x=1");
    check("authorization=Digest a=1, b=2 c=3", "authorization=Digest [REDACTED] c=3");
}

#[test]
fn a_value_is_hidden_whatever_signs_it_has() {
    check("password=p@ss!word99", "password=[REDACTED]");
    check("token=abc%2Fdef", "token=[REDACTED]");
    check("http://x/?token=abc%2Fdef&n=1 failed", "http://x/?token=[REDACTED]&n=1 failed");
    check("X-Api-Key: a:b:c", "X-Api-Key: [REDACTED]");
    check("X-Api-Key: a:b:c\nHost: x", "X-Api-Key: [REDACTED]\nHost: x");
    check("secret = \tgr$ß#{}? is wrong", "secret = \t[REDACTED] is wrong");
    check("Bearer abc%2Fdef was refused", "Bearer [REDACTED] was refused");
    check("(password: p@ss), and so on", "(password: [REDACTED]), and so on");
    check("AWS_SECRET_ACCESS_KEY=wJal/x+y=", "AWS_SECRET_ACCESS_KEY=[REDACTED]");
    check("params[password]=p@ss&n=1", "params[password]=[REDACTED]&n=1");
    check("invalid bearer token: abc!123", "invalid bearer token: [REDACTED]");
}

#[test]
fn a_value_in_quotes_is_hidden_whole() {
    check(r#"{"password": "x y", "n": 1}"#, r#"{"password": "[REDACTED]", "n": 1}"#);
    check(r#"{"password":"a\"b, c","n":1}"#, r#"{"password":"[REDACTED]","n":1}"#);
    check(r#"{"password":"a\\","n":1}"#, r#"{"password":"[REDACTED]","n":1}"#);
    check(
        r#""{\"password\": \"x \\\"y\\\" z\", \"n\": 1}""#,
        r#""{\"password\": \"[REDACTED]\", \"n\": 1}""#,
    );
    check("{\"password\":\n  \"x y\",\n \"n\": 1}", "{\"password\":\n  \"[REDACTED]\",\n \"n\": 1}");
    check("{'token': b'x y', 'n': 1}", "{'token': b'[REDACTED]', 'n': 1}");
    check(r#"Auth { token: Some("x y"), n: 1 }"#, r#"Auth { token: Some("[REDACTED]"), n: 1 }"#);
    check(r#"{"token":"never closed, and"#, r#"{"token":"[REDACTED]"#);
    check("{\"token\":\"never closed\nnext", "{\"token\":\"[REDACTED]\nnext");
    check(r#"{"token":12345}"#, r#"{"token":[REDACTED]}"#);
}

#[test]
fn ordinary_words_stay() {
    for text in [
        "the token limit is 4096 tokens: 5000 given",
        "no password given",
        "ask sk-1 for it",
        "ü: ö",
        "unexpected token: '}' at line 3",
        "missing field `password` at line 1",
        r#"{"password": "", "token": {"n": 1}, "secret": [], "n": 1}"#,
        "the secret::value of it",
        "Basic authentication is required",
        "WWW-Authenticate: Bearer realm=\"x\"",
        "the password:\nplease give it",
        "token=",
        "password: \"",
        "\\\"password\\",
        "authorization:",
        "authorization: \"",
    ] {
        check(text, text);
    }
}

#[test]
fn an_excerpt_is_one_short_line() {
    assert_eq!(excerpt("  a\n\tb \r\n", 300), "a b");
    assert_eq!(excerpt("äöü", 2), "äö…");
    let long = format!("{} sk-0123456789abcdef", "x".repeat(295));
    assert!(!excerpt(&long, 300).contains("sk-0"));
    assert_eq!(
        excerpt("Authorization: Token a b\nno such user", 300),
        "Authorization: Token [REDACTED] no such user"
    );
}

/// Whatever stands around it, and however it is cut: no text is too odd to be read, and the secret is found.
#[test]
fn a_secret_is_found_in_any_text() {
    let words = [
        "Authorization",
        "password",
        "token",
        "Bearer",
        "cookie",
        "ü",
        "\\",
        ":",
        "=",
        "\"",
        "'",
        "`",
        "&",
        ",",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        " ",
        "\n",
        "=>",
        "x",
        "abc1",
        "Some",
        "Digest a=",
        "[REDACTED]",
        "\\n",
        "::",
    ];
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for _ in 0..20_000 {
        let mut around = || (0..next(12)).map(|_| words[next(words.len())]).collect::<String>();
        let (before, behind) = (around(), around());
        let text = format!("{before}\npassword=\"planted-1 two\"{behind}");
        let shown = redact(&text);
        assert!(!shown.contains("planted") && !shown.contains("two"), "{text:?} is shown as {shown:?}");
    }
}
