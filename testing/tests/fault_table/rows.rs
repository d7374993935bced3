//! The table: what the server does wrong, under which rule of the loop, and how that ends.

use ostler_llm::Finish;
use ostler_testing::model_server::Fault;
use serde_json::{Value, json};

use crate::setup::Vendor;

/// What a task gives that ends well.
pub const ANSWER: &str = "the answer is forty-two, as everybody knows";

/// The same where it must be JSON.
const JSON_ANSWER: &str = "{\"answer\":\"forty-two, as everybody knows\"}";

#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub rule: Rule,
    pub fault: Fault,
    /// For so many tries of the same call; always if absent.
    pub times: Option<u32>,
    pub ends: Ends<'static>,
    /// Requests to the model; absent where it depends on time.
    pub calls: Option<u64>,
    /// If it ends well: by what its plan says, and not by what the model says when that is over.
    pub is_answer: bool,
}

/// What the loop is about to do, or bound by, when the fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The model answers at once.
    Answer,
    /// The fault is in the turn that calls a tool; an answer follows.
    ToolTurn,
    /// A tool was called, and the fault is in the answer.
    AfterTool,
    /// The faulty turn calls two tools at once.
    Parallel,
    /// Two model calls are allowed, and neither answers.
    MaxSteps,
    /// A thousand tokens are allowed, and the faulty turn says that it took nearly all of them.
    TokenBudget,
    /// The run may work for less than a second.
    Timeout,
    /// The endpoint gives a call half a second to begin and to go on.
    Hasty,
    /// The endpoint gives a call a quarter of a second in all.
    Brief,
    /// The task has three seconds until its deadline.
    Deadline,
    /// The task may fail three times.
    Retry3,
    /// The answer comes in many small pieces.
    Streaming,
    /// Another endpoint stands behind, which answers.
    Fallback,
    /// The same, and the first one gives a call half a second.
    HastyFallback,
    /// The output must fit a schema, and does.
    Schema,
    /// It fits only when it is asked for once more; the fault is in the first answer.
    SchemaAgain,
    /// It never fits.
    SchemaNever,
    /// The tool must have worked, and the answer holds a marker; the fault is in the turn that calls the tool. Whoever
    /// answers without it is asked again, and calls it then.
    Contract,
    /// The run ends with its first tool.
    StopFirst,
    /// The call of the faulty turn is made a second time.
    Reuse,
    /// The same, where it is denied.
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends<'c> {
    Well,
    Failed(&'c str),
    /// Could be tried again, and its tries are used up.
    DeadLetter(&'c str),
}

use Ends::{DeadLetter, Failed, Well};
use Rule::{
    AfterTool, Answer, Brief, Contract, Deadline, Deny, Fallback, Hasty, HastyFallback, MaxSteps, Parallel,
    Retry3, Reuse, Schema, SchemaAgain, SchemaNever, StopFirst, Streaming, Timeout, TokenBudget, ToolTurn,
};

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    // A call that fails in passing is made up to four times.
    row(Answer, Fault::RateLimited, DeadLetter("model_rate_limited"), 4),
    row(Answer, Fault::RateLimitedBare, DeadLetter("model_rate_limited"), 4),
    row(Answer, Fault::RateLimitedDate, Well, 2).times(1),
    row(Answer, Fault::ServerError, DeadLetter("model_server_error"), 4),
    row(Answer, Fault::ServerError, Well, 4).times(3),
    row(Answer, Fault::Overloaded, DeadLetter("model_overloaded"), 4),
    row(Answer, Fault::Overloaded, Well, 2).times(1),
    row(Answer, Fault::Close, DeadLetter("model_stream_cut"), 4),
    row(Answer, Fault::Close, Well, 3).times(2),
    row(Answer, Fault::CutText, DeadLetter("model_stream_cut"), 4),
    row(Answer, Fault::BadChunk, DeadLetter("model_bad_answer"), 4),
    row(Answer, Fault::InvalidUtf8, DeadLetter("model_bad_answer"), 4),
    row(Answer, Fault::Html, DeadLetter("model_bad_answer"), 4),
    row(Answer, Fault::Empty, DeadLetter("model_empty_answer"), 4),
    row(Answer, Fault::Empty, Well, 2).times(1),
    // What would fail again in the same way is not repeated.
    row(Answer, Fault::Unauthorized, Failed("model_auth"), 1),
    row(Answer, Fault::ContextLength, Failed("model_context_overflow"), 1),
    row(Answer, Fault::Huge, Failed("model_answer_too_large"), 1),
    row(Answer, Fault::Refusal, Failed("model_refused"), 1),
    row(Answer, Fault::Length, Failed("model_answer_cut"), 1),
    row(Answer, Fault::ContentFilter, Failed("model_content_filter"), 1),
    row(Answer, Fault::Blocked, Failed("model_content_filter"), 1),
    row(Fallback, Fault::Blocked, Failed("model_content_filter"), 1),
    row(Answer, Fault::ErrorEvent, Well, 2).times(1),
    row(AfterTool, Fault::ErrorEvent, Well, 3).times(1),
    row(Streaming, Fault::ErrorEvent, Well, 2).times(1),
    row(Fallback, Fault::ErrorEvent, Well, 2),
    row(Answer, Fault::RateLimitedMilliseconds, Well, 2).times(1),
    row(Answer, Fault::RateLimitedMilliseconds, DeadLetter("model_rate_limited"), 4),
    // Odd, and no reason to fail.
    row(Answer, Fault::Slow, Well, 1),
    row(Answer, Fault::NoUsage, Well, 1),
    row(Answer, Fault::UsageHuge, Well, 1),
    row(Answer, Fault::UsageNegative, Well, 1),

    // A broken tool call is told to the model, never dropped, and never made up.
    row(ToolTurn, Fault::BadArguments, Well, 2),
    row(ToolTurn, Fault::ArrayArguments, Well, 2),
    row(ToolTurn, Fault::DuplicateIds, Well, 2),
    row(ToolTurn, Fault::EmptyId, Well, 2),
    row(ToolTurn, Fault::UnknownTool, Well, 2),
    row(ToolTurn, Fault::Length, Well, 2),
    // Nor is one made without arguments, if it was cut off before the first.
    row(ToolTurn, Fault::LengthBare, Well, 2),
    row(StopFirst, Fault::LengthBare, Well, 2),
    row(ToolTurn, Fault::CutTool, Well, 3).times(1),
    row(ToolTurn, Fault::CutTool, DeadLetter("model_stream_cut"), 4),
    row(ToolTurn, Fault::RateLimited, Well, 3).times(1),
    row(ToolTurn, Fault::ServerError, Well, 4).times(2),
    row(ToolTurn, Fault::Refusal, Failed("model_refused"), 1),
    row(ToolTurn, Fault::ContentFilter, Failed("model_content_filter"), 1),
    // The tool is not called, and the session can go on: the call has a result.
    row(ToolTurn, Fault::FilteredCall, Failed("model_content_filter"), 1),
    row(Parallel, Fault::FilteredCall, Failed("model_content_filter"), 1),
    row(StopFirst, Fault::FilteredCall, Failed("model_content_filter"), 1),

    row(AfterTool, Fault::ServerError, DeadLetter("model_server_error"), 5),
    row(AfterTool, Fault::CutText, Well, 3).times(1),
    row(AfterTool, Fault::Unauthorized, Failed("model_auth"), 2),
    row(AfterTool, Fault::ContextLength, Failed("model_context_overflow"), 2),
    row(AfterTool, Fault::Refusal, Failed("model_refused"), 2),
    row(AfterTool, Fault::Length, Failed("model_answer_cut"), 2),
    row(AfterTool, Fault::NoUsage, Well, 2),

    row(Parallel, Fault::DuplicateIds, Well, 2),
    row(Parallel, Fault::EmptyId, Well, 2),
    row(Parallel, Fault::UnknownTool, Well, 2),
    row(Parallel, Fault::BadArguments, Well, 2),
    row(Parallel, Fault::Length, Well, 2),
    row(Parallel, Fault::CutTool, Well, 3).times(1),
    row(Parallel, Fault::Overloaded, Well, 3).times(1),

    // Tries of one call are one step; a broken tool call is one too.
    row(MaxSteps, Fault::ServerError, Failed("max_steps"), 3).times(1),
    row(MaxSteps, Fault::BadArguments, Failed("max_steps"), 2),
    row(MaxSteps, Fault::UnknownTool, Failed("max_steps"), 2),
    row(MaxSteps, Fault::DuplicateIds, Failed("max_steps"), 2),

    // What the vendor reports counts; where it reports nothing that makes sense, an estimate does.
    row(TokenBudget, Fault::ServerError, Failed("token_budget"), 2).times(1),
    row(TokenBudget, Fault::CutTool, Failed("token_budget"), 2).times(1),
    row(TokenBudget, Fault::UnknownTool, Failed("token_budget"), 1),
    row(TokenBudget, Fault::UsageHuge, Failed("token_budget"), 1),
    row(TokenBudget, Fault::NoUsage, Well, 2),
    row(TokenBudget, Fault::UsageNegative, Well, 2),

    // Time runs while the model hangs, dawdles, or has to be waited for.
    row(Timeout, Fault::Hang, Failed("run_timeout"), 1),
    row(Timeout, Fault::Stall, Failed("run_timeout"), 1),
    row(Timeout, Fault::Slow, Failed("run_timeout"), 1),
    row(Timeout, Fault::RateLimited, Failed("run_timeout"), 1),
    row(Timeout, Fault::ServerError, Failed("run_timeout"), 0).any_calls(),

    // A vendor that asks for a long wait is waited for, as long as the task may: the run sleeps, and says on what.
    row(Deadline, Fault::RateLimitedDay, Failed("deadline_exceeded"), 1),
    row(Fallback, Fault::RateLimitedDay, Well, 1),

    row(Hasty, Fault::Hang, DeadLetter("model_timeout"), 4),
    row(Hasty, Fault::Stall, DeadLetter("model_timeout"), 4),
    // Who has used up all its time is not asked for as long again.
    // On a busy machine its time may be over before the server has seen it.
    row(Brief, Fault::Slow, DeadLetter("model_too_slow"), 1).any_calls(),
    row(Hasty, Fault::Hang, Well, 2).times(1),
    row(Hasty, Fault::Stall, Well, 2).times(1),

    // Each attempt makes its own four tries; what is permanent uses none of them.
    row(Retry3, Fault::ServerError, DeadLetter("model_server_error"), 12),
    row(Retry3, Fault::ServerError, Well, 6).times(5),
    row(Retry3, Fault::Overloaded, Well, 9).times(8),
    row(Retry3, Fault::CutText, Well, 5).times(4),
    row(Retry3, Fault::Html, Well, 5).times(4),
    row(Retry3, Fault::Empty, DeadLetter("model_empty_answer"), 12),
    row(Retry3, Fault::Unauthorized, Failed("model_auth"), 1),
    row(Retry3, Fault::Refusal, Failed("model_refused"), 1),

    row(Streaming, Fault::CutText, Well, 2).times(1),
    row(Streaming, Fault::BadChunk, Well, 2).times(1),
    row(Streaming, Fault::InvalidUtf8, Well, 2).times(1),
    row(Streaming, Fault::Overloaded, Well, 2).times(1),
    row(Streaming, Fault::Slow, Well, 1),
    row(Streaming, Fault::Length, Failed("model_answer_cut"), 1),
    row(Streaming, Fault::NoUsage, Well, 1),

    // Two tries, then the other endpoint; one where trying again would take long or can't help.
    row(Fallback, Fault::ServerError, Well, 2),
    row(Fallback, Fault::ServerError, Well, 2).times(1),
    row(Fallback, Fault::Overloaded, Well, 2),
    row(Fallback, Fault::Unavailable, Well, 2),
    row(Fallback, Fault::RateLimitedBare, Well, 2),
    row(Fallback, Fault::Close, Well, 2),
    row(Fallback, Fault::CutText, Well, 2),
    row(Fallback, Fault::BadChunk, Well, 2),
    row(Fallback, Fault::Html, Well, 2),
    row(Fallback, Fault::Empty, Well, 2),
    row(Fallback, Fault::Unauthorized, Well, 1),
    row(Fallback, Fault::Quota, Well, 1),
    row(HastyFallback, Fault::Hang, Well, 1).any_calls(),
    row(HastyFallback, Fault::Stall, Well, 1).any_calls(),
    // What is said of the conversation itself is said for all endpoints.
    row(Fallback, Fault::ContextLength, Failed("model_context_overflow"), 1),
    row(Fallback, Fault::Refusal, Failed("model_refused"), 1),
    row(Fallback, Fault::ContentFilter, Failed("model_content_filter"), 1),
    row(Fallback, Fault::Length, Failed("model_answer_cut"), 1),

    row(Schema, Fault::ServerError, Well, 2).times(1),
    row(Schema, Fault::CutText, Well, 2).times(1),
    row(Schema, Fault::BadChunk, Well, 2).times(1),
    row(Schema, Fault::NoUsage, Well, 1),
    row(Schema, Fault::Length, Failed("model_answer_cut"), 1),
    row(Schema, Fault::Refusal, Failed("model_refused"), 1),
    row(SchemaAgain, Fault::NoUsage, Well, 2),
    row(SchemaAgain, Fault::Overloaded, Well, 3).times(1),
    row(SchemaAgain, Fault::CutText, Well, 3).times(1),
    row(SchemaNever, Fault::NoUsage, Failed("output_schema_violation"), 2),
    row(SchemaNever, Fault::ServerError, Failed("output_schema_violation"), 3).times(1),

    row(Contract, Fault::NoUsage, Well, 2),
    row(Contract, Fault::ServerError, Well, 3).times(1),
    row(Contract, Fault::CutTool, Well, 3).times(1),
    row(Contract, Fault::DuplicateIds, Well, 2),
    row(Contract, Fault::BadArguments, Well, 4),
    row(Contract, Fault::ArrayArguments, Well, 4),
    row(Contract, Fault::UnknownTool, Failed("agent_contract_violation"), 1),

    row(StopFirst, Fault::NoUsage, Well, 1),
    row(StopFirst, Fault::CutTool, Well, 2).times(1),
    row(StopFirst, Fault::Overloaded, Well, 2).times(1),
    row(StopFirst, Fault::DuplicateIds, Well, 1),
    row(StopFirst, Fault::EmptyId, Well, 1),
    // A call that fails ends nothing.
    row(StopFirst, Fault::BadArguments, Well, 2),
    row(StopFirst, Fault::UnknownTool, Well, 2),

    row(Reuse, Fault::NoUsage, Well, 3),
    row(Reuse, Fault::DuplicateIds, Well, 3),
    row(Reuse, Fault::EmptyId, Well, 3),
    row(Reuse, Fault::BadArguments, Well, 3),
    row(Reuse, Fault::CutTool, Well, 4).times(1),
    row(Deny, Fault::NoUsage, Well, 3),
    row(Deny, Fault::DuplicateIds, Well, 3),
    row(Deny, Fault::UnknownTool, Well, 3),
    row(Deny, Fault::CutTool, Well, 4).times(1),
];

const fn row(rule: Rule, fault: Fault, ends: Ends<'static>, calls: u64) -> Row {
    Row { rule, fault, times: None, ends, calls: Some(calls), is_answer: true }
}

impl Row {
    const fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    const fn any_calls(mut self) -> Self {
        self.calls = None;
        self
    }

    /// Whether the fault can be told on the vendor's wire: broken arguments can't where they are no text, a refusal
    /// can't where it is only words.
    pub fn is_known_to(&self, vendor: &Vendor) -> bool {
        match self.fault {
            Fault::BadArguments | Fault::ArrayArguments | Fault::LengthBare => vendor.writes_arguments(),
            // A call that is cut in its middle is none where calls come whole.
            Fault::Length if matches!(self.rule, ToolTurn) => vendor.writes_arguments(),
            Fault::Refusal | Fault::ContentFilter | Fault::FilteredCall => {
                vendor.finish(Finish::Refusal) != Finish::Stop
            }
            _ => true,
        }
    }

    /// Where a vendor has no filter that stops an answer in its middle, it refuses; and the other way round.
    pub fn ends_for(&self, vendor: &Vendor) -> Ends<'static> {
        let finish = match self.ends {
            // What went wrong in the middle each vendor says in its own words.
            DeadLetter(_) if self.fault == Fault::ErrorEvent && vendor.provider == "anthropic" => {
                return DeadLetter("model_overloaded");
            }
            // The prompt is refused before there is an answer, where there is no filter as any other that is bad.
            ends if self.fault == Fault::Blocked => {
                return if vendor.provider == "ollama" { Failed("model_bad_request") } else { ends };
            }
            Failed("model_content_filter") => Finish::ContentFilter,
            Failed("model_refused") => Finish::Refusal,
            ends => return ends,
        };
        match vendor.finish(finish) {
            Finish::ContentFilter => Failed("model_content_filter"),
            Finish::Refusal => Failed("model_refused"),
            _ => Well,
        }
    }

    /// What a task gives that ends well; absent where that is what a tool gave.
    pub fn answer(&self) -> Option<&'static str> {
        match self.rule {
            _ if !self.is_answer => None,
            Schema | SchemaAgain | SchemaNever => Some(JSON_ANSWER),
            StopFirst => None,
            Answer | ToolTurn | AfterTool | Parallel | MaxSteps | TokenBudget | Timeout | Hasty | Brief
            | Deadline | Retry3 | Streaming | Fallback | HastyFallback | Contract | Reuse | Deny => {
                Some(ANSWER)
            }
        }
    }

    /// Whether all that is shown on the way is part of what it gives.
    pub fn shows_only_its_answer(&self) -> bool {
        self.is_answer && !matches!(self.rule, SchemaAgain | StopFirst)
    }

    /// What the model shall do, in the words of its plans.
    pub fn plan(&self) -> String {
        let fault = match self.times {
            Some(times) => format!("fault={}:{times}", self.fault),
            None => format!("fault={}", self.fault),
        };
        let tool = |n: u32| format!("tool lookup {{\"q\":\"question {n}\"}}");
        let answer = format!("text=\"{ANSWER}\"");
        let json = format!("text={}", Value::from(JSON_ANSWER));
        match self.rule {
            Answer | Timeout | Hasty | Brief | Deadline | Retry3 | Fallback | HastyFallback => {
                format!("{answer} {fault}")
            }
            Schema => format!("{json} {fault}"),
            SchemaAgain => format!("{answer} {fault}, {json}"),
            SchemaNever => format!("{answer} {fault}, {answer}"),
            Contract => format!("{} {fault}, {answer}, {}, {answer}", tool(1), tool(2)),
            StopFirst => format!("{} {fault}, {answer}", tool(1)),
            Reuse | Deny => format!("{} {fault}, {}, {answer}", tool(1), tool(1)),
            Streaming => format!("{answer} chunk=3 pace=1 {fault}"),
            ToolTurn => format!("{} {fault}, {answer}", tool(1)),
            AfterTool => format!("{}, {answer} {fault}", tool(1)),
            Parallel => format!("{} + {} {fault}, {answer}", tool(1), tool(2)),
            MaxSteps => format!("{} {fault}, {}, {answer}", tool(1), tool(2)),
            TokenBudget => format!("{} usage=900/95 {fault}, {answer}", tool(1)),
        }
    }
}

impl Rule {
    pub const ALL: [Rule; 21] = [
        Answer,
        ToolTurn,
        AfterTool,
        Parallel,
        MaxSteps,
        TokenBudget,
        Timeout,
        Hasty,
        Brief,
        Deadline,
        Retry3,
        Streaming,
        Fallback,
        HastyFallback,
        Schema,
        SchemaAgain,
        SchemaNever,
        Contract,
        StopFirst,
        Reuse,
        Deny,
    ];

    /// The agent that is bound by it.
    pub const fn agent(self) -> &'static str {
        match self {
            Answer => "answer",
            ToolTurn => "tool-turn",
            AfterTool => "after-tool",
            Parallel => "parallel",
            MaxSteps => "max-steps",
            TokenBudget => "token-budget",
            Timeout => "timeout",
            Hasty => "hasty",
            Brief => "brief",
            Deadline => "deadline",
            Retry3 => "retry",
            Streaming => "streaming",
            Fallback => "fallback",
            HastyFallback => "hasty-fallback",
            Schema => "schema",
            SchemaAgain => "schema-again",
            SchemaNever => "schema-never",
            Contract => "contract",
            StopFirst => "stop-first",
            Reuse => "reuse",
            Deny => "deny",
        }
    }

    pub fn limits(self) -> Value {
        match self {
            MaxSteps => json!({ "max_steps": 2 }),
            TokenBudget => json!({ "token_budget": 1000 }),
            Timeout => json!({ "timeout": "800ms" }),
            Answer | ToolTurn | AfterTool | Parallel | Hasty | Brief | Deadline | Retry3 | Streaming
            | Fallback | HastyFallback | Schema | SchemaAgain | SchemaNever | Contract | StopFirst
            | Reuse | Deny => {
                json!({})
            }
        }
    }

    /// How the agent's runs are held to a shape.
    pub fn execution(self) -> Value {
        match self {
            Schema | SchemaAgain | SchemaNever => json!({ "output_schema": {
                "type": "object", "properties": { "answer": { "type": "string" } }, "required": ["answer"],
                "additionalProperties": false,
            }}),
            Contract => json!({
                "profile": "contract", "tool_sequence": ["lookup"], "required_output_markers": ["forty-two"],
            }),
            StopFirst => json!({ "tool_use_behavior": "stop_on_first_tool" }),
            Deny => json!({ "duplicate_tool_call_policy": "deny" }),
            Answer | ToolTurn | AfterTool | Parallel | MaxSteps | TokenBudget | Timeout | Hasty | Brief
            | Deadline | Retry3 | Streaming | Fallback | HastyFallback | Reuse => json!({}),
        }
    }

    /// The endpoints that it asks, in order.
    pub const fn endpoints(self) -> &'static [&'static str] {
        match self {
            Hasty => &["hasty"],
            Brief => &["brief"],
            Fallback => &["patient", "spare"],
            HastyFallback => &["hasty", "spare"],
            Answer | ToolTurn | AfterTool | Parallel | MaxSteps | TokenBudget | Timeout | Deadline
            | Retry3 | Streaming | Schema | SchemaAgain | SchemaNever | Contract | StopFirst | Reuse
            | Deny => &["patient"],
        }
    }

    /// How long the task has in all.
    pub const fn deadline(self) -> Option<&'static str> {
        match self {
            Deadline => Some("3s"),
            Answer | ToolTurn | AfterTool | Parallel | MaxSteps | TokenBudget | Timeout | Hasty | Brief
            | Retry3 | Streaming | Fallback | HastyFallback | Schema | SchemaAgain | SchemaNever
            | Contract | StopFirst | Reuse | Deny => None,
        }
    }

    pub const fn max_attempts(self) -> u32 {
        match self {
            Retry3 => 3,
            Answer | ToolTurn | AfterTool | Parallel | MaxSteps | TokenBudget | Timeout | Hasty | Brief
            | Deadline | Streaming | Fallback | HastyFallback | Schema | SchemaAgain | SchemaNever
            | Contract | StopFirst | Reuse | Deny => 1,
        }
    }
}
