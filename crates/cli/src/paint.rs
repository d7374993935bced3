//! Colour, or none.

#[derive(Debug, Clone, Copy)]
pub struct Paint {
    has_colour: bool,
}

/// What a colour stands for; the words say the same without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Strong,
    /// Less important than what stands around it.
    Quiet,
    Good,
    Bad,
    /// Not done, not failed: someone or something is waited for.
    Pending,
    Model,
    Tool,
}

impl Paint {
    pub fn new(has_colour: bool) -> Self {
        Self { has_colour }
    }

    pub fn tone(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Strong => "1",
            Tone::Quiet => "2",
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Pending => "33",
            Tone::Model => "36",
            Tone::Tool => "35",
            Tone::Plain => return text.to_owned(),
        };
        if self.has_colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

impl Tone {
    /// Of a task's state.
    pub fn of_state(state: &str) -> Self {
        match state {
            "succeeded" => Tone::Good,
            "failed" | "dead_letter" | "dropped" => Tone::Bad,
            "waiting" | "sleeping" | "queued" => Tone::Pending,
            "cancelled" => Tone::Quiet,
            _ => Tone::Plain,
        }
    }
}
