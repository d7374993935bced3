"""Runs the vendors' SDKs against the scripted model server at $MODEL_SERVER: every case, or those whose vendor or
name holds one of the words given. Ends with one line of figures."""

import sys
import time
import traceback

import suite
import anthropic_messages  # noqa: F401
import azure_chat  # noqa: F401
import gemini_content  # noqa: F401
import ollama_chat  # noqa: F401
import openai_chat  # noqa: F401
import openai_responses  # noqa: F401


def main(words):
    failed = 0
    chosen = [one for one in suite.CASES if not words or any(word in f"{one[0]} {one[1]}" for word in words)]
    began = time.monotonic()
    for vendor, name, function in chosen:
        try:
            function()
        except Exception:  # noqa: BLE001 - whatever an SDK throws is a finding
            failed += 1
            print(f"FAILED {vendor}: {name}\n{traceback.format_exc(limit=-4)}", flush=True)
    wires = sorted({one[0] for one in chosen})
    for wire in wires:
        print(f"{wire}: {sum(one[0] == wire for one in chosen)} cases")
    sdks = {"openai chat": "openai", "openai responses": "openai", "azure": "openai"}
    n_sdks = len({sdks.get(wire, wire) for wire in wires})
    seconds = time.monotonic() - began
    print(f"vendors: {n_sdks} SDKs, {len(wires)} wires, {len(chosen)} cases, {failed} failed, {seconds:.0f} s")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
