"""A model and tools that repeat whatever secret they are shown: in answers cut to pieces, in thoughts, in the names of answers and
models, in tool calls and their ids, results and errors, as it is and encoded, and where whoever quotes them cuts it in its middle. It remembers what it was shown, so that nobody can say a secret was never used."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import wires

# Of what went wrong so much is quoted.
QUOTED = 300

SHOWN_IN = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "proxy-authorization")


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
        return self.model(wires.of(self.path, json.loads(body)), secrets)

    def tool(self, secrets):
        if self.path.endswith("slow"):
            return self.slow_tool()
        said = "I was shown " + " and ".join(repeated(secret) for secret in secrets)
        if self.path.endswith("cut-fail"):
            said = at_the_cut(secrets[-1])
        if self.path.endswith("envelope"):
            said = json.dumps({"status": "error", "error": {"message": at_the_cut(secrets[-1]), "retryable": False}})
        status = 500 if self.path.endswith("fail") else 403 if self.path.endswith("deny") else 200
        self.answer(status, "text/plain", said.encode())

    def slow_tool(self):
        """Not done when it is called; called again, it repeats what was never shown to whoever calls it now."""
        with self.server.lock:
            is_again = self.headers["x-request-id"] in self.server.slow
            self.server.slow.add(self.headers["x-request-id"])
        if not is_again:
            self.close_connection = True
            self.server.is_over.wait(60)
            return
        said = "I was shown once " + " and ".join(repeated(secret) for secret in self.server.told)
        self.answer(200, "text/plain", said.encode())

    def model(self, wire, secrets):
        secret = " ".join(secrets)
        with self.server.lock:
            self.server.wires.add(type(wire).__name__)
        if "LONG" in wire.said:
            return self.refuse(wire.error(at_the_cut(secret)))
        if "FAIL" in wire.said:
            return self.refuse(wire.error("bad key " + repeated(secret)))
        if "BREAK" in wire.said or "SHORT" in wire.said:
            # In the middle of the secret: the connection is lost, or the answer has reached its bound.
            text = "The key is " + secret[: len(secret) * 2 // 3]
            return self.say(wire, wire.answer(secret, "", text, [], "length" if "SHORT" in wire.said else None))
        thought = "I think of " + repeated(secret)
        if wire.is_asked and wire.tools:
            calls = [(f"call_{index}" if index else secret[:40], tool, {"input": secret}) for index, tool in enumerate(wire.tools)]
            return self.say(wire, wire.answer(secret, thought, "calling with " + secret, calls, "stop"))
        text = "The key is " + repeated(secret) + " and that was it."
        self.say(wire, wire.answer(secret, thought, text, [], "stop"))

    def refuse(self, error):
        self.answer(400, "application/json", json.dumps(error).encode())

    def say(self, wire, text):
        self.answer(200, wire.content_type, text.encode())

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
    server.wires, server.slow, server.told, server.is_over = set(), set(), [], threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"
