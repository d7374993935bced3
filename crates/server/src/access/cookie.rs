//! The cookie that stands for a user who has signed in.

use http::{HeaderMap, HeaderValue, header};

/// As this server writes and reads it.
pub struct Cookies {
    name: &'static str,
    attributes: &'static str,
}

impl Cookies {
    /// Over TLS the name has a prefix by which browsers hold others off: only this host can set it, and only over TLS.
    pub fn new(is_tls: bool) -> Self {
        if is_tls {
            let attributes = "; Path=/; HttpOnly; SameSite=Lax; Secure";
            Self { name: "__Host-ostler_session", attributes }
        } else {
            Self { name: "ostler_session", attributes: "; Path=/; HttpOnly; SameSite=Lax" }
        }
    }

    /// What the request's cookie holds. Two of that name are nobody's.
    pub fn read<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
        let mut ours = pairs.filter(|(name, _)| name.trim() == self.name);
        let (first, second) = (ours.next(), ours.next());
        first.filter(|_| second.is_none()).map(|(_, value)| value.trim())
    }

    /// Until the browser is closed; how long it counts is the server's to say.
    pub fn set(&self, secret: &str) -> HeaderValue {
        self.write(&format!("{}={secret}{}", self.name, self.attributes))
    }

    pub fn clear(&self) -> HeaderValue {
        self.write(&format!("{}=; Max-Age=0{}", self.name, self.attributes))
    }

    /// Letters and digits alone go into it, and those a header can hold.
    fn write(&self, text: &str) -> HeaderValue {
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(is_tls: bool, cookie: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, cookie.parse().unwrap());
        Cookies::new(is_tls).read(&headers).map(str::to_owned)
    }

    #[test]
    fn only_our_own_cookie_is_read() {
        assert_eq!(read(false, "a=b; ostler_session=xyz; c=d").as_deref(), Some("xyz"));
        assert_eq!(read(true, "__Host-ostler_session=xyz").as_deref(), Some("xyz"));
        assert_eq!(read(true, "ostler_session=xyz"), None, "anybody on the way could have set it");
        for cookie in ["", "ostler_session", "ostler_session2=x", "ostler_session=a; ostler_session=b"] {
            assert_eq!(read(false, cookie), None, "{cookie}");
        }
    }

    #[test]
    fn scripts_other_sites_and_plain_connections_do_not_get_it() {
        let plain = Cookies::new(false).set("xyz");
        assert_eq!(plain, "ostler_session=xyz; Path=/; HttpOnly; SameSite=Lax");
        let over_tls = Cookies::new(true).set("xyz");
        assert_eq!(over_tls, "__Host-ostler_session=xyz; Path=/; HttpOnly; SameSite=Lax; Secure");
        assert!(Cookies::new(true).clear().to_str().unwrap().contains("Max-Age=0"));
    }
}
