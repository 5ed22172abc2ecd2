"""Deterministic readings of ten devices in three rooms, one reading per device and second."""

import datetime
import json

from build import ROOT

DEVICES = 10
START = datetime.datetime(2026, 1, 11, tzinfo=datetime.UTC)
ROOMS = ["kitchen", "study", "bedroom"]


def device(number):
    return f"sensor-{number % DEVICES}"


def timestamp(second):
    return (START + datetime.timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def introduction():
    """One reading of each device that names its room. Later readings name none."""
    return [reading(number, -1) | {"room": ROOMS[number % len(ROOMS)]} for number in range(DEVICES)]


def readings(count, first=0):
    return [reading(number, number // DEVICES) for number in range(first, first + count)]


def reading(number, second):
    """Power, temperature and humidity with realistic numbers of digits."""
    return {
        "device_id": device(number), "timestamp": timestamp(second), "current_w": 300 + number * 7 % 900,
        "temperature": 18 + number * 13 % 70 / 10, "humidity": 35 + number * 11 % 300 / 10,
    }


def lines(count, devices, first=0):
    """Line protocol: one line per device and second, each a reading of its own."""
    start = int(START.timestamp())
    return "".join(
        f"climate,host=host-{number % devices} temperature={18 + number * 13 % 70 / 10},"
        f"humidity={35 + number * 11 % 300 / 10},co2={400 + number * 7 % 900}i {start + number // devices}\n"
        for number in range(first, first + count))


def write(lines):
    """The event of API Gateway for `POST /api/v2/write`."""
    event = json.loads((ROOT / "events" / "ingest" / "home-assistant.json").read_text())
    event["rawQueryString"] = "org=home&bucket=home&precision=s"
    event["queryStringParameters"]["precision"] = "s"
    event["body"] = lines
    event["headers"]["content-length"] = str(len(lines))
    return json.dumps(event).encode()


def body(readings):
    return json.dumps(readings, separators=(",", ":"))


def event(readings):
    """The event of API Gateway for `POST /readings`."""
    event = json.loads((ROOT / "events" / "ingest" / "array.json").read_text())
    event["body"] = body(readings)
    event["headers"]["content-length"] = str(len(event["body"]))
    return json.dumps(event).encode()
