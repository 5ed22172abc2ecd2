"""Measures what an answer costs in the function alone: CPU time of `query` for each rollup and each reading.

The table is the engine of `roomtide`, in a process of its own, whose time is not counted; its HTTP has no TLS."""

import json
import statistics

import build
from charts import ask, imported, span, write_home, reading
from laptop import Server, folder
from stubs import Runtime

# Days of each answer: of the few and of the many, so that what a request costs by itself is no part of the difference.
FEW, MANY = 1, 9
REPEATS = 40


def answers(report, args, scratch):
    with folder() as data:
        imported(write_home(scratch / "home.ndjson", reading, days=30), data)
        table = Server(data)
        endpoint, key = (data / "engine-address").read_text().split()[:2]
        query = Runtime(build.function("query"), {
            "AUTH": "off", "AWS_ACCESS_KEY_ID": key, "AWS_ENDPOINT_URL_DYNAMODB": endpoint, "AWS_REGION": "us-east-1",
            "AWS_SECRET_ACCESS_KEY": "local", "REGISTRY_MAX_AGE_SECONDS": "3600", "TABLE_NAME": "roomtide",
        }, build.TARGET / "query.log")
        report.title("CPU time of the function query, user and kernel, without the table")
        each(report, args, query, "mean by hour of a device, a rollup", 24 * 4,
             lambda days: (table, "/devices/sensor-1/series", f"metric=temperature&fn=mean&every=1h&{span(days)[0]}"))
        each(report, args, query, "readings of a device, a reading", 24 * 6,
             lambda days: (table, "/devices/sensor-1/readings", f"metrics=temperature&limit=2000&{span(days)[0]}"))
        query.end()
        table.kill()


def each(report, args, query, name, a_day, asked):
    """Prints what one item more costs."""
    few, many = ([] for _ in range(2))
    for days in (FEW, MANY):
        same(query, *asked(days))
    for _ in range(args.rounds or 15):
        for days, taken in ((FEW, few), (MANY, many)):
            event = get(*asked(days)[1:])
            before = query.cpu_seconds()
            for _ in range(REPEATS):
                query.invoke(event)
            taken.append((query.cpu_seconds() - before) / REPEATS * 1e6)
    items = (MANY - FEW) * a_day
    one = statistics.median((whole - part) / items for whole, part in zip(many, few, strict=True))
    report.line(f"{one:.1f} µs  {name}: {statistics.median(many):,.0f} µs of {MANY} days, {statistics.median(few):,.0f} µs of {FEW}")


def get(path, query):
    """The event of API Gateway for a GET."""
    event = json.loads((build.ROOT / "events" / "query" / "device-readings.json").read_text())
    del event["queryStringParameters"]
    return json.dumps(event | {"rawPath": path, "rawQueryString": query}).encode()


def same(query, server, path, asked):
    """Fails unless the function answers what the whole server does."""
    answer = query.invoke(get(path, asked))
    wanted = json.loads(ask(server, "GET", f"{path}?{asked}"))
    if answer["statusCode"] != 200 or not wanted["data"] or json.loads(answer["body"])["data"] != wanted["data"]:
        raise RuntimeError(f"{path}?{asked}: the function answers {answer['statusCode']} {answer['body'][:300]}")
