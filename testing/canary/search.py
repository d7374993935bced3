"""Looks for canaries, whole or broken off: as they are, in base64 wherever they begin in a group of three bytes, percent-encoded, escaped in JSON."""

import base64
import json
import os
from urllib.parse import quote, quote_plus

LONGEST_FILE = 512 << 20

# So much of a canary's beginning is nobody else's.
BEGINNING = 12


def forms(value):
    """How a value may look, as bytes."""
    raw = value.encode()
    found = {raw, json.dumps(value)[1:-1].encode(), json.dumps(value)[1:-1].replace("/", "\\/").encode()}
    found |= {quote(value, safe="").encode(), quote_plus(value).encode(), quote(value).encode(), quote(value, safe="").lower().encode()}
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(bytes(shift) + raw)
            first, last = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
            found.add(whole[first:last])
    # A long one may be shown in lines: each of them counts.
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) > 1:
        found |= {line.encode() for line in lines if len(line) >= 16 and not line.startswith("-----")}
    else:
        # Whoever cuts a text leaves the beginning of what stood there.
        found = {form[:BEGINNING] for form in found}
    return [form for form in found if len(form) >= 8]


class Search:
    """What was looked at, and what was found where."""

    def __init__(self, canaries):
        self.canaries = {kind: forms(value) for kind, value in canaries.items()}
        self.findings, self.n_places, self.n_bytes = [], 0, 0

    def look(self, place, data, but=()):
        """Looks into bytes or text. `but` names kinds that belong there."""
        if isinstance(data, str):
            data = data.encode()
        self.n_places += 1
        self.n_bytes += len(data)
        for kind, looks in self.canaries.items():
            if kind in but:
                continue
            for form in looks:
                at = data.find(form)
                if at >= 0:
                    around = data[max(0, at - 40) : at + len(form) + 20]
                    self.findings.append(f"{kind} in {place}, as {form[:60]!r}: ...{around!r}...")
                    break

    def look_at_file(self, path, but=()):
        if os.path.isfile(path) and os.path.getsize(path) < LONGEST_FILE:
            with open(path, "rb") as file:
                self.look(path, file.read(), but)

    def look_at_folder(self, folder, but=()):
        for root, _, names in os.walk(folder):
            for name in names:
                self.look_at_file(os.path.join(root, name), but)

    def look_at_process(self, title, pid, asked_for):
        """Its arguments show none; its environment only what it was given."""
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            self.look(f"the arguments of {title}", file.read())
        with open(f"/proc/{pid}/environ", "rb") as file:
            self.look(f"the environment of {title}", file.read(), asked_for)
        with open(f"/proc/{pid}/limits") as file:
            limit = next(line for line in file if line.startswith("Max core file size"))
        self.n_places += 1
        if limit.split()[4] != "0":
            self.findings.append(f"{title} would leave a core dump with everything in it: {limit.strip()}")
