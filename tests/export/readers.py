"""Exports a home in each format, and compares what other programs read of the files with the backup of the same home,
whose numbers Python adds up as decimals.

    tests/export/run

Parquet is read by DuckDB, pandas and pyarrow, CSV by pandas, line protocol by InfluxDB 1 (Debian's packages `influxdb`
and `influxdb-client`; where they are not installed, that is said). None of them is told anything about the file.
"""

import json
import random
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas
import pyarrow.parquet

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "influxql"), str(ROOT / "tests" / "history")]
from check import PROGRAM, Server  # noqa: E402
from compare import Influx, send  # noqa: E402

BEGIN = 1_767_225_600  # 2026-01-01T00:00:00Z
COLUMNS = ["device", "time", "room", "metric", "value"]


def readings():
    """Three months: more rows than a row group has, ids and names of every kind, digits that a DOUBLE lacks."""
    noise = random.Random(1)
    for n in range(66_000):
        yield {"device_id": "minute", "timestamp": BEGIN + 90 * n, "room": "attic", "temperature": str(Decimal(noise.randrange(-200, 900)) / 10),
               "current_w": str(Decimal(noise.randrange(10**6)) / 1000)}
    for n in range(3_000):
        reading = {"device_id": "a4:cf:12", "timestamp": BEGIN + 2_000 * n, "total": str(Decimal(n) * Decimal("0.123456789012345678901")), "time": str(n)}
        if n % 3:
            reading["room"] = "cellar" if n < 2_000 else "Hall-2"
        yield reading
    for n in range(50):
        yield {"device_id": "-plug", "timestamp": BEGIN + 86_400 * n, "m": "9.99E125" if n == 7 else f"-1.5E-{n}"}
    for n in range(400):
        yield {"device_id": f"single-{n}", "timestamp": BEGIN + 10_000 * n, f"m{n % 40}": str(n)}


def fill(server):
    lines = []
    for it in readings():
        texts = [f'"{name}":' + (json.dumps(value) if name in ("device_id", "room") else str(value)) for name, value in it.items()]
        lines.append("{" + ",".join(texts) + "}")
    for place in range(0, len(lines), 1_000):
        status, text = send(f"{server.url}/readings", "\n".join(lines[place:place + 1_000]).encode(), "application/x-ndjson")
        assert status == 201, text
    return len(lines)


def export(server, path, *words):
    done = subprocess.run([PROGRAM, "export", "--url", server.url, path, *words], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"export {path} {words} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def truth(path):
    """Rows of the long form by device, time and metric, their values as decimals."""
    rows = []
    with path.open() as file:
        for line in file:
            row = json.loads(line, parse_float=Decimal, parse_int=Decimal)
            if "device_id" not in row:
                continue
            ids = row.pop("device_id"), row.pop("timestamp"), row.pop("room", None)
            rows += [(*ids, name, value) for name, value in sorted(row.items())]
    return sorted(rows, key=lambda it: (it[0], it[1], it[3]))


def sums(rows):
    """The number and the sum of the values by device, metric and month."""
    found = defaultdict(lambda: [0, Decimal(0)])
    for device, at, _, metric, value in rows:
        entry = found[device, metric, at[:7]]
        entry[0] += 1
        entry[1] += value
    return found


def compare(found, expected, what):
    """Compares counts, and sums as far as adding doubles up is exact."""
    found = {key: (int(count), value) for key, (count, value) in found.items()}
    missing = set(expected) ^ set(found)
    if missing:
        sys.exit(f"{what}: only one has {sorted(missing)[:5]}")
    for key, (count, value) in expected.items():
        near = abs(Decimal(float(found[key][1])) - value) <= abs(value) * Decimal("1e-12") + Decimal("1e-6")
        if found[key][0] != count or not near:
            sys.exit(f"{what}: {key} has {found[key]}, not {(count, value)}")
    print(f"  ok  {what}: {len(expected)} sums by device, metric and month", flush=True)


def as_exported(frame):
    """Rows of a frame in the form of those of the backup, their values as doubles."""
    at = frame.time.dt.strftime("%Y-%m-%dT%H:%M:%S.%f").str[:-3] + "Z"
    rooms = frame.room.astype(object).where(frame.room.notna(), None)
    return list(zip(frame.device, at, rooms, frame.metric, frame.value))


def parquet(server, folder, expected):
    one = folder / "readings.parquet"
    said = export(server, one)
    lossy = sum(Decimal(repr(float(it[4]))) != it[4] for it in expected)
    assert lossy > 1_000 and f"{lossy} values with more digits than DOUBLE gives back" in said, (lossy, said)
    doubles = [(*it[:4], float(it[4])) for it in expected]

    frame = pandas.read_parquet(one)
    assert list(frame.columns) == COLUMNS and str(frame.time.dtype) == "datetime64[ms, UTC]" and str(frame.value.dtype) == "float64", frame.dtypes
    assert as_exported(frame) == doubles, "pandas reads other rows, or in another order"
    by_month = frame.groupby(["device", "metric", frame.time.dt.strftime("%Y-%m")]).value.agg(["count", "sum"])
    compare({key: (row["count"], row["sum"]) for key, row in by_month.iterrows()}, sums(expected), "Parquet in pandas")

    # With the session's clock elsewhere.
    session = duckdb.connect()
    session.execute("SET TimeZone = 'America/New_York'")
    types = [it[1] for it in session.execute(f"DESCRIBE SELECT * FROM '{one}'").fetchall()]
    assert types == ["VARCHAR", "TIMESTAMP WITH TIME ZONE", "VARCHAR", "VARCHAR", "DOUBLE"], types
    query = f"SELECT device, metric, strftime(time AT TIME ZONE 'UTC', '%Y-%m') AS month, count(*), fsum(value) FROM '{one}' GROUP BY ALL"
    rows = session.execute(query).fetchall()
    compare({tuple(row[:3]): row[3:] for row in rows}, sums(expected), "Parquet in DuckDB")
    rooms = session.execute(f"SELECT room, count(*) FROM '{one}' GROUP BY room").fetchall()
    known = defaultdict(int)
    for row in expected:
        known[row[2]] += 1
    assert dict(rooms) == known, rooms
    # Found by the smallest and the largest value of row groups.
    found = session.execute(f"SELECT time::VARCHAR, value FROM '{one}' WHERE device = 'single-7' AND time < TIMESTAMPTZ '2026-02-01 00:00:00+00'").fetchall()
    assert found == [("2026-01-01 14:26:40-05", 7.0)], found

    file = pyarrow.parquet.ParquetFile(one)
    assert file.metadata.num_rows == len(doubles) and file.metadata.num_row_groups == 2, file.metadata
    place = 0
    for n in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(n)
        assert [it.column_index for it in group.sorting_columns] == [0, 1], group.sorting_columns
        rows = doubles[place:place + group.num_rows]
        place += group.num_rows
        for column, name in enumerate(COLUMNS[:4]):
            told = group.column(column).statistics
            values = [it[column] for it in rows if it[column] is not None]
            assert told.null_count == len(rows) - len(values), (name, told)
            if name != "time":
                assert (told.min, told.max) == (min(values), max(values)), (name, told)
            else:
                assert told.min.strftime("%FT%T") == min(values)[:19] and told.max.strftime("%FT%T") == max(values)[:19], told
    nothing = folder / "nothing.parquet"
    export(server, nothing, "--from", "2020-01-01T00:00:00Z", "--to", "2020-01-02T00:00:00Z")
    assert list(pandas.read_parquet(nothing).columns) == COLUMNS
    assert session.execute(f"SELECT count(*) FROM '{nothing}'").fetchall() == [(0,)]
    size, lines = one.stat().st_size, (folder / "backup.ndjson").stat().st_size
    print(f"  ok  Parquet in pyarrow: {len(doubles)} rows in {size} bytes, the backup in {lines}", flush=True)


def csv(server, folder, expected):
    path = folder / "readings.csv.gz"
    export(server, path)
    frame = pandas.read_csv(path)
    # An id that a spreadsheet would take for a formula.
    frame.device_id = frame.device_id.str.removeprefix("'")
    metrics = [name for name in frame.columns if name not in ("timestamp", "device_id", "room")]
    found = {}
    for (device, month), rows in frame.groupby(["device_id", frame.timestamp.str[:7]]):
        for metric in metrics:
            count = rows[metric].count()
            if count:
                found[device, metric, month] = count, rows[metric].sum()
    compare(found, sums(expected), "CSV in pandas")


def lines(server, folder, expected):
    if shutil.which("influxd") is None or shutil.which("influx") is None:
        print("!!!! SKIPPED: line protocol in InfluxDB: influxd or influx is not installed here", flush=True)
        return
    path = folder / "readings.lp"
    export(server, path)
    influx = Influx(folder)

    def ask(database, query):
        status, text = send(f"{influx.url}/query?" + urllib.parse.urlencode({"db": database, "q": query}))
        assert status == 200, text
        return json.loads(text)["results"][0].get("series", [])

    # The database that the comments name is that of `influx -import`; a write names its own.
    send(f"{influx.url}/query?" + urllib.parse.urlencode({"q": "CREATE DATABASE roomtide"}), b"")
    done = subprocess.run(["influx", "-port", str(influx.port), "-import", "-path", path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "Failed 0 inserts" in done.stdout + done.stderr, done
    for database in ("roomtide", "home"):
        if database == "home":
            status, text = send(f"{influx.url}/write?db=home", path.read_bytes())
            assert status == 204, text
        found = {}
        for month, (begin, end) in {"2026-01": ("2026-01-01", "2026-02-01"), "2026-02": ("2026-02-01", "2026-03-01"), "2026-03": ("2026-03-01", "2026-04-01")}.items():
            query = f"SELECT count(/.*/), sum(/.*/) FROM readings WHERE time >= '{begin}' AND time < '{end}' GROUP BY device_id"
            for series in ask(database, query):
                row = dict(zip(series["columns"], series["values"][0]))
                for name, count in row.items():
                    if name.startswith("count_") and count:
                        metric = name.removeprefix("count_")
                        key = series["tags"]["device_id"], "time" if metric == "Time" else metric, month
                        found[key] = count, row[f"sum_{metric}"]
        compare(found, sums(expected), f"line protocol in InfluxDB, {'influx -import' if database == 'roomtide' else 'written'}")
        rooms = {it["values"][0][1]: it for it in ask(database, "SHOW TAG VALUES WITH KEY = room")} or {}
        assert rooms, "the rooms are not tags"
    influx.process.terminate()
    influx.process.wait(timeout=30)


def main():
    if not PROGRAM.exists():
        sys.exit("there is no program; build it with: cargo test --workspace --no-run")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with Server(folder / "data") as server:
            count = fill(server)
            backup = folder / "backup.ndjson"
            said = export(server, backup)
            assert said.startswith(f"{count} readings of "), said
            expected = truth(backup)
            for check in (parquet, csv, lines):
                check(server, folder, expected)


if __name__ == "__main__":
    main()
