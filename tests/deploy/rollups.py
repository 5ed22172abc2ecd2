"""Steps: rollups are stored, follow a late reading and a deletion, and answer series and energy. Seals no bucket
by time: the readings are of 2016, so each bucket is sealed when its readings arrive."""

import urllib.parse
from datetime import datetime, timedelta, timezone
from decimal import ROUND_HALF_EVEN, Context, Decimal

from processes import LOGS, Failed, until
from report import ok, same

# As many digits as the API shows of a quotient.
SHOWN = Context(prec=15, rounding=ROUND_HALF_EVEN)
HOUSE = timezone(timedelta(hours=1))
# A day of UTC+1.
DAY = "from=2016-01-12T23:00:00Z&to=2016-01-13T23:00:00Z"
# A quarter of an hour of that day.
QUARTER_TO_REBUILD = "2016-01-13T14:30"


def stored(stack, week):
    for device in ("meter", "thermo-kitchen"):
        expected = {quarter(it["sk"]["S"].removeprefix("TS#")) for it in stack.items(device) if it["sk"]["S"].startswith("TS#")}
        until(f"{device} has its rollups", lambda: expected <= set(rollups(stack, device, "M15#")))
    until("the days are rolled up", lambda: len(rollups(stack, "meter", "DAY#")) >= 7)
    state = until("the schedule has made the state", lambda: stack.items("STATE#"))
    same("the time zone in the state", "Europe/Brussels", state[0]["tz"]["S"])
    ok(f"the stream rolls up {len(week):,} readings by 15 minutes and by day")


def quarter(timestamp):
    """The first timestamp of its 15 minutes."""
    minute = int(timestamp[14:16]) // 15 * 15
    return f"{timestamp[:14]}{minute:02}:00.000Z"


def rollups(stack, device, prefix):
    """The rollups of a device by what follows the prefix."""
    items = stack.items(f"ROLLUP#{device}")
    return {it["sk"]["S"].removeprefix(prefix): it for it in items if it["sk"]["S"].startswith(prefix)}


def answers(stack, tokens, week):
    """Each figure is computed here from what was posted."""
    of_day = [Decimal(it["temperature"]) for it in week if it["device_id"] == "thermo-kitchen" and local_date(it) == "2016-01-13"]
    mean = SHOWN.divide(sum(of_day), Decimal(len(of_day)))
    row = kitchen(stack, tokens)
    same("the kitchen's day", {"mean": mean, "min": min(of_day), "max": max(of_day), "count": len(of_day)}, decimals(row))
    totals = {it["timestamp"]: it["cumulative_kwh_p"] for it in week if it["device_id"] == "meter"}
    used = totals["2016-01-13T23:00:00.000Z"] - totals["2016-01-12T23:00:00.000Z"]
    energy = stack.call("GET", f"/devices/meter/energy?every=1d&tz=Etc/GMT-1&{DAY}", token=tokens["read"]).expect(200)
    same("the meter's day", [used], [Decimal(it["kwh"]) for it in energy["data"]])
    same("the meter's total", used, Decimal(energy["total_kwh"]))
    ok(f"series: the kitchen's mean of a day is {mean} °C; energy: the house used {used} kWh")


def influxql(stack, tokens, week):
    """One query as Grafana asks it, in a form."""
    of_day = [Decimal(it["temperature"]) for it in week if it["device_id"] == "thermo-kitchen" and local_date(it) == "2016-01-13"]
    query = ("SELECT mean(\"value\"), count(\"value\") FROM \"temperature\" WHERE \"room\" = 'kitchen' AND time >= '2016-01-12T23:00:00Z' "
             "AND time < '2016-01-13T23:00:00Z' GROUP BY time(1d) fill(none) tz('Europe/Brussels')")
    form = urllib.parse.urlencode({"q": query}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = stack.call("POST", "/query?db=home&epoch=s", form, token=tokens["read"], headers=headers).expect(200)
    [[_, mean, count]] = answer["results"][0]["series"][0]["values"]
    same("the kitchen's day in InfluxQL", len(of_day), int(count))
    if abs(Decimal(mean) - sum(of_day) / len(of_day)) > Decimal("1e-9"):
        raise Failed(f"InfluxQL: the kitchen's mean is {mean}")
    ok(f"InfluxQL: a query in a form, as Grafana sends it, has the mean of {count} readings")


def verified_and_rebuilt(stack):
    """The command, on the deployed table: nothing differs, whether the functions or a rebuild folded it."""
    def verify(when, *devices):
        said = stack.roomtide("rollups", "verify", "--again-after", "5s", *devices)
        if "none differs" not in said:
            raise Failed(f"rollups verify, {when}: {said}")

    verify("as the functions folded them")
    # One device: the emulator takes minutes for all.
    kitchen_only = ("--device", "thermo-kitchen")
    place = f"{QUARTER_TO_REBUILD}:00.000Z"
    stack.emulator.client("dynamodb").delete_item(
        TableName=stack.table, Key={"pk": {"S": "ROLLUP#thermo-kitchen"}, "sk": {"S": f"M15#{place}"}})
    stack.roomtide("rollups", "rebuild", "--again", "--state", str(LOGS / "rebuild-state"), *kitchen_only)
    if place not in rollups(stack, "thermo-kitchen", "M15#"):
        raise Failed(f"rollups rebuild has not made the rollup of {place} again")
    verify("after a rebuild", *kitchen_only)
    ok("rollups verify finds nothing in the deployed table; rebuild makes a lost rollup again")


def local_date(reading):
    at = datetime.strptime(reading["timestamp"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    return at.astimezone(HOUSE).strftime("%Y-%m-%d")


def kitchen(stack, tokens):
    path = f"/rooms/kitchen/series?metric=temperature&fn=mean,min,max,count&every=1d&tz=Etc/GMT-1&{DAY}"
    data = stack.call("GET", path, token=tokens["read"]).expect(200)["data"]
    same("the rows of a day", 1, len(data))
    return data[0]["temperature"]


def decimals(row):
    return {name: value if name == "count" else Decimal(value) for name, value in row.items()}


def follow_changes(stack, tokens):
    """A late reading and its deletion: each changes the rollup of 15 minutes and of the day."""
    place, day = "2016-01-13T12:00:00.000Z", "2016-01-13"
    before = [rollups(stack, "thermo-kitchen", "M15#")[place], rollups(stack, "thermo-kitchen", "DAY#")[day]]

    def counts():
        items = [rollups(stack, "thermo-kitchen", "M15#")[place], rollups(stack, "thermo-kitchen", "DAY#")[day]]
        return [int(it["m"]["M"]["temperature"]["L"][0]["N"]) for it in items]

    started = [int(it["m"]["M"]["temperature"]["L"][0]["N"]) for it in before]
    late = {"device_id": "thermo-kitchen", "room": "kitchen", "timestamp": "2016-01-13T12:07:00Z", "temperature": 99}
    stack.call("POST", "/readings", late, tokens["thermometers"]).expect(201)
    until("a late reading is in both rollups", lambda: counts() == [n + 1 for n in started])
    same("the day's highest temperature", 99, kitchen(stack, tokens)["max"])
    span = "from=2016-01-13T12:07:00Z&to=2016-01-13T12:07:01Z"
    for token in ("read", "thermometers"):
        stack.call("DELETE", f"/devices/thermo-kitchen/readings?{span}", token=tokens[token]).expect(403)
    gone = stack.call("DELETE", f"/devices/thermo-kitchen/readings?{span}", token=tokens["admin"]).expect(200)
    same("how many readings are deleted", 1, gone["deleted"])
    until("a deleted reading is in neither rollup", lambda: counts() == started)
    if kitchen(stack, tokens)["max"] == 99:
        raise Failed("a deleted reading is in a series")
    after = rollups(stack, "thermo-kitchen", "M15#")[place]
    if int(after["ver"]["N"]) <= int(before[0]["ver"]["N"]):
        raise Failed(f"the version of a rollup has not risen: {before[0]['ver']} {after['ver']}")
    ok("a late reading changes its rollups and the series; deleted by an admin, and by nobody else, it is gone from both")
