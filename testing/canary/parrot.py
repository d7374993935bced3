"""A model and tools that repeat whatever secret they are shown: in answers cut to pieces, in tool calls and their ids, results
and errors, as it is and encoded, and where whoever quotes them cuts it in its middle. It remembers what it was shown, so that nobody can say a secret was never used."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

# Of what went wrong so much is quoted.
QUOTED = 300

SHOWN_IN = ("authorization", "x-api-key", "proxy-authorization")


def repeated(secret):
    """The secret in every form that is looked for."""
    return " ".join(
        [
            secret,
            base64.b64encode(secret.encode()).decode(),
            base64.b64encode(b"u:" + secret.encode()).decode(),
            quote(secret, safe=""),
            json.dumps(secret),
        ]
    )


def at_the_cut(secret):
    """The secret so that the end of what is quoted falls into it."""
    return "x" * (QUOTED - len(secret) * 2 // 3) + secret


class Parrot(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        shown = [self.headers[name] for name in SHOWN_IN if self.headers.get(name)]
        secrets = [text.removeprefix("Bearer ") for text in shown]
        for text in list(secrets):
            if text.startswith("Basic "):
                pair = base64.b64decode(text[6:]).decode()
                secrets += [pair, pair.split(":", 1)[1]]
        with self.server.lock:
            self.server.seen.update(secrets)
        # Who asks through a proxy names the whole address.
        self.path = self.path.removeprefix("http://tools.invalid")
        if self.path.startswith("/tool/"):
            return self.tool(secrets)
        return self.model(json.loads(body), " ".join(secrets))

    def tool(self, secrets):
        said = "I was shown " + " and ".join(repeated(secret) for secret in secrets)
        if self.path.endswith("cut-fail"):
            said = at_the_cut(secrets[-1])
        if self.path.endswith("envelope"):
            said = json.dumps({"status": "error", "error": {"message": at_the_cut(secrets[-1]), "retryable": False}})
        status = 500 if self.path.endswith("fail") else 403 if self.path.endswith("deny") else 200
        self.answer(status, "text/plain", said.encode())

    def model(self, request, secret):
        messages = request["messages"]
        said = str(messages[-1].get("content"))
        if "LONG" in said:
            error = {"error": {"message": at_the_cut(secret), "type": "x", "code": "x"}}
            return self.answer(400, "application/json", json.dumps(error).encode())
        if "BREAK" in said or "SHORT" in said:
            # In the middle of the secret: the connection is lost, or the answer has reached its bound.
            return self.stream([{"content": "The key is " + secret[: len(secret) * 2 // 3]}], "length" if "SHORT" in said else None)
        if "FAIL" in said:
            error = {"error": {"message": "bad key " + repeated(secret), "type": "x", "code": "x"}}
            return self.answer(400, "application/json", json.dumps(error).encode())
        if messages[-1]["role"] == "user" and request.get("tools"):
            return self.call_tools(request["tools"], secret)
        text = "The key is " + repeated(secret) + " and that was it."
        # Three letters at a time, so that no piece holds the secret.
        pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
        self.stream([{"content": piece} for piece in pieces], "stop")

    def call_tools(self, tools, secret):
        calls = [
            {
                "index": index,
                "id": f"call_{index}" if index else secret[:40],
                "type": "function",
                "function": {"name": tool["function"]["name"], "arguments": json.dumps({"input": secret})},
            }
            for index, tool in enumerate(tools)
        ]
        self.stream([{"content": "calling with " + secret}, {"tool_calls": calls}], "tool_calls")

    def stream(self, deltas, finish):
        def chunk(delta, reason=None):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "parrot", "choices": [choice]}
            return f"data: {json.dumps(whole)}\n\n"

        text = "".join([chunk({"role": "assistant"})] + [chunk(delta) for delta in deltas])
        if finish:
            text += chunk({}, finish) + "data: [DONE]\n\n"
        self.answer(200, "text/event-stream", text.encode())

    def answer(self, status, content_type, body):
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def start():
    """A parrot on a free port of 127.0.0.1, and where it is."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Parrot)
    server.daemon_threads = True
    server.seen, server.lock = set(), threading.Lock()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"
