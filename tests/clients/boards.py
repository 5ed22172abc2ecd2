"""Asks what exported Grafana dashboards ask: the local system and a real influxd, about points made for their panels.

    python3 tests/clients/boards.py [--hours N] [--step SECONDS] DASHBOARD.json...

Each target of each panel is rendered as Grafana does (`dashboard.py`), the series that the queries name are made up and
written to both servers as line protocol, and both answer. It prints the share of panel uses that agree, and for each
query that does not the reason. InfluxDB 1.x must be installed (Debian's package `influxdb`). No dashboard is kept here.
"""

import argparse
import collections
import json
import math
import random
import re
import shutil
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "influxql"), str(ROOT / "tests" / "home")]
import check as house  # noqa: E402
from compare import Influx, ask, send  # noqa: E402
from dashboard import targets  # noqa: E402
from wanted_series import Wanted  # noqa: E402

# What Roomtide refuses on purpose, with the words of the refusal; docs/reference/influxql.md has the reasons.
DECLARED = {
    "a function that Roomtide has not": r"\(\) is not supported by Roomtide",
    "a statement that Roomtide has not": r" is not supported by Roomtide",
    "more windows, values, series or read units than an answer may have": r"limit exceeded",
    "more columns than an answer may have": r"more than \d+ columns",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=24, help="the longest range that a panel asks for")
    parser.add_argument("--step", type=int, default=60, help="seconds between two points of a series")
    parser.add_argument("boards", nargs="+", type=Path)
    asked = parser.parse_args()
    if shutil.which("influxd") is None:
        print("influxd is not installed: dashboards are not compared with it")
        return
    until = int(time.time()) // 60 * 60
    uses = collections.defaultdict(list)
    for board in asked.boards:
        for panel, query in targets(json.loads(board.read_text()), until, asked.hours * 3600):
            uses[query].append((board.stem, panel))
    if not uses:
        sys.exit("no panel of these dashboards asks InfluxQL")
    wanted = Wanted()
    for query in uses:
        wanted.add(query)
    with tempfile.TemporaryDirectory() as folder:
        influx = Influx(Path(folder))
        server = house.Server(Path(folder) / "roomtide")
        number = fill(wanted, (influx, server), until - asked.hours * 3600, until, asked.step)
        print(f"{len(asked.boards)} dashboards, {len(uses)} queries, {sum(map(len, uses.values()))} panel uses; "
              f"{number} points of {len(wanted.series())} series", flush=True)
        verdicts = {query: verdict(influx, server, query) for query in uses}
        server.stop()
        influx.process.kill()
    report(uses, verdicts)


def fill(wanted, servers, start, until, step):
    """Writes the points of all series to both servers and waits until both count them."""
    dice, lines = random.Random(1), []
    for measurement, tags, fields in wanted.series():
        key = ",".join([escaped(measurement, ", ")] + [f"{escaped(k, ', =')}={escaped(v, ', =')}" for k, v in sorted(tags.items())])
        values = {field: dice.uniform(5, 60) for field in fields}
        # No two series have points of one time: the order of such points is open.
        at = start - step + dice.randrange(step)
        while at < until:
            at += step
            for field in values:
                values[field] = round(values[field] + dice.uniform(-1, 1), 2)
                # Zero and less of a counter takes no part in functions.
                if measurement.startswith("cumulative"):
                    values[field] = max(values[field], 0.01)
            own = {field: value for field, value in values.items() if dice.random() < 0.97} or values
            lines.append(f"{key} " + ",".join(f"{escaped(f, ', =')}={v}" for f, v in own.items()) + f" {at}")
    number = len(lines)
    policies = sorted(wanted.policies - {"autogen"})
    for policy in policies:
        # Roomtide has one policy, by every name.
        query = f'CREATE RETENTION POLICY "{policy}" ON home DURATION 0s REPLICATION 1'
        send(f"{servers[0].url}/query?" + urllib.parse.urlencode({"q": query}), b"")
    for n in range(0, number, 2_000):
        body = "\n".join(lines[n:n + 2_000]).encode()
        written = [(server, "autogen") for server in servers] + [(servers[0], policy) for policy in policies]
        for server, policy in written:
            status, text = send(f"{server.url}/write?db=home&precision=s&rp={policy}", body)
            if status != 204:
                sys.exit(f"{server.url} answered {status} to points: {text[:500]}")
    deadline = time.monotonic() + 300
    for measurement in sorted({it[0] for it in wanted.series()}):
        query = f'SELECT count(*) FROM "{measurement}" WHERE time > 0'
        while not same(ask(servers[0].url, query), ask(servers[1].url, query)):
            if time.monotonic() > deadline:
                sys.exit(f"the servers count other points: {query}")
            time.sleep(1)
    return number


def escaped(text, characters):
    return re.sub(f"([{re.escape(characters)}])", r"\\\1", text)


def verdict(influx, server, query):
    """`same`, or why the answers differ."""
    for _ in range(3):
        real, ours = ask(influx.url, query), ask(server.url, query)
        if same(real, ours):
            return "same"
        errors = [error(real), error(ours)]
        if all(errors):
            return "same"
        if errors[1]:
            declared = next((why for why, words in DECLARED.items() if re.search(words, errors[1])), None)
            return f"declared: {declared}" if declared else f"refused: {errors[1]}"
        if not errors[0] and same(in_order(real), in_order(ours)):
            return "declared: the order of points of one time"
        if not errors[0] and same(joined(real), joined(ours)):
            return "declared: influxd tells the last area of an integral of several series apart"
        if "now()" not in query:
            break
    return f"DIFFERENT\n    real {str(real)[:400]}\n    ours {str(ours)[:400]}"


def error(answer):
    body = answer[1]
    return body.get("error") or next((it["error"] for it in body.get("results", []) if "error" in it), None)


def in_order(answer):
    for result in answer[1].get("results", []):
        for series in result.get("series", []):
            series["values"] = sorted(series.get("values", []), key=str)
    return answer


def joined(answer):
    """The answer with series of the same name and tags as one."""
    for result in answer[1].get("results", []):
        known = {}
        for series in result.get("series", []):
            key = json.dumps([series["name"], series.get("tags")], sort_keys=True)
            known.setdefault(key, series | {"values": []})["values"] += series.get("values", [])
        for series in known.values():
            series["values"].sort(key=str)
        result["series"] = [known[key] for key in sorted(known)]
    return answer


def same(a, b):
    """Equal but for the last digits of numbers."""
    if isinstance(a, dict) and isinstance(b, dict):
        # A warning is no value.
        keys = [set(it) - {"messages"} for it in (a, b)]
        return keys[0] == keys[1] and all(same(a[key], b[key]) for key in keys[0])
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return a == b


def report(uses, verdicts):
    boards = collections.defaultdict(collections.Counter)
    reasons = collections.Counter()
    for query, places in uses.items():
        found = verdicts[query]
        kind = found.split(":")[0].split("\n")[0]
        for board, _ in places:
            boards[board][kind] += 1
        if kind != "same":
            reasons[found.split("\n")[0]] += len(places)
            print(f"{found}\n    {len(places)} x {places[0][1]!r} of {places[0][0]}: {query}")
    total = collections.Counter()
    for board, counts in sorted(boards.items()):
        total.update(counts)
        print(f"{board}: {counts['same']} of {counts.total()} agree, {counts['declared']} declared")
    for reason, count in reasons.most_common():
        print(f"{count} uses: {reason}")
    agree, declared, all_uses = total["same"], total["declared"], total.total()
    print(f"{agree} of {all_uses} panel uses agree ({100 * agree / all_uses:.1f} %), "
          f"{agree + declared} agree or are refused for a declared reason ({100 * (agree + declared) / all_uses:.1f} %)")
    if agree < 0.95 * all_uses or agree + declared < 0.98 * all_uses:
        sys.exit(1)


if __name__ == "__main__":
    main()
