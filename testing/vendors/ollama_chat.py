"""The ollama SDK against the wire of its chat."""

import json

import httpx
import ollama

from suite import ANSWER, ANSWER_SCHEMA, LOOKUP, PIXEL, ROOT, TEXT, THOUGHT, Wrong, call, case, plan, raises, same, say, table, think

VENDOR = "ollama"
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "Finds.", "parameters": LOOKUP}}
    for name in ("lookup", "add")
]


def client():
    return ollama.Client(host=ROOT, timeout=30)


def ask(turns, **more):
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": plan(turns)}]
    return {"model": "llama", "messages": messages, "tools": TOOLS, **more}


def streamed(request):
    return list(client().chat(**request, stream=True))


def joined(chunks, field="content"):
    return "".join(getattr(chunk.message, field) or "" for chunk in chunks)


@case(VENDOR)
def text():
    response = client().chat(**ask(say(TEXT)))
    same((response.message.content, response.done, response.done_reason), (TEXT, True, "stop"))


@case(VENDOR)
def text_streamed():
    chunks = streamed(ask(say(TEXT)))
    same(joined(chunks), TEXT)
    same([chunk.done for chunk in chunks], [False] * (len(chunks) - 1) + [True])
    if len(chunks) < 4:
        raise Wrong(f"only {len(chunks)} lines")


@case(VENDOR)
def tools_round_trip():
    request = ask(f"{call('lookup', {'q': TEXT})} + {call('add', {'q': 'b'})}, {say('done')}")
    whole = client().chat(**request).message
    in_stream = [one for chunk in streamed(request) for one in chunk.message.tool_calls or []]
    for calls in (whole.tool_calls, in_stream):
        same([(one.function.name, one.function.arguments) for one in calls], [("lookup", {"q": TEXT}), ("add", {"q": "b"})])
    request["messages"].append(whole)
    for one in whole.tool_calls:
        request["messages"].append({"role": "tool", "tool_name": one.function.name, "content": "found"})
    same(client().chat(**request).message.content, "done")


@case(VENDOR)
def thinking():
    request = ask(f"{say(TEXT)} {think(THOUGHT)}, {say('done')}", think=True)
    message = client().chat(**request).message
    same((message.thinking, message.content), (THOUGHT, TEXT))
    chunks = streamed(request)
    same((joined(chunks, "thinking"), joined(chunks)), (THOUGHT, TEXT))
    request["messages"] += [message, {"role": "user", "content": "go on"}]
    same(client().chat(**request).message.content, "done")
    same(client().chat(**ask(f"{say('x')} {think(THOUGHT)}", think=False)).message.thinking, None)


@case(VENDOR)
def image_in():
    request = ask(say("a pixel"))
    request["messages"][1]["images"] = [PIXEL]
    same(client().chat(**request).message.content, "a pixel")
    request["messages"][1]["images"] = [b"no image"]
    same(raises(ollama.ResponseError, lambda: client().chat(**request)).status_code, 400)


@case(VENDOR)
def structured_output():
    same(json.loads(client().chat(**ask(say(json.dumps(ANSWER)), format=ANSWER_SCHEMA)).message.content), ANSWER)


@case(VENDOR)
def options():
    same(client().chat(**ask(say("x"), options={"temperature": 0.5, "num_ctx": 8192, "stop": ["a"]})).message.content, "x")
    raises(ollama.ResponseError, lambda: client().chat(**ask(say("x"), options={"tempratur": 1})))


@case(VENDOR)
def usage():
    request = ask(say("x", "usage=100/30"))
    for read in (client().chat(**request), streamed(request)[-1]):
        same((read.prompt_eval_count, read.eval_count), (100, 30))


@case(VENDOR)
def cut_off_by_its_limit():
    same(client().chat(**ask(say("some words", "finish=length"))).done_reason, "length")


@table(
    VENDOR,
    [
        ("401", 401, "unauthorized"),
        ("429", 429, "too many concurrent requests"),
        ("500", 500, "an error was encountered while running the model: unexpected EOF"),
        ("503", 503, "server busy, please try again.  maximum pending requests exceeded"),
        ("529", 503, "server busy, please try again.  maximum pending requests exceeded"),
        ("context-length", 400, "the input length exceeds the context length"),
        ("bad-arguments", 500, "an error was encountered while running the model: unexpected EOF"),
    ],
)
def error(fault, status, message):
    for send in (lambda: client().chat(**ask(say("x", f"fault={fault}"))), lambda: streamed(ask(say("x", f"fault={fault}")))):
        read = raises(ollama.ResponseError, send)
        same((read.status_code, read.error), (status, message))


@table(VENDOR, [("cut-text",), ("cut-tool",), ("close",)])
def cut(fault):
    turns = f"{say(TEXT)} + {call('lookup', {'q': 'abcdef'})} fault={fault}"
    raises((httpx.HTTPError, json.JSONDecodeError), lambda: streamed(ask(turns)))


@case(VENDOR)
def error_in_the_stream():
    same("unexpected EOF" in raises(ollama.ResponseError, lambda: streamed(ask(say(TEXT, "fault=error-event")))).error, True)


@case(VENDOR)
def odd_answers():
    same(client().chat(**ask(say("x", "fault=empty"))).message.content, "")
    same(client().chat(**ask(call("lookup", {"q": "a"}) + " fault=unknown-tool")).message.tool_calls[0].function.name, "no_such_tool")
    same(client().chat(**ask(say("x", "fault=no-usage"))).eval_count, None)
    same(len(joined(streamed(ask(say("x", "fault=huge"))))), 10_000_000)
    same(joined(streamed(ask(say("byte by byte", "fault=slow")))), "byte by byte")
