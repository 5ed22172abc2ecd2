"""A played InfluxDB 2 for the check of imports: a bucket by its mapping, and the InfluxQL that an import asks. Absent:
every other query.

No program of InfluxDB 2 is installed by a package of Debian; the form is that of
https://docs.influxdata.com/influxdb/v2/api-guide/influxdb-1x/query/.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TYPES = {float: "float", int: "integer", bool: "boolean", str: "string"}
NOTHING = {"results": [{"statement_id": 0}]}


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


def answered(*series):
    return {"results": [{"statement_id": 0, "series": [{"name": name, **({"tags": tags} if tags else {}), "values": rows} for name, tags, rows in series]}]}


class Played:
    """A server with one bucket; `points` are by (measurement, tags, field), each a list of times and values."""

    def __init__(self, bucket, token, points):
        self.database, self.policy = bucket.split("/")
        self.token, self.points, self.queries = token, points, []
        played = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body, **headers):
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": len(body), **headers}.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                url = urlsplit(self.path)
                if url.path == "/ping":
                    self.answer(204, b"", X_Influxdb_Version="v2.7.1", X_Influxdb_Build="OSS")
                elif url.path != "/query":
                    self.answer(404, b"{}")
                elif self.headers["Authorization"] != f"Token {played.token}":
                    self.answer(401, b'{"code":"unauthorized","message":"unauthorized access"}')
                else:
                    asked = {name: values[0] for name, values in parse_qs(url.query).items()}
                    assert asked["epoch"] == "ns" and asked["chunked"] == "true", asked
                    self.answer(200, played.query(asked))

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def query(self, asked):
        statement = asked["q"]
        if statement == "SHOW DATABASES":
            return json.dumps(answered(("databases", {}, [["_monitoring"], [self.database], ["other"]]))).encode()
        assert asked["db"] == self.database, asked
        if statement == f'SHOW RETENTION POLICIES ON "{self.database}"':
            # A virtual mapping is not the default.
            return json.dumps(answered(("", {}, [[self.policy, "0s", "168h0m0s", 1, False]]))).encode()
        if statement == "SHOW FIELD KEYS":
            assert asked["rp"] == self.policy, asked
            return json.dumps(answered(*self.fields())).encode()
        columns, policy, measurement, rest = re.match(r'SELECT (.*) FROM "(.*?)"\."((?:[^"\\]|\\.)*)" (.*)$', statement).groups()
        assert policy == self.policy, statement
        measurement = measurement.replace('\\"', '"').replace("\\\\", "\\")
        columns = re.findall(r'"((?:[^"\\]|\\.)*)"::(\w+)', columns)
        edge = re.fullmatch("ORDER BY time (ASC|DESC) LIMIT 1", rest)
        if edge:
            times = sorted(at for series, rows in self.points.items() if series[0] == measurement for at, _ in rows)
            return json.dumps(answered((measurement, {}, [[times[0 if edge[1] == "ASC" else -1], None]]))).encode()
        window = re.fullmatch(r"WHERE time >= (\d+) AND time < (\d+) GROUP BY \*", rest)
        return self.window(measurement, columns, int(window[1]), int(window[2]))

    def fields(self):
        fields = {}
        for (measurement, _, field), rows in self.points.items():
            kinds = fields.setdefault(measurement, set())
            kinds.update((field, TYPES[type(value)]) for _, value in rows)
        return [(measurement, {}, sorted(map(list, kinds))) for measurement, kinds in fields.items()]

    def window(self, measurement, columns, start, stop):
        """The rows of a window, by their tags, in two chunks."""
        self.queries.append((start, stop))
        if len(self.queries) == 3:
            return b'{"results":[{"statement_id":0,"error":"engine: shard is gone"}]}'
        by_tags = {}
        for (name, tags, field), rows in self.points.items():
            for at, value in rows if name == measurement else []:
                if start <= at < stop:
                    by_tags.setdefault(tags, {}).setdefault(at, {})[field] = value
        series = [(measurement, dict(tags), [[at, *(self.cell(fields, *column) for column in columns)] for at, fields in sorted(rows.items())])
                  for tags, rows in by_tags.items()]
        first, last = (answered(*series), NOTHING) if series else (NOTHING, NOTHING)
        first["results"][0] = {**first["results"][0], "partial": True}
        chunks = [json.dumps(it, ensure_ascii=False).encode() + b"\n" for it in (first, last)]
        # The fifth answer lacks its last chunk.
        return chunks[0] if len(self.queries) == 5 else b"".join(chunks)

    @staticmethod
    def cell(fields, name, kind):
        """The value of a field if it has the type that is asked for; of floats integers, too."""
        value = fields.get(name)
        return value if value is not None and TYPES[type(value)] in ({"float", "integer"} if kind == "float" else {kind}) else None
