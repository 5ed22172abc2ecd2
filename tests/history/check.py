"""Imports histories into the local system, and compares what it answers by month with sums that Python makes of the
source.

    python3 tests/history/check.py [NAME...]

Databases of Home Assistant are written by Python's SQLite, in use while they are imported. A running InfluxDB is
Debian's package `influxdb`; where it is not installed, that is said. InfluxDB 2 is played. `recorded` takes longer and
runs only when it is named: it installs Home Assistant, whose recorder writes the database.
"""

import gzip
import io
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
import urllib.request
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import homeassistant
import influxdb2
import shelly

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "influxql"))
from compare import Influx, send  # noqa: E402

PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "roomtide"


DESCRIPTION = json.dumps({"protected": False, "homeassistant": {"version": "2025.1.0", "exclude_database": False}}).encode()


class Server:
    """The local system, empty, on a free port, in UTC."""

    def __init__(self, data):
        command = [PROGRAM, "serve", "--empty", "--port", "0", "--time-zone", "UTC", "--data-dir", data]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=60)

    def get(self, path, **parameters):
        with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
            return json.load(answer, parse_float=Decimal, parse_int=Decimal)

    def pages(self, path):
        """All rows of all pages; a single answer as it is."""
        rows, cursor = [], ""
        while True:
            with urllib.request.urlopen(f"{self.url}{path}{cursor}", timeout=60) as answer:
                page = json.load(answer)
            if "data" not in page:
                return page
            rows += page["data"]
            if page.get("next_cursor") is None:
                return rows
            cursor = f"&cursor={page['next_cursor']}"

    def imports(self, *words):
        return imports("--url", self.url, *words)


def imports(*words):
    done = subprocess.run([PROGRAM, "import", *words], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"import {words} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def imports_alone(data, *words):
    """Imports without a server, into a new data directory."""
    with Server(data):
        pass  # which notes the time zone
    return imports("--data-dir", str(data), *words)


def same(found, expected):
    """Whether two numbers differ by no more than the rounding of a share of a step."""
    return abs(found - expected) <= Decimal("1e-8")


def compare(server, values, what):
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-03-01T00:00:00Z", "every": "1mo"}
    for (entity, month), (count, total) in homeassistant.months(values).items():
        if entity == "sensor.meter":
            rows = server.get(f"/devices/{entity}/energy", **span)["data"]
            row = next(row for row in rows if row["timestamp"].startswith(f"2026-{month:02}"))
            found, expected = row["kwh"], total
        else:
            metric = "temperature" if entity == "sensor.outside" else "door"
            if month == 3:
                continue
            rows = server.get(f"/devices/{entity}/series", metric=metric, fn="sum,count", **span)["data"]
            row = next(row for row in rows if row["timestamp"].startswith(f"2026-{month:02}"))
            found, expected = row[metric]["sum"], total
            if row[metric]["count"] != count:
                sys.exit(f"{what}: {entity} in month {month} has {row[metric]['count']} readings, not {count}")
        if not same(found, expected):
            sys.exit(f"{what}: {entity} in month {month} is {found}, not {expected}")
    print(f"  ok  {what}: the sums of each month are the source's", flush=True)


def databases(folder):
    for schema in homeassistant.SCHEMAS:
        values = homeassistant.truth(schema)
        place = folder / f"schema{schema}"
        place.mkdir()
        path = place / "home-assistant_v2.db"
        connection = homeassistant.write(path, schema, values)
        storage = homeassistant.storage(place)
        words, is_last = (str(path), "--storage", str(storage)), schema == homeassistant.SCHEMAS[-1]
        said = "" if is_last else imports_alone(place / "data", *words)
        with Server(place / "data") as server:
            said = said or server.imports(*words)
            assert f"Home Assistant, schema {schema}" in said and "unknown or unavailable" in said, said
            compare(server, values, f"a database of schema {schema}, in use")
            meter = server.get("/devices/sensor.meter")
            named = (meter["name"], meter["room"], meter["metrics"]["energy"]["unit"], meter["metrics"]["energy"]["kind"])
            assert named == ("Zähler, \"Keller\"", "Keller", "kWh", "counter"), meter
            if is_last:
                server.imports(*words, "--again")
                compare(server, values, "the same once more")
        connection.close()


def backups(folder):
    """The database and `.storage` in the two archives of a backup, with the log that it has in use."""
    values = homeassistant.truth(7)
    path = folder / "home-assistant_v2.db"
    connection = homeassistant.write(path, 50, values)
    storage = homeassistant.storage(folder)
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as archive:
        for file in sorted(folder.glob("home-assistant_v2.db*")):
            archive.add(file, f"data/{file.name}")
        archive.add(storage, "data/.storage")
    connection.close()
    backup = folder / "backup.tar"
    with tarfile.open(backup, mode="w:") as archive:
        for name, data in (("./homeassistant.tar.gz", inner.getvalue()), ("./backup.json", DESCRIPTION)):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    imports_alone(folder / "data", str(backup))
    with Server(folder / "data") as server:
        compare(server, values, "a backup")
        assert server.get("/devices/sensor.meter")["room"] == "Keller"


def written(folder):
    """What Home Assistant writes by its InfluxDB integration, and what is imported of its database."""
    values = {entity: [it for it in rows if it[0] > homeassistant.STATES_FROM] for entity, rows in homeassistant.truth(8).items()}
    homeassistant.write(folder / "home-assistant_v2.db", 43, values).close()
    with Server(folder / "written") as one, Server(folder / "imported") as other:
        lines = homeassistant.lines(values)
        for place in range(0, len(lines), 1_000):
            body = "\n".join(lines[place:place + 1_000]).encode()
            with urllib.request.urlopen(f"{one.url}/write?db=home", data=body, timeout=60) as answer:
                assert answer.status == 204
        packed = folder / "copy.gz"
        packed.write_bytes(gzip.compress((folder / "home-assistant_v2.db").read_bytes()))
        other.imports(str(packed))
        for entity in values:
            for path in (f"/devices/{entity}", f"/devices/{entity}/readings?from=2026-02-01T00:00:00Z&to=2026-03-02T00:00:00Z&limit=1000"):
                answers = [server.pages(path) for server in (one, other)]
                if answers[0] != answers[1]:
                    sys.exit(f"{path} is not the same where it was written and imported:\n{answers[0]}\n{answers[1]}"[:4_000])
    print("  ok  what Home Assistant writes and what is imported of its database is the same", flush=True)


def influxdb(folder):
    """A running InfluxDB with several databases, types that change, and unicode; and what its sender wrote."""
    if shutil.which("influxd") is None:
        print("!!!! SKIPPED: a running InfluxDB: influxd is not installed here", flush=True)
        return
    server = Influx(folder)
    values = {entity: rows[-3_000:] for entity, rows in homeassistant.truth(9).items()}
    lines = homeassistant.lines(values)
    begin = 1_767_225_600  # 2026-01-01T00:00:00Z
    for n in range(2_000):
        nanos = (begin + 600 * n) * 1_000_000_000 + 123_456_789
        # A field is an integer in one shard and a float in the next.
        count = f"{n}i" if n < 1_008 else f"{n}.5"
        place = "Küche\\ 1\\,\\=2"
        lines.append(f"cpu,host=pi\\ 4,place={place} usage={n}.25,count={count},up={'true' if n % 3 else 'false'},note=\"a \\\"q\\\" {n}\" {nanos}")
    query = "CREATE DATABASE attic WITH SHARD DURATION 1d NAME days"
    for statement in (query, "CREATE DATABASE empty", "CREATE RETENTION POLICY other ON attic DURATION INF REPLICATION 1"):
        status, text = send(f"{server.url}/query?" + urllib.parse.urlencode({"q": statement}), b"")
        assert status == 200 and "error" not in text, text
    with Server(folder / "written") as one, Server(folder / "imported") as other:
        for place in range(0, len(lines), 1_000):
            body = "\n".join(lines[place:place + 1_000]).encode()
            for target in (f"{server.url}/write?db=attic", f"{one.url}/write?db=home"):
                status, text = send(target, body)
                assert status == 204, text
        said = other.imports(server.url, "--database", "attic", "--state", str(folder / "state"))
        assert f"{len(lines)} readings stored" in said and "retention policy days" in said and "left out     attic.other" in said, said
        devices = [it["device_id"] for it in one.pages("/devices?limit=100")]
        assert len(devices) == 4, devices
        for device in devices:
            for path in (f"/devices/{device}", f"/devices/{device}/readings?from=2026-01-01T00:00:00Z&to=2026-03-02T00:00:00Z&limit=1000"):
                answers = [server.pages(path) for server in (one, other)]
                if answers[0] != answers[1]:
                    sys.exit(f"{path} is not the same where it was written and imported:\n{answers[0]}\n{answers[1]}"[:4_000])
    types_that_change(folder, server)
    server.process.terminate()
    server.process.wait(timeout=30)
    print(f"  ok  a running InfluxDB: {len(lines)} points are those that were written", flush=True)


def types_that_change(folder, server):
    """A field that changes its type once or twice, in any order: from each shard its ten points, of texts none."""
    begin, orders = 1_767_225_600, [it for length in (2, 3) for it in itertools.permutations("fibs", length)]
    orders += [tuple("fbf"), tuple("bfb"), tuple("sbs"), tuple("isi")]
    values = {"f": "{}.5", "i": "{}i", "b": "true", "s": '"text {}"'}
    query = "CREATE DATABASE types WITH SHARD DURATION 1d"
    assert send(f"{server.url}/query?" + urllib.parse.urlencode({"q": query}), b"")[0] == 200
    lines = [
        f"{''.join(order)},host=a v={values[kind].format(n)} {(begin + 86_400 * shard + 60 * n) * 1_000_000_000}"
        for order in orders for shard, kind in enumerate(order) for n in range(10)]
    status, text = send(f"{server.url}/write?db=types", "\n".join(lines).encode())
    assert status == 204, text
    with Server(folder / "types") as other:
        words = ("--database", "types", "--state", str(folder / "types-state"))
        said = other.imports(server.url, *words)
        texts = 10 * sum(order.count("s") for order in orders)
        assert f"{len(lines) - texts} readings stored" in said and f"left out     {texts} points that have texts only" in said, said
        for order in orders:
            rows = other.pages(f"/devices/a::{''.join(order)}/readings?from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z&limit=1000")
            assert len(rows) == 10 * sum(kind != "s" for kind in order), (order, rows)
    print(f"  ok  a running InfluxDB: each of {len(orders)} orders of types gives back its numbers", flush=True)


def influxdb_2(folder):
    """A played InfluxDB 2: a bucket by its mapping, types that change, an error in an answer of 200, an answer that ends early."""
    begin = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
    minute, points = 60_000_000_000, {}
    for n in range(1_500):
        at = begin + 10 * minute * n + 123_456_789
        for series, value in (
            (("cpu ${x} \"q\"", (("host", "pi 4"), ("place", "Küche 1,=2")), "usage"), n + 0.25),
            (("cpu ${x} \"q\"", (("host", "pi 4"), ("place", "Küche 1,=2")), "count"), n if n < 1_008 else n + 0.5),
            (("cpu ${x} \"q\"", (("host", "pi 4"), ("place", "Küche 1,=2")), "up"), n % 3 > 0),
            (("cpu ${x} \"q\"", (("host", "pi 4"), ("place", "Küche 1,=2")), "note"), f'a "q", {n}'),
            (("kWh", (("domain", "sensor"), ("entity_id", "meter")), "value"), 7_000 + n),
        ):
            points.setdefault(series, []).append((at, value))
    played = influxdb2.Played("home/autogen", "secret", points)
    lines = [influxdb2.line(series, at, value) for series, rows in points.items() for at, value in rows]
    (folder / "token").write_text("secret\n")
    with Server(folder / "written") as one, Server(folder / "imported") as other:
        for place in range(0, len(lines), 1_000):
            status, text = send(f"{one.url}/write?db=home", "\n".join(lines[place:place + 1_000]).encode())
            assert status == 204, text
        words = ("--source-token", f"@{folder / 'token'}", "--state", str(folder / "state"))
        said = other.imports(played.url, "--database", "home/autogen", *words)
        assert "3000 readings stored" in said and "database     home, retention policy autogen" in said, said
        assert len(played.queries) > 6, played.queries
        for device in [it["device_id"] for it in one.pages("/devices?limit=100")]:
            for path in (f"/devices/{device}", f"/devices/{device}/readings?from=2026-01-01T00:00:00Z&to=2026-03-02T00:00:00Z&limit=1000"):
                answers = [server.pages(path) for server in (one, other)]
                if answers[0] != answers[1]:
                    sys.exit(f"{path} is not the same where it was written and imported:\n{answers[0]}\n{answers[1]}"[:4_000])
    print(f"  ok  a played InfluxDB 2: {len(lines)} fields are those that were written", flush=True)


def log(folder):
    """The log of a Shelly meter that sends since half a day, and of one that begins to send after the import."""
    now = int(time.time()) // 3_600 * 3_600
    meter = shelly.Meter(now - 2 * 86_400, 2 * 24 * 60)
    path = folder / "emdata_0123456789AB.csv"
    path.write_text(meter.log())
    with Server(folder / "data") as server:
        def sends(name, gap=range(0)):
            for seconds in range(now - 43_200 + 37, now - 60, 600):
                if seconds in gap:
                    continue
                status, text = send(f"{server.url}/readings/shelly", meter.status(seconds, name))
                assert status == 201, text

        def energy(name):
            span = {"from": at(meter.begin), "to": at(now), "every": "1h"}
            rows = server.get(f"/devices/{name}/energy", metric="cumulative_kwh_p", **span)["data"]
            # Of the first hour the first minute is missing.
            for hour in range(1, 35):
                found, expected = rows[hour]["kwh"], meter.kwh(60 * hour + 60) - meter.kwh(60 * hour)
                if hour == 1:  # the log lacks minutes
                    expected -= sum(sum(meter.rows[minute].values()) for minute in (100, 101, 102)) / 1_000
                if not same(found, expected):
                    sys.exit(f"{name}: hour {hour} has {found} kWh, not {expected}")
            found, expected = sum(row["kwh"] or 0 for row in rows[35:]), meter.kwh(48 * 60 - 10) - meter.kwh(35 * 60)
            if abs(found - expected) > Decimal("0.1"):
                sys.exit(f"{name}: the hours since the meter sends have {found} kWh, not {expected}")

        sends("shellypro3em-a")
        said = server.imports(str(path), "--device-id", "shellypro3em-a")
        assert "rows of the time since when the meter itself sends" in said, said
        energy("shellypro3em-a")
        metrics = server.get("/devices/shellypro3em-a")["metrics"]
        known = [(metrics[name]["kind"], metrics[name]["unit"]) for name in ("cumulative_kwh_p_b", "voltage_c")]
        assert known == [("counter", "kWh"), ("gauge", "V")], metrics
        earlier = folder / "earlier.csv"
        earlier.write_text("".join(line + "\n" for line in meter.log().splitlines()[:36 * 60 - 10]))
        said = server.imports(str(earlier), "--device-id", "shellypro3em-b")
        assert "begin at 1, because the meter itself has not sent yet" in said, said
        sends("shellypro3em-b")
        for _ in range(2):
            said = server.imports(str(path), "--device-id", "shellypro3em-b", "--again")
            assert "begin at 1" not in said, said
        energy("shellypro3em-b")
        # An outage of Roomtide, whose time the log has.
        gap = range(now - 8 * 3_600, now - 5 * 3_600)
        sends("shellypro3em-c", gap)
        said = server.imports(str(path), "--device-id", "shellypro3em-c", "--from", at(gap.start))
        assert "begin at 1" not in said, said
        span = {"from": at(gap.start), "to": at(gap.stop), "every": "1h"}
        for hour, row in enumerate(server.get("/devices/shellypro3em-c/energy", metric="cumulative_kwh_p", **span)["data"]):
            minute = (gap.start - meter.begin) // 60 + 60 * hour
            if abs(row["kwh"] - (meter.kwh(minute + 60) - meter.kwh(minute))) > Decimal("0.01"):
                sys.exit(f"a gap: hour {hour} has {row['kwh']} kWh, not {meter.kwh(minute + 60) - meter.kwh(minute)}")
    print("  ok  the log of a Shelly meter: its counters end where those that it sends begin", flush=True)


HOME_ASSISTANT = ("homeassistant==2024.3.3", "sqlalchemy==2.0.27", "fnv-hash-fast==0.5.0", "psutil-home-assistant==0.0.1")


def recorded(folder):
    """A database by Home Assistant's own recorder: hours that it compiled, and states of which it purged the older."""
    place = ROOT / "target" / "tools" / "homeassistant"
    if not (place / "whole").exists():
        shutil.rmtree(place, ignore_errors=True)
        commands = [sys.executable, "-m", "venv", place], [place / "bin" / "pip", "install", "-q", *HOME_ASSISTANT]
        for command in commands:
            if subprocess.run(command, timeout=1_800).returncode != 0:
                print(f"!!!! SKIPPED: Home Assistant's recorder: {HOME_ASSISTANT[0]} cannot be installed here", flush=True)
                return
        (place / "whole").touch()
    # Without -P the folder of the script would hide Home Assistant's package.
    command = [place / "bin" / "python", "-P", ROOT / "tests" / "history" / "recorder.py", folder]
    subprocess.run(command, check=True, timeout=900, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = folder / "home-assistant_v2.db"
    february = datetime(2026, 2, 1, tzinfo=timezone.utc).timestamp()
    connection = sqlite3.connect(path)

    def rows(statement, entity):
        return [(at, Decimal(str(value))) for at, value in connection.execute(statement, (entity, february))]

    hours = ("SELECT start_ts, coalesce(mean, state) FROM statistics s JOIN statistics_meta m ON m.id = s.metadata_id "
             "WHERE statistic_id = ? AND start_ts < ? ORDER BY start_ts")
    states = ("SELECT last_updated_ts, state FROM states s JOIN states_meta m ON m.metadata_id = s.metadata_id "
              "WHERE m.entity_id = ? AND last_updated_ts >= ? ORDER BY last_updated_ts")
    meter, outside = ([rows(statement, entity) for statement in (hours, states)] for entity in ("sensor.meter", "sensor.outside"))
    connection.close()
    assert [len(it) for it in (*meter, *outside)] == [96, 432, 96, 432], "the recorder did not write what is expected"
    with Server(folder / "data") as server:
        said = server.imports(str(path))
        assert "Home Assistant, schema 42" in said and "144 hours that have states" in said, said
        span = {"from": "2026-01-01T00:00:00Z", "to": "2026-03-01T00:00:00Z", "every": "1mo"}
        energy = [row["kwh"] for row in server.get("/devices/sensor.meter/energy", **span)["data"]]
        expected = [meter[0][-1][1] - meter[0][0][1], meter[1][-1][1] - meter[0][-1][1]]
        if not all(same(*pair) for pair in zip(energy, expected, strict=True)):
            sys.exit(f"the recorder's meter has {energy}, not {expected}")
        series = server.get("/devices/sensor.outside/series", metric="temperature", fn="sum,count", **span)["data"]
        for row, values in zip(series, outside, strict=True):
            found = row["temperature"]
            if found["count"] != len(values) or not same(found["sum"], sum(value for _, value in values)):
                sys.exit(f"the recorder's temperature has {found}, not {len(values)} with {sum(value for _, value in values)}")
    print("  ok  a database of Home Assistant's own recorder: the sums of each month are the source's", flush=True)


def at(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def killed(folder):
    """An export whose import is killed in the middle, and run again."""
    path = folder / "export.lp"
    count, begin = 20_000, 1_767_225_600
    with path.open("w") as file:
        for field in ("a", "b"):
            file.writelines(f"m,host=h{n % 4} {field}={n}.5 {(begin + 60 * n) * 1_000_000_000}\n" for n in range(count))
    with Server(folder / "data") as server:
        process = subprocess.Popen([PROGRAM, "import", "--url", server.url, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        progress = folder / "export.lp.roomtide-import"
        while process.poll() is None and not (progress.exists() and '"lines":16000' in progress.read_text()):
            time.sleep(0.05)
        process.kill()
        process.wait(timeout=30)
        said = server.imports(str(path))
        assert "16000 lines are processed already" in said and f"{count - 16_000} readings stored" in said, said
        assert not progress.exists()
        for host in range(4):
            rows = server.pages(f"/devices/h{host}::m/readings?from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z&limit=1000")
            values = [(it["a"], it["b"]) for it in rows]
            assert values == [(n + 0.5, n + 0.5) for n in range(host, count, 4)], (host, len(values))
    print("  ok  an import that is killed goes on, and every point is there once", flush=True)


def main():
    if not PROGRAM.exists():
        sys.exit("there is no program; build it with: cargo test --workspace --no-run")
    with tempfile.TemporaryDirectory() as folder:
        checks = (databases, backups, written, influxdb, influxdb_2, log, killed)
        names = sys.argv[1:] or [check.__name__ for check in checks]
        for check in [check for check in (*checks, recorded) if check.__name__ in names]:
            place = Path(folder) / check.__name__
            place.mkdir()
            check(place)


if __name__ == "__main__":
    main()
