"""The bills of the published sheets in shared/tariffs/src/tests/sheets.json, as the API answers them: each tariff is entered
by PUT, its readings and prices are posted, and its bill is compared line by line, to the last digit.

    python3 tests/cost/sheets.py target/debug/roomtide
"""

import json
import os
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle

SHEETS = os.path.join(os.path.dirname(__file__), "../../shared/tariffs/src/tests/sheets.json")
QUARTER = timedelta(minutes=15)
HOUR = timedelta(hours=1)
READINGS_OF_A_REQUEST = 500


def all_sheets():
    with open(SHEETS) as file:
        return json.load(file)


def midnight(sheet, member):
    local = datetime.fromisoformat(sheet[member]).replace(tzinfo=ZoneInfo(sheet["zone"]))
    return local.astimezone(timezone.utc)


def text(at):
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def used(sheet, quarter):
    hour = text(quarter.replace(minute=0))
    if hour in sheet.get("hours", {}):
        return Decimal(sheet["hours"][hour]) / 4
    return Decimal(sheet.get("quarters", {}).get(text(quarter), sheet.get("each", "0")))


def readings(sheet):
    """The counter of the sheet's meter at the end of each hour or quarter, and the prices."""
    length = HOUR if "each" in sheet else QUARTER
    at, counted = midnight(sheet, "from"), Decimal(1000)
    meter = f"meter-{sheet['title']}"
    yield f'{{"device_id": "{meter}", "timestamp": "{text(at)}", "cumulative_kwh_p": {counted}}}'
    while at < midnight(sheet, "to"):
        end = at + length
        while at < end:
            counted += used(sheet, at)
            at += QUARTER
        yield f'{{"device_id": "{meter}", "timestamp": "{text(at)}", "cumulative_kwh_p": {counted}}}'
    for device, prices in sheet.get("prices", {}).items():
        for begin, price in prices.items():
            yield f'{{"device_id": "{device}", "timestamp": "{begin}", "price": {price}}}'


def enter(sheet, call):
    """Posts the sheet's readings, and saves its tariff. `call` sends a request, and returns the JSON of its answer."""
    rows = list(readings(sheet))
    for first in range(0, len(rows), READINGS_OF_A_REQUEST):
        call("POST", "/readings", f"[{', '.join(rows[first : first + READINGS_OF_A_REQUEST])}]")
    tariff = sheet["tariff"] | {"tz": sheet["zone"], "meters": [{"device": f"meter-{sheet['title']}"}]}
    call("PUT", f"/tariffs/{sheet['title']}", json.dumps(tariff))


def bill(sheet, call):
    """The answer about the sheet's range, when it has all readings."""
    path = f"/cost?tariff={sheet['title']}&from={sheet['from']}&to={sheet['to']}&tz={sheet['zone']}"
    for _ in range(300):
        answer = call("GET", path)
        if "rollups_lack" not in answer:
            return answer
        time.sleep(1)
    raise SystemExit(f"{sheet['title']}: the rollups do not follow: {answer['rollups_lack']}")


def shown(line):
    name = " ".join(line[member] for member in ("name", "zone") if member in line)
    quantity = f": {line['quantity']}" if "quantity" in line else ""
    return f"{name}{quantity} = {line['amount']}"


def lacking(entry):
    return " ".join(str(entry[member]) for member in ("what", "line", "from", "to", "kwh") if member in entry)


def compare(sheet, answer):
    [of_tariff] = answer["bills"]
    found = {
        "lines": [shown(line) for line in of_tariff["lines"]],
        "used": str(of_tariff["used"]),
        "due": of_tariff.get("due"),
        "missing": [lacking(entry) for entry in answer["incomplete"]],
    }
    if "amount" in sheet:
        found["amount"] = str(of_tariff["amount"])
    for member, value in found.items():
        if value != sheet.get(member):
            raise SystemExit(f"{sheet['title']}: {member} is {value}, and the sheet says {sheet.get(member)}")


def check(call):
    """Enters all sheets, and then compares their bills. Returns their number."""
    sheets = all_sheets()
    for sheet in sheets:
        enter(sheet, call)
    for sheet in sheets:
        compare(sheet, bill(sheet, call))
    return len(sheets)


def main():
    program = os.path.abspath(sys.argv[1])

    def call(method, path, body=None):
        return oracle.ask(method, path, body and body.encode(), parse_float=Decimal)

    with tempfile.TemporaryDirectory() as folder:
        with oracle.served(program, "--data-dir", os.path.join(folder, "data"), "--empty"):
            count = check(call)
    print(f"the bills of {count} sheets are theirs, line by line")


if __name__ == "__main__":
    main()
