"""Writes with real clients of InfluxDB to the local system, with tokens, and reads back what came of it. Debian's
influx asks too, a real influxd forwards what it takes, and the SDK of the Model Context Protocol asks every tool.

    python3 tests/clients/check.py FOLDER

FOLDER has the environments that `run` made: a Python each for `influxdb_client`, `influxdb` and `mcp`, and the packages
of npm. What is not there is skipped by name. Absent: Telegraf and devices; tests/line_protocol has their lines.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "roomtide"


def main():
    tools = Path(sys.argv[1]).resolve()
    if not PROGRAM.exists():
        sys.exit("there is no program; build it with: cargo test --workspace --no-run")
    clients = {
        "influxdb-client (PyPI)": python(tools / "influxdb_client", "python_v2.py"),
        "influxdb 5 (PyPI)": python(tools / "influxdb", "python_v1.py"),
        "@influxdata/influxdb-client (npm)": node(tools / "node", "influxdb-client", "node_v2.mjs"),
        "@influxdata/influxdb3-client (npm)": node(tools / "node", "influxdb3-client", "node_v3.mjs"),
        "influx (Debian)": ["bash", str(HERE / "influx_v1.sh")] if shutil.which("influx") else None,
        "influxd (Debian), forwarding": ["python3", str(HERE / "influxd.py")] if shutil.which("influxd") else None,
    }
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data")
        try:
            for name, command in clients.items():
                if command is None:
                    print(f"!!!! SKIPPED: {name} is not installed here", flush=True)
                    continue
                write(server, name, command)
            models(server, python(tools / "mcp", "mcp_sdk.py"))
        finally:
            server.stop()


def run(server, name, command):
    """Runs a client, which has to succeed. Returns the host that it was to name, what it printed and how long it took."""
    began = time.monotonic()
    host = f"client{time.monotonic_ns()}"
    tokens = {"TOKEN": server.tokens["write"], "READ_TOKEN": server.tokens["read"], "ADMIN_TOKEN": server.tokens["admin"]}
    environment = os.environ | {"URL": server.url, "CLIENT_HOST": host, "ROOMTIDE": str(PROGRAM)} | tokens
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        sys.exit(f"{name} failed:\n{done.stdout}{done.stderr}")
    return host, done, time.monotonic() - began


def models(server, command):
    if command is None:
        print("!!!! SKIPPED: mcp (PyPI) is not installed here", flush=True)
        return
    _, done, seconds = run(server, "mcp (PyPI)", command)
    print(f"  ok  mcp (PyPI): {done.stdout.strip()}, {seconds:.1f} s", flush=True)


def write(server, name, command):
    host, done, seconds = run(server, name, command)
    readings = server.get(f"/devices/{host}::room/readings?from=2026-01-11T16:00:00Z&to=2026-01-11T17:00:00Z")
    values = [(it["timestamp"], it["temp"], it["ok"]) for it in readings["data"]]
    expected = [(f"2026-01-11T16:0{n}:00.000Z", 20.5 + n, 1) for n in range(3)]
    if values != expected:
        sys.exit(f"{name}: expected {expected}, stored is {values}")
    if "invalid field format" not in done.stdout:
        sys.exit(f"{name} did not tell of the bad line:\n{done.stdout}{done.stderr}")
    print(f"  ok  {name}: three points and the refusal of a line, {seconds:.1f} s", flush=True)


def python(folder, script):
    program = folder / "bin" / "python3"
    return [str(program), str(HERE / script)] if program.exists() else None


def node(folder, package, script):
    if not shutil.which("node") or not (folder / "node_modules" / "@influxdata" / package).exists():
        return None
    # A module finds its packages from where it lies.
    shutil.copy(HERE / script, folder / script)
    return ["node", str(folder / script)]


class Server:
    """The local system with tokens, on a free port."""

    def __init__(self, data):
        command = [PROGRAM, "serve", "--auth", "--empty", "--port", "0", "--data-dir", data]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        self.url = first.split()[-1]
        self.tokens = {}
        for scope, more in (("write", ["--any"]), ("read", []), ("admin", [])):
            command = [PROGRAM, "token", "create", "--quiet", "--scope", scope, *more, "--data-dir", data]
            self.tokens[scope] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def get(self, path):
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.tokens['read']}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)


if __name__ == "__main__":
    main()
