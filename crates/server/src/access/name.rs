//! What tokens and users may be called.

const MOST: usize = 128;

/// Letters, digits, and what mail addresses and the names of machines have between them.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@+".contains(&byte);
    if name.is_empty() || name.len() > MOST {
        return Err(format!("expected 1 to {MOST} letters, found {}", name.len()));
    }
    if !name.bytes().all(is_plain) || !name.as_bytes()[0].is_ascii_alphanumeric() {
        return Err("expected letters, digits, and - _ . @ + behind the first of them".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["a", "ci-build.1", "ada@example.org", "0"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "-a", ".", "a/b", "a b", "ä", "a\0", &"x".repeat(129)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
