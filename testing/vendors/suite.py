"""What every vendor's cases have in common: how they are registered, what they script, how they check."""

import itertools
import json
import os

ROOT = os.environ.get("MODEL_SERVER", "")

TEXT = 'Grüße, 世界 🌍: "quoted", and a\nsecond line'
THOUGHT = "First, let me think about it: what does Ö mean?"
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}, "why": {"type": "string"}},
    "required": ["answer", "why"],
    "additionalProperties": False,
}
ANSWER = {"answer": 42, "why": "as ever"}
LOOKUP = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
}

CASES = []
_number = itertools.count(1)


class Wrong(Exception):
    """The SDK read something else than what was scripted."""


def case(vendor):
    """Registers a case of a vendor; its name is its function's."""

    def register(function):
        CASES.append((vendor, function.__name__, function))
        return function

    return register


def table(vendor, rows):
    """Registers a function once for each row, whose first item names it."""

    def register(function):
        for row in rows:
            row_name = getattr(row[0], "__name__", row[0])
            CASES.append((vendor, f"{function.__name__} {row_name}", lambda row=row: function(*row)))
        return function

    return register


def plan(turns):
    """A message that tells the server what to answer; no two are equal, so that faults are counted apart."""
    return f"case {os.getpid()}-{next(_number)}. plan: {turns}"


def say(text, *options):
    """A turn that says this."""
    return " ".join([f"text={json.dumps(text)}", *options])


def think(text):
    return f"think={json.dumps(text)}"


def call(name, arguments):
    """A part of a turn that calls a tool."""
    return f"tool {name} {json.dumps(arguments)}"


def same(read, scripted, what="it"):
    if read != scripted:
        raise Wrong(f"{what}: read {read!r}, scripted {scripted!r}")


def raises(kinds, function):
    """What `function` raises, which must be of one of these kinds."""
    try:
        result = function()
    except kinds as error:
        return error
    raise Wrong(f"nothing was raised, but read: {result!r}")
