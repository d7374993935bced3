"""A canary of each kind of secret is used for real, and then looked for wherever it might have been left.

Twice: against `ostler up` on SQLite over TLS, and against a server and a worker on PostgreSQL. The models, one on each wire, and
the tools repeat every secret that they are shown; who called a tool is killed in the middle of it. A leak that is meant is
looked for with the others, and has to be found. Ends with one line of figures, and with 1 if anything was found, or was never used.

    canary.py --ostler target/debug/ostler --folder target/canary
"""

import argparse
import base64
import json
import os
import secrets
import shutil
import subprocess
import sys
from urllib.parse import quote

import collector
import ground
import parrot
from search import Search

MANIFESTS = """
kind: ModelEndpoint
metadata: {{name: kept}}
spec: {{provider: openai-compatible, base_url: "{parrot}/v1", default_model: parrot, allowPrivate: true, auth: {{secretRef: model-key}}}}
---
kind: ModelEndpoint
metadata: {{name: variable}}
spec: {{provider: openai-compatible, base_url: "{parrot}/v1", default_model: parrot, allowPrivate: true, auth: {{secretRef: from-environment}}}}
---
kind: ModelEndpoint
metadata: {{name: responses}}
spec: {{provider: openai, base_url: "{parrot}/v1", default_model: parrot, allowPrivate: true, options: {{api: responses}}, auth: {{secretRef: "models:responses"}}}}
---
kind: ModelEndpoint
metadata: {{name: anthropic}}
spec: {{provider: anthropic, base_url: "{parrot}/v1", default_model: parrot, allowPrivate: true, auth: {{secretRef: "models:anthropic"}}}}
---
kind: ModelEndpoint
metadata: {{name: azure}}
spec: {{provider: azure-openai, base_url: "{parrot}", default_model: parrot, allowPrivate: true, auth: {{secretRef: "models:azure"}}}}
---
kind: ModelEndpoint
metadata: {{name: gemini}}
spec: {{provider: gemini, base_url: "{parrot}/v1beta", default_model: parrot, allowPrivate: true, auth: {{secretRef: "models:gemini"}}}}
---
kind: ModelEndpoint
metadata: {{name: ollama}}
spec: {{provider: ollama, base_url: "{parrot}", default_model: parrot, auth: {{secretRef: "models:ollama"}}}}
---
kind: Tool
metadata: {{name: bearer}}
spec: {{endpoint: "{parrot}/tool/bearer", allowPrivate: true, auth: {{secretRef: "tools:bearer"}}}}
---
kind: Tool
metadata: {{name: header}}
spec: {{endpoint: "{parrot}/tool/header-deny", allowPrivate: true, auth: {{profile: api_key_header, headerName: X-Api-Key, secretRef: "tools:header"}}}}
---
kind: Tool
metadata: {{name: cut}}
spec: {{endpoint: "{parrot}/tool/cut-fail", allowPrivate: true, auth: {{secretRef: "tools:bearer"}}}}
---
kind: Tool
metadata: {{name: envelope}}
spec: {{endpoint: "{parrot}/tool/envelope", allowPrivate: true, auth: {{secretRef: "tools:bearer"}}}}
---
kind: Tool
metadata: {{name: basic}}
spec: {{endpoint: "{parrot}/tool/basic-fail", allowPrivate: true, auth: {{profile: basic, secretRef: "tools:basic"}}}}
---
kind: Tool
metadata: {{name: proxied}}
spec: {{endpoint: "http://tools.invalid/tool/proxied"}}
---
kind: Tool
metadata: {{name: slow}}
spec: {{endpoint: "{parrot}/tool/slow", allowPrivate: true, idempotent: true}}
---
kind: Agent
metadata: {{name: killed}}
spec: {{model_ref: kept, prompt: Repeat., tools: [slow, bearer, basic]}}
---
kind: Agent
metadata: {{name: caller}}
spec: {{model_ref: kept, prompt: Repeat., tools: [bearer, header, basic, cut, envelope, proxied]}}
---
kind: Agent
metadata: {{name: talker}}
spec: {{model_ref: variable, prompt: Repeat.}}
"""

# Each speaks a wire of its own, and has its key in a header of its own.
WIRES = ["responses", "anthropic", "azure", "gemini", "ollama"]

AGENT = """
---
kind: Agent
metadata: {{name: {name}}}
spec: {{model_ref: {name}, prompt: Repeat., tools: [bearer]}}
"""

# Told in a message, which is kept as it was typed: it has to be found, or the search finds nothing.
PLANTED = "planted leak"


def canary(kind):
    """Unlike anything else, with signs in it that look different in each encoding."""
    return f'{kind}/{secrets.token_hex(6)}+"~{secrets.token_hex(6)}='


def plain(kind):
    """For what takes letters and digits alone."""
    return f"{kind}{secrets.token_hex(12)}"


def all_canaries():
    password = canary("bp")
    return {
        "model key": canary("mk"),
        "tool bearer": canary("tb"),
        "api key header": canary("ah"),
        "basic pair": "user:" + password,
        "basic password": password,
        "proxy password": canary("pp"),
        "environment secret": canary("es"),
        "server token": plain("st"),
        "worker token": plain("wt"),
        "setup token": plain("sut"),
        "user password": canary("up"),
        "database password": plain("dp"),
        "collector token": plain("ct"),
        "encryption key": base64.b64encode(secrets.token_bytes(32)).decode(),
        PLANTED: canary("pl"),
    } | {f"{wire} key": canary(wire[:2]) for wire in WIRES}


class Scene:
    """One server with all its canaries."""

    def __init__(self, title, args, server, parrot_url, store_url=None):
        self.title, self.ostler, self.parrot, self.parrot_url = title, args.ostler, server, parrot_url
        self.folder = os.path.join(args.folder, title)
        self.data = os.path.join(self.folder, "data")
        os.makedirs(self.data)
        self.canaries = all_canaries()
        self.canaries["TLS key"] = ground.make_certificate(self.folder)
        self.store_url = store_url
        self.shown, self.programs = [], []
        self.collector = collector.start()

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text + "\n")
        os.chmod(path, 0o600)
        return path

    def start(self):
        files = {
            "token": self.file("api.token", self.canaries["server token"]),
            "worker-token": self.file("worker.token", self.canaries["worker token"]),
            "secret-key": self.file("secret.key", self.canaries["encryption key"]),
        }
        port = ground.free_port()
        self.url = f"https://127.0.0.1:{port}"
        serve = ["--listen", f"127.0.0.1:{port}", "--data", self.data, "--log", "debug,h2=info,hyper=info"]
        serve += [part for name, path in files.items() for part in (f"--{name}-file", path)]
        serve += ["--tls-certificate", os.path.join(self.folder, "tls.pem"), "--tls-key", os.path.join(self.folder, "tls.key")]
        setup = {"OSTLER_SETUP_TOKEN": self.canaries["setup token"]}
        used = {"OSTLER_SECRET_FROM_ENVIRONMENT": self.canaries["environment secret"], "OSTLER_PROXY": self.proxy()}
        used_kinds = {"environment secret", "proxy password"}
        if self.store_url is None:
            self.run_program("up", ["up", *serve], setup | used, {"setup token"} | used_kinds)
        else:
            store = {"OSTLER_STORE": self.store_url.replace("ostler@", f"ostler:{self.canaries['database password']}@")}
            self.run_program("server", ["server", *serve], setup | store, {"setup token", "database password"})
            worker = ["worker", "--data", os.path.join(self.folder, "worker"), "--servers", self.url, "--log", "debug,h2=info,hyper=info"]
            worker += ["--worker-token-file", files["worker-token"], "--ca", os.path.join(self.folder, "tls.pem")]
            ground.wait_for(lambda: self.ask("GET", "/healthz")[0] == 200, "the server")
            self.run_program("worker", worker, used, used_kinds)
        ground.wait_for(lambda: self.ask("GET", "/healthz")[0] == 200, "the server")

    def run_program(self, title, arguments, environment, asked_for):
        log = open(os.path.join(self.folder, f"{title}.log"), "ab")
        self.start_again = lambda: self.run_program(title, arguments, environment, asked_for)
        whole = ground.environment() | environment | self.telling()
        process = subprocess.Popen([self.ostler, *arguments], env=whole, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.programs.append((title, process, asked_for | {"collector token"}))

    def proxy(self, scheme="http"):
        """The parrot, with who we are to it."""
        address = self.parrot_url.removeprefix("http://")
        return f"{scheme}://proxied:{quote(self.canaries['proxy password'], safe='')}@{address}"

    def telling(self):
        """Spans and figures, with all that was said in them."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.collector.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_HEADERS": f"x-collector-token={self.canaries['collector token']}",
            "OTEL_METRIC_EXPORT_INTERVAL": "500",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
        }

    def ask(self, method, path, body=None, headers=None, read_for=None):
        """A request with the server's token, unless other headers are given. Whatever comes back is kept to be looked at."""
        usual = {"authorization": f"Bearer {self.canaries['server token']}"}
        answer = ground.request(self.url, self.folder, method, path, body, usual if headers is None else headers, read_for)
        self.shown.append((f"{method} {path}", answer[2]))
        return answer

    def cli(self, *arguments, stdin=None, status=0, more=None):
        environment = ground.environment() | (more or {}) | {
            "OSTLER_SERVER": self.url,
            "OSTLER_TOKEN": self.canaries["server token"],
            "OSTLER_CA": os.path.join(self.folder, "tls.pem"),
        }
        done = subprocess.run([self.ostler, *arguments], env=environment, input=(stdin or "").encode(), capture_output=True, timeout=60)
        said = done.stdout + done.stderr
        self.shown.append((f"ostler {' '.join(arguments[:3])}", said))
        assert status is None or done.returncode == status, f"ostler {arguments} ended with {done.returncode}: {said.decode()}"
        return said.decode()

    def work(self):
        """Uses every canary, in ways that go well and in ways that don't."""
        named = self.canaries
        self.cli("secret", "set", "model-key", "--from-stdin", stdin=named["model key"])
        for key, kind in [("bearer", "tool bearer"), ("header", "api key header"), ("basic", "basic pair")]:
            self.cli("secret", "set", "tools", "--key", key, "--from-stdin", stdin=named[kind])
        for wire in WIRES:
            self.cli("secret", "set", "models", "--key", wire, "--from-stdin", stdin=named[f"{wire} key"])
        manifests = MANIFESTS + "".join(AGENT.format(name=wire) for wire in WIRES).replace("{", "{{").replace("}", "}}")
        manifests = self.file("all.yaml", manifests.format(parrot=self.parrot_url))
        self.cli("apply", "-f", manifests)
        self.people()
        self.killed()
        told = [("hello", 0), ("FAIL", 3), ("LONG", 3), ("BREAK", 4), ("SHORT", 3)]
        runs = [(agent, *one) for agent in ("caller", "talker") for one in told]
        # What is not retried: a lost connection is the same on every wire.
        runs += [(agent, *one) for agent in WIRES for one in told if one[0] != "BREAK"]
        for agent, message, status in runs:
            task = f"{agent}-{message.lower()}"
            self.cli("run", agent, message, "--name", task, status=status)
            self.look_at_task(task)
        self.cli("run", "talker", f"hello {named[PLANTED]}", "--name", "planted")
        self.look_at_task("planted")
        self.cli("run", "talker", "hello", "--detach", "--name", "live", status=None)
        self.mistakes()
        self.failing_starts()
        self.read_back()

    def look_at_task(self, task):
        for view in ["", "/events", "/trace", "/logs", "/messages", "/metrics"]:
            self.ask("GET", f"/v1/tasks/{task}{view}")
        self.ask("GET", f"/v1/tasks/{task}/events?follow=true", headers=None, read_for=0.5)
        self.cli("describe", "task", task, status=None)

    def killed(self):
        """Whoever called a tool is killed before it answers; called again, it repeats what the process after was never told."""
        kinds = ["model key", "tool bearer", "basic pair", "basic password"]
        self.parrot.told = [self.canaries[kind] for kind in kinds]
        self.parrot.slow.clear()
        self.cli("run", "killed", "hello", "--detach", "--name", "killed")
        ground.wait_for(lambda: self.parrot.slow, "the call of a slow tool")
        _, process, _ = self.programs.pop()
        process.kill()
        process.wait()
        self.start_again()
        ground.wait_for(lambda: self.ask("GET", "/healthz")[0] == 200, "the server")
        ground.wait_for(lambda: b'"Succeeded"' in self.ask("GET", "/v1/tasks/killed")[2], "the end of the task", 60)
        assert b"I was shown once" in self.ask("GET", "/v1/tasks/killed/events")[2], "the slow tool was not called again"
        self.look_at_task("killed")

    def people(self):
        named = self.canaries
        password = named["user password"]
        setup = {"username": "ada", "password": password, "setup_token": named["setup token"]}
        status = self.ask("POST", "/v1/auth/setup", setup, headers={})[0]
        assert status in (200, 201), f"the first user was not made: {status}"
        status, headers, _ = self.ask("POST", "/v1/auth/login", {"username": "ada", "password": password}, headers={})
        assert status == 200, f"nobody was signed in: {status}"
        cookie = headers["set-cookie"].split(";")[0]
        self.canaries["sign-in cookie"] = cookie.split("=", 1)[1]
        status, _, body = self.ask("GET", "/v1/auth/me", headers={"cookie": cookie})
        assert status == 200 and b"ada" in body, "the cookie does not sign in"
        self.ask("POST", "/v1/auth/login", {"username": "ada", "password": password + "x"}, headers={})

    def mistakes(self):
        """Requests that are refused, each with a canary in the wrong place."""
        for kind, value in list(self.canaries.items()):
            if kind == "TLS key":
                continue
            wrong = {"kind": "Secret", "metadata": {"name": "wrong"}, "spec": {"data": {"value": value}}}
            self.ask("POST", "/v1/secrets?dry_run=true", wrong)
        secret = self.canaries["model key"]
        plain = {"kind": "Secret", "metadata": {"name": "tried"}, "spec": {"stringData": {"value": secret}}}
        self.ask("POST", "/v1/secrets?dry_run=true", plain)
        self.ask("GET", "/v1/nothing", headers={"authorization": "Bearer " + self.canaries["worker token"]})
        self.cli("diff", "-f", self.file("tried.yaml", json.dumps(plain)), status=None)
        self.cli("validate", "-f", self.file("bad.yaml", json.dumps(plain | {"spec": {"data": {"value": secret}}})), status=None)

    def failing_starts(self):
        """Servers that can't start, and say why."""
        password, key = self.canaries["database password"], self.canaries["encryption key"]
        wrong = self.file("wrong.key", key[:-6])
        for arguments, environment in [
            (["server"], {"OSTLER_STORE": f"postgres://ostler:{password}@127.0.0.1:1/none"}),
            (["server"], {"OSTLER_STORE": f"postgres://ostler:{password}@%2Fnowhere/none?nonsense=1"}),
            (["server", "--secret-key-file", wrong], {}),
            (["server"], {"OSTLER_SECRET_KEY": key[:-6]}),
            (["server", "--tls-certificate", os.path.join(self.folder, "tls.key"), "--tls-key", os.path.join(self.folder, "tls.key")], {}),
            (["worker", "--servers", "http://127.0.0.1:1"], {"OSTLER_PROXY": self.proxy("socks5")}),
            (["worker", "--servers", "http://127.0.0.1:1", "--proxy", self.proxy()], {}),
            (["worker", "--servers", "http://127.0.0.1:1", "--nonsense"], {"OSTLER_WORKER_TOKEN": self.canaries["worker token"]}),
        ]:
            folder = ["--data", os.path.join(self.folder, "failing")]
            failed = subprocess.run(
                [self.ostler, *arguments, *folder], env=ground.environment() | environment, capture_output=True, timeout=90
            )
            assert failed.returncode != 0, f"ostler {arguments} started"
            self.shown.append((f"ostler {' '.join(arguments[:2])}, which fails", failed.stdout + failed.stderr))

    def read_back(self):
        for path in ["/v1/secrets", "/v1/secrets/model-key", "/v1/secrets/tools", "/v1/secret-keys", "/v1/agents", "/metrics"]:
            self.ask("GET", path)
        for path in ["/v1/secrets/watch", "/v1/events/watch"]:
            self.ask("GET", path, read_for=0.5)
        self.cli("get", "secrets", "-o", "yaml")
        self.cli("secret", "list")
        self.cli("secret", "check", "tools:bearer")
        self.cli("secret", "rotate", "--no-wait")
        self.cli("doctor", status=None)
        self.cli("config", "show", "--data", self.data, status=None)
        for proxy in [self.proxy(), self.proxy().removeprefix("http://")]:
            self.cli("config", "show", "--data", self.data, more={"OSTLER_PROXY": proxy})

    def look(self, search):
        """Everything that anybody could look at."""
        for title, process, asked_for in self.programs:
            assert process.poll() is None, f"{title} is gone"
            search.look_at_process(title, process.pid, asked_for)
        if self.store_url is None:
            backup = os.path.join(self.folder, "backup.db")
            self.cli("backup", backup)
            search.look_at_file(backup)
        for place, said in self.shown:
            # Told to who signs in, once; and to who asked for it.
            search.look(f"the answer to {place}", said)
        search.look_at_folder(self.data)
        search.look_at_folder(os.path.join(self.folder, "worker"))
        for title, _, _ in self.programs:
            search.look_at_file(os.path.join(self.folder, f"{title}.log"))

    def stop(self):
        for _, process, _ in reversed(self.programs):
            process.terminate()
        for _, process, _ in self.programs:
            process.wait(timeout=30)


def play(scene, search_more, server):
    """Plays a scene, and looks for what it left while it runs and when it has ended."""
    try:
        scene.start()
        scene.work()
        search = Search(scene.canaries)
        scene.look(search)
    finally:
        scene.stop()
    search.look_at_folder(scene.data)
    for path, body in scene.collector.came:
        search.look(f"what the collector got at {path}", body)
    search_more(search)
    kinds = ["model key", "tool bearer", "api key header", "basic pair", "basic password", "environment secret", "proxy password"]
    used = [scene.canaries[kind] for kind in kinds + [f"{wire} key" for wire in WIRES]]
    unused = [value for value in used if value not in server.seen]
    unused += scene.collector.lacking(scene.canaries["collector token"], [b"execute_tool bearer", b"I was shown", b"gen_ai.client.token.usage"])
    planted = [finding for finding in search.findings if finding.startswith(PLANTED)]
    findings = [f"{scene.title}: {finding}" for finding in search.findings if finding not in planted]
    findings += [f"{scene.title}: never used: {value}" for value in unused]
    # Where a message is kept and shown; if it is not seen there, nothing else would be.
    places = ["in the answer to GET /v1/tasks/planted", f"in {scene.data}" if scene.store_url is None else "in the dump"]
    lacking = [place for place in places if not any(place in finding for finding in planted)]
    return findings + [f"{scene.title}: the {PLANTED} is not found {place}" for place in lacking], search


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostler", required=True)
    parser.add_argument("--folder", required=True)
    args = parser.parse_args()
    args.ostler = os.path.abspath(args.ostler)
    args.folder = os.path.abspath(args.folder)
    shutil.rmtree(args.folder, ignore_errors=True)
    os.makedirs(args.folder)
    server, url = parrot.start()
    findings, searches = [], []
    found, search = play(Scene("sqlite", args, server, url), lambda search: None, server)
    findings, searches = findings + found, searches + [search]
    with ground.Postgres() as postgres:

        def look_at_database(search):
            search.look("the dump of the database", postgres.dump())
            postgres.stop()
            search.look_at_folder(postgres.data)

        found, search = play(Scene("postgres", args, server, url, postgres.url), look_at_database, server)
        findings, searches = findings + found, searches + [search]
    server.is_over.set()
    for finding in findings[:40]:
        print("found:", finding, file=sys.stderr)
    n_places, n_bytes = sum(one.n_places for one in searches), sum(one.n_bytes for one in searches)
    n_kinds = len(searches[0].canaries)
    print(f"canary: {n_kinds} kinds of secrets on 2 stores and {len(server.wires)} wires, {n_places} places, {n_bytes >> 20} MiB looked at, {len(findings)} found")
    if not findings:
        shutil.rmtree(args.folder)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
