//! Reads server-sent events as the bytes come, cut anywhere.

/// One event that is there as a whole. Without data it says nothing but where a reader goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// Where a reader goes on behind it; empty if it has none.
    pub id: String,
    pub event: String,
    pub data: String,
}

#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Bytes of a line whose end has not come.
    rest: Vec<u8>,
    message: Message,
}

impl Decoder {
    /// The messages that these bytes complete. One that the stream breaks off in is none.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        for piece in &mut lines {
            self.rest.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                messages.extend(self.line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n'])));
            }
        }
        messages
    }

    fn line(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            return Some(message).filter(|message| !message.data.is_empty() || !message.id.is_empty());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.message.event = value.to_owned(),
            "id" => self.message.id = value.to_owned(),
            "data" => {
                if !self.message.data.is_empty() {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            // A comment keeps the connection alive.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": alive\n\nid: 1\nevent: task_accepted\ndata: {\"seq\":1}\n\nevent: delta\r\ndata: ä\r\ndata: b\r\n\r\n";

    #[test]
    fn pieces_cut_anywhere_give_the_same_messages() {
        let expected = [
            Message { id: "1".into(), event: "task_accepted".into(), data: "{\"seq\":1}".into() },
            Message { id: String::new(), event: "delta".into(), data: "ä\nb".into() },
        ];
        for cut in 0..STREAM.len() {
            let (first, second) = STREAM.as_bytes().split_at(cut);
            let mut decoder = Decoder::default();
            let mut messages = decoder.push(first);
            messages.extend(decoder.push(second));
            assert_eq!(messages, expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_place_comes_without_data_too() {
        let messages = Decoder::default().push(b": alive\nid: 7\n\n: alive\n\n");
        assert_eq!(messages, [Message { id: "7".into(), ..Message::default() }]);
    }

    #[test]
    fn what_breaks_off_is_no_message() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"event: step_finished\ndata: {\"seq\":2}\n"), []);
    }
}
