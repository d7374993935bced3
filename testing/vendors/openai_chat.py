"""The openai SDK against the wire of chat completions. What Azure shares is in functions that take a client."""

import json

import httpx
import httpx2
import openai
import pydantic

from suite import ANSWER, LOOKUP, PIXEL, ROOT, TEXT, Wrong, call, case, plan, raises, same, say, table

VENDOR = "openai chat"
CUT = (openai.APIConnectionError, httpx.HTTPError, httpx2.HTTPError)
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "Finds.", "parameters": LOOKUP}}
    for name in ("lookup", "add")
]


def client():
    return openai.OpenAI(api_key="key", base_url=f"{ROOT}/v1", max_retries=0, timeout=30)


def ask(turns, **more):
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": plan(turns)}]
    return {"model": "gpt", "messages": messages, "tools": TOOLS, **more}


def streamed(api, request):
    pieces = []
    with api.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
        return stream.get_final_completion(), pieces


def check_text(api):
    request = ask(say(TEXT))
    whole = api.chat.completions.create(**request).choices[0]
    same((whole.message.content, whole.finish_reason), (TEXT, "stop"))
    final, pieces = streamed(api, request)
    same(("".join(pieces), final.choices[0].message.content), (TEXT, TEXT))
    if len(pieces) < 3:
        raise Wrong(f"only {len(pieces)} pieces")


def check_tools(api):
    request = ask(f"{call('lookup', {'q': TEXT})} + {call('add', {'q': 'b'})}, {say('done')}")
    whole = api.chat.completions.create(**request).choices[0]
    final = streamed(api, request)[0].choices[0]
    for read in (whole, final):
        same(read.finish_reason, "tool_calls")
        calls = [(one.function.name, json.loads(one.function.arguments)) for one in read.message.tool_calls]
        same(calls, [("lookup", {"q": TEXT}), ("add", {"q": "b"})])
    same([one.id for one in whole.message.tool_calls], [one.id for one in final.message.tool_calls])
    request["messages"].append(whole.message)
    for one in whole.message.tool_calls:
        request["messages"].append({"role": "tool", "tool_call_id": one.id, "content": "found"})
    same(api.chat.completions.create(**request).choices[0].message.content, "done")


def check_usage(api):
    request = ask(say("x", "usage=100/30/40/20/5"))
    for read in (api.chat.completions.create(**request).usage, streamed(api, request)[0].usage):
        same((read.prompt_tokens, read.completion_tokens, read.total_tokens), (100, 30, 130))
        same(read.prompt_tokens_details.cached_tokens, 40)
        same(read.prompt_tokens_details.cache_write_tokens, 20)
        same(read.completion_tokens_details.reasoning_tokens, 5)


def check_structured(api):
    class Answer(pydantic.BaseModel):
        answer: int
        why: str

    request = ask(say(json.dumps(ANSWER)))
    del request["tools"]
    read = api.chat.completions.parse(**request, response_format=Answer)
    same(read.choices[0].message.parsed, Answer(**ANSWER))


def check_image(api):
    request = ask(say("a pixel"))
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    request["messages"][1]["content"] = [{"type": "text", "text": request["messages"][1]["content"]}, image]
    same(api.chat.completions.create(**request).choices[0].message.content, "a pixel")


def check_cut(api, fault):
    raises(CUT, lambda: streamed(api, ask(f"{say(TEXT)} + {call('lookup', {'q': 'abcdef'})} fault={fault}")))


def check_error(api, fault, kind, status, code):
    for send in (api.chat.completions.create, lambda **request: streamed(api, request)):
        read = raises(kind, lambda: send(**ask(say("x", f"fault={fault}"))))
        same((read.status_code, read.code), (status, code))
        after = {"429": ("1", None), "429-ms": ("1", "250")}.get(fault, (None, None))
        same((read.response.headers.get("retry-after"), read.response.headers.get("retry-after-ms")), after)


@table(VENDOR, [(check,) for check in (check_text, check_tools, check_usage, check_structured, check_image)])
def conversation(check):
    check(client())


@table(
    VENDOR,
    [
        ("401", openai.AuthenticationError, 401, "invalid_api_key"),
        ("429", openai.RateLimitError, 429, "rate_limit_exceeded"),
        ("429-ms", openai.RateLimitError, 429, "rate_limit_exceeded"),
        ("429-bare", openai.RateLimitError, 429, "rate_limit_exceeded"),
        ("quota", openai.RateLimitError, 429, "insufficient_quota"),
        ("500", openai.InternalServerError, 500, None),
        ("503", openai.InternalServerError, 503, None),
        ("529", openai.InternalServerError, 529, None),
        ("context-length", openai.BadRequestError, 400, "context_length_exceeded"),
        ("blocked", openai.BadRequestError, 400, "invalid_prompt"),
    ],
)
def error(fault, kind, status, code):
    check_error(client(), fault, kind, status, code)


@table(VENDOR, [("cut-text",), ("cut-tool",), ("close",)])
def cut(fault):
    check_cut(client(), fault)


@case(VENDOR)
def error_in_the_stream():
    read = raises(openai.APIError, lambda: streamed(client(), ask(say(TEXT, "fault=error-event"))))
    same(read.body["type"], "server_error")


@table(VENDOR, [("length", "length"), ("content_filter", "content_filter")])
def finish_reason(finish, read):
    request = ask(say("some words", f"finish={finish}"))
    same(client().chat.completions.create(**request).choices[0].finish_reason, read)


@case(VENDOR)
def refusal():
    read = client().chat.completions.create(**ask('refusal="not this"')).choices[0].message
    same((read.refusal, read.content), ("not this", None))
    same(streamed(client(), ask('refusal="not this"'))[0].choices[0].message.refusal, "not this")


@case(VENDOR)
def invalid_requests():
    raises(openai.BadRequestError, lambda: client().chat.completions.create(**ask(say("x")), extra_body={"tempratur": 1}))
    raises(openai.BadRequestError, lambda: client().chat.completions.create(**ask(say("x"), messages=[])))


@case(VENDOR)
def odd_answers():
    create = client().chat.completions.create
    same(create(**ask(say("x", "fault=empty"))).choices[0].message.content, "")
    same(create(**ask(call("lookup", {"q": "a"}) + " fault=unknown-tool")).choices[0].message.tool_calls[0].function.name, "no_such_tool")
    same(create(**ask(say("x", "fault=no-usage"))).usage, None)
    same(len(streamed(client(), ask(say("x", "fault=huge")))[0].choices[0].message.content), 10_000_000)
    same(streamed(client(), ask(say("byte by byte", "fault=slow")))[0].choices[0].message.content, "byte by byte")
