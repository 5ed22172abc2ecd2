"""Measures conditions: the units of a synthetic year, and of the sample home, by all rollups and by the plan chosen."""

import contextlib
import csv
import gzip
import json
import os
import subprocess
import urllib.parse

import build
import laptop

SAMPLE = build.ROOT / "cli/sample-home/energydata.csv.gz"
# Three metrics of one device, by the columns of the sample home, and the bits of each in the index.
COLUMNS = {"temperature": "T1", "humidity": "RH_1", "outside": "T6"}
DEVICE = "kitchen"
RANGE = {"from": "2016-01-11T16:00:00Z", "to": "2016-02-01T16:00:00Z"}


def conditions(report, _, __):
    """The table of the synthetic year, which a test makes and checks, and that of the sample home."""
    year(report)
    home(report)


def year(report):
    words = ["cargo", "test", "-q", "--workspace", "--test", "roomtide", "conditions_costs", "--", "--nocapture"]
    environment = os.environ | {"ROOMTIDE_CONDITIONS_DAYS": "365"}
    ran = subprocess.run(words, cwd=build.ROOT, env=environment, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {ran.stdout}{ran.stderr}")
    report.title("read units of conditions over a synthetic year of one device with three metrics")
    lines = [line for line in (ran.stdout + ran.stderr).splitlines() if line.startswith(("|", "the index pays"))]
    if not lines:
        raise RuntimeError(f"the test printed no table: {ran.stdout}{ran.stderr}")
    for line in lines:
        report.line(line)


def home(report):
    report.title("read units of conditions over three weeks of the sample home's kitchen")
    report.line("| metrics | each holds | plain | chosen | by |")
    for count in (2, 3):
        metrics = list(COLUMNS)[:count]
        values = columns(metrics)
        asked = [window(values, begin, percent) for percent in (10, 30) for begin in (0, 35, 100 - percent)]
        with laptop.folder() as data:
            server = laptop.Server(data)
            load(server)
            plain = [ask(server, query) for _, query in asked]
            server.kill()
            server = laptop.Server(data, "--conditions-index", "on")
            schema = [{"metric": name, "domain": quantiles(values[name])} for name in metrics]
            server.put("/conditions/schema", {"metrics": schema})
            roomtide("rollups", "rebuild", "--again", "--data-dir", data)
            chosen = [ask(server, query) for _, query in asked]
            server.kill()
        for (holds, _), (units, _), (less, plan) in zip(asked, plain, chosen, strict=True):
            report.line(f"| {count} | {holds} | {units} | {less} | {plan} |")


def window(values, begin, percent):
    """What it holds, and the query: for each metric the values between two of its quantiles."""
    ends = (begin, begin + percent)
    asked = {name: "..".join(str(of[min(end * len(of) // 100, len(of) - 1)]) for end in ends)
             for name, of in values.items()}
    return f"{percent} % from {begin} %", urllib.parse.urlencode(asked | RANGE | {"explain": "1"})


def ask(server, query):
    """The read units of an answer, and its plan. The first request of a minute also reads the state of the rollups."""
    for _ in range(2):
        explain = json.loads(server.get(f"/devices/{DEVICE}/conditions?{query}"))["explain"]
    return explain["consumed_read_units"], explain["plan"]


def columns(metrics):
    """The values of each metric, sorted."""
    with gzip.open(SAMPLE, "rt") as file:
        rows = list(csv.DictReader(file))
    return {name: sorted(float(row[COLUMNS[name]]) for row in rows) for name in metrics}


def quantiles(values):
    """The ends of 16 parts that hold equally many values."""
    return sorted({values[min(n * len(values) // 16, len(values) - 1)] for n in range(17)})


def load(server):
    maps = ",".join(f"{name}={column}" for name, column in COLUMNS.items())
    said = roomtide("import", SAMPLE, "--url", f"http://127.0.0.1:{server.port}", "--timestamp", "date",
                    "--timestamp-format", "%Y/%m/%d %H:%M", "--time-zone", "+01:00", "--map", f"{DEVICE}:{maps}", "--again")
    if "rolled up: " not in said:
        raise RuntimeError(f"the import ended before everything was rolled up: {said}")


def roomtide(*words):
    ran = subprocess.run([build.roomtide(), *words], capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"roomtide {' '.join(map(str, words))}: {ran.stdout}{ran.stderr}")
    return ran.stdout + ran.stderr
