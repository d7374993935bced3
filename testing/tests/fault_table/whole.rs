//! The whole table: what a pair of fault and rule comes to, where it has no row of its own. It follows from what the fault
//! makes of the turn that it strikes, and from the turns behind it: the loop in small, without a world.

use ostler_testing::model_server::Fault;

use crate::rows::{Ends, ROWS, Row, Rule};

use Ends::{DeadLetter, Failed, Well};

/// Why a pair stands in nobody's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// Nobody breaks it off for minutes, or for an hour.
    Endless,
    /// It ends by whichever comes first, its fault or its time.
    Race,
    /// How much a vendor counts of an answer that broke off is its own.
    Counted,
    /// Ten megabytes in pieces of three letters.
    Vast,
}

/// A turn that the model plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Text,
    Json,
    Calls,
}

/// What a fault makes of a turn.
enum Struck {
    /// Nothing.
    Same,
    /// Calls of a tool, made where there were none. Whether one of them works.
    Calls { work: bool },
    /// There is no answer, which may pass.
    Passing(&'static str),
    /// There is none, and there will be none, of this endpoint.
    Endpoint(&'static str),
    /// The run ends with it.
    Final(&'static str),
}

/// All rows: those that were written, and one for every pair without any that strikes each time.
pub fn rows() -> Vec<Row> {
    let pairs = Rule::ALL.into_iter().flat_map(|rule| Fault::ALL.into_iter().map(move |fault| (rule, fault)));
    let others = pairs.filter(|(rule, fault)| !is_written(*rule, *fault));
    let derived = others.filter_map(|(rule, fault)| expected(rule, fault).ok());
    ROWS.iter().copied().chain(derived).collect()
}

/// Pairs that nothing is said of.
pub fn left() -> Vec<(Rule, Fault, Left)> {
    let pairs = Rule::ALL.into_iter().flat_map(|rule| Fault::ALL.into_iter().map(move |fault| (rule, fault)));
    let others =
        pairs.filter(|(rule, fault)| !ROWS.iter().any(|row| (row.rule, row.fault) == (*rule, *fault)));
    others.filter_map(|(rule, fault)| Some((rule, fault, expected(rule, fault).err()?))).collect()
}

fn is_written(rule: Rule, fault: Fault) -> bool {
    ROWS.iter().any(|row| (row.rule, row.fault, row.times) == (rule, fault, None))
}

/// What comes of a fault that strikes each time.
pub fn expected(rule: Rule, fault: Fault) -> Result<Row, Left> {
    if let Some(left) = left_out(rule, fault) {
        return Err(left);
    }
    let row = |ends, calls| Row { rule, fault, times: None, ends, calls, is_answer: true };
    match (rule, fault) {
        (Rule::Timeout, _) => return Ok(row(Failed("run_timeout"), None)),
        (Rule::Deadline, Fault::Hang | Fault::Stall | Fault::RateLimitedDay) => {
            return Ok(row(Failed("deadline_exceeded"), None));
        }
        (Rule::Brief, _) => return Ok(row(DeadLetter("model_too_slow"), None)),
        _ => {}
    }
    let (turns, place) = turns(rule);
    // Every turn before the one that is struck is played.
    let before = place as u64;
    Ok(match struck(fault, turns[place]) {
        // An answer of nothing took what its turn says that it took.
        Struck::Passing(_) if rule == Rule::TokenBudget && fault == Fault::Empty => {
            row(Failed("token_budget"), Some(before + 1))
        }
        Struck::Passing(_) if is_backed(rule) => row(Well, Some(before + tries(rule, fault))),
        Struck::Passing(code) => row(DeadLetter(code), Some(before + tries(rule, fault))),
        Struck::Endpoint(_) if is_backed(rule) => row(Well, Some(before + 1)),
        Struck::Endpoint(code) | Struck::Final(code) => row(Failed(code), Some(before + 1)),
        Struck::Same => play(rule, fault, turns[place], true),
        Struck::Calls { work } => play(rule, fault, Turn::Calls, work),
    })
}

fn left_out(rule: Rule, fault: Fault) -> Option<Left> {
    let breaks_off = matches!(
        fault,
        Fault::CutText | Fault::CutTool | Fault::BadChunk | Fault::InvalidUtf8 | Fault::ErrorEvent
    );
    let waits = matches!(fault, Fault::Hang | Fault::Stall);
    let is_day = fault == Fault::RateLimitedDay;
    let passes = matches!(struck(fault, turns(rule).0[turns(rule).1]), Struck::Passing(_));
    match rule {
        Rule::Deadline if waits || is_day => None,
        Rule::Hasty | Rule::HastyFallback if waits => None,
        Rule::Fallback | Rule::HastyFallback if is_day => None,
        Rule::Timeout | Rule::Brief if waits || fault == Fault::Slow => None,
        _ if waits || is_day => Some(Left::Endless),
        Rule::Timeout if passes => None,
        Rule::Timeout | Rule::Brief => Some(Left::Race),
        Rule::Deadline if passes || fault == Fault::Slow => Some(Left::Race),
        Rule::TokenBudget if breaks_off => Some(Left::Counted),
        Rule::Streaming if fault == Fault::Huge => Some(Left::Vast),
        _ => None,
    }
}

/// The turns of a rule's plan, and which of them is struck.
fn turns(rule: Rule) -> (&'static [Turn], usize) {
    use Turn::{Calls, Json, Text};
    match rule {
        Rule::Answer
        | Rule::Timeout
        | Rule::Hasty
        | Rule::Brief
        | Rule::Deadline
        | Rule::Retry3
        | Rule::Streaming
        | Rule::Fallback
        | Rule::HastyFallback => (&[Text], 0),
        Rule::Schema => (&[Json], 0),
        Rule::SchemaAgain => (&[Text, Json], 0),
        Rule::SchemaNever => (&[Text, Text], 0),
        Rule::AfterTool => (&[Calls, Text], 1),
        Rule::ToolTurn | Rule::Parallel | Rule::TokenBudget | Rule::StopFirst => (&[Calls, Text], 0),
        Rule::MaxSteps | Rule::Reuse | Rule::Deny => (&[Calls, Calls, Text], 0),
        Rule::Contract => (&[Calls, Text, Calls, Text], 0),
    }
}

fn struck(fault: Fault, turn: Turn) -> Struck {
    match fault {
        Fault::RateLimited
        | Fault::RateLimitedDate
        | Fault::RateLimitedBare
        | Fault::RateLimitedMilliseconds
        | Fault::RateLimitedDay => Struck::Passing("model_rate_limited"),
        // Each vendor says what it is in its own words; a row knows whose.
        Fault::ServerError | Fault::ErrorEvent => Struck::Passing("model_server_error"),
        Fault::Unavailable | Fault::Overloaded => Struck::Passing("model_overloaded"),
        Fault::Close | Fault::CutText | Fault::CutTool => Struck::Passing("model_stream_cut"),
        Fault::BadChunk | Fault::InvalidUtf8 | Fault::Html => Struck::Passing("model_bad_answer"),
        Fault::Hang | Fault::Stall => Struck::Passing("model_timeout"),
        Fault::Empty => Struck::Passing("model_empty_answer"),
        Fault::Quota => Struck::Endpoint("model_quota_exhausted"),
        Fault::Unauthorized => Struck::Endpoint("model_auth"),
        Fault::ContextLength => Struck::Final("model_context_overflow"),
        Fault::Blocked | Fault::ContentFilter | Fault::FilteredCall => Struck::Final("model_content_filter"),
        Fault::Huge => Struck::Final("model_answer_too_large"),
        Fault::Refusal => Struck::Final("model_refused"),
        Fault::Length if turn != Turn::Calls => Struck::Final("model_answer_cut"),
        Fault::Length
        | Fault::LengthBare
        | Fault::BadArguments
        | Fault::ArrayArguments
        | Fault::UnknownTool => Struck::Calls { work: false },
        Fault::DuplicateIds | Fault::EmptyId => Struck::Calls { work: true },
        Fault::Slow | Fault::NoUsage | Fault::UsageHuge | Fault::UsageNegative => Struck::Same,
    }
}

/// Another endpoint stands behind.
fn is_backed(rule: Rule) -> bool {
    matches!(rule, Rule::Fallback | Rule::HastyFallback)
}

/// So often a call is made that fails in passing.
fn tries(rule: Rule, fault: Fault) -> u64 {
    let is_long = matches!(fault, Fault::Hang | Fault::Stall | Fault::RateLimitedDay);
    match rule {
        Rule::Fallback | Rule::HastyFallback if is_long => 1,
        Rule::Fallback | Rule::HastyFallback => 2,
        Rule::Retry3 => 12,
        _ => 4,
    }
}

/// Goes through the turns, from the one that was struck on.
fn play(rule: Rule, fault: Fault, first: Turn, works: bool) -> Row {
    let (turns, place) = turns(rule);
    let row = |ends, calls: usize, is_answer| Row {
        rule,
        fault,
        times: None,
        ends,
        calls: Some(calls as u64),
        is_answer,
    };
    let (mut has_worked, mut was_told) = (place > 0, false);
    for at in place.. {
        // Behind its plan the model repeats what it hears.
        let turn = if at == place { Some(first) } else { turns.get(at).copied() };
        let calls = at + 1;
        match (rule, turn) {
            (Rule::StopFirst, Some(Turn::Calls)) if at > place || works => return row(Well, calls, true),
            (_, Some(Turn::Calls)) => {
                has_worked |= at > place || works;
                match rule {
                    Rule::MaxSteps if calls == 2 => return row(Failed("max_steps"), calls, true),
                    Rule::TokenBudget => return row(Failed("token_budget"), calls, true),
                    _ => {}
                }
            }
            (Rule::Schema | Rule::SchemaAgain | Rule::SchemaNever, Some(Turn::Json)) => {
                return row(Well, calls, true);
            }
            (Rule::Schema | Rule::SchemaAgain | Rule::SchemaNever, _) if was_told => {
                return row(Failed("output_schema_violation"), calls, true);
            }
            (Rule::Schema | Rule::SchemaAgain | Rule::SchemaNever, _) => was_told = true,
            (Rule::Contract, _) if !has_worked => {}
            (_, said) => return row(Well, calls, said.is_some()),
        }
    }
    unreachable!("every run ends")
}

#[test]
fn what_was_written_is_what_follows() {
    let always = ROWS.iter().filter(|row| row.times.is_none());
    let wrong: Vec<String> = always
        .filter_map(|row| {
            let follows = expected(row.rule, row.fault).ok()?;
            let is_same = follows.ends == row.ends
                && (follows.calls == row.calls || follows.calls.is_none() || row.calls.is_none());
            (!is_same)
                .then(|| format!("{row:?} is written, {:?} x {:?} follows", follows.ends, follows.calls))
        })
        .collect();
    // Where nothing sensible was counted, an estimate is; and who calls what its contract doesn't have has broken it.
    let own = |line: &&String| {
        !["TokenBudget", "Contract, fault: UnknownTool", "ErrorEvent"].iter().any(|it| line.contains(it))
    };
    let wrong: Vec<&String> = wrong.iter().filter(own).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
