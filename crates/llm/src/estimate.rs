//! How many tokens a call uses, where no vendor says so. Before a call, and for the mock, it is guessed from what the text is made
//! of, with weights that were fitted to a real tokenizer: near it on the texts they were fitted to, and not measured on others.
//! After one of which the vendor reports nothing, a tokenizer counts
//! ([decision 33](../../../docs/decisions/0033-money-is-counted-in-millionths.md)).

use ostler_kernel::{Block, step::Usage};

use crate::{ModelRequest, tokenizer::Tokenizer};

/// What a message or a tool costs beside its words.
const FRAME: u64 = 4;

/// What an image costs: vendors count by its size in pixels, 1,000 and more for most.
const IMAGE: u64 = 1000;

/// A guess that costs next to nothing.
pub fn estimate(request: &ModelRequest, answer: &[Block]) -> Usage {
    usage::<Guess>(request, answer)
}

/// As a tokenizer counts it, though not for sure the model's own.
pub fn count(request: &ModelRequest, answer: &[Block]) -> Usage {
    usage::<Tokenizer>(request, answer)
}

/// Adds up tokens, by one of two ways: [`Guess`] and [`Tokenizer`].
pub(crate) trait Counter: Default {
    fn count(&mut self, text: &str);

    fn sum(&self) -> u64;
}

fn usage<C: Counter>(request: &ModelRequest, answer: &[Block]) -> Usage {
    Usage {
        input_tokens: of_request(&mut C::default(), request),
        output_tokens: of_answer(&mut C::default(), answer),
        estimated: true,
        ..Usage::default()
    }
}

fn of_request(counter: &mut impl Counter, request: &ModelRequest) -> u64 {
    counter.count(&request.system);
    let mut beside = 0;
    for tool in &request.tools {
        beside += FRAME;
        counter.count(&tool.name);
        counter.count(&tool.description);
        count_json(counter, &tool.schema);
    }
    for message in &request.messages {
        beside += FRAME + count_blocks(counter, &message.blocks);
    }
    counter.sum() + beside
}

fn of_answer(counter: &mut impl Counter, answer: &[Block]) -> u64 {
    let beside = count_blocks(counter, answer);
    counter.sum() + beside
}

/// Gives what they cost beside their words.
fn count_blocks(counter: &mut impl Counter, blocks: &[Block]) -> u64 {
    let mut beside = 0;
    for block in blocks {
        match block {
            Block::Text { text } => counter.count(text),
            Block::ToolCall { name, arguments, .. } => {
                beside += FRAME;
                counter.count(name);
                counter.count(arguments);
            }
            Block::ToolResult { content, images, .. } => {
                beside += FRAME + images.len() as u64 * IMAGE;
                counter.count(content);
            }
            Block::Image(_) => beside += IMAGE,
            Block::Native { value, .. } => count_json(counter, value),
        }
    }
    beside
}

fn count_json(counter: &mut impl Counter, value: &serde_json::Value) {
    if !value.is_null() {
        counter.count(&value.to_string());
    }
}

#[derive(Debug, Default)]
struct Guess(u64);

impl Counter for Guess {
    fn count(&mut self, text: &str) {
        self.0 += tokens(text);
    }

    fn sum(&self) -> u64 {
        self.0
    }
}

/// What a piece of text is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Digits,
    Spaces,
    Lines,
    Signs,
    /// Letters with marks, as in most of Europe.
    Marked,
    /// Greek, Cyrillic, Hebrew, Arabic.
    Alphabet,
    /// Chinese, Japanese, Korean, and all else.
    Symbol,
}

impl Kind {
    fn of(letter: char) -> Self {
        match letter {
            'a'..='z' | 'A'..='Z' => Kind::Word,
            '0'..='9' => Kind::Digits,
            ' ' => Kind::Spaces,
            '\n' | '\r' | '\t' => Kind::Lines,
            '\0'..='\x7f' => Kind::Signs,
            '\u{80}'..='\u{24f}' => Kind::Marked,
            '\u{250}'..='\u{7ff}' => Kind::Alphabet,
            _ => Kind::Symbol,
        }
    }

    /// What so many in a row cost, in hundredths of a token. A single blank belongs to the word behind it.
    fn cost(self, length: u64) -> u64 {
        match self {
            Kind::Word => 100 + 14 * length.saturating_sub(7),
            Kind::Digits => 100 * length.div_ceil(3),
            Kind::Spaces if length == 1 => 0,
            Kind::Spaces => 100,
            Kind::Lines => 60,
            Kind::Signs => 80 + 20 * length.saturating_sub(1),
            Kind::Marked => 200 * length,
            Kind::Alphabet => 52 * length,
            Kind::Symbol => 111 * length,
        }
    }
}

pub(crate) fn tokens(text: &str) -> u64 {
    let (mut hundredths, mut run) = (0, None::<(Kind, u64)>);
    let mut was_small = false;
    for letter in text.chars() {
        let kind = Kind::of(letter);
        // `camelCase` is two words.
        let begins_anew = was_small && letter.is_ascii_uppercase();
        was_small = letter.is_ascii_lowercase();
        match &mut run {
            Some((same, length)) if *same == kind && !begins_anew => *length += 1,
            _ => {
                let ended = run.replace((kind, 1));
                hundredths += ended.map_or(0, |(kind, length)| kind.cost(length));
            }
        }
    }
    hundredths += run.map_or(0, |(kind, length)| kind.cost(length));
    u64::div_ceil(hundredths, 100)
}

#[cfg(test)]
mod tests {
    use ostler_kernel::{Role, plan::ModelPlan};
    use serde_json::json;

    use super::*;
    use crate::{Message, ToolOffer};

    #[test]
    fn every_part_counts() {
        let text = |n: usize| Block::Text { text: "word ".repeat(n) };
        let mut request = ModelRequest {
            endpoint: ModelPlan::default(),
            system: "word ".repeat(10),
            messages: vec![Message { role: Role::User, blocks: vec![text(96)] }],
            tools: vec![],
            output_schema: None,
            request_id: String::new(),
        };
        let usage = estimate(&request, &[text(11)]);
        assert_eq!(
            usage,
            Usage { input_tokens: 110, output_tokens: 11, estimated: true, ..Usage::default() }
        );
        request.tools = vec![ToolOffer {
            name: "look".into(),
            description: "up".into(),
            schema: json!({"type": "object"}),
        }];
        assert_eq!(estimate(&request, &[]).input_tokens, 110 + 4 + 1 + 1 + 6);
        let image = Block::Image(ostler_kernel::conversation::Image {
            media_type: String::new(),
            data: String::new(),
        });
        assert_eq!(estimate(&request, &[image]).output_tokens, 1000);
    }

    #[test]
    fn a_tokenizer_counts_the_same_parts() {
        let request = ModelRequest {
            endpoint: ModelPlan::default(),
            system: "You are terse.".into(),
            messages: vec![Message {
                role: Role::User,
                blocks: vec![Block::Text { text: "Hello, world!".into() }],
            }],
            tools: vec![],
            output_schema: None,
            request_id: String::new(),
        };
        let usage = count(&request, &[Block::Text { text: "Hello!".into() }]);
        assert_eq!(
            usage,
            Usage { input_tokens: 4 + 4 + 4, output_tokens: 2, estimated: true, ..Usage::default() }
        );
    }

    /// Counts of a real tokenizer, cl100k_base: what was fitted may not drift away from it.
    #[test]
    fn stays_near_a_real_tokenizer() {
        for (text, counted, within) in REAL {
            let error = tokens(text) as f64 / counted as f64 - 1.0;
            assert!(error.abs() * 100.0 <= f64::from(within), "{:+.0} % of {counted}: {text}", error * 100.0);
        }
    }

    /// A text, its count, and how many per cent off the estimate may be.
    const REAL: [(&str, u64, u32); 7] = [
        (
            "Nothing that matters is kept in memory alone. Memory holds caches, hints and deltas, and all of them may be lost. A worker claims runs, keeps its lease, and drives an agent.",
            39,
            10,
        ),
        (
            "fn add(&mut self, other: &Usage) {\n    self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);\n    self.estimated |= other.estimated;\n}\n",
            38,
            25,
        ),
        (
            "{\"kind\":\"Agent\",\"metadata\":{\"name\":\"helper\",\"namespace\":\"default\"},\"spec\":{\"model_ref\":\"main\",\"limits\":{\"max_steps\":10}}}",
            29,
            25,
        ),
        ("2026-11-18T09:24:57.042Z INFO worker-3 step 12 model gpt-4o-mini ok 142ms 2048 tokens", 37, 20),
        ("Все люди рождаются свободными и равными в своем достоинстве и правах.", 35, 20),
        ("人人生而自由，在尊严和权利上一律平等。", 21, 10),
        (
            "Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist Verpflichtung aller staatlichen Gewalt.",
            32,
            25,
        ),
    ];
}
