"""Bakes the sample home: reads the rows of energydata.csv.gz, and writes its readings as home.ndjson.gz.

    python3 cli/sample-home/bake.py

Each line is a reading as POST /readings takes it. The lines of a device follow one another in order of time. The figures
of the thermometers are untouched. The appliances and the lights have their own energy, and the meter has that of both.
"""

import csv
import gzip
import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).parent
BELGIUM = timezone(timedelta(hours=1))
# The rooms, in the order of the numbers of their thermometers, which begin at 1.
ROOMS = ("kitchen", "living-room", "laundry", "office", "bathroom", "outside", "ironing-room", "teenager-room", "parents-room")

# The columns that each meter measures.
METERS = {"meter": ("Appliances", "lights"), "appliances": ("Appliances",), "lights": ("lights",)}


def timestamp(row):
    """The time of a row, as the API writes it."""
    local = datetime.strptime(row["date"], "%Y/%m/%d %H:%M").replace(tzinfo=BELGIUM)
    return local.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def line(row, device, room, metrics):
    """The line of a reading. Its numbers have the digits that they are given."""
    names = json.dumps({"timestamp": timestamp(row), "device_id": device, "room": room}, separators=(",", ":"))
    numbers = "".join(f',"{name}":{number}' for name, number in metrics.items())
    return f"{names[:-1]}{numbers}}}\n"


def thermometer(rows, number, room):
    """The lines of a room's thermometer."""
    for row in rows:
        yield line(row, f"thermo-{room}", room, {"temperature": row[f"T{number}"], "humidity": row[f"RH_{number}"]})


def meter(rows, device, columns):
    """The lines of a meter of some columns, which have the energy of ten minutes in Wh."""
    total = 0
    for row in rows:
        energy = sum(int(row[column]) for column in columns)
        total += energy
        yield line(row, device, "house", {"current_w": energy * 6, "cumulative_kwh_p": Decimal(total) / 1000})


def main():
    with gzip.open(HERE / "energydata.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    lines = [text for number, room in enumerate(ROOMS, 1) for text in thermometer(rows, number, room)]
    for device, columns in METERS.items():
        lines.extend(meter(rows, device, columns))
    # Without a time of its own, so that the same rows make the same file.
    (HERE / "home.ndjson.gz").write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    main()
