"""Runs each line of README.md that asks the sample home, as it stands there, and the first of the guide to energy, and
reads its answer.

    python3 tests/home/readme.py target/debug/roomtide

The commands that need more than this machine are run elsewhere: imports by tests/history/check.py, the deployment by
tests/deploy/run.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "http://127.0.0.1:8080"
READY = "Try, in another terminal"


def commands(document, blocks=None):
    """The commands of a document's first blocks of shell, each of one or several lines."""
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)[:blocks]:
        lines = re.sub(r"\\\n\s*", "", block).splitlines()
        yield from (line for line in lines if line and not line.startswith("#"))


def served(program, folder):
    """A server with the sample home, and its address."""
    command = [program, "--data-dir", f"{folder}/data", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    said = []
    for line in server.stdout:
        said.append(line)
        if READY in line:
            break
    else:
        sys.exit("the server ended:\n" + "".join(said))
    return server, re.search(r"http://127\.0\.0\.1:\d+", "".join(said)).group()


def is_answer(command, text):
    """Whether a command got what its document promises: rows of CSV, or JSON with something in it."""
    if "yesterday" in command:
        hours = [row["kwh"] for row in json.loads(text)["data"]]
        return len(hours) in (23, 24, 25) and None not in hours
    if "format=csv" in command:
        return len(text.splitlines()) == 6
    if "-d '" in command:
        return json.loads(text)["accepted"] == 1
    return any(isinstance(member, list) and member for member in json.loads(text).values())


def main():
    asked = [command for command in commands("README.md") if command.startswith("curl ")]
    assert len(asked) >= 5, asked
    guided = [command for command in commands("docs/guide/energy.md", blocks=1) if "/energy?" in command]
    assert len(guided) == 3, guided
    with tempfile.TemporaryDirectory() as folder:
        server, address = served(sys.argv[1], folder)
        try:
            for command in asked + guided:
                command = command.replace("curl ", "curl --fail-with-body ").replace(ADDRESS, address)
                answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
                if answer.returncode or not is_answer(command, answer.stdout):
                    sys.exit(f"{command}\n{answer.stdout}{answer.stderr}")
            time.sleep(2)  # the age that a list may have
            with urllib.request.urlopen(f"{address}/devices?room=attic") as stored:
                assert [device["device_id"] for device in json.load(stored)["data"]] == ["attic-air"]
        finally:
            server.terminate()
            server.wait()
    print(f"{len(asked)} lines of README.md and {len(guided)} of the guide to energy are answered")


main()
