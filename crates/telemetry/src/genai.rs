//! The names that the semantic conventions for generative AI give to operations and attributes, and our own beside them.

pub const OPERATION: &str = "gen_ai.operation.name";
pub const PROVIDER: &str = "gen_ai.provider.name";
pub const AGENT_NAME: &str = "gen_ai.agent.name";
pub const AGENT_DESCRIPTION: &str = "gen_ai.agent.description";
pub const AGENT_ID: &str = "gen_ai.agent.id";
pub const WORKFLOW_NAME: &str = "gen_ai.workflow.name";
pub const CONVERSATION: &str = "gen_ai.conversation.id";

pub const REQUEST_MODEL: &str = "gen_ai.request.model";
pub const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub const STOP_SEQUENCES: &str = "gen_ai.request.stop_sequences";
pub const RESPONSE_ID: &str = "gen_ai.response.id";
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub const OUTPUT_TYPE: &str = "gen_ai.output.type";

pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub const TOKEN_TYPE: &str = "gen_ai.token.type";
pub const TOKEN_CACHE: &str = "gen_ai.token.cache";
pub const TOKEN_PHASE: &str = "gen_ai.token.phase";

pub const TOOL_NAME: &str = "gen_ai.tool.name";
pub const TOOL_TYPE: &str = "gen_ai.tool.type";
pub const TOOL_DESCRIPTION: &str = "gen_ai.tool.description";
pub const TOOL_DEFINITIONS: &str = "gen_ai.tool.definitions";
pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";

/// Only for who asked for them: they hold what was said.
pub const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";

pub const SERVER_ADDRESS: &str = "server.address";
pub const SERVER_PORT: &str = "server.port";
pub const ERROR_TYPE: &str = "error.type";

pub const NAMESPACE: &str = "ostler.namespace";
pub const TASK: &str = "ostler.task.id";
pub const TASK_NAME: &str = "ostler.task.name";
pub const TASK_STATE: &str = "ostler.task.state";
pub const RUN: &str = "ostler.run.id";
pub const ATTEMPT: &str = "ostler.attempt.number";
pub const ATTEMPT_END: &str = "ostler.attempt.end";
pub const STEP: &str = "ostler.step.index";
pub const ENDPOINT: &str = "ostler.endpoint.name";
pub const TRIES: &str = "ostler.step.tries";

pub const CHAT: &str = "chat";
pub const EXECUTE_TOOL: &str = "execute_tool";
pub const INVOKE_AGENT: &str = "invoke_agent";
pub const INVOKE_WORKFLOW: &str = "invoke_workflow";

pub const OPERATION_DURATION: &str = "gen_ai.client.operation.duration";
pub const TOKEN_USAGE: &str = "gen_ai.client.token.usage";
pub const FIRST_CHUNK: &str = "gen_ai.client.operation.time_to_first_chunk";
pub const OUTPUT_CHUNK: &str = "gen_ai.client.operation.time_per_output_chunk";
pub const WORKFLOW_DURATION: &str = "gen_ai.workflow.duration";
pub const INFERENCE_TOKENS: &str = "gen_ai.client.inference.tokens";
pub const INPUT_BY_CACHE: &str = "gen_ai.client.inference.input_tokens_by_cache";
pub const OUTPUT_BY_PHASE: &str = "gen_ai.client.inference.output_tokens_by_phase";

/// An agent is known by its name where it lives.
pub fn agent_id(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// What the conventions call a vendor that our endpoints name so. Whoever they don't know keeps its name.
pub fn provider(name: &str) -> &str {
    match name.trim() {
        "azure-openai" | "azure_openai" | "azure" => "azure.ai.openai",
        "gemini" | "google" => "gcp.gemini",
        "openai-compatible" | "openai_compatible" => "openai",
        other => other,
    }
}
