"""A home on the units that a default stack provisions, against a server that refuses what is beyond them.

    python3 tests/home/provisioned.py [none|full]

Ten rooms have a year of readings. A device posts each second; meanwhile a file is imported, readings are exported,
rollups verified and rebuilt, and the page's four charts of all rooms by day are asked for at once. No post of the device
may be refused, and whatever is asked must be answered. The server's model has no burst, or with `full` one of 300
seconds; it is a reading of AWS's documentation, not AWS. The charts are over a year with a burst and over a month
without: a year of ten rooms needs more units than there are in the 25 seconds of a request. Prints how long each step
took.
"""

import atexit
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

from check import PROGRAM, Failed

ROOMS = [f"room-{n}" for n in range(10)]
METRICS = ["temperature", "humidity", "co2", "current_w"]
NOW = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0)


def year(path):
    """Four readings a day of a device in each room."""
    with path.open("w") as file:
        for hours in range(365 * 24, 0, -6):
            at = (NOW - timedelta(hours=hours)).isoformat()
            for n, room in enumerate(ROOMS):
                values = {metric: (hours * 7 + n * 3 + len(metric)) % 50 for metric in METRICS}
                file.write(json.dumps({"device_id": f"device-{n}", "timestamp": at, "room": room} | values) + "\n")


def few(path, count):
    with path.open("w") as file:
        for n in range(count):
            at = (NOW - timedelta(days=400, minutes=n)).isoformat()
            file.write(json.dumps({"device_id": f"old-{n % 5}", "timestamp": at, "room": ROOMS[n % 10], "temperature": n % 30}) + "\n")


def history(path, count):
    """Minutes of three meters, as line protocol."""
    start = int((NOW - timedelta(days=300)).timestamp())
    with path.open("w") as file:
        for n in range(count):
            for meter in range(3):
                file.write(f"kWh,domain=sensor,entity_id=m{meter} value={100 + n / 100},state_class_str=\"total_increasing\" {start + 60 * n}000000000\n")


def ask(url, path, body=None):
    """The status of a request, its time and its read units."""
    started = time.monotonic()
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            response.read()
            status, units = response.status, float(response.headers["x-consumed-read-units"])
    except urllib.error.HTTPError as error:
        status, units = error.code, 0
    return status, time.monotonic() - started, units


class Server:
    """The local system on a free port, and where its engine answers to which key."""

    def __init__(self, data, *options):
        words = [PROGRAM, "--empty", "--port", "0", "--data-dir", data, "--time-zone", "UTC", "--print-engine-key", *options]
        self.process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        atexit.register(self.process.kill)
        said = ""
        for line in self.process.stdout:
            said += line
            if "access key" in line:
                break
        found = re.search(r"listens on (\S+).*engine +(\S+) .*access key (\w+)", said, re.S)
        if not found:
            raise Failed(f"the server did not start: {said}")
        self.url, self.engine, self.key = found.groups()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Device:
    """Posts a reading each second, and keeps what it was told."""

    def __init__(self, url):
        self.url, self.answers, self.ends = url, [], threading.Event()
        self.thread = threading.Thread(target=self.post)
        self.thread.start()

    def post(self):
        while not self.ends.wait(1):
            body = {"device_id": "plug", "room": ROOMS[0], "current_w": len(self.answers)}
            self.answers.append(ask(self.url, "/readings", body))

    def check(self, what):
        refused = [status for status, *_ in self.answers if status != 201]
        slowest = max((took for _, took, _ in self.answers), default=0)
        if refused or slowest >= 8:
            raise Failed(f"{what}: of {len(self.answers)} posts {len(refused)} were refused {refused}, the slowest took {slowest:.1f} s")
        self.answers.clear()
        return slowest

    def stop(self):
        self.ends.set()
        self.thread.join()


def main():
    burst = sys.argv[1] if len(sys.argv) > 1 else "none"
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        year(folder / "year.ndjson")
        few(folder / "few.ndjson", 100)
        history(folder / "history.lp", 200)
        server = Server(folder / "data")
        run(server, "import", folder / "year.ndjson", "--url", server.url)
        server.stop()
        server = Server(folder / "data", "--provisioned", burst)
        device = Device(server.url)
        try:
            use(server, device, folder, 365 if burst == "full" else 30)
        finally:
            device.stop()
            server.stop()
    print(f"a home on provisioned units, burst {burst}: no post was refused")


def use(server, device, folder, days):
    table = ["--table", "roomtide"]
    short = ["--device", "old-0", "--from", (NOW - timedelta(days=402)).isoformat(), "--to", (NOW - timedelta(days=398)).isoformat()]
    timed(device, "import of 100 readings", lambda: run(server, "import", folder / "few.ndjson", "--url", server.url))
    timed(device, "import of 600 points of a history, compared", lambda: run(server, "import", folder / "history.lp", "--url", server.url))
    timed(device, f"four charts of ten rooms over {days} days, by day", lambda: charts(server.url, days))
    timed(device, "export of a device's 1,460 readings", lambda: run(server, "export", "--device", "device-3", "--url", server.url, folder / "export.ndjson"))
    timed(device, "verify of four days", lambda: run(server, "rollups", "verify", "--again-after", "0s", *short, *table))
    timed(device, "rebuild of four days", lambda: run(server, "rollups", "rebuild", *short, *table))


def charts(url, days):
    start = (NOW - timedelta(days=days)).isoformat().replace("+00:00", "Z")
    def chart(metric):
        query = urllib.parse.urlencode({"metric": metric, "every": "1d", "tz": "UTC", "fn": "mean,min,max", "rooms": "1", "from": start, "to": "now"})
        return ask(url, f"/series?{query}")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(chart, METRICS))
    if any(status != 200 for status, *_ in answers):
        raise Failed(f"charts: {answers}")
    print("          each after " + ", ".join(f"{took:.1f} s, {units:.0f} units" for _, took, units in answers))


def timed(device, what, action):
    device.check(f"before {what}")
    started = time.monotonic()
    action()
    took = time.monotonic() - started
    slowest = device.check(what)
    print(f"{took:6.1f} s  {what}; the device's slowest post took {slowest:.2f} s")


def run(server, *words):
    keys = {"AWS_ACCESS_KEY_ID": server.key, "AWS_SECRET_ACCESS_KEY": "local"}
    place = {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": server.engine}
    done = subprocess.run([PROGRAM, *map(str, words)], env=os.environ | keys | place, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise Failed(f"{words}: {done.returncode} {done.stdout[-500:]} {done.stderr[-1500:]}")


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"FAILED  {failure}")
