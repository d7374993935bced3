//! What can end a run in the loop itself, for the reference.

use ostler_kernel::error_code::ErrorCode;

pub const CODES: [ErrorCode; 12] = [
    ErrorCode::new(
        "max_steps",
        "The agent asked its model as often as it may in one run, and had no final answer.",
        "Raise `limits.max_steps`, or look with `ostler trace` whether it goes in circles.",
    ),
    ErrorCode::new(
        "token_budget",
        "The next model call would have used more tokens than the run may use.",
        "Raise `limits.token_budget`, or lower `limits.max_tool_output`, so that tools fill less of the context.",
    ),
    ErrorCode::new(
        "run_timeout",
        "The run worked longer than its agent allows.",
        "Raise `limits.timeout`, or lower the timeouts of its tools.",
    ),
    ErrorCode::new(
        "model_answer_cut",
        "The model stopped at its own limit of output tokens.",
        "Raise that limit in the endpoint's `options`, or ask for less.",
    ),
    ErrorCode::new(
        "model_content_filter",
        "The vendor's content filter stopped the answer.",
        "Say it in other words, or use another model.",
    ),
    ErrorCode::new(
        "model_refused",
        "The model refused to answer; the message quotes it.",
        "Change the prompt or the request.",
    ),
    ErrorCode::new(
        "model_empty_answer",
        "The model answered with nothing, several times.",
        "It may pass. If it doesn't, the vendor or the endpoint's `options` are at fault.",
    ),
    ErrorCode::new(
        "output_schema_violation",
        "The output does not fit the agent's `execution.output_schema`, and did not when the model was asked once more.",
        "The message says what is wrong. Say in the prompt what is wanted, loosen the schema, or use another model.",
    ),
    ErrorCode::new(
        "agent_contract_violation",
        "The agent called a tool outside of its contract, or came to its end without a tool or a text that it demands.",
        "Look with `ostler trace` what it did; or set `execution.on_contract_violation: observe`.",
    ),
    ErrorCode::new(
        "duplicate_tool_call",
        "Told to the model: the same tool was called with the same arguments before in this run.",
        "Set `execution.duplicate_tool_call_policy: allow` for agents whose tools change their answers, such as one that waits for something.",
    ),
    ErrorCode::new(
        "tool_not_called",
        "Told to the model: the run ends with the first tool that answers, and this was not the first call.",
        "None is needed; `execution.tool_use_behavior: run_llm_again` makes all calls.",
    ),
    ErrorCode::new(
        "hook_refused",
        "Told to the model: something plugged into the loop refused the call; the message says why.",
        "Ask whoever plugged it in.",
    ),
];
