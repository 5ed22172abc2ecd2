"""A played InfluxDB 2 for the check of imports: buckets, and the queries that an import asks, answered as annotated CSV.
Absent: every other query, and everything else of Flux.

No program of InfluxDB 2 is installed by a package of Debian; the form is that of
https://docs.influxdata.com/influxdb/v2/reference/syntax/annotated-csv/.
"""

import csv
import io
import json
import re
import threading
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TYPES = {float: "double", int: "long", bool: "boolean", str: "string"}


def shown(nanos):
    """A time as Flux writes it: without zeros at its end."""
    seconds, rest = divmod(nanos, 1_000_000_000)
    fraction = f".{rest:09}".rstrip("0").rstrip(".")
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z"


def nanos(text):
    whole, _, fraction = text.rstrip("Z").partition(".")
    seconds = datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc) - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (seconds.days * 86_400 + seconds.seconds) * 1_000_000_000 + int(fraction.ljust(9, "0") or 0)


def text(value):
    return ("true" if value else "false") if isinstance(value, bool) else f"{value}"


def line(series, at, value):
    """A point as its sender wrote it."""
    measurement, tags, field = series
    head = ",".join([re.sub("([, ])", r"\\\1", measurement)] + [f"{escaped(key)}={escaped(tag)}" for key, tag in tags])
    written = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else text(value) + ("i" if type(value) is int else "")
    return f"{head} {escaped(field)}={written} {at}"


def escaped(name):
    return re.sub("([,= ])", r"\\\1", name)


class Played:
    """A server with one bucket; `points` are by (measurement, tags, field), each a list of times and values."""

    def __init__(self, bucket, token, points):
        self.bucket, self.token, self.points, self.queries = bucket, token, points, []
        played = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body, kind="application/json", **headers):
                self.send_response(status)
                for name, value in {"Content-Type": kind, "Content-Length": len(body), **headers}.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.end_headers()
                self.wfile.write(body)

            def is_known(self):
                if self.headers["Authorization"] == f"Token {played.token}":
                    return True
                self.answer(401, b'{"code":"unauthorized","message":"unauthorized access"}')
                return False

            def do_GET(self):
                if self.path == "/ping":
                    self.answer(204, b"", X_Influxdb_Version="v2.7.1", X_Influxdb_Build="OSS")
                elif self.is_known():
                    assert self.path.startswith("/api/v2/buckets?"), self.path
                    names = [("_monitoring", "system"), (played.bucket, "user"), ("other", "user")]
                    buckets = [{"id": "00", "orgID": "0123456789abcdef", "name": name, "type": kind} for name, kind in names]
                    self.answer(200, json.dumps({"buckets": buckets}).encode())

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.is_known():
                    assert self.path == "/api/v2/query?orgID=0123456789abcdef", self.path
                    self.answer(200, played.query(asked["query"]).encode(), "text/csv; charset=utf-8")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def query(self, query):
        begins = re.match(r'from\(bucket: "(.*?)"\) \|> range\(start: (\S+), stop: (\S+)\) \|> (.*)$', query)
        bucket, start, stop, rest = begins.groups()
        assert bucket == self.bucket, query
        if rest == 'keep(columns: ["_measurement"]) |> group() |> distinct(column: "_measurement")':
            return self.tables([([], [(name,) for name in sorted({series[0] for series in self.points})], [("_value", "string")])])
        only, rest = re.match(r'filter\(fn: \(r\) => r\._measurement == "((?:[^"\\]|\\.)*)"\) \|> (.*)$', rest).groups()
        measurement = only.replace('\\"', '"').replace("\\\\", "\\").replace("\\${", "${")
        wanted = {series: rows for series, rows in self.points.items() if series[0] == measurement}
        for selector, place in (("first", 0), ("last", -1)):
            if rest == f'{selector}() |> keep(columns: ["_time"])':
                return self.tables([([], [(shown(rows[place][0]),)], [("_time", "dateTime:RFC3339")]) for rows in wanted.values()])
        assert rest == 'drop(columns: ["_start", "_stop"])', query
        self.queries.append((start, stop))
        if len(self.queries) == 3:
            return "#datatype,string,string\r\n#group,true,true\r\n#default,,\r\n,error,reference\r\n,engine: shard is gone,\r\n"
        tables = []
        for (_, tags, field), rows in wanted.items():
            kinds = {}
            for at, value in rows:
                if nanos(start) <= at < nanos(stop):
                    kinds.setdefault(TYPES[type(value)], []).append((shown(at), text(value)))
            keys = [("_field", field), ("_measurement", measurement), *tags]
            tables += [(keys, found, [("_time", "dateTime:RFC3339"), ("_value", kind)]) for kind, found in kinds.items()]
        answer = self.tables(tables)
        # The fifth answer ends in the middle of a line.
        return answer[:len(answer) * 2 // 3] if len(self.queries) == 5 else answer

    @staticmethod
    def tables(tables):
        """Tables as annotated CSV: each has keys with values, rows, and the names and types of their columns."""
        out, before = io.StringIO(), None
        writer = csv.writer(out, lineterminator="\r\n")
        for number, (keys, rows, columns) in enumerate(tables):
            names = [name for name, _ in columns] + [name for name, _ in keys]
            kinds = [kind for _, kind in columns] + ["string"] * len(keys)
            if (names, kinds) != before:
                if before is not None:
                    out.write("\r\n")
                writer.writerow(["#datatype", "string", "long", *kinds])
                writer.writerow(["#group", "false", "false"] + ["false"] * len(columns) + ["true"] * len(keys))
                writer.writerow(["#default", "_result", ""] + [""] * len(names))
                writer.writerow(["", "result", "table", *names])
                before = (names, kinds)
            writer.writerows([["", "", number, *row, *(value for _, value in keys)] for row in rows])
        out.write("\r\n")
        return out.getvalue()
