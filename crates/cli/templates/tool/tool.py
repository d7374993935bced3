"""A tool as a web server: POST /lookup with JSON, JSON comes back. Nothing but Python is needed."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

KNOWN = {"lisbon": "sunny, 24 degrees", "oslo": "snow, -3 degrees"}


class Tool(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        request = json.loads(self.rfile.read(length) or b"{}")
        place = str(request.get("place", ""))
        known = next((text for name, text in KNOWN.items() if name in place.lower()), "nothing is known")
        body = json.dumps({"place": place, "known": known}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    print("the tool listens at http://127.0.0.1:8899/lookup; Ctrl-C stops it")
    HTTPServer(("127.0.0.1", 8899), Tool).serve_forever()
