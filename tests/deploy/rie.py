"""The built binaries under Lambda's own Runtime Interface Emulator, and ingest with every event of events/ingest."""

import json
import platform
import shutil
import socket
import urllib.request
from pathlib import Path

import samcli

from processes import ROOT, Failed, end, free_port, server


def cases():
    """The cases of ingest in tests/events/cases.txt: the event and those before it, the status of the answer, none where
    nobody waits for one, and how many readings are stored then."""
    found = []
    for line in (ROOT / "tests" / "events" / "cases.txt").read_text().splitlines():
        if line and not line.startswith((" ", "//")):
            event, _, before = line.partition(" after ")
            found.append({"event": event, "before": before.split(), "status": None, "stored": 0})
            continue
        match line.split():
            case ["/status", "=", status]:
                found[-1]["status"] = int(status)
            case ["stores", "nothing"]:
                pass
            case ["stores", number] if number.isdigit():
                found[-1]["stored"] = int(number)
            case ["stores", *_]:
                found[-1]["stored"] += 1
    return [case for case in found if case["event"].startswith("ingest/")]


def run(emulator, bootstrap):
    """Sends every event to the binary; how many there were."""
    table = make_table(emulator)
    url, process = start(emulator, bootstrap, table)
    sent = cases()
    for case in sent:
        empty(emulator, table)
        for event in [*case["before"], case["event"]]:
            answer = invoke(url, (ROOT / "events" / f"{event}.json").read_bytes())
        stored = sum(item["sk"]["S"].startswith("TS#") for item in items(emulator, table))
        if (answer.get("statusCode"), stored) != (case["status"], case["stored"]):
            raise Failed(f"{case}: got {answer} and {stored} readings stored")
    end(process)
    emulator.client("dynamodb").delete_table(TableName=table)
    return len(sent)


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
