"""The steps of the end-to-end check, in order; each says what it has shown. How is in the files beside it."""

import base64
import gzip
import json
import os
import secrets
import sys
import time
from decimal import Decimal

import home
import rie
from processes import LOGS, ROOT, Failed, command, until
from stack import ARCHITECTURE, Emulator, Stack

FUNCTIONS = ["Ingest", "Query", "Registry"]
# So long a revoked token may go on: REMEMBERED in shared/src/access.rs.
REMEMBERED = 30
STARTED = time.monotonic()


def ok(text):
    print(f"{time.monotonic() - STARTED:6.0f} s  ok  {text}")


def same(what, expected, got):
    if expected != got:
        raise Failed(f"{what}: expected {expected!r}, got {got!r}")


def main():
    build()
    emulator = Emulator()
    try:
        use(emulator)
    except Exception:
        keep_logs(emulator)
        raise


def keep_logs(emulator):
    """Writes the functions' logs beside the emulator's, which they are otherwise gone with."""
    try:
        written = emulator.function_logs()
    except Exception as why:
        written = f"the emulator does not hand them out: {why}"
    (LOGS / "functions.log").write_text(written)


def use(emulator):
    events = rie.run(emulator, bootstrap("Ingest"))
    ok(f"the built ingest answers all {events} sample events under the Runtime Interface Emulator")
    stack = Stack(emulator)
    stack.deploy(RegistryMaxAgeSeconds=1, IotTopic="roomtide", AlarmEmail="owner@example.org")
    ok(f"sam deploy: {stack.api}, table {stack.table}")
    tokens = make_tokens(stack)
    revoked_at = revoke_one(stack, tokens)
    week = post_week(stack, tokens)
    registered_at_once(stack, tokens)
    stream_reaches_registry(stack, tokens)
    lists_and_ranges(stack, tokens, week)
    edits(stack, tokens)
    refusals(stack, tokens)
    foreign_devices(stack, tokens)
    mqtt(stack, tokens)
    permissions(stack, tokens)
    poison(stack, tokens)
    revoked(stack, tokens, revoked_at)
    no_secret_in_any_log(stack, tokens)
    keep_logs(emulator)
    redeploy(stack, tokens)
    delete(stack)
    ok("all of it")


# ---- Build and deploy ----------------------------------------------------------------------------


def build():
    """The release profile, for this machine's processor: what is checked is what is deployed."""
    command("sam", "build", "--parameter-overrides", f"Architecture={ARCHITECTURE}",
            env=os.environ | {"SAM_CLI_TELEMETRY": "0"})
    sizes = []
    for function in FUNCTIONS:
        binary = bootstrap(function).read_bytes()
        sizes.append(f"{function.lower()} {len(binary):,} bytes ({len(gzip.compress(binary)):,} gzipped)")
    ok("sam build: " + ", ".join(sizes))


def bootstrap(function):
    return ROOT / ".aws-sam" / "build" / f"{function}Function" / "bootstrap"


def redeploy(stack, tokens):
    table, before = stack.table, len(stack.items("meter"))
    stack.deploy(RegistryMaxAgeSeconds=1, IotTopic="roomtide", AlarmEmail="owner@example.org", RetentionDays=30)
    same("the table after the second deploy", table, stack.table)
    same("the meter's items after it", before, len(stack.items("meter")))
    new = {"device_id": "meter", "current_w": 1}
    stack.call("POST", "/readings", new, tokens["admin"]).expect(201)
    newest = max(stack.items("meter"), key=lambda item: item["sk"]["S"])
    if "exp" not in newest:
        raise Failed(f"RetentionDays=30 gives a reading no expiry: {newest}")
    ok(f"a second sam deploy with RetentionDays=30 keeps all {before} readings of the meter and lets new ones expire")


def delete(stack):
    table, before = stack.table, len(stack.items("meter"))
    stack.delete()
    stacks = stack.emulator.client("cloudformation").list_stacks()["StackSummaries"]
    left = [it for it in stacks if it["StackName"] == "roomtide" and it["StackStatus"] != "DELETE_COMPLETE"]
    same("the stacks after sam delete", [], left)
    functions = stack.emulator.client("lambda").list_functions()["Functions"]
    same("the functions after sam delete", [], [it["FunctionName"] for it in functions])
    tables = stack.emulator.client("dynamodb").list_tables()["TableNames"]
    same("the tables after sam delete", [table], tables)
    same("the meter's items after sam delete", before, len(stack.items("meter")))
    queues = stack.emulator.client("sqs").list_queues().get("QueueUrls")
    same("the queues after sam delete", [stack.outputs["FailuresUrl"]], queues)
    ok(f"sam delete removes the stack; the table with all {before} readings of the meter stays, and the failures queue")


# ---- Tokens --------------------------------------------------------------------------------------


def make_tokens(stack):
    def create(*words):
        return stack.token("create", "--quiet", *words).strip()

    tokens = {
        "admin": create("--scope", "admin", "--name", "owner"),
        "read": create("--scope", "read"),
        "meter": create("--scope", "write", "--device", "meter"),
        "thermometers": create("--scope", "write", *(word for room in home.ROOMS for word in ("--device", f"thermo-{room}"))),
        "revoked": create("--scope", "read", "--name", "lost phone"),
    }
    listed = stack.token("list")
    ids = [it for it in listed.split() if len(it) == 12 and set(it) <= set("0123456789abcdef")]
    same(f"the tokens in the list\n{listed}", len(tokens), len(ids))
    for secret in tokens.values():
        if secret in listed or any(secret in json.dumps(item) for item in stack.items("TOKEN")):
            raise Failed("a secret is shown or kept after its token was made")
    ok("roomtide token makes admin, read and write tokens in the deployed table; neither list nor table holds a secret")
    return tokens


def revoke_one(stack, tokens):
    stack.call("GET", "/devices", token=tokens["revoked"]).expect(200)
    line = next(line for line in stack.token("list").splitlines() if "lost phone" in line)
    stack.token("revoke", line.split()[0])
    return time.monotonic()


def revoked(stack, tokens, since):
    time.sleep(max(0, since + REMEMBERED + 1 - time.monotonic()))
    gone = stack.call("GET", "/devices", token=tokens["revoked"])
    gone.expect(401)
    unknown = stack.call("GET", "/devices", token="rt_" + secrets.token_urlsafe(32))
    same("the answer to a revoked token, beside one that never was", unknown.text, gone.text)
    ok(f"a revoked token is refused after {REMEMBERED} s, and looks like one that never was")


# ---- Readings ------------------------------------------------------------------------------------


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


def lists_and_ranges(stack, tokens, week):
    span = f"from={week[0]['timestamp']}&to=2016-01-18T16:00:00Z"
    walked = 0
    for device in sorted({it["device_id"] for it in week}):
        sent = [{name: value for name, value in it.items() if name != "device_id"} for it in week if it["device_id"] == device]
        rows, pages = stack.all(f"/devices/{device}/readings?{span}&limit=400", tokens["read"])
        same(f"the readings of {device}", sent, [decimal(row) for row in rows])
        walked += pages
        room = sent[0]["room"]
        rows, _ = stack.all(f"/rooms/{room}/readings?{span}", tokens["read"])
        in_room = [{name: value for name, value in it.items() if name != "room"} for it in week if it["room"] == room]
        same(f"the readings of {room}", in_room, [decimal(row) for row in rows])
        latest = stack.call("GET", f"/devices/{device}/latest", token=tokens["read"]).expect(200)
        newest = {name: value for name, value in sent[-1].items() if isinstance(value, Decimal)}
        # The meter has another metric, from before the week.
        same(f"the newest values of {device}", newest, newest_values(latest, sent[-1]["timestamp"]))
        of_room = stack.call("GET", f"/rooms/{room}/latest", token=tokens["read"]).expect(200)["data"]
        same(f"the newest values of {room}", [(device, newest)],
             [(it["device_id"], newest_values(it, sent[-1]["timestamp"])) for it in of_room])
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


def refusals(stack, tokens):
    stack.call("GET", "/health").expect(200)
    for method, path in (("GET", "/devices"), ("POST", "/readings"), ("GET", "/openapi.json"), ("PATCH", "/rooms/kitchen")):
        stack.call(method, path, {} if method != "GET" else None).expect(401)
    password = base64.b64encode(f"anybody:{tokens['read']}".encode()).decode()
    for headers in ({"Authorization": f"Token {tokens['read']}"}, {"Authorization": f"Basic {password}"}):
        stack.call("GET", "/devices", headers=headers).expect(200)
    stack.call("GET", f"/devices?p={tokens['read']}").expect(200)
    stack.call("GET", f"/devices?p={tokens['read']}&room={CANARY}&from={CANARY}").expect(400)
    ok("401 without a token everywhere but at /health; Bearer, Token, Basic and ?p= are taken")

    stack.call("POST", "/readings", {"device_id": "meter", "current_w": 1}, tokens["read"]).expect(403)
    stack.call("GET", "/devices", token=tokens["meter"]).expect(403)
    bad = stack.call("POST", "/readings", [{"device_id": "meter", "current_w": "much"}], tokens["meter"]).expect(400)
    same("what is wrong", (0, "current_w"), (bad["errors"][0]["index"], bad["errors"][0]["field"]))
    some = [{"device_id": "meter", "current_w": 1, "timestamp": 1}, {"device_id": "meter", "current_w": None, "pk": 1}]
    same("the reading at fault", 1, stack.call("POST", "/readings", some, tokens["meter"]).expect(207)["rejected"][0]["index"])
    stack.call("POST", "/readings", b" " * ((1 << 20) + 1), tokens["meter"]).expect(413)
    stack.call("GET", "/devices/nobody", token=tokens["read"]).expect(404)
    stack.call("GET", "/nowhere", token=tokens["read"]).expect(404)
    # An HTTP API has one answer to a path and to a method that it does not know.
    stack.call("DELETE", "/devices/meter", token=tokens["admin"]).expect(404)
    stack.call("GET", "/devices/meter/readings?from=yesterday", token=tokens["read"]).expect(400)
    stack.call("GET", "/devices/meter/readings?cursor=forged", token=tokens["read"]).expect(400)
    ok("403 beyond a token's scope, 400 and 207 with index and field, 413, 404, and 400 for a bad range or cursor")


def foreign_devices(stack, tokens):
    own = {"device_id": "meter", "current_w": 7, "timestamp": "2016-02-01T00:00:00Z"}
    for foreign in ("thermo-kitchen", "new-device"):
        both = [own, own | {"device_id": foreign, "room": "kitchen"}]
        stack.call("POST", "/readings", both, tokens["meter"]).expect(403)
        if any("2016-02-01" in item["sk"]["S"] for device in ("meter", foreign) for item in stack.items(device)):
            raise Failed(f"something of a request is stored that reached for {foreign}")
    for reserved in ("DEVICE", "ROOM", "TOKEN"):
        stack.call("POST", "/readings", own | {"device_id": reserved}, tokens["admin"]).expect(400)
    names = {item["sk"]["S"] for item in stack.items("DEVICE")}
    if any("new-device" in name for name in names):
        raise Failed("a refused device is registered")
    ok("a token of one device stores nothing when it reaches for another's; reserved ids are refused to everybody")


# ---- Around the API ------------------------------------------------------------------------------


def mqtt(stack, tokens):
    broker = stack.emulator.client("iot-data")
    foreign = {"water_temperature": 1, "timestamp": 1768147260, "device_id": "meter"}
    own = {"water_temperature": 55.5, "timestamp": 1768147200, "room": "cellar"}
    for payload in (foreign, [own, foreign | {"timestamp": 1768147320}]):
        broker.publish(topic="roomtide/boiler", payload=json.dumps(payload).encode())
    # Nobody waits for the answers, so the log tells when both are through.
    until("both messages are through", lambda: len(messages_taken(stack)) == 2)
    same("refused and accepted of each message", [(1, 0), (1, 1)], sorted(messages_taken(stack)))
    rows, _ = stack.all("/devices/boiler/readings?from=2026-01-11T00:00:00Z&to=now", tokens["read"])
    same("what was published", [{"timestamp": "2026-01-11T16:00:00.000Z", "room": "cellar", "water_temperature": Decimal("55.5")}], rows)
    if any("2026-01-11" in item["sk"]["S"] for item in stack.items("meter")):
        raise Failed("a message's payload chose its device")
    ok("MQTT by way of the IoT rule: stored under the topic's device, whatever the payload names")


def messages_taken(stack):
    """Of each MQTT message, how many readings were refused and how many accepted."""
    lines = [json.loads(line) for line in stack.emulator.function_logs().splitlines() if line.startswith('{"')]
    events = [it for it in lines if it.get("function") == "ingest" and "http.status" not in it]
    return [(it.get("readings.rejected", 0), it.get("readings.accepted", 0)) for it in events]


def permissions(stack, tokens):
    iam, role = stack.emulator.client("iam"), stack.resource("IngestRole")
    policy = iam.get_role_policy(RoleName=role, PolicyName="table")["PolicyDocument"]
    without = json.loads(json.dumps(policy).replace('"dynamodb:BatchWriteItem", ', ""))
    if without == policy:
        raise Failed(f"the role has no BatchWriteItem to lose: {policy}")
    reading = {"device_id": "meter", "current_w": 9, "timestamp": "2016-03-01T00:00:00Z"}

    def put(document):
        iam.put_role_policy(RoleName=role, PolicyName="table", PolicyDocument=json.dumps(document))

    put(without)
    stack.call("POST", "/readings", reading, tokens["meter"]).expect(500, 503)
    if any("2016-03-01" in item["sk"]["S"] for item in stack.items("meter")):
        raise Failed("a reading is stored without the permission to")
    stack.call("GET", "/devices", token=tokens["read"]).expect(200)
    put(policy)
    until("the permission is back", lambda: stack.call("POST", "/readings", reading, tokens["meter"]).status == 201)
    own_partitions(stack, role)
    ok("without dynamodb:BatchWriteItem nothing is stored and the sender is told; with it the partitions DEVICE, ROOM and TOKEN are still denied")


def own_partitions(stack, role):
    """What the role of ingest may not touch, whatever its code does."""
    sts = stack.emulator.client("sts")
    arn = stack.emulator.client("iam").get_role(RoleName=role)["Role"]["Arn"]
    lent = sts.assume_role(RoleArn=arn, RoleSessionName="check")["Credentials"]
    table = stack.emulator.client(
        "dynamodb", aws_access_key_id=lent["AccessKeyId"], aws_secret_access_key=lent["SecretAccessKey"],
        aws_session_token=lent["SessionToken"])

    def refused(action, **request):
        try:
            getattr(table, action)(**request)
        except table.exceptions.ClientError as error:
            return error.response["Error"]["Code"] == "AccessDeniedException"
        return False

    def batch(partition):
        put = {"PutRequest": {"Item": {"pk": {"S": partition}, "sk": {"S": "x"}}}}
        return {"RequestItems": {stack.table: [put]}}

    same("whether ingest is refused a device's partition", False, refused("batch_write_item", **batch("some-device")))
    for partition in ("TOKEN", "DEVICE", "ROOM"):
        same(f"whether ingest is refused the partition {partition}", True, refused("batch_write_item", **batch(partition)))
    token = {"TableName": stack.table, "Item": {"pk": {"S": "TOKEN"}, "sk": {"S": "x"}}}
    same("whether ingest is refused to make a token", True, refused("put_item", **token))


def poison(stack, tokens):
    table = stack.emulator.client("dynamodb")
    for device, sort_key in (("visitor", "TS#2026-01-11T16:00:00.000Z"), ("visitor", "TS#not-a-time"), ("guest", "TS#2026-01-11T16:00:00.000Z")):
        table.put_item(TableName=stack.table, Item={"pk": {"S": device}, "sk": {"S": sort_key}, "temperature": {"N": "20"}})
    for device in ("visitor", "guest"):
        until(f"{device} is registered", lambda: stack.call("GET", f"/devices/{device}", token=tokens["read"]).status == 200)
    queue = stack.emulator.client("sqs")
    messages = until("a message is in the failures queue", lambda: queue.receive_message(
        QueueUrl=stack.outputs["FailuresUrl"], MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages"))
    if len(messages) > 1:
        raise Failed(f"the failures queue has more than the poison record: {[it['Body'] for it in messages]}")
    letter = json.loads(messages[0]["Body"])
    same("the poison record", ("visitor", "TS#not-a-time"), (letter.get("pk"), letter.get("sk")))
    ok(f"a poison record ends in the failures queue ({letter['reason']}) while the others go on")


CANARY = "canary-" + secrets.token_hex(8)


def no_secret_in_any_log(stack, tokens):
    written = stack.emulator.function_logs()
    for function in ("ingest", "query", "registry"):
        if f'"function":"{function}"' not in written:
            raise Failed(f"the log of {function} was not read")
    written += stack.emulator.log.read_text()
    for name, secret in tokens.items() | {("the query string", CANARY), ("a body", "water_temperature")}:
        if secret in written:
            raise Failed(f"{name} is in a log")
    ok(f"no token, query string or body in {len(written):,} characters of logs")


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"{time.monotonic() - STARTED:6.0f} s  FAILED  {failure}")
