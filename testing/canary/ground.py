"""What the canaries are tried on: a certificate, a PostgreSQL of one's own, requests, and patience."""

import glob
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time


def environment():
    """That of whoever runs this, without settings of theirs."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OSTLER_", "ORLOJ"))}


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def wait_for(condition, what, seconds=30):
    until = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except OSError:
            pass
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not come within {seconds} s")
        time.sleep(0.02)


def make_certificate(folder):
    """A certificate for 127.0.0.1 in tls.pem; returns its key, which is in tls.key."""
    key, certificate = os.path.join(folder, "tls.key"), os.path.join(folder, "tls.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        + ["-subj", "/CN=canary", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
        + ["-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    with open(key) as file:
        return file.read().strip()


def request(url, folder, method, path, body, headers, read_for=None):
    """The status, the headers and the body; of a stream, what comes of it in so many seconds."""
    context = ssl.create_default_context(cafile=os.path.join(folder, "tls.pem"))
    host = url.removeprefix("https://")
    connection = http.client.HTTPSConnection(host, context=context, timeout=20)
    headers = dict(headers) | ({"content-type": "application/json"} if body is not None else {})
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    try:
        data = answer.read() if read_for is None else read_some(connection, answer, read_for)
    finally:
        connection.close()
    names = {name.lower(): value for name, value in answer.getheaders()}
    told = b"".join(f"{name}: {value}\n".encode() for name, value in names.items() if name != "set-cookie")
    return answer.status, names, told + data


def read_some(connection, answer, seconds):
    data, until = b"", time.monotonic() + seconds
    if connection.sock is not None:
        connection.sock.settimeout(seconds)
    while time.monotonic() < until:
        try:
            piece = answer.read1(65536)
        except (TimeoutError, OSError):
            break
        if not piece:
            break
        data += piece
    return data


class Postgres:
    """A database in a folder that is thrown away, heard on a socket in it."""

    def __enter__(self):
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.folder = tempfile.mkdtemp(prefix="ostler-canary-")
        self.data = os.path.join(self.folder, "data")
        # It refuses to be run by root.
        self.account = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if self.account:
            shutil.chown(self.folder, "postgres")
        self.run("initdb", "--no-sync", "--auth=trust", "--username=ostler", "--encoding=UTF8", "--locale=C.UTF-8", "-D", self.data)
        with open(os.path.join(self.folder, "log"), "wb") as log:
            options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={self.folder}", "-c", "log_statement=all"]
            self.server = subprocess.Popen([*self.account, f"{self.bin}/postgres", "-D", self.data, *options], stdout=log, stderr=log)
        self.url = f"postgres://ostler@{self.folder.replace('/', '%2F')}/postgres"
        wait_for(lambda: self.is_ready(), "PostgreSQL")
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_ready(self):
        return subprocess.run([f"{self.bin}/pg_isready", "-q", "-h", self.folder]).returncode == 0

    def run(self, program, *arguments):
        return subprocess.run([*self.account, f"{self.bin}/{program}", *arguments], check=True, capture_output=True, cwd="/").stdout

    def dump(self):
        return self.run("pg_dump", "-h", self.folder, "-U", "ostler", "postgres")

    def stop(self):
        if self.server.poll() is None:
            self.run("pg_ctl", "-D", self.data, "-m", "fast", "stop")
            self.server.wait(timeout=30)
