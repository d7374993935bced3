"""What the parrot says, on the wire of each vendor: text in pieces, a thought that the vendor signs, calls, and how it ends. Just as
much of a wire as it takes to be understood."""

import json


def pieces(text):
    """Three letters at a time, so that no piece holds the secret."""
    return [text[at : at + 3] for at in range(0, len(text), 3)]


def events(*objects, named=False):
    return "".join((f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one)}\n\n" for one in objects)


class Chat:
    """Chat completions, of OpenAI, of Azure and of those that imitate it."""

    content_type = "text/event-stream"

    def __init__(self, path, request):
        last = request["messages"][-1]
        self.said = str(last.get("content"))
        self.is_asked = last["role"] == "user"
        self.tools = [tool["function"]["name"] for tool in request.get("tools", [])]

    def error(self, message):
        return {"error": {"message": message, "type": "x", "code": "x"}}

    def answer(self, name, thought, text, calls, end):
        def chunk(delta, reason=None):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            whole = {"id": name, "object": "chat.completion.chunk", "created": 1, "model": name, "choices": [choice]}
            return events(whole)

        calls = [
            {"index": index, "id": call, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
            for index, (call, tool, arguments) in enumerate(calls)
        ]
        deltas = [{"role": "assistant"}, *({"content": piece} for piece in pieces(text))] + ([{"tool_calls": calls}] if calls else [])
        whole = "".join(chunk(delta) for delta in deltas)
        reason = {"stop": "tool_calls" if calls else "stop", "length": "length"}.get(end)
        return whole + (chunk({}, reason) + "data: [DONE]\n\n" if reason else "")


class Responses:
    content_type = "text/event-stream"

    def __init__(self, path, request):
        last = request["input"][-1]
        self.said = json.dumps(last.get("content"))
        self.is_asked = last.get("role") == "user"
        self.tools = [tool["name"] for tool in request.get("tools", [])]

    def error(self, message):
        return {"error": {"message": message, "type": "x", "code": "x"}}

    def answer(self, name, thought, text, calls, end):
        response = {"id": name, "object": "response", "model": name, "error": None, "output": []}
        said = [{"type": "response.created", "response": response | {"status": "in_progress"}}]
        reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": thought}], "encrypted_content": thought}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        items = [reasoning, message | {"content": [{"type": "output_text", "text": text, "annotations": []}]}]
        items += [
            {"type": "function_call", "id": f"fc_{index}", "call_id": call, "name": tool, "arguments": json.dumps(arguments)}
            for index, (call, tool, arguments) in enumerate(calls)
        ]
        begun = [reasoning | {"summary": []}, message | {"content": []}] + [item | {"arguments": ""} for item in items[2:]]
        for index, (item, empty) in enumerate(zip(items, begun)):
            said.append({"type": "response.output_item.added", "output_index": index, "item": empty})
            if item is items[1]:
                said += [{"type": "response.output_text.delta", "output_index": index, "delta": piece} for piece in pieces(text)]
                if end is None:
                    return events(*said, named=True)
            said.append({"type": "response.output_item.done", "output_index": index, "item": item})
        usage = {"input_tokens": 1, "output_tokens": 1}
        status = "completed" if end == "stop" else "incomplete"
        details = None if end == "stop" else {"reason": "max_output_tokens"}
        response = response | {"status": status, "incomplete_details": details, "output": items, "usage": usage}
        return events(*said, {"type": f"response.{status}", "response": response}, named=True)


class Messages:
    """Of Anthropic."""

    content_type = "text/event-stream"

    def __init__(self, path, request):
        last = request["messages"][-1]
        content = last["content"]
        self.said = content if isinstance(content, str) else json.dumps(content)
        self.is_asked = '"tool_result"' not in self.said
        self.tools = [tool["name"] for tool in request.get("tools", [])]

    def error(self, message):
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def answer(self, name, thought, text, calls, end):
        def block(index, content, deltas):
            begun = {"type": "content_block_start", "index": index, "content_block": content}
            said = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            return [begun, *said, {"type": "content_block_stop", "index": index}]

        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": name, "type": "message", "role": "assistant", "model": name, "content": [], "stop_reason": None, "usage": usage}
        said = [{"type": "message_start", "message": message}]
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(thought)]
        said += block(0, {"type": "thinking", "thinking": "", "signature": ""}, thoughts + [{"type": "signature_delta", "signature": thought}])
        said += block(1, {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(text)])
        for index, (call, tool, arguments) in enumerate(calls):
            parts = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(json.dumps(arguments))]
            said += block(2 + index, {"type": "tool_use", "id": call, "name": tool, "input": {}}, parts)
        if end is None:
            return events(*said[:-1], named=True)
        reason = "tool_use" if calls else {"stop": "end_turn", "length": "max_tokens"}[end]
        said.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}})
        return events(*said, {"type": "message_stop"}, named=True)


class Gemini:
    content_type = "text/event-stream"

    def __init__(self, path, request):
        last = request["contents"][-1]
        self.said = json.dumps(last["parts"])
        self.is_asked = '"functionResponse"' not in self.said
        self.tools = [tool["name"] for group in request.get("tools", []) for tool in group.get("functionDeclarations", [])]

    def error(self, message):
        return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}

    def answer(self, name, thought, text, calls, end):
        def chunk(parts, reason=None):
            candidate = {"index": 0, "content": {"role": "model", "parts": parts}} | ({"finishReason": reason} if reason else {})
            usage = {"promptTokenCount": 1, "candidatesTokenCount": 1}
            return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": name, "responseId": name}

        said = [chunk([{"text": thought, "thought": True}])]
        said += [chunk([{"text": piece}]) for piece in pieces(text)]
        said += [
            chunk([{"functionCall": {"id": call, "name": tool, "args": arguments}, "thoughtSignature": thought}])
            for call, tool, arguments in calls
        ]
        reason = {"stop": "STOP", "length": "MAX_TOKENS"}.get(end)
        return events(*said, *([chunk([], reason)] if reason else []))


class Ollama:
    """Lines of JSON."""

    content_type = "application/x-ndjson"

    def __init__(self, path, request):
        last = request["messages"][-1]
        self.said, self.is_asked = str(last.get("content")), last["role"] == "user"
        self.tools = [tool["function"]["name"] for tool in request.get("tools", [])]

    def error(self, message):
        return {"error": message}

    def answer(self, name, thought, text, calls, end):
        def line(message, more=None):
            whole = {"model": name, "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", **message}, "done": False}
            return json.dumps(whole | (more or {})) + "\n"

        said = [line({"content": "", "thinking": piece}) for piece in pieces(thought)]
        said += [line({"content": piece}) for piece in pieces(text)]
        said += [line({"content": "", "tool_calls": [{"function": {"name": tool, "arguments": arguments}}]}) for _, tool, arguments in calls]
        if end:
            said.append(line({"content": ""}, {"done": True, "done_reason": end, "prompt_eval_count": 1, "eval_count": 1}))
        return "".join(said)


def of(path, request):
    """The wire that is spoken at a path."""
    for part, wire in [("/responses", Responses), ("/messages", Messages), (":streamGenerateContent", Gemini), ("/api/chat", Ollama)]:
        if part in path:
            return wire(path, request)
    return Chat(path, request)
