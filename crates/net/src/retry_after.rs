//! How long another side asks us to stay away: `retry-after-ms`, or `retry-after` in seconds or as a date.

use std::time::Duration;

use http::HeaderMap;
use jiff::fmt::rfc2822::DateTimeParser;
use ostler_kernel::Timestamp;

pub(crate) fn read(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let text = text("retry-after")?;
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => until(text, now),
    }
}

fn until(date: &str, now: Timestamp) -> Option<Duration> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    let date = PARSER.parse_timestamp(date).ok()?;
    Some(Timestamp::from_millis(date.as_millisecond()).since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &'static str)], expected: Option<Duration>) {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        // 2026-03-04 05:06:07 UTC.
        let now = Timestamp::from_millis(1_772_600_767_000);
        assert_eq!(read(&headers.collect(), now), expected);
    }

    #[test]
    fn seconds_milliseconds_and_dates_are_read() {
        check(&[("retry-after", "7")], Some(Duration::from_secs(7)));
        check(&[("retry-after", " 0.5 ")], Some(Duration::from_millis(500)));
        check(&[("retry-after-ms", "1250"), ("retry-after", "9")], Some(Duration::from_millis(1250)));
        check(&[("retry-after", "Wed, 04 Mar 2026 05:06:37 GMT")], Some(Duration::from_secs(30)));
        check(&[("retry-after", "Wed, 04 Mar 2026 05:06:00 GMT")], Some(Duration::ZERO));
    }

    #[test]
    fn nonsense_is_no_wish() {
        check(&[], None);
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "-1")], None);
        check(&[("retry-after", "NaN")], None);
        check(&[("retry-after", "1e300")], None);
    }
}
