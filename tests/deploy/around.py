"""Steps around the API: MQTT, the roles' permissions, the failures queue. Asks the API only for what came of it."""

import json
from decimal import Decimal
from pathlib import Path

from processes import Failed, until
from report import ok, same


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
    same("what was published", [{"device_id": "boiler", "timestamp": "2026-01-11T16:00:00.000Z", "room": "cellar", "water_temperature": Decimal("55.5")}], rows)
    if any("2026-01-11" in item["sk"]["S"] for item in stack.items("meter")):
        raise Failed("a message's payload chose its device")
    payload = {"Time": "2000-01-01T00:00:00", "ENERGY": {"Total": 6.294, "Today": 0.954, "Power": 2635}}
    broker.publish(topic="roomtide/tasmota/plug/tele/SENSOR", payload=json.dumps(payload).encode())
    broker.publish(topic="roomtide/tasmota/plug/tele/LWT", payload=b"Online")
    until("both of Tasmota's messages are through", lambda: len(messages_taken(stack)) == 4)
    same("refused and accepted of all messages", [(0, 0), (0, 1), (1, 0), (1, 1)], sorted(messages_taken(stack)))
    latest = stack.call("GET", "/devices/plug/latest", token=tokens["read"]).expect(200)["metrics"]
    values = {name: metric["value"] for name, metric in latest.items()}
    same("what the plug says", {"cumulative_kwh_p": Decimal("6.294"), "current_w": 2635}, values)
    ok("MQTT by way of the IoT rules: Tasmota's payload as the plug's readings; native ones stored under the topic's device, whatever the payload names")


def messages_taken(stack):
    """Of each MQTT message, how many readings were refused and how many accepted."""
    lines = [json.loads(line) for line in stack.emulator.function_logs().splitlines() if line.startswith('{"')]
    events = [it for it in lines if it.get("function") == "ingest" and not {"http.status", "fetched.source"} & it.keys()]
    return [(it.get("readings.rejected", 0), it.get("readings.accepted", 0)) for it in events]


def permissions(stack, tokens):
    iam, role = stack.emulator.client("iam"), stack.resource("IngestRole")
    policy = iam.get_role_policy(RoleName=role, PolicyName="table")["PolicyDocument"]
    without = without_action(policy, "dynamodb:BatchWriteItem")
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
    ok("without dynamodb:BatchWriteItem nothing is stored and the sender is told")
    own_partitions(stack)


def without_action(policy, action):
    """A policy that no longer allows an action."""
    kept = []
    for statement in policy["Statement"]:
        actions = [it for it in statement["Action"] if it != action] if statement["Effect"] == "Allow" else statement["Action"]
        kept += [statement | {"Action": actions}] if actions else []
    return policy | {"Statement": kept}


# What each role may do with which partitions, and nothing else: `calls.json` has it from the code. The transaction puts an
# item.
CALLS = json.loads(Path(__file__).with_name("calls.json").read_text())
ACTIONS = {"batch_execute_statement": "PartiQLInsert", "transact_write_items": "PutItem"}


def own_partitions(stack):
    """What the roles may not touch, whatever the functions' code does."""
    for function, needed in CALLS["functions"].items():
        role = f"{function.capitalize()}Role"
        table = as_role(stack, role)
        for operation in requests(stack.table, "some-device"):
            action = ACTIONS.get(operation, operation.title().replace("_", ""))
            for target, partitions in CALLS["partitions"].items():
                for partition in partitions:
                    allowed = is_allowed(table, operation, requests(stack.table, partition)[operation])
                    same(f"whether {role} may {operation} on {partition}", f"{action} {target}" in needed, allowed)
        # One part of a transaction that is not permitted is enough. Query makes tokens, and writes no state.
        beside = "STATE#" if role == "QueryRole" else "TOKEN"
        writes = [requests(stack.table, partition)["transact_write_items"]["TransactItems"][0] for partition in ("ROOM", beside)]
        same(f"whether {role} may write {beside} beside a room", False, is_allowed(table, "transact_write_items", {"TransactItems": writes}))
    ok("each role reaches the partitions that it needs, by every operation, and no other; query's alone may make a token")


def as_role(stack, role):
    """A client of the table with a role's permissions."""
    sts = stack.emulator.client("sts")
    arn = stack.emulator.client("iam").get_role(RoleName=stack.resource(role))["Role"]["Arn"]
    lent = sts.assume_role(RoleArn=arn, RoleSessionName="check")["Credentials"]
    return stack.emulator.client(
        "dynamodb", aws_access_key_id=lent["AccessKeyId"], aws_secret_access_key=lent["SecretAccessKey"],
        aws_session_token=lent["SessionToken"])


def requests(table, partition):
    """One request of each operation on items of a partition. They change nothing that others look at."""
    key = {"pk": {"S": partition}, "sk": {"S": "check"}}
    never = {"ConditionExpression": "attribute_exists(pk) AND attribute_not_exists(pk)"}
    of_table = {"TableName": table}
    insert = f'INSERT INTO "{table}" VALUE {{\'pk\': ?, \'sk\': ?}}'
    return {
        # What it inserts, batch_write_item deletes.
        "batch_execute_statement": {"Statements": [{"Statement": insert, "Parameters": [*key.values()]}]},
        "batch_get_item": {"RequestItems": {table: {"Keys": [key]}}},
        # Without a condition.
        "batch_write_item": {"RequestItems": {table: [{"DeleteRequest": {"Key": key}}]}},
        "delete_item": of_table | never | {"Key": key},
        "get_item": of_table | {"Key": key},
        "put_item": of_table | never | {"Item": key},
        "query": of_table | {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": partition}}},
        "transact_write_items": {"TransactItems": [{"Put": of_table | never | {"Item": key}}]},
        "update_item": of_table | never | {"Key": key},
    }


def is_allowed(table, action, request):
    try:
        getattr(table, action)(**request)
    except table.exceptions.ClientError as error:
        code = error.response["Error"]["Code"]
        if code not in ("AccessDeniedException", "ConditionalCheckFailedException", "TransactionCanceledException"):
            raise
        return code != "AccessDeniedException"
    return True


def poison(stack, tokens):
    table = stack.emulator.client("dynamodb")
    for device, sort_key in (("visitor", "TS#2026-01-11T16:00:00.000Z"), ("visitor", "TS#not-a-time"), ("guest", "TS#2026-01-11T16:00:00.000Z")):
        table.put_item(TableName=stack.table, Item={"pk": {"S": device}, "sk": {"S": sort_key}, "temperature": {"N": "20"}})
    for device in ("visitor", "guest"):
        until(f"{device} is registered", lambda: stack.call("GET", f"/devices/{device}", token=tokens["read"]).status == 200)
    # One letter of each consumer of the stream.
    letters = []
    until("both consumers have sent a letter to the failures queue", lambda: len(more_letters(stack, letters)) >= 2)
    for letter in letters:
        same(f"the key in {letter}", ("visitor", "TS#not-a-time"), (letter.get("pk"), letter.get("sk")))
    ok(f"a poison record ends in the failures queue ({letters[0]['reason']}) while the others go on")


def more_letters(stack, letters):
    """Adds what the failures queue has, until it is seen."""
    messages = stack.emulator.client("sqs").receive_message(
        QueueUrl=stack.outputs["FailuresUrl"], MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", [])
    letters += [json.loads(it["Body"]) for it in messages]
    return letters
