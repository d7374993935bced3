"""A collector of spans and figures over OTLP that keeps what it gets as it came: uncompressed, so that words in it are found."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.server.lock:
            self.server.came.append((self.path, body))
            self.server.tokens.add(self.headers.get("x-collector-token"))
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()


class Collector(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.came, self.tokens, self.lock = [], set(), threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def lacking(self, token, words):
        """What should have come and did not: a search in nothing finds nothing."""
        all_bytes = b"".join(body for _, body in self.came)
        return [f"{word!r} at the collector" for word in words if word not in all_bytes] + [token] * (self.tokens != {token})


def start():
    collector = Collector()
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    return collector
