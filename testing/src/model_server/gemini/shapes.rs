//! What a request to generate content may hold, field by field.

use crate::model_server::shape::{Field, Shape, optional, required};

const COUNT: Shape = Shape::Integer(1, i64::MAX);
const PENALTY: Shape = Shape::Number(-2.0, 2.0);

pub(super) const REQUEST: &[Field] = &[
    required("contents", Shape::List(&CONTENT)),
    optional("model", Shape::Text),
    optional("systemInstruction", CONTENT),
    optional("tools", Shape::List(&TOOL)),
    optional("toolConfig", TOOL_CONFIG),
    optional("generationConfig", GENERATION_CONFIG),
    optional("safetySettings", Shape::List(&Shape::Object)),
    optional("cachedContent", Shape::Text),
    optional("labels", Shape::Object),
    optional("serviceTier", Shape::Text),
    optional("store", Shape::Flag),
];

const CONTENT: Shape = Shape::Fields(&[
    optional("role", Shape::Word(&["user", "model"])),
    required("parts", Shape::List(&PART)),
]);

/// What a part can be; each is one of these.
pub(super) const DATA: [&str; 7] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];

const PART: Shape = Shape::Fields(&[
    optional("text", Shape::Text),
    optional("inlineData", BLOB),
    optional("fileData", Shape::Object),
    optional("functionCall", FUNCTION_CALL),
    optional("functionResponse", FUNCTION_RESPONSE),
    optional("executableCode", Shape::Object),
    optional("codeExecutionResult", Shape::Object),
    optional("thought", Shape::Flag),
    optional("thoughtSignature", Shape::Text),
    optional("videoMetadata", Shape::Object),
    optional("mediaResolution", Shape::Any),
    optional("partMetadata", Shape::Object),
]);

const BLOB: Shape = Shape::Fields(&[
    required("mimeType", Shape::Text),
    required("data", Shape::Text),
    optional("displayName", Shape::Text),
]);

const FUNCTION_CALL: Shape = Shape::Fields(&[
    required("name", Shape::Text),
    optional("args", Shape::Object),
    optional("id", Shape::Text),
]);

const FUNCTION_RESPONSE: Shape = Shape::Fields(&[
    required("name", Shape::Text),
    required("response", Shape::Object),
    optional("id", Shape::Text),
    optional("parts", Shape::List(&Shape::Object)),
    optional("willContinue", Shape::Flag),
    optional("scheduling", Shape::Text),
]);

const TOOL: Shape = Shape::Fields(&[
    optional("functionDeclarations", Shape::List(&FUNCTION)),
    optional("googleSearch", Shape::Object),
    optional("codeExecution", Shape::Object),
    optional("urlContext", Shape::Object),
]);

const FUNCTION: Shape = Shape::Fields(&[
    required("name", Shape::Text),
    optional("description", Shape::Text),
    optional("parameters", Shape::Object),
    optional("parametersJsonSchema", Shape::Object),
    optional("response", Shape::Object),
    optional("responseJsonSchema", Shape::Object),
    optional("behavior", Shape::Text),
]);

const TOOL_CONFIG: Shape = Shape::Fields(&[
    optional(
        "functionCallingConfig",
        Shape::Fields(&[
            optional("mode", Shape::Word(&["AUTO", "ANY", "NONE", "VALIDATED"])),
            optional("allowedFunctionNames", Shape::List(&Shape::Text)),
        ]),
    ),
    optional("retrievalConfig", Shape::Object),
    optional("includeServerSideToolInvocations", Shape::Flag),
]);

const GENERATION_CONFIG: Shape = Shape::Fields(&[
    optional("temperature", Shape::Number(0.0, 2.0)),
    optional("topP", Shape::Number(0.0, 1.0)),
    optional("topK", Shape::Number(1.0, 1e9)),
    optional("candidateCount", Shape::Integer(1, 1)),
    optional("maxOutputTokens", COUNT),
    optional("stopSequences", Shape::List(&Shape::Text)),
    optional("presencePenalty", PENALTY),
    optional("frequencyPenalty", PENALTY),
    optional("seed", Shape::Integer(i32::MIN as i64, i32::MAX as i64)),
    optional("responseMimeType", Shape::Word(&["text/plain", "application/json", "text/x.enum"])),
    optional("responseSchema", Shape::Object),
    optional("responseJsonSchema", Shape::Object),
    optional("responseModalities", Shape::List(&Shape::Text)),
    optional("responseLogprobs", Shape::Flag),
    optional("logprobs", COUNT),
    optional("mediaResolution", Shape::Text),
    optional("speechConfig", Shape::Object),
    optional("imageConfig", Shape::Object),
    optional(
        "thinkingConfig",
        Shape::Fields(&[
            optional("includeThoughts", Shape::Flag),
            optional("thinkingBudget", Shape::Integer(-1, 65_536)),
            optional("thinkingLevel", Shape::Word(&["MINIMAL", "LOW", "MEDIUM", "HIGH"])),
        ]),
    ),
]);

/// The keywords of the vendor's own schemas, which are not all of JSON Schema.
pub(super) const SCHEMA: [&str; 22] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
];
