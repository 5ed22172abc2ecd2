"""Asks random queries about random readings of the local system and of a real influxd, and compares the answers.

    python3 tests/influxql/compare.py [--seed N] [--queries N] [--home FILE.csv.gz]

It starts both on free ports: InfluxDB 1.x must be installed (Debian's package `influxdb`); where it is not, that is
said and nothing is compared. With --home, months of a real house are compared too. Absent: line protocol, and points
of one time, whose order is open.
"""

import argparse
import atexit
import csv
import gzip
import json
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "home"))
import check as house  # noqa: E402

FIRST = 1_774_051_200  # 2026-03-21T00:00:00Z: the clock changes on the 29th
DAYS = 16
DEVICES = {"a": "kitchen", "b": "living", "c": "kitchen", "d": None}
ZONES = ["", "", " tz('Europe/Brussels')", " tz('Asia/Tokyo')", " tz('America/New_York')"]


class Influx:
    """The real server, with a folder of its own."""

    def __init__(self, folder, shards=" WITH SHARD DURATION 5000w"):
        with socket.socket() as a, socket.socket() as b:
            a.bind(("127.0.0.1", 0))
            b.bind(("127.0.0.1", 0))
            self.port, rpc = a.getsockname()[1], b.getsockname()[1]
        config = folder / "influxdb.conf"
        config.write_text(
            f'bind-address = "127.0.0.1:{rpc}"\n[meta]\ndir = "{folder}/meta"\n'
            f'[data]\ndir = "{folder}/data"\nwal-dir = "{folder}/wal"\nquery-log-enabled = false\n'
            f'[http]\nbind-address = "127.0.0.1:{self.port}"\nlog-enabled = false\n[monitor]\nstore-enabled = false\n')
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            ["influxd", "-config", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.process.kill)
        for _ in range(100):
            try:
                send(self.url + "/ping")
                break
            except OSError:
                time.sleep(0.1)
        send(f"{self.url}/query?" + urllib.parse.urlencode({"q": f"CREATE DATABASE home{shards}"}), b"")

    def write(self, readings):
        lines = []
        for it in readings:
            tags = f"device={it['device_id']}" + (f",room={it['room']}" if it.get("room") else "")
            names = [name for name in it if name not in ("device_id", "room", "timestamp")]
            lines += [f"{name},{tags} value={it[name]} {it['timestamp']}" for name in names]
        status, text = send(f"{self.url}/write?db=home&precision=s", "\n".join(lines).encode())
        assert status == 204, text


def send(url, body=None, content_type="application/octet-stream"):
    request = urllib.request.Request(url, data=body, headers={"Content-Type": content_type})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def ask(url, query):
    parameters = urllib.parse.urlencode({"db": "home", "epoch": "ms", "q": query})
    status, text = send(f"{url}/query?{parameters}")
    return [status, json.loads(text)]


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(b, (int, float)) and isinstance(a, (int, float)) and abs(a - b) <= 1e-12 * max(abs(a), abs(b), 1)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


def random_readings(dice):
    readings = []
    for device, room in DEVICES.items():
        at, value = FIRST + dice.randrange(3_600), dice.uniform(15, 25)
        # No two devices measure at one time: the order of such points is open.
        at += list(DEVICES).index(device) - at % 4
        while at < FIRST + DAYS * 86_400:
            value = round(value + dice.uniform(-0.7, 0.7), 2)
            reading = {"device_id": device, "timestamp": at, "temperature": value}
            if dice.random() < 0.5:
                reading["humidity"] = dice.randrange(30, 70)
            if room:
                reading["room"] = room
            readings.append(reading)
            at += 4 * dice.choice([15, 75, 150, 225, 450, 2_000] if dice.random() < 0.995 else [40_000])
    return readings


def random_query(dice):
    measurement = dice.choice(['"temperature"', '"humidity"', "/temp|hum/"])
    lower = FIRST + dice.randrange(DAYS * 86_400)
    if dice.random() < 0.6:
        lower -= lower % 900
    upper = lower + dice.choice([3_600, 20_000, 86_400, 400_000, 900_000])
    bounds = [f"time >= {lower}s", f"time {dice.choice(['<', '<='])} {upper}s"]
    extra = dice.choice(["", "", "", "room = 'kitchen'", "room != 'kitchen'", "device =~ /^(a|d)$/", "room = ''",
                         "(device = 'a' OR device = 'b')", "value > 20", "value < 45 AND device != 'c'"])
    where = " AND ".join(bounds + [extra] * bool(extra))
    tags = dice.choice(["", "device", "room", "device, room", "*", '("device"::tag)'])
    order = dice.choice(["", "", " ORDER BY time DESC"])
    page = dice.choice(["", "", "", f" LIMIT {dice.randrange(1, 9)}", f" LIMIT {dice.randrange(1, 9)} OFFSET {dice.randrange(4)}"])
    zone = dice.choice(ZONES)
    group = f" GROUP BY {tags}" if tags else ""
    kind = dice.random()
    if kind < 0.12:
        columns = dice.choice(["value", "*", "value, device", "value * 2, room", "round(value * 3) / 3", "abs(value - 20), sqrt(value)",
                               "pow(value, 2) % 7, log(value, 10)"])
        return f"SELECT {columns} FROM {measurement} WHERE {where}{group}{order}{page}{zone}"
    if kind < 0.2:
        call = dice.choice(["difference(value)", "derivative(value, 1m)", "cumulative_sum(value)", "moving_average(value, 3)",
                            "non_negative_difference(value)", "elapsed(value, 1s)"])
        return f"SELECT {call} FROM {measurement} WHERE {where} GROUP BY device{order}{page}"
    if kind < 0.27:
        columns = dice.choice(["top(value, 3)", "bottom(value, 2)", "top(value, device, 2)", "top(value, 1), room", "distinct(value)"])
        windows = dice.choice(["", f" GROUP BY time({dice.choice(['1h', '6h', '1d'])})"])
        return f"SELECT {columns} FROM {measurement} WHERE {where}{windows or group}{order}"
    if kind < 0.42:
        return subquery(dice, measurement, (where, " AND ".join(bounds)), order)
    if kind < 0.47:
        # Of several series the real server tells the last area of each apart.
        windows = dice.choice(["", " GROUP BY time(1h)", " GROUP BY time(6h) fill(previous)", " GROUP BY time(90m) fill(0)"])
        columns = dice.choice(["integral(value, 1h)", "integral(value), mean(value)", "integral(value) / 3600"])
        return f"SELECT {columns} FROM \"temperature\" WHERE device = 'a' AND {' AND '.join(bounds)}{windows}{order}"
    calls = ["mean", "sum", "count", "min", "max", "first", "last", "spread", "median", "stddev"]
    chosen = dice.sample(calls, dice.choice([1, 1, 2, 3]))
    columns = ", ".join(f"{call}(value)" for call in chosen)
    if dice.random() < 0.15:
        columns += dice.choice([", count(distinct(value))", ", round(mean(value))"])
    if kind < 0.55:
        return f"SELECT {columns} FROM {measurement} WHERE {where}{group}{order}{zone}"
    interval = dice.choice(["10m", "15m", "30m", "1h", "6h", "12h", "1d", "1w"]) + dice.choice(["", "", "", ", 15m", ", -2h"])
    # Windows that do not divide the day, across the change of a clock.
    if zone and dice.random() < 0.3:
        interval = dice.choice(["45m", "90m", "5h", "195m", "36h"]) + dice.choice(["", "", ", 30m"])
        return f"SELECT {columns} FROM {measurement} WHERE {where} GROUP BY time({interval}){dice.choice(FILLS)}{order}{zone}"
    if kind < 0.7:
        inner = dice.choice(["mean", "last", "sum", "max"])
        outer = dice.choice([f"difference({inner}(value))", f"derivative({inner}(value), 1h)", f"moving_average({inner}(value), 3)",
                             f"cumulative_sum({inner}(value))", f"non_negative_derivative({inner}(value))", f"elapsed({inner}(value), 1m)",
                             f"moving_average(difference({inner}(value)), 2)", f"cumulative_sum(non_negative_difference({inner}(value)))"])
        columns = outer + dice.choice(["", "", f", {dice.choice(['min', 'count', 'median'])}(value)"])
        zone = ""
    group = ", ".join(filter(None, [f"time({interval})", tags]))
    # On a day on which the clock changes the real server has windows below a day that overlap.
    if interval[-1] not in "dw" or "," in interval:
        zone = ""
    return f"SELECT {columns} FROM {measurement} WHERE {where} GROUP BY {group}{dice.choice(FILLS)}{order}{page}{zone}"


FILLS = ["", "", " fill(none)", " fill(previous)", " fill(linear)", " fill(0)", " fill(7.5)"]


def subquery(dice, measurement, bounds, order):
    """A statement around another one."""
    # A window that the lower bound cuts lies before the range around it, where the real server finds nothing.
    within, around = (re.sub(r"\d{9,}", lambda it: str(int(it.group()) // 3_600 * 3_600), text) for text in bounds)
    call = dice.choice(["mean", "max", "last", "count", "sum", "median"])
    tags = dice.choice(["", "device", "room"])
    windows = dice.choice(["", "10m", "30m", "1h"])
    fill = dice.choice(["", " fill(none)", " fill(0)", " fill(previous)"]) if windows else ""
    # Of several series within another statement the real server fills windows several times.
    fill = fill if not tags else dice.choice(["", " fill(none)"]) * bool(windows)
    group = ", ".join(filter(None, [f"time({windows})" if windows else "", tags]))
    group = f" GROUP BY {group}{fill}" if group else ""
    inner = f"SELECT {call}(value) AS v FROM {measurement} WHERE {within}{group}"
    if dice.random() < 0.2:
        inner = f"SELECT value * 2 AS v, device FROM {measurement} WHERE {within}"
    calls = ["mean", "sum", "max", "count", "spread", "last", "median"]
    # The rows of windows of one time have no order that both servers share, but for sums of them.
    columns = dice.choice([f"{dice.choice(calls)}(v)", f"{dice.choice(calls)}(v), min(v)", "round(sum(v))"])
    if tags and not windows:
        columns = dice.choice(["sum(v)", "max(v) - min(v)", "count(v)"])
    shape = dice.random()
    if shape < 0.25 and windows and not tags:
        columns = dice.choice(["v", "v * 2", "difference(v)", "abs(v - 20)", "integral(v, 1h)"])
        return f"SELECT {columns} FROM ({inner}){dice.choice(['', ' WHERE v > 20'])}{order}"
    outer = dice.choice(["", "", f" GROUP BY time({dice.choice(['2h', '6h', '1d'])}){dice.choice(['', ' fill(0)', ' fill(none)'])}"])
    if tags == "device" and dice.random() < 0.3:
        outer = " GROUP BY device"
    return f"SELECT {columns} FROM ({inner}) WHERE {around}{outer}"


def settled(server, influx):
    """Waits until what was posted is rolled up."""
    query = "SELECT count(value) FROM /temp|hum/ GROUP BY device, room"
    while not same(ask(influx.url, query), ask(server.url, query)):
        time.sleep(1)


def compare(server, influx, queries):
    wrong = 0
    for query in queries:
        real, ours = ask(influx.url, query), ask(server.url, query)
        if not same(real, ours):
            wrong += 1
            print(f"DIFFERENT {query}\n  real {str(real)[:600]}\n  ours {str(ours)[:600]}", flush=True)
    return wrong


def post(server, influx, readings):
    for n in range(0, len(readings), 2_000):
        part = readings[n:n + 2_000]
        status, text = send(f"{server.url}/readings", json.dumps(part).encode(), "application/json")
        assert status == 201, text
        influx.write(part)
    settled(server, influx)


def home_readings(file):
    with gzip.open(file, "rt") as opened:
        for row in csv.DictReader(opened):
            local = datetime.strptime(row["date"], "%Y/%m/%d %H:%M").replace(tzinfo=timezone(timedelta(hours=1)))
            yield {"device_id": "thermo-kitchen", "room": "kitchen", "timestamp": int(local.timestamp()),
                   "temperature": float(row["T1"]), "humidity": float(row["RH_1"])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--home")
    asked = parser.parse_args()
    if shutil.which("influxd") is None:
        print("influxd is not installed: InfluxQL is not compared with it")
        return
    dice = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        influx = Influx(Path(folder))
        server = house.Server(Path(folder) / "roomtide")
        post(server, influx, random_readings(dice))
        wrong = compare(server, influx, [random_query(dice) for _ in range(asked.queries)])
        print(f"{asked.queries} random queries (seed {asked.seed}): {wrong} differ")
        if asked.home:
            readings = list(home_readings(asked.home))
            post(server, influx, readings)
            lower, upper = readings[0]["timestamp"], readings[-1]["timestamp"]
            query = f'SELECT mean("value") FROM "temperature" WHERE device = \'thermo-kitchen\' AND time >= {lower}s AND time <= {upper}s GROUP BY time(1d)'
            queries = [query + " fill(none) tz('Europe/Brussels')", query + " fill(none)", query.replace("1d", "1h") + " fill(none)"]
            more = compare(server, influx, queries)
            wrong += more
            print(f"{len(readings)} readings of a house: {more} of {len(queries)} queries differ")
        server.stop()
        influx.process.kill()
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
