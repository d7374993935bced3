"""The openai SDK against the wire of responses."""

import json

import openai
import pydantic

from openai_chat import CUT, client
from suite import ANSWER, LOOKUP, PIXEL, TEXT, THOUGHT, Wrong, call, case, plan, raises, same, say, table, think

VENDOR = "openai responses"
TOOLS = [
    {"type": "function", "name": name, "description": "Finds.", "parameters": LOOKUP, "strict": False}
    for name in ("lookup", "add")
]


def ask(turns, **more):
    entry = {"role": "user", "content": plan(turns)}
    return {"model": "gpt", "instructions": "be brief", "input": [entry], "tools": TOOLS, "store": False, **more}


def whole(turns, **more):
    return client().responses.create(**ask(turns, **more))


def streamed(request):
    with client().responses.stream(**request) as stream:
        events = list(stream)
        return stream.get_final_response(), events


def plain(response):
    """A response without what the SDK adds while it parses."""
    items = [{name: value for name, value in item.items() if value is not None} for item in response.to_dict()["output"]]
    for item in items:
        item.pop("parsed_arguments", None)
        for part in item.get("content") or []:
            part.pop("parsed", None)
    return items


@case(VENDOR)
def text():
    response = whole(say(TEXT))
    same((response.output_text, response.status, response.error), (TEXT, "completed", None))


@case(VENDOR)
def text_streamed():
    request = ask(say(TEXT))
    response, events = streamed(request)
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    same(("".join(pieces), response.output_text), (TEXT, TEXT))
    if len(pieces) < 3:
        raise Wrong(f"only {len(pieces)} pieces")
    same(plain(response), plain(client().responses.create(**request)), "stream and whole")
    raw = list(client().responses.create(**request, stream=True))
    same([event.sequence_number for event in raw], list(range(len(raw))))
    names = [event.type.removeprefix("response.") for event in raw if not event.type.endswith("delta")]
    same(
        names,
        ["created", "in_progress", "output_item.added", "content_part.added", "output_text.done", "content_part.done",
         "output_item.done", "completed"],
    )


@case(VENDOR)
def tools_round_trip():
    request = ask(f"{say('both')} + {call('lookup', {'q': TEXT})} + {call('add', {'q': 'b'})}, {say('done')}")
    response, events = streamed(request)
    same(plain(response), plain(client().responses.create(**request)), "stream and whole")
    calls = [item for item in response.output if item.type == "function_call"]
    same([(one.name, json.loads(one.arguments)) for one in calls], [("lookup", {"q": TEXT}), ("add", {"q": "b"})])
    deltas = "".join(event.delta for event in events if event.type == "response.function_call_arguments.delta")
    same(deltas, calls[0].arguments + calls[1].arguments)
    request["input"] += client().responses.create(**request).output
    outputs = [{"type": "function_call_output", "call_id": one.call_id, "output": "found"} for one in calls]
    request["input"] += outputs
    same(client().responses.create(**request).output_text, "done")
    request["input"].pop()
    raises(openai.BadRequestError, lambda: client().responses.create(**request))


@case(VENDOR)
def reasoning_round_trip():
    more = {"reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}
    request = ask(f"{call('lookup', {'q': 'a'})} {think(THOUGHT)}, {say('done')}", **more)
    first = client().responses.create(**request)
    same((first.output[0].type, first.output[0].summary[0].text), ("reasoning", THOUGHT))
    same(plain(streamed(request)[0]), plain(first), "stream and whole")
    output = {"type": "function_call_output", "call_id": first.output[1].call_id, "output": "found"}
    request["input"] += [*first.output, output]
    same(client().responses.create(**request).output_text, "done")
    forgotten = {**request, "input": [one for one in request["input"] if one is not first.output[0]]}
    raises(openai.BadRequestError, lambda: client().responses.create(**forgotten))
    first.output[0].encrypted_content = "changed"
    raises(openai.BadRequestError, lambda: client().responses.create(**request))


@case(VENDOR)
def reasoning_without_summary():
    response = whole(f"{say('done')} {think(THOUGHT)}")
    same((response.output[0].summary, response.output[0].encrypted_content), ([], None))


@case(VENDOR)
def image_in():
    def content(data):
        image = {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{data}"}
        return [{"role": "user", "content": [{"type": "input_text", "text": plan(say("a pixel"))}, image]}]

    same(whole("", input=content(PIXEL)).output_text, "a pixel")
    raises(openai.BadRequestError, lambda: whole("", input=content("bm90IGFuIGltYWdl")))


@case(VENDOR)
def structured_output():
    class Answer(pydantic.BaseModel):
        answer: int
        why: str

    read = client().responses.parse(**ask(say(json.dumps(ANSWER)), tools=[]), text_format=Answer)
    same(read.output_parsed, Answer(**ANSWER))


@case(VENDOR)
def usage():
    request = ask(say("x", "usage=100/30/40/20/5"))
    for read in (client().responses.create(**request).usage, streamed(request)[0].usage):
        same((read.input_tokens, read.output_tokens, read.total_tokens), (100, 30, 130))
        same((read.input_tokens_details.cached_tokens, read.input_tokens_details.cache_write_tokens), (40, 20))
        same(read.output_tokens_details.reasoning_tokens, 5)


@table(VENDOR, [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def incomplete(finish, reason):
    request = ask(say("some words", f"finish={finish}"))
    for read in (client().responses.create(**request), list(client().responses.create(**request, stream=True))[-1].response):
        same((read.status, read.incomplete_details.reason, read.output_text), ("incomplete", reason, "some words"))


@case(VENDOR)
def refusal():
    same(whole('refusal="not this"').output[0].content[0].refusal, "not this")
    _, events = streamed(ask('refusal="not this"'))
    same("".join(event.delta for event in events if event.type == "response.refusal.delta"), "not this")


@table(
    VENDOR,
    [
        ("401", openai.AuthenticationError, 401, "invalid_api_key"),
        ("429", openai.RateLimitError, 429, "rate_limit_exceeded"),
        ("429-ms", openai.RateLimitError, 429, "rate_limit_exceeded"),
        ("quota", openai.RateLimitError, 429, "insufficient_quota"),
        ("500", openai.InternalServerError, 500, None),
        ("503", openai.InternalServerError, 503, None),
        ("context-length", openai.BadRequestError, 400, "context_length_exceeded"),
        ("blocked", openai.BadRequestError, 400, "invalid_prompt"),
    ],
)
def error(fault, kind, status, code):
    for send in (lambda: whole(say("x", f"fault={fault}")), lambda: streamed(ask(say("x", f"fault={fault}")))):
        read = raises(kind, send)
        same((read.status_code, read.code), (status, code))
        after = {"429": ("1", None), "429-ms": ("1", "250")}.get(fault, (None, None))
        same((read.response.headers.get("retry-after"), read.response.headers.get("retry-after-ms")), after)


@table(VENDOR, [("cut-text",), ("cut-tool",), ("close",)])
def cut(fault):
    raises(CUT, lambda: streamed(ask(f"{say(TEXT)} + {call('lookup', {'q': 'abcdef'})} fault={fault}")))


@case(VENDOR)
def error_in_the_stream():
    events = list(client().responses.create(**ask(say(TEXT, "fault=error-event")), stream=True))
    same((events[-2].type, events[-2].code), ("error", "server_error"))
    same((events[-1].type, events[-1].response.error.code), ("response.failed", "server_error"))


@case(VENDOR)
def invalid_requests():
    raises(openai.BadRequestError, lambda: whole(say("x"), extra_body={"tempratur": 1}))
    raises(openai.BadRequestError, lambda: whole(say("x"), previous_response_id="resp_1"))
    raises(openai.BadRequestError, lambda: whole(say("x"), input=[{"role": "tool", "content": "x"}]))


@case(VENDOR)
def odd_answers():
    same(whole(say("x", "fault=empty")).output, [])
    same(whole(call("lookup", {"q": "a"}) + " fault=unknown-tool").output[0].name, "no_such_tool")
    same(whole(say("x", "fault=no-usage")).usage, None)
    same(len(streamed(ask(say("x", "fault=huge")))[0].output_text), 10_000_000)
