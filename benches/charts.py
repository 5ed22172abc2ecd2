"""Measures answers as they are felt: charts of a home of ten devices over a year, with InfluxDB 1 beside on the same lines."""

import contextlib
import http.client
import json
import shutil
import statistics
import subprocess
import sys
import time
import urllib.parse
from datetime import datetime, timedelta, timezone

import build
from laptop import Server, folder
from stubs import WHOLE, CpuShare

sys.path.append(str(build.ROOT / "tests" / "influxql"))
from compare import Influx  # noqa: E402

DEVICES, DAYS, MINUTES = 10, 365, 10
ROOMS = ["kitchen", "study", "bedroom", "bath", "hall", "attic", "cellar", "garden", "office", "loft"]
# Whole days in UTC; the newest is over, so that all is rolled up.
END = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
# Readings of the growing table, behind which the same answers are asked.
SIZES = [1_000, 10_000, 100_000, 1_000_000]


def ask(server, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    with contextlib.closing(connection):
        connection.request(method, path, body)
        answer = connection.getresponse()
        said = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path[:200]}: {answer.status} {said[:300]}")
    return said


def values(device, step):
    power = {"current_w": 300 + step * 7 % 900} if device == 0 else {}
    return {"temperature": 18 + step * 13 % 70 / 10, "humidity": 35 + step * 11 % 300 / 10} | power


def reading(device, at, step):
    """A reading as Roomtide has it."""
    named = {"device_id": f"sensor-{device}", "room": ROOMS[device], "timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return json.dumps(named | values(device, step)) + "\n"


def lines(device, at, step):
    """The same as line protocol, in the words in which Roomtide answers InfluxQL: a metric is a measurement."""
    tags, time = f"device=sensor-{device},room={ROOMS[device]}", int(at.timestamp())
    return "".join(f"{name},{tags} value={value} {time}\n" for name, value in values(device, step).items())


def point(device, at, step):
    fields = ",".join(f"{name}={value}" for name, value in values(device, step).items())
    return f"climate,host=sensor-{device} {fields} {int(at.timestamp())}\n"


def steps(days):
    """The times of a reading of each device, oldest first."""
    start = END - timedelta(days=days)
    return [start + timedelta(minutes=MINUTES * n) for n in range(days * 24 * 60 // MINUTES)]


def write_home(path, form, days=DAYS):
    with path.open("w") as file:
        for n, at in enumerate(steps(days)):
            file.writelines(form(device, at, n) for device in range(DEVICES))
    return path


def imported(file, data):
    """Imports a file into a new data directory; the seconds until all is rolled up, and the bytes of its files."""
    started = time.monotonic()
    ran = subprocess.run([build.roomtide(), "import", file, "--data-dir", data], capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"roomtide import: {ran.stdout}{ran.stderr}")
    return time.monotonic() - started, size_of(data)


def size_of(data):
    return sum(file.stat().st_size for file in data.rglob("*") if file.is_file())


def span(days, skipped=1):
    """Whole days, as the API takes them and as InfluxQL does."""
    ends = [(END - timedelta(days=it)).strftime("%Y-%m-%dT%H:%M:%SZ") for it in (days + skipped, skipped)]
    return "from={}&to={}".format(*ends), "time >= '{}' AND time < '{}'".format(*ends)


def questions():
    """Of each: its name, what Roomtide is asked, and what InfluxDB is asked if it has that question."""
    def influx(text):
        return "/query?" + urllib.parse.urlencode({"db": "home", "epoch": "ms", "q": text})

    def by(where, group, days):
        return influx(f"SELECT mean(value) FROM temperature WHERE {where}{span(days)[1]} GROUP BY {group}")

    one = "device = 'sensor-1' AND "
    hourly = by(one, "time(1h)", 6)
    points = influx(f"SELECT value FROM temperature WHERE {one}{span(9)[1]}")
    daily = by("", "time(1d), device", 30)
    newest = influx("SELECT last(value) FROM temperature GROUP BY device")
    week, month = span(7)[0], span(30)[0]
    return [
        ("mean by hour over six days, one device", f"/devices/sensor-1/series?metric=temperature&fn=mean&every=1h&{span(6)[0]}", hourly),
        ("the same by InfluxQL", hourly, hourly),
        ("1,296 points of a device", f"/devices/sensor-1/readings?metrics=temperature&limit=2000&{span(9)[0]}", points),
        ("the same by InfluxQL", points, points),
        ("mean by day of ten devices, a month, by InfluxQL", daily, daily),
        ("last of all, by InfluxQL", newest, newest),
        ("a room's month by 15 minutes", f"/rooms/study/series?metric=temperature&every=15m&{month}",
         by("room = 'study' AND ", "time(15m)", 30)),
        ("nine devices' week by hour", f"/series?devices=1&metric=temperature&every=1h&{week}",
         by("", "time(1h), device", 7)),
        ("a year by day of a device", f"/devices/sensor-1/series?metric=temperature&every=1d&{span(364)[0]}",
         by(one, "time(1d)", 364)),
    ]


def charts(report, args, scratch):
    """Milliseconds of answers on this machine."""
    count = len(steps(DAYS)) * DEVICES
    with folder() as data, folder_of_influx() as place:
        took, size = imported(write_home(scratch / "home.ndjson", reading), data)
        ours, theirs = Server(data), Influx(place, shards="")
        write_influx(theirs, write_home(scratch / "home.lp", lines))
        report.title(f"answers of a home of {DEVICES} devices over a year ({count:,} readings), with influxd beside")
        report.line(f"imported and rolled up in {took:,.0f} s; {size / 1e6:,.0f} MB, {size / count:,.0f} bytes a reading")
        asked = questions()
        for name, own, other in asked:
            if own == other and (found := rows_of(ours, own)) != (wanted := rows_of(theirs, other)):
                raise RuntimeError(f"{name}: {found} rows, and influxd {wanted}")
        times = [([], []) for _ in asked]
        for _ in range(args.rounds or 15):
            for (_, own, other), (mine, its) in zip(asked, times, strict=True):
                mine.append(timed(ours, own))
                its.append(timed(theirs, other))
        for (name, _, _), (mine, its) in zip(asked, times, strict=True):
            report.ratio(name, mine, its, "ms", digits=1)
        ours.kill()
        theirs.process.kill()


def rows_of(server, path):
    """The number of rows of an InfluxQL answer; an empty one would compare nothing."""
    rows = sum(len(series["values"]) for series in json.loads(ask(server, "GET", path))["results"][0].get("series", []))
    if rows == 0:
        raise RuntimeError(f"nothing is answered to {path}")
    return rows


def timed(server, path):
    started = time.perf_counter()
    ask(server, "GET", path)
    return (time.perf_counter() - started) * 1000


@contextlib.contextmanager
def folder_of_influx():
    place = build.TARGET / "influxd"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def write_influx(server, file):
    with file.open() as lines:
        while batch := list(zip(range(20_000), lines)):
            ask(server, "POST", "/write?db=home&precision=s", "".join(text for _, text in batch).encode())


def points(report, args, _):
    """Points a second of line protocol, 500 a request, one sender."""
    requests = 100
    batches = [
        "".join(point(device, END - timedelta(days=1) + timedelta(seconds=50 * n + second), n) for second in range(50) for device in range(DEVICES))
        for n in range(requests)
    ]
    mine, its, size, other_size = [], [], 0, 0
    for _ in range(args.rounds or 3):
        with folder() as data, folder_of_influx() as place:
            for server, taken in ((Server(data), mine), (Influx(place, shards=""), its)):
                started = time.monotonic()
                for batch in batches:
                    ask(server, "POST", "/write?db=home&precision=s", batch.encode())
                taken.append(500 * requests / (time.monotonic() - started))
                server.process.kill()
                server.process.wait()
            size, other_size = size_of(data), size_of(place)
    report.title(f"{500 * requests:,} points of line protocol, 500 a request, one sender")
    report.ratio("to influxd", mine, its, "points a second")
    report.line(f"{size / 500 / requests:,.0f} bytes of files a fresh reading, influxd {other_size / 500 / requests:,.0f}")


def growth(report, args, scratch):
    """Fixed answers behind tables that grow: read units where the answer tells them, and CPU time of the server."""
    report.title("answers of a fixed size, in tables of 1,000 to 1,000,000 readings of one device")
    for size in SIZES:
        file = scratch / f"{size}.ndjson"
        with file.open("w") as lines:
            start = END - timedelta(minutes=size)
            lines.writelines(reading(1, start + timedelta(minutes=n), n) for n in range(size))
        with folder() as data:
            imported(file, data)
            server = Server(data)
            day = f"from={(END - timedelta(hours=12)).strftime('%Y-%m-%dT%H:%M:%SZ')}&to={END.strftime('%Y-%m-%dT%H:%M:%SZ')}"
            figures = []
            for path in (f"/devices/sensor-1/series?metric=temperature&every=1h&{day}",
                         f"/devices/sensor-1/readings?limit=100&{day}", "/devices/sensor-1/latest"):
                ask(server, "GET", path)
                before, repeats = cpu(server), 50
                for _ in range(repeats):
                    ask(server, "GET", path)
                figures.append(f"{(cpu(server) - before) / repeats * 1000:.1f} ms of CPU")
            report.line(f"{size:>9,}: 12 hours by the hour {figures[0]}; 100 readings {figures[1]}; newest values {figures[2]}")
            server.kill()


def page(report, args, scratch):
    """The first room and the first chart in Chromium, where the server has the share of a processor that a function has."""
    tools = build.ROOT / "target" / "tools" / "web"
    report.title("first content of the page, a home of ten devices over a year, nothing kept by the browser")
    if not (tools / "wanted").exists():
        report.line(f"not measured: there is no playwright in {tools}; .ci/run page installs it")
        return
    with folder() as data:
        imported(write_home(scratch / "home.ndjson", reading), data)
        for memory in (256, 1024, WHOLE):
            server = Server(data)
            try:
                share = CpuShare(memory / WHOLE)
            except OSError as why:
                report.line(f"not measured: {why}; a share of a processor needs root")
                return
            share.add(server.process)
            url = f"http://127.0.0.1:{server.port}/"
            ran = subprocess.run(["node", build.ROOT / "benches" / "page.mjs", url, tools, str(args.rounds or 7)], capture_output=True, text=True)
            server.kill()
            share.end()
            if ran.returncode != 0:
                raise RuntimeError(f"page.mjs: {ran.stderr}")
            room, chart = (statistics.median(map(int, said.split())) for said in ran.stdout.splitlines())
            report.line(f"{memory:>5} MB: the first room after {room:,.0f} ms, a device's charts after {chart:,.0f} ms")


def cpu(server):
    """The seconds of processor time that a server has used."""
    with open(f"/proc/{server.process.pid}/stat") as file:
        parts = file.read().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / 100
