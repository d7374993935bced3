//! The rules of the wires: everything a vendor would refuse, and what others on the same wire would. Each wire
//! holds its requests against them; what happens to one that breaks a rule is decided elsewhere.

use std::fmt;

use http::{HeaderMap, header};
use serde::{Serialize, Serializer};
use serde_json::error::Category;

use super::script::ScriptError;

/// One rule of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The body is JSON in UTF-8.
    Json,
    /// Required fields are there, types are right, nothing is unknown or said twice.
    Shape,
    /// `content-type: application/json`.
    ContentType,
    /// The caller says who it is, in the way this vendor reads.
    Authorization,
    /// The version of the API is one the vendor has.
    Version,
    /// Values lie in their ranges.
    Range,
    /// No option without the one it belongs to, and no two that exclude each other.
    Conflict,
    /// There are messages.
    NoMessages,
    /// System messages stand at the front, all of them.
    SystemFirst,
    /// The first message that is not the system's is the user's.
    UserFirst,
    /// A message says something, or calls a tool.
    EmptyMessage,
    /// A field or a part is used only by the roles that have it.
    FieldForRole,
    /// A list of tool calls is not empty.
    EmptyToolCalls,
    /// A call id has 1 to 40 characters.
    CallId,
    /// Call ids differ within a turn.
    DuplicateCallId,
    /// Names are of 1 to 64 letters, digits, `_` and `-`.
    Name,
    /// The arguments of a call are JSON.
    Arguments,
    /// Every call is answered before anything else is said.
    Unanswered,
    /// Every tool message answers a call of the turn before it.
    ResultWithoutCall,
    /// A call is answered once.
    ResultRepeated,
    /// Between 1 and 128 tools, or no list at all.
    ToolCount,
    /// Tools have different names.
    DuplicateTool,
    /// The parameters of a tool are the schema of an object.
    Parameters,
    /// A chosen tool is on offer.
    ToolChoice,
    /// Roles follow each other as the vendor wants them.
    Order,
    /// Thinking comes back as it was given, with its signature.
    Thinking,
    /// Data is what it says it is: base64, of a type the vendor takes.
    Media,
    /// A schema for the answer is one the vendor can hold the model to.
    OutputSchema,
    /// The prompt cache is asked for in a way the vendor has.
    Cache,
    /// The plan in the user's message can be read.
    Plan,
    /// The script has a turn for this transcript.
    ScriptEnded,
}

/// A rule that a request broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// Where, as a path into the body, or a header's name.
    pub param: String,
    /// What was wrong.
    pub message: String,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 31] = [
        Rule::Json,
        Rule::Shape,
        Rule::ContentType,
        Rule::Authorization,
        Rule::Version,
        Rule::Range,
        Rule::Conflict,
        Rule::NoMessages,
        Rule::SystemFirst,
        Rule::UserFirst,
        Rule::EmptyMessage,
        Rule::FieldForRole,
        Rule::EmptyToolCalls,
        Rule::CallId,
        Rule::DuplicateCallId,
        Rule::Name,
        Rule::Arguments,
        Rule::Unanswered,
        Rule::ResultWithoutCall,
        Rule::ResultRepeated,
        Rule::ToolCount,
        Rule::DuplicateTool,
        Rule::Parameters,
        Rule::ToolChoice,
        Rule::Order,
        Rule::Thinking,
        Rule::Media,
        Rule::OutputSchema,
        Rule::Cache,
        Rule::Plan,
        Rule::ScriptEnded,
    ];

    /// The name that stands in `error.code`.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Json => "json",
            Rule::Shape => "shape",
            Rule::ContentType => "content_type",
            Rule::Authorization => "authorization",
            Rule::Version => "version",
            Rule::Range => "range",
            Rule::Conflict => "conflict",
            Rule::NoMessages => "no_messages",
            Rule::SystemFirst => "system_first",
            Rule::UserFirst => "user_first",
            Rule::EmptyMessage => "empty_message",
            Rule::FieldForRole => "field_for_role",
            Rule::EmptyToolCalls => "empty_tool_calls",
            Rule::CallId => "call_id",
            Rule::DuplicateCallId => "duplicate_call_id",
            Rule::Name => "name",
            Rule::Arguments => "arguments",
            Rule::Unanswered => "unanswered",
            Rule::ResultWithoutCall => "result_without_call",
            Rule::ResultRepeated => "result_repeated",
            Rule::ToolCount => "tool_count",
            Rule::DuplicateTool => "duplicate_tool",
            Rule::Parameters => "parameters",
            Rule::ToolChoice => "tool_choice",
            Rule::Order => "order",
            Rule::Thinking => "thinking",
            Rule::Media => "media",
            Rule::OutputSchema => "output_schema",
            Rule::Cache => "cache",
            Rule::Plan => "plan",
            Rule::ScriptEnded => "script_ended",
        }
    }
}

impl Violation {
    /// A body that could not even be read.
    pub(super) fn unreadable(error: &serde_json::Error) -> Self {
        let rule = match error.classify() {
            Category::Data => Rule::Shape,
            Category::Io | Category::Syntax | Category::Eof => Rule::Json,
        };
        Self { rule, param: "body".to_owned(), message: error.to_string() }
    }

    /// A request the script has no answer for.
    pub(super) fn unscripted(error: &ScriptError) -> Self {
        let (rule, message) = match error {
            ScriptError::Ended { .. } => (Rule::ScriptEnded, error.to_string()),
            ScriptError::Plan(cause) => (Rule::Plan, format!("{error}: {cause}")),
        };
        Self { rule, param: "messages".to_owned(), message }
    }
}

/// The violations found so far. Paths and messages are only put together once a rule is broken.
#[derive(Default)]
pub(super) struct Findings(pub Vec<Violation>);

impl Findings {
    pub fn add(&mut self, rule: Rule, param: impl fmt::Display, message: impl fmt::Display) {
        self.0.push(Violation { rule, param: param.to_string(), message: message.to_string() });
    }

    /// Records a broken rule unless `kept`.
    pub fn require(&mut self, kept: bool, rule: Rule, param: impl fmt::Display, message: impl fmt::Display) {
        if !kept {
            self.add(rule, param, message);
        }
    }
}

/// The body is said to be JSON.
pub(super) fn check_content_type(headers: &HeaderMap, findings: &mut Findings) {
    let content_type = header_text(headers, header::CONTENT_TYPE.as_str());
    let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    let is_json = media_type.trim().eq_ignore_ascii_case("application/json");
    findings.require(is_json, Rule::ContentType, "content-type", "must be application/json");
}

/// The bearer token, if there is a sound one.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let token = header_text(headers, header::AUTHORIZATION.as_str())?.strip_prefix("Bearer ")?;
    is_token(token).then_some(token)
}

/// A header as text, if there is one and it is.
pub(super) fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The characters a bearer token may have.
pub(super) fn is_token(token: &str) -> bool {
    let bare = token.trim_end_matches('=');
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !bare.is_empty() && bare.bytes().all(allowed)
}

/// The names that vendors allow: 1 to 64 letters, digits, `_` and `-`.
pub(super) fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}
