"""Steps: readings go in and come out again, devices and rooms are learned and edited. Refuses nothing."""

import gzip
from decimal import Decimal

import home
from processes import Failed, until
from report import ok, same


def post_week(stack, tokens):
    week = home.readings()
    for token, of_it in (("meter", [it for it in week if it["device_id"] == "meter"]),
                         ("thermometers", [it for it in week if it["device_id"] != "meter"])):
        for begin in range(0, len(of_it), 1000):
            batch = of_it[begin:begin + 1000]
            body = "\n".join(map(home.line, batch)).encode()
            headers = {"Content-Type": "application/x-ndjson"}
            if token == "meter":
                body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
            answer = stack.call("POST", "/readings", body, tokens[token], headers).expect(201)
            same("accepted", len(batch), answer["accepted"])
    ok(f"a week of the sample home is posted: {len(week):,} readings with two write tokens, plain and gzip")
    return week


def registered_at_once(stack, tokens):
    def listed():
        devices = stack.call("GET", "/devices", token=tokens["read"]).expect(200)["data"]
        return len(devices) == 10 and devices

    # Not later than the list in the function's memory is renewed.
    devices = until("ten devices are listed", listed)
    rooms_of = {it["device_id"]: it["room"] for it in devices}
    same("the devices' rooms", {f"thermo-{room}": room for room in home.ROOMS} | {"meter": "house"}, rooms_of)
    known = {it["device_id"]: it["metrics"] for it in devices}
    power = {"current_w": {"kind": "gauge", "unit": "W"}, "cumulative_kwh_p": {"kind": "counter", "unit": "kWh"}}
    same("the meter's metrics", power, known.pop("meter"))
    climate = {"temperature": {"kind": "gauge", "unit": "°C"}, "humidity": {"kind": "gauge", "unit": "%"}}
    same("the thermometers' metrics", [climate] * 9, list(known.values()))
    rooms = stack.call("GET", "/rooms", token=tokens["read"]).expect(200)["data"]
    same("the rooms", sorted([*home.ROOMS, "house"]), sorted(it["room_id"] for it in rooms))
    ok("ten devices are listed with rooms, metrics and units, and ten rooms")


def stream_reaches_registry(stack, tokens):
    """What ingest leaves to the stream: a device that it knows gets another metric, and an earlier beginning."""
    early = {"device_id": "meter", "battery": 80, "timestamp": "2016-01-01T00:00:00.000Z"}
    stack.call("POST", "/readings", early, tokens["meter"]).expect(201)
    meter = until("the stream teaches a new metric", lambda: has_metric(stack, tokens, "meter", "battery"))
    same("the new metric", {"kind": "gauge", "unit": "%"}, meter["metrics"]["battery"])
    same("when the meter was first seen", early["timestamp"], meter["first_seen"])
    ok("the stream adds what ingest does not look for: a known device's new metric, and its earlier reading")


def has_metric(stack, tokens, device, metric):
    shown = stack.call("GET", f"/devices/{device}", token=tokens["read"]).expect(200)
    return metric in shown["metrics"] and shown


def line_protocol(stack, tokens):
    """A compressed batch, of a type that no gateway takes for text. A token of one device puts it in the place of the
    host."""
    # Of more than 32 lines the new ones are inserted by statements.
    lines = "".join(f"mem,host=pi used={n}i {1768147200 + 60 * n}\n" for n in range(60)) + "bad line here x\n"
    headers = {"Content-Type": "application/octet-stream", "Content-Encoding": "gzip",
               "Authorization": f"Token {tokens['meter']}"}
    path = "/influx/api/v2/write?bucket=home&precision=s"
    refused = stack.call("POST", path, gzip.compress(lines.encode()), headers=headers).expect(400)
    same("the code of the refusal", "invalid", refused["code"])
    if "partial write: unable to parse 'bad line here x'" not in refused["message"]:
        raise Failed(f"the bad line is not named: {refused}")
    span = "from=2026-01-11T16:00:00Z&to=2026-01-11T17:00:00Z"
    found = stack.call("GET", f"/devices/meter::mem/readings?{span}", token=tokens["read"]).expect(200)
    same("what the good lines stored", list(range(60)), [it["used"] for it in found["data"]])
    ok("a gzip batch of line protocol: the good lines are stored, the bad one is named as InfluxDB does")


def lists_and_ranges(stack, tokens, week):
    span = f"from={week[0]['timestamp']}&to=2016-01-18T16:00:00Z"
    walked = 0
    for device in sorted({it["device_id"] for it in week}):
        sent = [it for it in week if it["device_id"] == device]
        rows, pages = stack.all(f"/devices/{device}/readings?{span}&limit=400", tokens["read"])
        same(f"the readings of {device}", sent, [decimal(row) for row in rows])
        walked += pages
        room = sent[0]["room"]
        rows, _ = stack.all(f"/rooms/{room}/readings?{span}", tokens["read"])
        in_room = [it for it in week if it["room"] == room]
        same(f"the readings of {room}", in_room, [decimal(row) for row in rows])
        latest = stack.call("GET", f"/devices/{device}/latest", token=tokens["read"]).expect(200)
        newest = {name: value for name, value in sent[-1].items() if isinstance(value, Decimal)}
        # The meter has another metric, from before the week.
        same(f"the newest values of {device}", newest, newest_values(latest, sent[-1]["timestamp"]))
        of_room = stack.call("GET", f"/rooms/{room}/devices?latest=1", token=tokens["read"]).expect(200)["data"]
        same(f"the newest values of {room}", [(device, newest)],
             [(it["device_id"], newest_values(it["latest"], sent[-1]["timestamp"])) for it in of_room])
    in_kitchen = stack.call("GET", "/rooms/kitchen/devices", token=tokens["read"]).expect(200)["data"]
    same("the kitchen's devices", ["thermo-kitchen"], [it["device_id"] for it in in_kitchen])
    table = stack.call("GET", f"/devices/meter/readings?{span}&limit=10000&format=csv", token=tokens["read"])
    same("the meter's lines of CSV", home.ROWS + 1, table.text.count("\n"))
    ok(f"every reading is found again by device ({walked} pages) and by room, every digit; latest, a room's devices, CSV")


def newest_values(latest, at):
    """The values of exactly that instant."""
    values = {name: it["value"] for name, it in latest["metrics"].items() if it["timestamp"] == at}
    return decimal(values)


def decimal(row):
    return {name: Decimal(value) if isinstance(value, int) else value for name, value in row.items()}


def edits(stack, tokens):
    edit = {"name": "Kitchen thermometer", "tags": ["ground floor"]}
    for token in ("read", "thermometers"):
        stack.call("PATCH", "/devices/thermo-kitchen", edit, tokens[token]).expect(403)
    stack.call("PATCH", "/devices/thermo-kitchen", edit, tokens["admin"]).expect(200)
    shown = stack.call("GET", "/devices/thermo-kitchen", token=tokens["read"]).expect(200)
    same("the name after PATCH", edit["name"], shown["name"])
    stack.call("PATCH", "/rooms/kitchen", {"name": "Kitchen"}, tokens["admin"]).expect(200)
    shown = stack.call("GET", "/rooms/kitchen", token=tokens["read"]).expect(200)
    same("the room's name after PATCH", "Kitchen", shown["name"])
    ok("PATCH: 403 for read and write tokens, at once visible with an admin token")
