"""The anthropic SDK against the wire of messages."""

import json

import anthropic
import httpx
import httpx2
import pydantic

from suite import (
    ANSWER, LOOKUP, PIXEL, ROOT, TEXT, THOUGHT, Wrong, call, case, plan, raises, same, say, table, think,
)

VENDOR = "anthropic"
CUT = (anthropic.APIConnectionError, httpx.HTTPError, httpx2.HTTPError)
TOOLS = [{"name": name, "description": "Finds.", "input_schema": LOOKUP} for name in ("lookup", "add")]


def client(key="key"):
    return anthropic.Anthropic(api_key=key, base_url=ROOT, max_retries=0, timeout=30)


def ask(turns, **more):
    request = {"model": "claude-opus-5-5", "max_tokens": 4096, "system": "be brief", "tools": TOOLS, **more}
    content = request.pop("content", None)
    messages = [{"role": "user", "content": [*content, {"type": "text", "text": plan(turns)}] if content else plan(turns)}]
    return {"messages": messages, **request}


def whole(turns, **more):
    return client().messages.create(**ask(turns, **more))


def streamed(request):
    with client().messages.stream(**request) as stream:
        pieces = list(stream.text_stream)
        message = stream.get_final_message()
    return message, pieces


def said(message):
    """A message without its usage, which is counted from the bytes of the request unless it is scripted."""
    return {name: value for name, value in message.to_dict().items() if name != "usage"}


@case(VENDOR)
def text():
    message = whole(say(TEXT))
    same([(block.type, block.text) for block in message.content], [("text", TEXT)])
    same((message.stop_reason, message.role, message.model), ("end_turn", "assistant", "claude-opus-5-5"))


@case(VENDOR)
def text_streamed():
    request = ask(say(TEXT))
    message, pieces = streamed(request)
    same("".join(pieces), TEXT)
    if len(pieces) < 3:
        raise Wrong(f"only {len(pieces)} pieces")
    same(said(message), said(client().messages.create(**request)), "stream and whole")


@case(VENDOR)
def tool_round_trip():
    request = ask(f"{call('lookup', {'q': TEXT})}, {say('done')}")
    first = client().messages.create(**request)
    same((first.stop_reason, first.content[0].name, first.content[0].input), ("tool_use", "lookup", {"q": TEXT}))
    result = {"type": "tool_result", "tool_use_id": first.content[0].id, "content": "found"}
    request["messages"] += [first.to_param(), {"role": "user", "content": [result]}]
    same(client().messages.create(**request).content[0].text, "done")


@case(VENDOR)
def parallel_tools_streamed():
    request = ask(f"{say('both')} + {call('lookup', {'q': 'a'})} + {call('add', {'q': 'b'})}, {say('done')}")
    first, _ = streamed(request)
    same([block.type for block in first.content], ["text", "tool_use", "tool_use"])
    calls = first.content[1:]
    same([(one.name, one.input) for one in calls], [("lookup", {"q": "a"}), ("add", {"q": "b"})])
    results = [
        {"type": "tool_result", "tool_use_id": one.id, "content": [{"type": "text", "text": "x"}], "is_error": True}
        for one in calls
    ]
    request["messages"] += [first.to_param(), {"role": "user", "content": results}]
    same(streamed(request)[0].content[0].text, "done")


@case(VENDOR)
def tool_deltas():
    with client().messages.stream(**ask(call("lookup", {"q": "0123456789"}))) as stream:
        partial = "".join(event.partial_json for event in stream if event.type == "input_json")
    same(json.loads(partial), {"q": "0123456789"})


@case(VENDOR)
def thinking_round_trip():
    thinks = {"type": "enabled", "budget_tokens": 1024}
    plays = f"{call('lookup', {'q': 'a'})} {think(THOUGHT)}, {say('done')} {think('so')}"
    request = ask(plays, model="claude-sonnet-4-5", thinking=thinks)
    first, _ = streamed(request)
    same(first.content[0].thinking, THOUGHT)
    same(said(first), said(client().messages.create(**request)), "stream and whole")
    result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "found"}
    request["messages"] += [first.to_param(), {"role": "user", "content": [result]}]
    same(client().messages.create(**request).content[1].text, "done")
    request["messages"][1]["content"] = first.content[1:]
    same(raises(anthropic.BadRequestError, lambda: client().messages.create(**request)).type, "invalid_request_error")


@case(VENDOR)
def thinking_redacted_and_omitted():
    message = whole(f"{say('done')} redacted=secret")
    same([block.type for block in message.content], ["redacted_thinking", "text"])
    hidden, _ = streamed(ask(f"{say('done')} {think(THOUGHT)}", thinking={"type": "adaptive", "display": "omitted"}))
    same((hidden.content[0].thinking, bool(hidden.content[0].signature)), ("", True))
    again = ask(say("again"))
    again["messages"] += [message.to_param(), {"role": "user", "content": "go on"}, hidden.to_param(), {"role": "user", "content": plan(say("fine"))}]
    same(client().messages.create(**again).content[0].text, "fine")


@case(VENDOR)
def image_in():
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    same(whole(say("a pixel"), content=[{"type": "image", "source": source}]).content[0].text, "a pixel")
    wrong = {"type": "image", "source": {**source, "media_type": "image/jpeg"}}
    raises(anthropic.BadRequestError, lambda: whole(say("a pixel"), content=[wrong]))


@case(VENDOR)
def structured_output():
    class Answer(pydantic.BaseModel):
        answer: int
        why: str

    message = client().messages.parse(**ask(say(json.dumps(ANSWER))), output_format=Answer)
    same(message.parsed_output, Answer(**ANSWER))


@case(VENDOR)
def usage():
    turn = say("x", "usage=100/30/40/20/5")
    request = ask(turn)
    for read in (client().messages.create(**request).usage, streamed(request)[0].usage):
        same((read.input_tokens, read.output_tokens), (40, 30))
        same((read.cache_read_input_tokens, read.cache_creation_input_tokens), (40, 20))
        same(read.output_tokens_details.thinking_tokens, 5)


@case(VENDOR)
def prompt_cache():
    system = [{"type": "text", "text": plan("") + "long " * 500, "cache_control": {"type": "ephemeral"}}]
    first = whole(say("x"), system=system).usage
    second = whole(say("y"), system=system).usage
    if not first.cache_creation_input_tokens > 500 or first.cache_read_input_tokens:
        raise Wrong(f"nothing was written: {first}")
    same((second.cache_read_input_tokens, second.cache_creation_input_tokens), (first.cache_creation_input_tokens, 0))


@table(VENDOR, [("length", "max_tokens"), ("refusal", "refusal"), ("content_filter", "refusal"), ("pause", "pause_turn")])
def stop_reason(finish, read):
    request = ask(say("some words", f"finish={finish}"))
    message = client().messages.create(**request)
    same(message.stop_reason, read)
    same(said(streamed(request)[0]), said(message), "stream and whole")


@case(VENDOR)
def pause_goes_on():
    request = ask(f"{say('searching', 'finish=pause')}, {say('found')}")
    request["messages"].append(client().messages.create(**request).to_param())
    same(client().messages.create(**request).content[0].text, "found")


@case(VENDOR)
def refused_with_reason():
    message = whole("refusal=\"not this\"")
    same((message.content, message.stop_reason, message.stop_details.explanation), ([], "refusal", "not this"))


@table(
    VENDOR,
    [
        ("401", anthropic.AuthenticationError, 401, "authentication_error"),
        ("429", anthropic.RateLimitError, 429, "rate_limit_error"),
        ("429-ms", anthropic.RateLimitError, 429, "rate_limit_error"),
        ("429-bare", anthropic.RateLimitError, 429, "rate_limit_error"),
        ("quota", anthropic.APIStatusError, 402, "billing_error"),
        ("500", anthropic.InternalServerError, 500, "api_error"),
        ("503", anthropic.ServiceUnavailableError, 503, "api_error"),
        ("529", anthropic.OverloadedError, 529, "overloaded_error"),
        ("context-length", anthropic.BadRequestError, 400, "invalid_request_error"),
        ("blocked", anthropic.BadRequestError, 400, "invalid_request_error"),
    ],
)
def error(fault, kind, status, name):
    for send in (lambda: whole(say("x", f"fault={fault}")), lambda: streamed(ask(say("x", f"fault={fault}")))):
        read = raises(kind, send)
        same((read.status_code, read.type), (status, name))
        after = {"429": ("1", None), "429-ms": ("1", "250")}.get(fault, (None, None))
        same((read.response.headers.get("retry-after"), read.response.headers.get("retry-after-ms")), after)


@case(VENDOR)
def retried_by_the_sdk():
    patient = anthropic.Anthropic(api_key="key", base_url=ROOT, max_retries=2)
    same(patient.messages.create(**ask(say("at last", "fault=429-ms:2"))).content[0].text, "at last")


@case(VENDOR)
def no_key():
    read = raises(anthropic.AuthenticationError, lambda: anthropic.Anthropic(api_key="a b", base_url=ROOT, max_retries=0).messages.create(**ask(say("x"))))
    same(read.status_code, 401)


@case(VENDOR)
def invalid_requests():
    raises(anthropic.BadRequestError, lambda: whole(say("x"), extra_body={"temperature": 0.5}))
    raises(anthropic.BadRequestError, lambda: whole(say("x"), messages=[]))
    raises(anthropic.NotFoundError, lambda: client().beta.messages.count_tokens(model="m", messages=[]))


@table(VENDOR, [("cut-text",), ("cut-tool",), ("close",)])
def cut(fault):
    raises(CUT, lambda: streamed(ask(f"{say(TEXT)} + {call('lookup', {'q': 'abcdef'})} fault={fault}")))


@case(VENDOR)
def error_in_the_stream():
    read = raises(anthropic.APIStatusError, lambda: streamed(ask(say(TEXT, "fault=error-event"))))
    same(read.body["error"]["type"], "overloaded_error")


@case(VENDOR)
def odd_answers():
    same(whole(say("x", "fault=empty")).content, [])
    same([one.name for one in whole(call("lookup", {"q": "a"}) + " fault=unknown-tool").content], ["no_such_tool"])
    twice = whole(f"{call('lookup', {'q': 'a'})} + {call('add', {'q': 'b'})} fault=duplicate-ids").content
    same(twice[0].id, twice[1].id)
    same(len(streamed(ask(say("x", "fault=huge")))[0].content[0].text), 10_000_000)
    same(streamed(ask(say("byte by byte", "fault=slow")))[0].content[0].text, "byte by byte")
