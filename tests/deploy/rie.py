"""The built binaries under Lambda's own Runtime Interface Emulator, and ingest with every event of events/ingest."""

import json
import platform
import shutil
import socket
import urllib.request
from pathlib import Path

import samcli

from processes import ROOT, Failed, end, free_port, server

# Of each event: the status of the answer, none where nobody waits for one, and how many readings are stored.
EXPECTED = {
    "array.json": (201, 3),
    "chirpstack.json": (201, 1),
    "gzip.json": (201, 3),
    "home-assistant-probe.json": (204, 0),
    "home-assistant.json": (204, 1),
    "iot-rule-batch.json": (None, 2),
    "iot-rule-damaged-line.json": (None, 1),
    "iot-rule-no-timestamp.json": (None, 1),
    "iot-rule.json": (None, 1),
    "line-protocol-some-refused.json": (400, 1),
    "line-protocol-v3.json": (204, 1),
    "merge.json": (201, 1),
    "ndjson.json": (201, 3),
    "no-timestamp.json": (207, 1),
    "none-valid.json": (400, 0),
    "not-json.json": (400, 0),
    "one-reading.json": (201, 1),
    "quick-no-token.json": (401, 0),
    "readings-member.json": (201, 2),
    "remo-devices.json": (201, 2),
    "remo-meter.json": (201, 1),
    "same-timestamp-twice.json": (201, 1),
    "shelly-climate.json": (201, 1),
    "shelly-event.json": (204, 0),
    "shelly-gen1.json": (201, 2),
    "shelly-plug.json": (201, 1),
    "shelly-three-phases.json": (201, 1),
    "some-refused.json": (207, 1),
    "switchbot-co2.json": (201, 1),
    "switchbot-curtain.json": (201, 1),
    "switchbot-meter.json": (201, 1),
    "switchbot-plug.json": (201, 1),
    "tasmota-lines.json": (204, 1),
    "tasmota-meter.json": (201, 1),
    "tasmota-no-device.json": (400, 0),
    "tasmota-no-numbers.json": (204, 0),
    "tasmota-not-understood.json": (400, 0),
    "tasmota-one-sensor.json": (201, 1),
    "tasmota-only-words.json": (200, 0),
    "tasmota-phases.json": (207, 1),
    "tasmota-plug.json": (201, 1),
    "tasmota-two-sensors.json": (201, 2),
    "telegraf-gzip.json": (204, 2),
    "things-stack.json": (201, 1),
    "topic-chirpstack.json": (None, 1),
    "topic-no-readings.json": (None, 0),
    "topic-shelly.json": (None, 1),
    "topic-tasmota.json": (None, 2),
    "topic-things-stack.json": (None, 1),
    "topic-unknown-format.json": (None, 0),
    "topic-zigbee2mqtt.json": (None, 1),
    "zigbee2mqtt-climate.json": (201, 1),
    "zigbee2mqtt-plug.json": (201, 1),
}


def run(emulator, bootstrap):
    """Sends every event to the binary; how many there were."""
    folder = ROOT / "events" / "ingest"
    found = {file.name for file in folder.iterdir()}
    if found != set(EXPECTED):
        raise Failed(f"events/ingest and what is expected of it differ: {found ^ set(EXPECTED)}")
    table = make_table(emulator)
    url, process = start(emulator, bootstrap, table)
    for name, expected in EXPECTED.items():
        empty(emulator, table)
        answer = invoke(url, (folder / name).read_bytes())
        stored = sum(item["sk"]["S"].startswith("TS#") for item in items(emulator, table))
        if (answer.get("statusCode"), stored) != expected:
            raise Failed(f"{name}: expected {expected}, got {answer} and {stored} readings stored")
    end(process)
    emulator.client("dynamodb").delete_table(TableName=table)
    return len(EXPECTED)


def invoke(url, event):
    """What the function answers to an event, or fails with."""
    request = urllib.request.Request(f"{url}/2015-03-31/functions/function/invocations", event)
    return json.load(urllib.request.urlopen(request, timeout=60))


def start(emulator, bootstrap, table, environment=()):
    """Starts a function as Lambda does. The Runtime Interface Emulator ships inside SAM's command line."""
    machine = "arm64" if platform.machine() == "aarch64" else "x86_64"
    shipped = Path(samcli.__file__).parent / "local" / "rapid" / f"aws-lambda-rie-{machine}"
    program = emulator.scratch / "aws-lambda-rie"
    shutil.copy(shipped, program)
    program.chmod(0o755)
    address = f"127.0.0.1:{free_port()}"
    runtime = f"127.0.0.1:{free_port()}"
    words = [program, "--runtime-interface-emulator-address", address, "--runtime-api-address", runtime, bootstrap]
    env = emulator.env | {
        "AUTH": "off", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_LAMBDA_FUNCTION_TIMEOUT": "25",
        "AWS_REGION": emulator.env["AWS_DEFAULT_REGION"], "TABLE_NAME": table,
    } | dict(environment)
    process, _ = server("runtime-interface-emulator", words, env, lambda: listens(address))
    return f"http://{address}", process


def listens(address):
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def make_table(emulator):
    keys = [("pk", "HASH"), ("sk", "RANGE")]
    emulator.client("dynamodb").create_table(
        TableName="under-rie", BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys])
    return "under-rie"


def items(emulator, table):
    return emulator.client("dynamodb").scan(TableName=table)["Items"]


def empty(emulator, table):
    client = emulator.client("dynamodb")
    for item in items(emulator, table):
        client.delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})
