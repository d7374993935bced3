//! Lines of JSON, one after another as the bytes come. Empty ones are passed over.

use memchr::memchr;

pub(crate) struct LineReader {
    buffer: Vec<u8>,
    /// What of `buffer` has been given out.
    read: usize,
    /// How far behind `read` it is known that there is no line end.
    searched: usize,
    max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

impl LineReader {
    /// No line may be longer than `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self { buffer: Vec::new(), read: 0, searched: 0, max }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.read);
        self.read = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line that is there as a whole.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, TooLong> {
        loop {
            let rest = self.buffer.get(self.read..).unwrap_or_default();
            let unsearched = rest.get(self.searched..).unwrap_or_default();
            let Some(found) = memchr(b'\n', unsearched) else {
                self.searched = rest.len();
                return if rest.len() > self.max { Err(TooLong) } else { Ok(None) };
            };
            let (start, end) = (self.read, self.read + self.searched + found);
            self.read = end + 1;
            self.searched = 0;
            if end - start > self.max {
                return Err(TooLong);
            }
            let is_blank = self.buffer.get(start..end).is_none_or(|line| line.trim_ascii().is_empty());
            if !is_blank {
                return Ok(self.buffer.get(start..end).map(<[u8]>::trim_ascii));
            }
        }
    }

    /// What stands behind the last line end, when nothing more comes.
    pub(crate) fn rest(&mut self) -> Option<&[u8]> {
        let start = std::mem::replace(&mut self.read, self.buffer.len());
        self.searched = 0;
        self.buffer.get(start..).map(<[u8]>::trim_ascii).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = LineReader::new(100);
        let mut lines = Vec::new();
        let mut keep = |line: &[u8]| lines.push(String::from_utf8(line.to_vec()).unwrap());
        for piece in pieces {
            reader.push(piece);
            while let Some(line) = reader.next().unwrap() {
                keep(line);
            }
        }
        if let Some(rest) = reader.rest() {
            keep(rest);
        }
        lines
    }

    #[test]
    fn lines_survive_any_cut() {
        let stream = "{\"a\":\"ä\"}\r\n\n  \n{\"b\":2}\nlast".as_bytes();
        let expected = ["{\"a\":\"ä\"}", "{\"b\":2}", "last"];
        for cut in 0..=stream.len() {
            let (head, tail) = stream.split_at(cut);
            assert_eq!(read_all(&[head, tail]), expected, "cut at {cut}");
        }
        assert_eq!(read_all(&stream.chunks(1).collect::<Vec<_>>()), expected);
    }

    #[test]
    fn a_line_has_a_bound() {
        for piece in [&b"01234567890"[..], b"01234567890\n"] {
            let mut reader = LineReader::new(10);
            reader.push(piece);
            assert_eq!(reader.next(), Err(TooLong));
        }
    }
}
