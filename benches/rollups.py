"""Measures the rollups: months of ten devices imported and rolled up, rebuilt, and the sweep of a large fleet."""

import contextlib
import datetime
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

import build
import laptop

DEVICES, DAYS, MINUTES = 10, 137, 10
FLEET = 10_000
START = datetime.datetime(2016, 1, 11, 16, tzinfo=datetime.UTC)


def rollups(report, args, scratch):
    """Seconds for 4.5 months of ten devices, with a server and without, and the units of a fleet's sweep."""
    file = scratch / "months.ndjson"
    count = write_months(file)
    imported, anew, again, direct = [], [], [], []
    for _ in range(args.rounds or 1):
        with laptop.folder() as data:
            direct.append(count / timed(file, "--data-dir", data))
        with laptop.folder() as data:
            server = laptop.Server(data)
            imported.append(count / timed(file, "--url", f"http://127.0.0.1:{server.port}"))
            server.process.send_signal(signal.SIGTERM)
            server.process.wait()
            again.append(count / timed_rebuild(data))
            with contextlib.closing(sqlite3.connect(data / "roomtide.db")) as file_of_engine:
                with file_of_engine:
                    file_of_engine.execute("DELETE FROM roomtide WHERE pk LIKE 'ROLLUP#%'")
            anew.append(count / timed_rebuild(data))
    report.title(f"{count:,} readings, {DAYS} days of {DEVICES} devices, two metrics each, every {MINUTES} minutes")
    report.ratio("import without a server, to import through one", direct, imported, "readings a second")
    report.ratio("rollups rebuild where there are none, to import until rolled up", anew, imported, "readings a second")
    report.ratio("rollups rebuild where all are right, to the same import", again, imported, "readings a second")
    report.line(f"rebuilt in {count / anew[0]:,.0f} s where there were none, in {count / again[0]:,.0f} s where all were right")
    sweep(report)


def write_months(file):
    """One reading of each device every ten minutes, a device after the other, as an export writes them."""
    steps = DAYS * 24 * 60 // MINUTES
    with file.open("w") as lines:
        for device in range(DEVICES):
            for step in range(steps):
                at = START + datetime.timedelta(minutes=MINUTES * step)
                json.dump({
                    "device_id": f"sensor-{device}", "timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "temperature": 18 + step * 13 % 70 / 10, "humidity": 35 + step * 11 % 300 / 10,
                }, lines)
                lines.write("\n")
    return DEVICES * steps


def timed(file, *place):
    """Seconds until an import says that everything is rolled up."""
    seconds, said = run([build.roomtide(), "import", file, "--again", *place])
    if "rolled up: " not in said:
        raise RuntimeError(f"the import ended before everything was rolled up: {said}")
    return seconds


def timed_rebuild(data):
    return run([build.roomtide(), "rollups", "rebuild", "--again", "--data-dir", data])[0]


def sweep(report):
    """The units of a quarter of an hour, which a test counts and holds."""
    environment = os.environ | {"ROOMTIDE_DEVICES": str(FLEET)}
    words = ["cargo", "test", "-q", "--workspace", "--test", "roomtide", "a_fleet_pays", "--", "--nocapture"]
    _, said = run(words, cwd=build.ROOT, env=environment)
    figure = re.search(r"a quarter of an hour of .*", said)
    if not figure:
        raise RuntimeError(f"the test printed no units: {said}")
    report.title("the sweep of a large fleet")
    report.line(figure.group())


def run(words, **options):
    """Runs a command; its seconds and what it said."""
    started = time.monotonic()
    ran = subprocess.run(words, capture_output=True, text=True, **options)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {ran.stdout}{ran.stderr}")
    return time.monotonic() - started, ran.stdout + ran.stderr
