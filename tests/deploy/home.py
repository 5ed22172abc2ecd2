"""A week of the sample home as readings and as what the API must say of them. Sends nothing."""

import csv
import gzip
import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from processes import ROOT

DATA = ROOT / "cli" / "sample-home" / "energydata.csv.gz"
ROOMS = ["kitchen", "living-room", "laundry", "office", "bathroom", "outside", "ironing-room", "teenager-room", "parents-room"]
ROWS = 7 * 24 * 6


def readings():
    """All of a week, in the order of time: nine thermometers in their rooms, and a meter."""
    with gzip.open(DATA, "rt") as file:
        rows = [row for row, _ in zip(csv.DictReader(file), range(ROWS))]
    total, all_of_them = Decimal(0), []
    for row in rows:
        at = instant(row["date"])
        for number, room in enumerate(ROOMS, start=1):
            metrics = {"temperature": Decimal(row[f"T{number}"]), "humidity": Decimal(row[f"RH_{number}"])}
            all_of_them.append({"device_id": f"thermo-{room}", "timestamp": at, "room": room} | metrics)
        used = Decimal(row["Appliances"]) + Decimal(row["lights"])
        total += used / 1000
        metrics = {"current_w": used * 6, "cumulative_kwh_p": total}
        all_of_them.append({"device_id": "meter", "timestamp": at, "room": "house"} | metrics)
    return all_of_them


def instant(text):
    """UTC as the API writes it; the data set has local time, an hour ahead all year."""
    local = datetime.strptime(text, "%Y/%m/%d %H:%M").replace(tzinfo=timezone(timedelta(hours=1)))
    return local.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def line(reading):
    """A reading as JSON, every digit kept."""
    numbers = {name: str(value) for name, value in reading.items() if isinstance(value, Decimal)}
    text = json.dumps({name: value for name, value in reading.items() if name not in numbers})
    return text[:-1] + "".join(f', "{name}": {value}' for name, value in numbers.items()) + "}"
