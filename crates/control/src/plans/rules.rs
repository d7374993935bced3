//! What bounds a run and what shape it is held to, from what its agent declares.

use ostler_kernel::plan::{AfterTool, Duplicates, Limits, OnViolation, Rules};
use ostler_spec::{AgentSpec, ContractViolation, DuplicateToolCall, ExecutionProfile, ToolUseBehavior};

use super::millis;

pub(super) fn limits(agent: &AgentSpec) -> Limits {
    Limits {
        max_steps: agent.limits.max_steps,
        timeout_ms: agent.limits.timeout.map(|timeout| millis(timeout.get())),
        token_budget: agent.limits.token_budget,
        max_tool_output: usize::try_from(agent.limits.max_tool_output).unwrap_or(usize::MAX),
    }
}

pub(super) fn rules(agent: &AgentSpec) -> Rules {
    let execution = &agent.execution;
    Rules {
        output_schema: execution.output_schema.clone(),
        contract: match execution.profile {
            ExecutionProfile::Contract => {
                execution.tool_sequence.iter().map(|tool| tool.name.clone()).collect()
            }
            ExecutionProfile::Dynamic => Vec::new(),
        },
        markers: execution.required_output_markers.clone(),
        on_violation: match execution.on_contract_violation {
            ContractViolation::NonRetryableError => OnViolation::Fail,
            ContractViolation::Observe => OnViolation::Observe,
        },
        duplicates: match execution.duplicate_tool_call_policy {
            DuplicateToolCall::Allow => Duplicates::Call,
            DuplicateToolCall::ShortCircuit => Duplicates::Reuse,
            DuplicateToolCall::Deny => Duplicates::Deny,
        },
        after_tool: match execution.tool_use_behavior {
            ToolUseBehavior::RunModelAgain => AfterTool::AskModel,
            ToolUseBehavior::StopOnFirstTool => AfterTool::Stop,
        },
    }
}
