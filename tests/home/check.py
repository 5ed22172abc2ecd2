"""Imports a real house into the local system and compares series and energy with its own sums over the CSV.

    python3 tests/home/check.py [energydata_complete.csv[.gz]]

Without a file it takes the sample home's first eight days. It compares after an import, after the same import again,
after readings are deleted, and after SIGKILL in the middle of an import. It shares no code with Roomtide: sums
are fractions, and a day's energy is that of the rows in (00:00, 24:00] of UTC+1. Absent: time zones with a
clock change, resets, rooms with several devices; the tests in Rust have those.
"""

import atexit
import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "cli" / "sample-home" / "energydata.csv.gz"
PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "roomtide"
ROOMS = ["kitchen", "living-room", "laundry", "office", "bathroom", "outside", "ironing-room", "teenager-room", "parents-room"]
METER = "meter@house:current_w=Appliances+lights*6,cumulative_kwh_p=total(Appliances+lights)*0.001"
HOUSE = timezone(timedelta(hours=1))
ZONE = "Etc/GMT-1"
# As many digits as Roomtide shows of a quotient.
SHOWN = Context(prec=15, rounding=ROUND_HALF_EVEN)
STARTED = time.monotonic()


class Failed(Exception):
    """What was expected and what came."""


def main():
    if not PROGRAM.exists():
        sys.exit("there is no program; build it with: cargo test --workspace --no-run")
    if len(sys.argv) > 1:
        return check(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        check(first_days(Path(folder)))


def first_days(folder):
    """The sample home's first eight days: the whole of it takes three times as long."""
    with gzip.open(SAMPLE, "rt") as rows:
        lines = [rows.readline() for _ in range(1 + 8 * 24 * 6)]
    file = folder / "house.csv"
    file.write_text("".join(lines))
    return file


def check(file):
    rows = house(file)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data")
        run_import(server, file)
        compare(server, rows, "after the import")
        run_import(server, file, "--again")
        compare(server, rows, "after the same import again")
        delete(server, rows)
        compare(server, rows, "after 60 readings are deleted")
        verify(server)
        server.stop()
    with tempfile.TemporaryDirectory() as folder:
        rows = house(file)
        server = killed_in_the_middle(Path(folder), file)
        compare(server, rows, "after SIGKILL in the middle of an import")
        verify(server)
        server.stop()


def say(text):
    print(f"{time.monotonic() - STARTED:6.0f} s  ok  {text}", flush=True)


# ---- The house, from its CSV -----------------------------------------------------------------------


def house(file):
    """The rows by device: each a timestamp and its metrics."""
    opened = gzip.open(file, "rt") if file.suffix == ".gz" else open(file)
    devices = {f"thermo-{room}": {} for room in ROOMS} | {"meter": {}}
    total = Fraction(0)
    with opened:
        for row in csv.DictReader(opened):
            at = datetime.strptime(row["date"], "%Y/%m/%d %H:%M").replace(tzinfo=HOUSE)
            for number, room in enumerate(ROOMS, start=1):
                devices[f"thermo-{room}"][at] = {
                    "temperature": Fraction(row[f"T{number}"]), "humidity": Fraction(row[f"RH_{number}"])}
            used = Fraction(row["Appliances"]) + Fraction(row["lights"])
            total += used / 1000
            devices["meter"][at] = {"current_w": used * 6, "cumulative_kwh_p": total}
    return devices


def midnight(at):
    return at.astimezone(HOUSE).replace(hour=0, minute=0, second=0, microsecond=0)


def days(readings):
    """The values of each day of UTC+1, [00:00, 24:00), by metric."""
    of_day = {}
    for at, metrics in sorted(readings.items()):
        for metric, value in metrics.items():
            of_day.setdefault(midnight(at), {}).setdefault(metric, []).append(value)
    return of_day


def number(fraction):
    return SHOWN.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


def summary(values):
    return {"mean": number(sum(values) / len(values)), "min": number(min(values)), "max": number(max(values)), "count": len(values)}


# ---- What Roomtide says ----------------------------------------------------------------------------


def compare(server, rows, when):
    checks = [
        ("a day's energy of the meter", lambda: daily_energy(server, rows["meter"])),
        ("the energy of any two parts is that of the whole", lambda: partitions(server, rows["meter"])),
        ("power by day", lambda: daily_series(server, "/devices/meter", rows["meter"], ["current_w"])),
    ]
    for room in ROOMS:
        readings = rows[f"thermo-{room}"]
        metrics = ["temperature", "humidity"]
        checks.append((f"{room} by day", lambda room=room, it=readings: daily_series(server, f"/rooms/{room}", it, metrics)))
        checks.append((f"{room} by quarter", lambda room=room, it=readings: quarters(server, f"/rooms/{room}", it)))
    for what, check in checks:
        until_none(f"{what} {when}", check)
    say(f"{when}: series of {len(ROOMS)} rooms and the meter's energy are those of the CSV")


def until_none(what, difference):
    """Waits until there is none: what the stream still holds shows later, and nothing tells how much that is."""
    deadline = time.monotonic() + 900
    while True:
        found = difference()
        if found is None:
            return
        if time.monotonic() > deadline:
            raise Failed(f"{what}: {found}")
        time.sleep(1)


def span(readings):
    """Midnight before the first reading and midnight after the last."""
    return midnight(min(readings)), midnight(max(readings)) + timedelta(days=1)


def daily_series(server, path, readings, metrics):
    start, end = span(readings)
    answer = server.get(f"{path}/series", metric=",".join(metrics), fn="mean,min,max,count", every="1d",
                        tz=ZONE, **{"from": text(start), "to": text(end)})
    got = {row["timestamp"]: {metric: row[metric] for metric in metrics if metric in row} for row in answer["data"]}
    expected = {
        text(day): {metric: summary(values[metric]) for metric in metrics}
        for day, values in days(readings).items()}
    return difference(expected, {at: row for at, row in got.items() if row})


def quarters(server, path, readings):
    """A week in the middle, by 15 minutes."""
    start = midnight(sorted(readings)[len(readings) // 2])
    end = start + timedelta(days=7)
    answer = server.get(f"{path}/series", metric="temperature", fn="sum,count,first,last", every="15m",
                        **{"from": text(start), "to": text(end)})
    expected = {}
    for at in sorted(readings):
        if start <= at < end:
            quarter = at.replace(minute=at.minute // 15 * 15)
            expected.setdefault(text(quarter), []).append(readings[at]["temperature"])
    expected = {
        at: {"sum": number(sum(values)), "count": len(values), "first": number(values[0]), "last": number(values[-1])}
        for at, values in expected.items()}
    got = {row["timestamp"]: row["temperature"] for row in answer["data"] if "temperature" in row}
    return difference(expected, got)


def power_column(readings):
    """The energy of each day in kWh: each row is that of the ten minutes before its timestamp."""
    of_day, before = {}, None
    for at, metrics in sorted(readings.items()):
        total = metrics["cumulative_kwh_p"]
        if before is not None:
            # (00:00, 24:00]: a row at midnight belongs to the day before.
            day = midnight(at - timedelta(microseconds=1))
            of_day[day] = of_day.get(day, 0) + total - before
        before = total
    return of_day


def daily_energy(server, readings):
    start, end = span(readings)
    answer = server.get("/devices/meter/energy", every="1d", tz=ZONE, **{"from": text(start), "to": text(end)})
    got = {row["timestamp"]: row["kwh"] for row in answer["data"] if row.get("kwh") is not None}
    expected = {text(day): number(kwh) for day, kwh in power_column(readings).items()}
    # The readings end before the last midnight, so that day has what was counted until then.
    return difference(expected, got) or difference(
        {"total": number(sum(power_column(readings).values()))}, {"total": answer["total_kwh"]})


def partitions(server, readings):
    """The exact totals of parts whose edges lie between readings add up to the total of the whole."""
    times = sorted(readings)
    first, last = times[3], times[-3]
    whole = total(server, first, last)
    expected = readings[last]["cumulative_kwh_p"] - readings[first]["cumulative_kwh_p"]
    if whole != number(expected):
        return f"from {first} to {last}: expected {number(expected)}, got {whole}"
    for part in (7, 13, 29):
        edge = first + (last - first) * part / 31 + timedelta(milliseconds=part)
        edge = edge.replace(microsecond=edge.microsecond // 1000 * 1000)
        parts = total(server, first, edge) + total(server, edge, last)
        if parts != whole:
            return f"{first} to {edge} and on to {last}: {parts} instead of {whole}"
    return None


def total(server, start, end):
    return server.get("/devices/meter/energy", **{"from": text(start), "to": text(end)})["total_kwh"]


def difference(expected, got):
    """The first difference, in words."""
    for at in sorted(set(expected) | set(got)):
        if expected.get(at) != as_numbers(got.get(at)):
            return f"{at}: expected {expected.get(at)}, got {got.get(at)}"
    return None


def as_numbers(value):
    if isinstance(value, dict):
        return {name: as_numbers(it) for name, it in value.items()}
    return Decimal(value) if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else value


def text(at):
    at = at.astimezone(timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


# ---- What is done to it ------------------------------------------------------------------------------


def delete(server, rows):
    """Ten hours of the kitchen's thermometer, in the middle."""
    readings = rows["thermo-kitchen"]
    start = sorted(readings)[len(readings) // 2]
    end = start + timedelta(hours=10)
    answer = server.get("/devices/thermo-kitchen/readings", method="DELETE", **{"from": text(start), "to": text(end)})
    gone = [at for at in readings if start <= at < end]
    if answer["deleted"] != len(gone):
        raise Failed(f"{len(gone)} readings were to be deleted: {answer}")
    for at in gone:
        del readings[at]


def run_import(server, file, *options, wait=True):
    maps = [f"thermo-{room}@{room}:temperature=T{n},humidity=RH_{n}" for n, room in enumerate(ROOMS, start=1)]
    words = [PROGRAM, "import", file, "--url", server.url, "--state", server.data.parent / "import-state",
             "--timestamp", "date", "--timestamp-format", "%Y/%m/%d %H:%M", "--time-zone", "+01:00", *options]
    for columns in [*maps, METER]:
        words += ["--map", columns]
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if wait:
        output, _ = process.communicate()
        if process.returncode != 0:
            raise Failed(f"import ended with {process.returncode}:\n{output}")
    return process


def killed_in_the_middle(folder, file):
    server = Server(folder / "data")
    for _ in range(3):
        importing = run_import(server, file, wait=False)
        time.sleep(1.2)
        server.kill()
        importing.kill()
        importing.wait()
        server = Server(folder / "data", server.url.rpartition(":")[2])  # progress is kept for an address
    run_import(server, file)
    return server


def verify(server):
    """`roomtide rollups verify` on the data of a server that has ended."""
    server.stop()
    ran = subprocess.run([str(PROGRAM), "rollups", "verify", "--data-dir", str(server.data)], text=True, capture_output=True)
    if ran.returncode != 0:
        raise Failed(f"verify ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    say("roomtide rollups verify finds no difference")


class Server:
    """The local system, on a free port if none is given."""

    def __init__(self, data, port=0):
        self.data = data
        self.process = subprocess.Popen(
            [str(PROGRAM), "--empty", "--port", str(port), "--data-dir", str(data), "--time-zone", "Europe/Brussels"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        atexit.register(self.process.kill)
        self.url = None
        for line in self.process.stdout:
            found = [word for word in line.split() if word.startswith("http://")]
            if found:
                self.url = found[0].rstrip("/.,")
                break
        if self.url is None:
            raise Failed("the server did not start")

    def get(self, path, method="GET", **parameters):
        address = f"{self.url}{path}?{urllib.parse.urlencode(parameters)}"
        request = urllib.request.Request(address, method=method)
        for attempt in range(10):
            try:
                with urllib.request.urlopen(request, timeout=120) as response:
                    return json.loads(response.read(), parse_float=Decimal)
            except urllib.error.HTTPError as error:
                # A busy machine has no time left for a long range; Retry-After says when to ask again.
                if error.code != 503 or attempt == 9:
                    raise Failed(f"{method} {address}: {error.code} {error.read().decode()}") from None
                time.sleep(float(error.headers.get("Retry-After", 1)))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()

    def kill(self):
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"FAILED  {failure}")
