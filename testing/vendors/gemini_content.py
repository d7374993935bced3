"""The google-genai SDK against the wire of Gemini."""

import base64
import functools
import json

import httpx
import httpx2
import pydantic
from google import genai
from google.genai import errors, types

from suite import ANSWER, ANSWER_SCHEMA, LOOKUP, PIXEL, ROOT, TEXT, THOUGHT, Wrong, call, case, plan, raises, same, say, table, think

VENDOR = "gemini"
MODEL = "gemini-3-pro"


# One for all: it closes its connections when it is let go.
@functools.cache
def client(key="key"):
    options = types.HttpOptions(base_url=ROOT, timeout=30_000, retry_options=types.HttpRetryOptions(attempts=1))
    return genai.Client(api_key=key, http_options=options)


def config(**more):
    functions = [types.FunctionDeclaration(name=name, description="Finds.", parameters=LOOKUP) for name in ("lookup", "add")]
    off = types.AutomaticFunctionCallingConfig(disable=True)
    settings = {"tools": [types.Tool(function_declarations=functions)], "automatic_function_calling": off}
    return types.GenerateContentConfig(**{"system_instruction": "be brief", **settings, **more})


def user(*parts):
    return types.Content(role="user", parts=[types.Part(text=part) if isinstance(part, str) else part for part in parts])


def whole(contents, model=MODEL, **more):
    return client().models.generate_content(model=model, contents=contents, config=config(**more))


def streamed(contents, model=MODEL, **more):
    return list(client().models.generate_content_stream(model=model, contents=contents, config=config(**more)))


def joined(chunks, thought=None):
    parts = [part for chunk in chunks for part in (chunk.candidates[0].content.parts or [])]
    return "".join(part.text for part in parts if part.text and part.thought == thought)


@case(VENDOR)
def text():
    response = whole(plan(say(TEXT)))
    same((response.text, response.candidates[0].finish_reason.name), (TEXT, "STOP"))


@case(VENDOR)
def text_streamed():
    contents = plan(say(TEXT))
    chunks = streamed(contents)
    same(joined(chunks), TEXT)
    same(joined(chunks), whole(contents).text, "stream and whole")
    if len(chunks) < 3:
        raise Wrong(f"only {len(chunks)} chunks")
    same([chunk.candidates[0].finish_reason for chunk in chunks[:-1]], [None] * (len(chunks) - 1))


@case(VENDOR)
def tools_round_trip():
    turns = f"{call('lookup', {'q': TEXT})} + {call('add', {'q': 'b'})}, {say('done')}"
    contents = [user(plan(turns))]
    first = whole(contents)
    same([(one.name, one.args) for one in first.function_calls], [("lookup", {"q": TEXT}), ("add", {"q": "b"})])
    in_stream = [one for chunk in streamed(contents) for one in chunk.function_calls or []]
    same([(one.name, one.args, one.id) for one in in_stream], [(one.name, one.args, one.id) for one in first.function_calls])
    results = [
        types.Part(function_response=types.FunctionResponse(name=one.name, id=one.id, response={"result": "found"}))
        for one in first.function_calls
    ]
    contents += [first.candidates[0].content, types.Content(role="user", parts=results)]
    same(whole(contents).text, "done")
    contents[2] = types.Content(role="user", parts=results[:1])
    same(raises(errors.ClientError, lambda: whole(contents)).status, "INVALID_ARGUMENT")


@case(VENDOR)
def signatures_come_back():
    contents = [user(plan(f"{call('lookup', {'q': 'a'})}, {say('done')}"))]
    content = whole(contents).candidates[0].content
    result = types.Part.from_function_response(name="lookup", response={"result": "found"})
    contents += [content, types.Content(role="user", parts=[result])]
    same(whole(contents).text, "done")
    content.parts[0].thought_signature = base64.b64decode("Y2hhbmdlZA==")
    raises(errors.ClientError, lambda: whole(contents))
    content.parts[0].thought_signature = None
    raises(errors.ClientError, lambda: whole(contents))
    same(whole(contents, model="gemini-2.5-flash").text, "done", "an older model doesn't ask for it")


@case(VENDOR)
def thinking():
    thinks = types.ThinkingConfig(include_thoughts=True, thinking_level="HIGH")
    contents = plan(f"{say(TEXT)} {think(THOUGHT)}")
    parts = whole(contents, thinking_config=thinks).candidates[0].content.parts
    same([(part.text, part.thought) for part in parts], [(THOUGHT, True), (TEXT, None)])
    chunks = streamed(contents, thinking_config=thinks)
    same((joined(chunks, True), joined(chunks)), (THOUGHT, TEXT))
    same(chunks[-1].candidates[0].content.parts[-1].thought_signature, parts[-1].thought_signature)
    same(len(whole(contents).candidates[0].content.parts), 1, "not asked for, not shown")


@case(VENDOR)
def chat_keeps_the_history():
    chat = client().chats.create(model=MODEL, config=config())
    contents = plan(f"{say('one')} {think(THOUGHT)}, {say('two')}")
    same("".join(chunk.text or "" for chunk in chat.send_message_stream(contents)), "one")
    same(chat.send_message("and then?").text, "two")


@case(VENDOR)
def image_in():
    image = types.Part.from_bytes(data=base64.b64decode(PIXEL), mime_type="image/png")
    same(whole([user(plan(say("a pixel")), image)]).text, "a pixel")
    wrong = types.Part.from_bytes(data=b"no image", mime_type="image/png")
    raises(errors.ClientError, lambda: whole([user(plan(say("a pixel")), wrong)]))


@case(VENDOR)
def structured_output():
    class Answer(pydantic.BaseModel):
        answer: int
        why: str

    shaped = {"response_mime_type": "application/json", "tools": None}
    same(whole(plan(say(json.dumps(ANSWER))), response_schema=Answer, **shaped).parsed, Answer(**ANSWER))
    same(whole(plan(say(json.dumps(ANSWER))), response_json_schema=ANSWER_SCHEMA, **shaped).parsed, ANSWER)


@case(VENDOR)
def usage():
    contents = plan(say("x", "usage=100/30/40/0/5"))
    for read in (whole(contents).usage_metadata, streamed(contents)[-1].usage_metadata):
        same((read.prompt_token_count, read.candidates_token_count, read.total_token_count), (100, 25, 130))
        same((read.cached_content_token_count, read.thoughts_token_count), (40, 5))


@table(VENDOR, [("length", "MAX_TOKENS"), ("content_filter", "SAFETY"), ("refusal", "PROHIBITED_CONTENT")])
def finish_reason(finish, read):
    contents = plan(say("some words", f"finish={finish}"))
    same(whole(contents).candidates[0].finish_reason.name, read)
    chunks = list(client().models.generate_content_stream(model=MODEL, contents=contents, config=config()))
    same(chunks[-1].candidates[0].finish_reason.name, read)


@case(VENDOR)
def malformed_call():
    read = whole(plan(call("lookup", {"q": "a"}) + " fault=bad-arguments")).candidates[0]
    same((read.finish_reason.name, read.content.parts or []), ("MALFORMED_FUNCTION_CALL", []))


@case(VENDOR)
def blocked_prompt():
    for read in (whole(plan(say("x", "fault=blocked"))), streamed(plan(say("x", "fault=blocked")))[0]):
        same((read.prompt_feedback.block_reason.name, read.candidates), ("PROHIBITED_CONTENT", None))


@table(
    VENDOR,
    [
        ("401", errors.ClientError, 400, "INVALID_ARGUMENT", None),
        ("429", errors.ClientError, 429, "RESOURCE_EXHAUSTED", "1s"),
        ("429-ms", errors.ClientError, 429, "RESOURCE_EXHAUSTED", "0.250s"),
        ("429-bare", errors.ClientError, 429, "RESOURCE_EXHAUSTED", None),
        ("quota", errors.ClientError, 429, "RESOURCE_EXHAUSTED", None),
        ("500", errors.ServerError, 500, "INTERNAL", None),
        ("503", errors.ServerError, 503, "UNAVAILABLE", None),
        ("529", errors.ServerError, 503, "UNAVAILABLE", None),
        ("context-length", errors.ClientError, 400, "INVALID_ARGUMENT", None),
    ],
)
def error(fault, kind, status, name, delay):
    for send in (lambda: whole(plan(say("x", f"fault={fault}"))), lambda: streamed(plan(say("x", f"fault={fault}")))):
        read = raises(kind, send)
        same((read.code, read.status), (status, name))
        hints = [detail["retryDelay"] for detail in read.details["error"]["details"] if "retryDelay" in detail]
        same(hints, [delay] if delay else [])


@table(VENDOR, [("cut-text",), ("cut-tool",), ("close",)])
def cut(fault):
    turns = f"{say(TEXT)} + {call('lookup', {'q': 'abcdef'})} fault={fault}"
    # The SDK passes on what its transport says.
    raises((httpx.HTTPError, httpx2.HTTPError), lambda: streamed(plan(turns)))


@case(VENDOR)
def error_in_the_stream():
    same(raises(errors.ServerError, lambda: streamed(plan(say(TEXT, "fault=error-event")))).status, "UNAVAILABLE")


@case(VENDOR)
def invalid_requests():
    extra = types.HttpOptions(extra_body={"tempratur": 1})
    for send in (
        lambda: whole(plan(say("x")), http_options=extra),
        lambda: whole([types.Content(role="model", parts=[types.Part(text="I begin")])]),
    ):
        same(raises(errors.ClientError, send).status, "INVALID_ARGUMENT")
    unknown = raises(errors.ClientError, lambda: client().models.count_tokens(model=MODEL, contents="x"))
    same(unknown.status, "NOT_FOUND")


@case(VENDOR)
def odd_answers():
    same(whole(plan(say("x", "fault=empty"))).candidates[0].content.parts or [], [])
    same(whole(plan(call("lookup", {"q": "a"}) + " fault=unknown-tool")).function_calls[0].name, "no_such_tool")
    same(whole(plan(say("x", "fault=no-usage"))).usage_metadata, None)
    same(len(joined(streamed(plan(say("x", "fault=huge"))))), 10_000_000)
    same(joined(streamed(plan(say("byte by byte", "fault=slow")))), "byte by byte")
