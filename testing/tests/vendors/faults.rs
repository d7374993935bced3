//! Each way to misbehave, on each wire: a failure with its own code and class, or an answer after all.

use std::time::Duration;

use ostler_kernel::ErrorClass::{self, Permanent, Transient};
use ostler_llm::{Finish, complete};
use ostler_testing::model_server::{Fault, Turn};
use serde_json::json;

use crate::setup::{ALL, Ground, KEY, Vendor, offer, user};

enum Comes {
    Fails(ErrorClass, &'static str),
    /// With an answer that ends so.
    Ends(Finish),
}

use Comes::{Ends, Fails};

/// What comes of a fault in an answer that calls a tool, or in one of text where that is what it strikes.
fn expected(fault: Fault, vendor: &Vendor) -> Option<Comes> {
    Some(match fault {
        Fault::RateLimited
        | Fault::RateLimitedDate
        | Fault::RateLimitedBare
        | Fault::RateLimitedMilliseconds
        | Fault::RateLimitedDay => Fails(Transient, "model_rate_limited"),
        Fault::Quota => Fails(Permanent, "model_quota_exhausted"),
        Fault::ServerError => Fails(Transient, "model_server_error"),
        Fault::Unavailable | Fault::Overloaded => Fails(Transient, "model_overloaded"),
        Fault::Unauthorized => Fails(Permanent, "model_auth"),
        Fault::ContextLength => Fails(Permanent, "model_context_overflow"),
        Fault::Blocked if vendor.provider == "gemini" => Ends(Finish::ContentFilter),
        Fault::Blocked if vendor.provider == "ollama" => Fails(Permanent, "model_bad_request"),
        Fault::Blocked => Fails(Permanent, "model_content_filter"),
        Fault::Close | Fault::CutText | Fault::CutTool => Fails(Transient, "model_stream_cut"),
        Fault::BadChunk | Fault::InvalidUtf8 | Fault::Html => Fails(Transient, "model_bad_answer"),
        Fault::Huge => Fails(Permanent, "model_answer_too_large"),
        Fault::Hang | Fault::Stall => Fails(Transient, "model_timeout"),
        Fault::BadArguments | Fault::ArrayArguments if !vendor.writes_arguments() => return None,
        Fault::BadArguments
        | Fault::ArrayArguments
        | Fault::DuplicateIds
        | Fault::EmptyId
        | Fault::UnknownTool => Ends(Finish::ToolCalls),
        Fault::Slow | Fault::NoUsage | Fault::UsageHuge | Fault::UsageNegative | Fault::Empty => {
            Ends(Finish::Stop)
        }
        Fault::Refusal => Ends(vendor.finish(Finish::Refusal)),
        // Where there is no filter it is a call as any other.
        Fault::FilteredCall if vendor.provider == "ollama" => Ends(Finish::ToolCalls),
        Fault::ContentFilter | Fault::FilteredCall => Ends(vendor.finish(Finish::ContentFilter)),
        Fault::Length | Fault::LengthBare => Ends(Finish::Length),
        // What is said in the middle is the vendor's own: overloaded, or broken.
        Fault::ErrorEvent => return None,
    })
}

fn strikes_calls(fault: Fault) -> bool {
    use Fault::{ArrayArguments, BadArguments, CutTool, DuplicateIds, EmptyId, FilteredCall, UnknownTool};
    [ArrayArguments, BadArguments, CutTool, DuplicateIds, EmptyId, FilteredCall, UnknownTool].contains(&fault)
}

#[tokio::test]
async fn every_fault_of_every_vendor_has_its_code() {
    let mut n_checked = 0;
    for vendor in ALL {
        for fault in Fault::ALL {
            let Some(expected) = expected(fault, &vendor) else { continue };
            n_checked += 1;
            let turn = match strikes_calls(fault) {
                true => Turn::call("look-up", &json!({"q": "a question"})),
                false => Turn::text("a few words to be cut in the middle").chunk(5),
            };
            let ground = Ground::start(vendor, [turn.fault(fault)]).await;
            let mut request = ground.request(vec![user("go")]);
            request.tools = vec![offer("look-up")];
            if matches!(fault, Fault::Hang | Fault::Stall) {
                for option in ["first_byte_timeout_ms", "idle_timeout_ms"] {
                    request.endpoint.options.insert(option.into(), "100".into());
                }
            }
            let answer = complete(&ground.registry, request, |_| {}).await;
            let name = format!("{} {fault}: {answer:?}", vendor.name);
            match (expected, answer) {
                (Fails(class, code), Err(failure)) => {
                    assert_eq!((failure.class, failure.code.as_str()), (class, code), "{name}");
                    assert!(!failure.message.contains(KEY), "{name}");
                }
                (Ends(finish), Ok(completion)) => {
                    assert_eq!(completion.finish, finish, "{name}");
                    let is_estimated = matches!(fault, Fault::NoUsage | Fault::UsageNegative);
                    let usage = completion.usage.expect("counted or estimated");
                    assert_eq!(usage.estimated, is_estimated, "{name}");
                    assert!(usage.input_tokens > 0, "{name}");
                }
                _ => panic!("{name}"),
            }
        }
    }
    println!("vendors: {} wires, {n_checked} faults", ALL.len());
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_worth_another_try() {
    for vendor in ALL {
        let turn = Turn::text("a few words to be cut in the middle").chunk(5).fault(Fault::ErrorEvent);
        let ground = Ground::start(vendor, [turn]).await;
        let failure = complete(&ground.registry, ground.request(vec![user("go")]), |_| {}).await.unwrap_err();
        let codes = ["model_overloaded", "model_server_error"];
        assert!(
            failure.is_retryable() && codes.contains(&failure.code.as_str()),
            "{}: {failure}",
            vendor.name
        );
    }
}

#[tokio::test]
async fn the_vendor_says_when_to_come_back() {
    for vendor in ALL {
        for (fault, asked) in [(Fault::RateLimited, 1000), (Fault::RateLimitedMilliseconds, 250)] {
            let ground = Ground::start(vendor, [Turn::text("hi").fault(fault)]).await;
            let failure =
                complete(&ground.registry, ground.request(vec![user("go")]), |_| {}).await.unwrap_err();
            assert_eq!(failure.retry_after(), Some(Duration::from_millis(asked)), "{} {fault}", vendor.name);
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_says_what_it_took_and_a_refusal_takes_nothing() {
    for vendor in ALL {
        for fault in [Fault::CutText, Fault::ErrorEvent, Fault::BadChunk] {
            let turn = Turn::text("a few words to be cut in the middle").chunk(5).fault(fault);
            let ground = Ground::start(vendor, [turn]).await;
            let mut shown = 0;
            let request = ground.request(vec![user("go on and on")]);
            let failure = complete(&ground.registry, request, |_| shown += 1).await.unwrap_err();
            let name = format!("{} {fault}: {failure:?}", vendor.name);
            let spent = failure.spent.unwrap_or_else(|| panic!("{name}"));
            assert!(shown > 0 && spent.input_tokens > 0 && spent.output_tokens > 0, "{name}");
        }
        for fault in [Fault::ServerError, Fault::RateLimited, Fault::Close, Fault::Html] {
            let ground = Ground::start(vendor, [Turn::text("hi").fault(fault)]).await;
            let request = ground.request(vec![user("go")]);
            let failure = complete(&ground.registry, request, |_| {}).await.unwrap_err();
            assert_eq!(failure.spent, None, "{} {fault}: {failure:?}", vendor.name);
        }
    }
}
