"""Writes to a real influxd 1.x, which forwards each write by CREATE SUBSCRIPTION; then a line that is refused."""

import os
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "influxql"))
from compare import Influx, send  # noqa: E402

host, token = os.environ["CLIENT_HOST"], os.environ["TOKEN"]
target = os.environ["URL"].replace("http://", f"http://anybody:{token}@")
path = f"/devices/{host}::room/readings?from=2026-01-11T16:00:00Z&to=2026-01-11T17:00:00Z"


def stored():
    headers = {"Authorization": f"Bearer {os.environ['READ_TOKEN']}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(os.environ["URL"] + path, headers=headers), timeout=10) as answer:
            return answer.read().count(b"temp")
    except urllib.error.HTTPError:
        return 0


with tempfile.TemporaryDirectory() as folder:
    influx = Influx(Path(folder))
    query = f"CREATE SUBSCRIPTION roomtide ON home.autogen DESTINATIONS ALL '{target}'"
    status, text = send(f"{influx.url}/query?" + urllib.parse.urlencode({"q": query}), b"")
    assert status == 200 and "error" not in text, text
    # influxd looks for new subscriptions now and then, and does not repeat what a subscriber missed.
    deadline = time.monotonic() + 40
    while stored() < 3 and time.monotonic() < deadline:
        lines = [f"room,host={host} temp={20 + n}.5,ok=t {1768147200 + 60 * n}" for n in range(3)]
        status, text = send(f"{influx.url}/write?db=home&precision=s", "\n".join(lines).encode())
        assert status == 204, text
        time.sleep(0.5)
    influx.process.terminate()
    influx.process.wait(timeout=30)
body = f"room,host={host}x temp".encode()
request = f"{os.environ['URL']}/write?db=home&u=anybody&p={token}"
print(send(request, body))
