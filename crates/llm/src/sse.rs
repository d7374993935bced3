//! Server-sent events, read as the bytes come: every kind of line end, comments, data over several lines,
//! pieces cut anywhere. Names and ids of events are of no use to the vendors we know and are passed over.

use memchr::{memchr, memchr2};

pub(crate) struct SseReader {
    buffer: Vec<u8>,
    /// What of `buffer` has been read.
    read: usize,
    /// How far behind `read` it is known that there is no line end.
    searched: usize,
    /// The last line ended with a carriage return, so a line feed right behind it belongs to it.
    skip_line_feed: bool,
    at_start: bool,
    /// The data of the event at hand, lines joined.
    data: Vec<u8>,
    has_data: bool,
    /// `data` was given out and belongs to no further event.
    given: bool,
    max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {max} bytes")]
pub(crate) struct TooLong {
    max: usize,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl SseReader {
    /// Neither a line nor the data of an event may be longer than `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            buffer: Vec::new(),
            read: 0,
            searched: 0,
            skip_line_feed: false,
            at_start: true,
            data: Vec::new(),
            has_data: false,
            given: false,
            max,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.read);
        self.read = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The data of the next event that is there as a whole. An event that the stream breaks off in is none.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, TooLong> {
        if self.given {
            self.data.clear();
            self.has_data = false;
            self.given = false;
        }
        while let Some((start, end)) = self.next_line()? {
            if start == end {
                if self.has_data {
                    self.given = true;
                    return Ok(Some(&self.data));
                }
                continue;
            }
            self.take_line(start, end)?;
        }
        Ok(None)
    }

    /// Where the next whole line stands in the buffer.
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, TooLong> {
        self.skip_what_is_no_line();
        let rest = self.buffer.get(self.read..).unwrap_or_default();
        let unsearched = rest.get(self.searched..).unwrap_or_default();
        let Some(found) = memchr2(b'\n', b'\r', unsearched) else {
            self.searched = rest.len();
            return match rest.len() > self.max {
                true => Err(TooLong { max: self.max }),
                false => Ok(None),
            };
        };
        let start = self.read;
        let end = start + self.searched + found;
        self.skip_line_feed = self.buffer.get(end) == Some(&b'\r');
        self.read = end + 1;
        self.searched = 0;
        self.at_start = false;
        Ok(Some((start, end)))
    }

    fn skip_what_is_no_line(&mut self) {
        let rest = self.buffer.get(self.read..).unwrap_or_default();
        if self.skip_line_feed && !rest.is_empty() {
            self.skip_line_feed = false;
            if rest.starts_with(b"\n") {
                self.read += 1;
            }
        }
        if self.at_start && rest.starts_with(BYTE_ORDER_MARK) {
            self.at_start = false;
            self.read += BYTE_ORDER_MARK.len();
            self.searched = 0;
        }
    }

    fn take_line(&mut self, start: usize, end: usize) -> Result<(), TooLong> {
        let line = self.buffer.get(start..end).unwrap_or_default();
        let (name, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        if name != b"data" {
            return Ok(());
        }
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if self.data.len() + value.len() > self.max {
            return Err(TooLong { max: self.max });
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = SseReader::new(1000);
        let mut events = Vec::new();
        for piece in pieces {
            reader.push(piece);
            while let Some(data) = reader.next().unwrap() {
                events.push(String::from_utf8(data.to_vec()).unwrap());
            }
        }
        events
    }

    #[track_caller]
    fn check(stream: &str, expected: &[&str]) {
        let stream = stream.as_bytes();
        assert_eq!(read_all(&[stream]), expected, "in one piece");
        for cut in 0..=stream.len() {
            let (head, tail) = stream.split_at(cut);
            assert_eq!(read_all(&[head, tail]), expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read_all(&bytes), expected, "byte by byte");
    }

    #[test]
    fn every_line_end_ends_a_line() {
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check("data: a\r\rdata: b\r\r", &["a", "b"]);
        check("data: a\r\n\ndata: b\n\r\n", &["a", "b"]);
    }

    #[test]
    fn letters_of_several_bytes_survive_any_cut() {
        check("data: äöü €\u{1f600}\n\n", &["äöü €\u{1f600}"]);
        check("\u{feff}data: marked\n\n", &["marked"]);
    }

    #[test]
    fn lines_of_data_are_joined_and_the_rest_is_passed_over() {
        check("data: a\ndata:b\ndata\ndata:  c\n\n", &["a\nb\n\n c"]);
        check(": ping\n\nevent: x\nid: 7\nretry: 1\ndata: a\n: note\n\n:\n\n", &["a"]);
        check("event: nothing\n\ndatum: a\n\n", &[]);
        check("data:\n\n", &[""]);
        check("data: {\"a\": \"b:c\"}\n\n", &["{\"a\": \"b:c\"}"]);
    }

    #[test]
    fn an_event_that_breaks_off_is_none() {
        check("data: a\n\ndata: b\n", &["a"]);
        check("data: a\n\ndata: b", &["a"]);
    }

    #[test]
    fn a_line_and_an_event_have_a_bound() {
        let mut reader = SseReader::new(10);
        reader.push(b"data: 0123456789");
        assert_eq!(reader.next(), Err(TooLong { max: 10 }));
        let mut reader = SseReader::new(10);
        reader.push(b"data: 012345\ndata: 012345\n\n");
        assert_eq!(reader.next(), Err(TooLong { max: 10 }));
    }
}
