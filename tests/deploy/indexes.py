"""Steps: the indexes of attributes and by conditions are switched on, one deploy each, because CloudFormation makes one
index an update. Devices are found by what they are called, one moves, and conditions are answered. Removes no index."""

import time
from collections import defaultdict
from decimal import Decimal

from around import as_role
from processes import LOGS, Failed
from report import ok, same

ATTRIBUTES, CONDITIONS = "attribute-index", "conditions-index"
DEVICE = "thermo-kitchen"
# More than a week: shorter ranges are not asked of the index.
# A month with the week in it: of less, the index would cost more than a fifth of all rollups.
SPAN = "from=2016-01-01T00:00:00Z&to=2016-02-01T00:00:00Z"


def names(stack):
    described = stack.emulator.client("dynamodb").describe_table(TableName=stack.table)["Table"]
    return sorted(index["IndexName"] for index in described["GlobalSecondaryIndexes"])


def entries(stack, index, condition, *values, client=None):
    """The entries of an index, around the API."""
    names = {f":{place}": {"S": value} for place, value in enumerate(values)}
    pages = (client or stack.emulator.client("dynamodb")).get_paginator("query").paginate(
        TableName=stack.table, IndexName=index, KeyConditionExpression=condition, ExpressionAttributeValues=names)
    return [item for page in pages for item in page["Items"]]


def search(stack, tokens):
    same("the indexes", [ATTRIBUTES, "room-index"], names(stack))
    same("what the index has of a device that was named before it", [], kitchens(stack))
    stack.roomtide("reindex", "--state", str(LOGS / "reindex-state"))
    same("what it has after a reindex", [DEVICE], kitchens(stack))
    stack.call("PATCH", f"/devices/{DEVICE}", {"attributes": {"firmware": "1.10"}}, tokens["admin"]).expect(200)
    numbers = entries(stack, ATTRIBUTES, "_attr = :0", "firmware")
    same("the entries of an attribute that is a text and a number", [DEVICE] * 2, [owner(it) for it in numbers])
    for question in ("name=kitchen*", "where=firmware%3E1.4", "where=firmware%3D1.10&tag=ground*"):
        found = stack.call("GET", f"/devices?{question}&explain=1", token=tokens["read"]).expect(200)
        expected = [] if "%3E" in question else [DEVICE]
        same(f"the devices with {question}", expected, [it["device_id"] for it in found["data"]])
        same("where few devices are looked for", "registry", found["plan"]["source"])
    for role, permitted in (("QueryRole", True), ("IngestRole", False), ("RegistryRole", False), ("RollupRole", False)):
        same(f"whether {role} may ask the index", permitted, may_ask(stack, role))
    ok("AttributeIndex=on, and reindex: devices are found by name, tag and attribute; only query asks the index")


def kitchens(stack):
    return [owner(it) for it in entries(stack, ATTRIBUTES, "_attr = :0 AND begins_with(_value, :1)", "name", "s:kitchen")]


def owner(entry):
    return entry["pk"]["S"].removeprefix("ATTR#")


def may_ask(stack, role):
    client = as_role(stack, role)
    try:
        entries(stack, ATTRIBUTES, "_attr = :0", "name", client=client)
    except client.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "AccessDeniedException":
            raise
        return False
    return True


def move(stack, tokens):
    stack.call("PATCH", f"/devices/{DEVICE}", {"room": "attic"}, tokens["admin"]).expect(200)
    stays = stack.call("GET", f"/devices/{DEVICE}/stays", token=tokens["read"]).expect(200)["data"]
    same("where the device is", ("attic", None), (stays[-1]["room"], stays[-1]["until"]))
    same("where it was until then", [("kitchen", stays[-1]["since"])], [(it["room"], it["until"]) for it in stays[-2:-1]])
    for room, until in (("attic", None), ("kitchen", stays[-1]["since"])):
        was = stack.call("GET", f"/rooms/{room}/stays", token=tokens["read"]).expect(200)["data"]
        same(f"the last stay in {room}", (DEVICE, until), (was[-1]["device_id"], was[-1]["until"]))
    for room, there in (("attic", [DEVICE]), ("kitchen", [])):
        devices = stack.call("GET", f"/rooms/{room}/devices", token=tokens["read"]).expect(200)["data"]
        same(f"the devices in {room}", there, [it["device_id"] for it in devices])
    ok("a move ends a stay and begins another, which the device and both rooms show")


def conditions(stack, tokens, week):
    same("the indexes", [ATTRIBUTES, CONDITIONS, "room-index"], names(stack))
    means = quarters(week)
    domains = {name: [str(min(it).to_integral_value() - 1), str(max(it).to_integral_value() + 1)]
               for name, it in ((name, [mean[name] for mean in means]) for name in ("temperature", "humidity"))}
    metrics = ", ".join(f'{{"metric": "{name}", "domain": [{", ".join(ends)}]}}' for name, ends in domains.items())
    schema, headers = f'{{"metrics": [{metrics}]}}'.encode(), {"Content-Type": "application/json"}
    stack.call("PUT", "/conditions/schema", schema, tokens["read"], headers).expect(403)
    stored = stack.call("PUT", "/conditions/schema", schema, tokens["admin"], headers).expect(200)
    same("whether a new schema is ready", False, stored["ready"])
    # The warm and damp quarters of an hour.
    ends = {name: sorted(mean[name] for mean in means)[len(means) * 7 // 10].quantize(Decimal("0.01")) for name in domains}
    expected = 15 * sum(all(mean[name] >= end for name, end in ends.items()) for mean in means)
    if not expected:
        raise Failed(f"the sample home is never as warm and damp as {ends}")
    asked = f"/devices/{DEVICE}/conditions?{SPAN}&explain=1&" + "&".join(f"{name}={end}.." for name, end in ends.items())
    same("the plan before the index is complete", "plain", answered(stack, tokens, asked, expected))
    stack.roomtide("rollups", "rebuild", "--again", "--state", str(LOGS / "rebuild-state"))
    stored = stack.call("GET", "/conditions/schema", token=tokens["read"]).expect(200)
    same("whether the schema is ready after a rebuild", True, stored["ready"])
    months = entries(stack, CONDITIONS, "_zpk = :0", f"conditions#{DEVICE}#2016-01")
    same("the quarters of an hour in the index", len(means), len(months))
    # Where the table had devices before the state of the rollups, only the rebuild makes them complete, which query
    # learns within a minute.
    deadline = time.monotonic() + 75
    while (plan := answered(stack, tokens, asked, expected)) != "z-order" and time.monotonic() < deadline:
        time.sleep(5)
    same("the plan with the index", "z-order", plan)
    ok(f"ConditionsIndex=on, a schema and a rebuild: {expected} warm and damp minutes, by both plans")


def quarters(week):
    """The means of each quarter of an hour."""
    of_quarters = defaultdict(list)
    for reading in week:
        if reading["device_id"] == DEVICE:
            minute = int(reading["timestamp"][14:16]) // 15 * 15
            of_quarters[f"{reading['timestamp'][:14]}{minute:02}"].append(reading)
    return [{name: sum(it[name] for it in some) / len(some) for name in ("temperature", "humidity")} for some in of_quarters.values()]


def answered(stack, tokens, asked, expected):
    """Compares the minutes of all episodes; returns the plan."""
    answer = stack.call("GET", asked, token=tokens["read"]).expect(200)
    same("the minutes of all episodes", expected, sum(it["minutes"] for it in answer["data"]))
    return answer["explain"]["plan"]
