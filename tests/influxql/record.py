"""Records what the real influxd answers to the queries of `cases.txt`, about the points of `points.txt`.

    python3 tests/influxql/record.py http://127.0.0.1:8086

The server must be InfluxDB 1.x without a database called `home`: Debian has one in the package `influxdb`. One file
per section of `cases.txt` is written to `answers/`. Absent: the comparison, which the tests of `functions/query` do
without a server.
"""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent


def send(url, parameters, body=None):
    request = urllib.request.Request(f"{url}?{urllib.parse.urlencode(parameters)}", data=body)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def sections():
    """The sections by name: each a list of parameters and a query."""
    found, name = {}, None
    for line in (HERE / "cases.txt").read_text().splitlines():
        if line.startswith("# "):
            name = line[2:].strip()
            found[name] = []
        elif line.strip():
            given, query = line.split(" | ", 1)
            found[name].append((dict(urllib.parse.parse_qsl(given, keep_blank_values=True)), query))
    return found


def main():
    server = sys.argv[1].rstrip("/")
    # One shard for all points: SLIMIT counts the series of each shard apart.
    send(f"{server}/query", {"q": "CREATE DATABASE home WITH SHARD DURATION 5000w"}, b"")
    points = (HERE / "points.txt").read_bytes()
    status, text = send(f"{server}/write", {"db": "home", "precision": "ms"}, points)
    assert status == 204, text
    (HERE / "answers").mkdir(exist_ok=True)
    for name, cases in sections().items():
        lines = []
        for given, query in cases:
            parameters = {"db": "home", **given, "q": query}
            parameters = {key: value for key, value in parameters.items() if value != "-"}
            status, text = send(f"{server}/query", parameters)
            lines.append(json.dumps({"parameters": parameters, "status": status, "answer": json.loads(text)}, ensure_ascii=False))
        (HERE / "answers" / f"{name}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
        print(f"{name}: {len(lines)}")


if __name__ == "__main__":
    main()
