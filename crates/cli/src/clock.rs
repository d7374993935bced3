//! Lengths of time and points in it, in words for people.

use std::time::Duration;

/// How long ago, roughly: `5s`, `12m`, `3h`, `9d`.
pub fn age(from_ms: i64, now_ms: i64) -> String {
    let seconds = now_ms.saturating_sub(from_ms).max(0) / 1000;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How long something took: `12ms`, `1.24s`, `12.4s`, `2m05s`, `3h07m`.
pub fn took(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..10_000 => format!("{}.{:02}s", ms / 1000, ms % 1000 / 10),
        10_000..60_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{}h{:02}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// How long something has taken so far: no more digits than an eye can follow.
pub fn elapsed(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds}.{}s", duration.subsec_millis() / 100),
        _ => took(duration),
    }
}

/// As [`took`], of milliseconds that may be negative because a calendar was set back.
pub fn took_ms(ms: i64) -> String {
    took(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
}

/// Milliseconds since 1970 of an RFC 3339 time.
pub fn parse(rfc3339: &str) -> Option<i64> {
    rfc3339.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// RFC 3339, with milliseconds.
pub fn print(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| format!("{ms}ms"), |time| format!("{time:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_lengths_read_at_a_glance() {
        let ages = [
            (0, "0s"),
            (119_999, "119s"),
            (120_000, "2m"),
            (7_200_000, "2h"),
            (172_800_000, "2d"),
            (-5, "0s"),
        ];
        for (ms, words) in ages {
            assert_eq!(age(0, ms), words);
        }
        let lengths = [
            (0, "0ms"),
            (999, "999ms"),
            (1_239, "1.23s"),
            (12_450, "12.4s"),
            (125_000, "2m05s"),
            (11_220_000, "3h07m"),
            (-3, "0ms"),
        ];
        for (ms, words) in lengths {
            assert_eq!(took_ms(ms), words);
        }
    }

    #[test]
    fn times_are_read_back_as_printed() {
        assert_eq!(parse(&print(1_700_000_000_042)), Some(1_700_000_000_042));
        assert_eq!(parse("2023-11-14T22:13:20Z"), Some(1_700_000_000_000));
        assert_eq!(parse("yesterday"), None);
    }
}
