"""The steps of the end-to-end check, in order; each says what it has shown. How is in the files beside it."""

import os
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import access
import alerts
import around
import front
import indexes
import older
import page
import panics
import pasted
import readings
import release
import rie
import rollups
import sources
import takeover
import tariffs
from processes import LOGS, ROOT, Failed, command
from report import ok, same, seconds
from stack import ARCHITECTURE, Emulator, Stack

FUNCTIONS = ["Alerting", "Fetching", "Ingest", "Query", "Registry", "Rollup"]
# On demand, so that the sweep, which takes a part of the units, keeps up with a week that comes at once.
PARAMETERS = {
    "RegistryMaxAgeSeconds": 1, "IotTopic": "roomtide", "AlarmEmail": "owner@example.org", "MonthlyBudget": 10,
    "AlertEmail": "family@example.org", "TimeZone": "Europe/Brussels", "Billing": "on-demand",
}


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
    with ThreadPoolExecutor() as beside:  # threads have to idle
        panicked = beside.submit(panics.run, emulator, {function: bootstrap(function) for function in panics.REQUESTS})
        stack.deploy(**PARAMETERS)
        panicked.result()
    ok("a panic of ingest or query is one 500, and the same process answers the next request")
    ok(f"./deploy without Cargo: {stack.api}, table {stack.table}, three tokens on the terminal")
    same("the tokens on the terminal", ["admin", "read", "write"], [*stack.first_tokens])
    tokens = access.make_tokens(stack)
    revoked_at = access.revoke_one(stack, tokens)
    week = readings.post_week(stack, tokens)
    readings.registered_at_once(stack, tokens)
    with ThreadPoolExecutor() as beside:  # alerts wait for minutes of the clock
        told = beside.submit(alerts.told, stack, tokens)
        readings.stream_reaches_registry(stack, tokens)
        asked = beside.submit(sources.asked, stack, tokens)
        readings.lists_and_ranges(stack, tokens, week)
        rollups.stored(stack, week)
        rollups.answers(stack, tokens, week)
        rollups.influxql(stack, tokens, week)
        rollups.follow_changes(stack, tokens)
        rollups.verified_and_rebuilt(stack)
        readings.edits(stack, tokens)
        readings.line_protocol(stack, tokens)
        front.function_urls(stack, tokens)
        front.domain(stack)
        front.impossible(stack)
        page.served(stack, tokens)
        indexed(stack, tokens, week)
        told.result()
        asked.result()
    access.refusals(stack, tokens)
    access.foreign_devices(stack, tokens)
    around.mqtt(stack, tokens)
    around.permissions(stack, tokens)
    around.poison(stack, tokens)
    if "ROOMTIDE_CARGO_LAMBDA" not in os.environ:  # as released: the sheets take minutes
        tariffs.billed(stack, tokens)
    access.revoked(stack, tokens, revoked_at)
    access.no_secret_in_any_log(stack, tokens | {"the secret of a source": sources.SECRET})
    keep_logs(emulator)
    redeploy(stack, tokens)
    delete(stack)
    with ThreadPoolExecutor() as beside:  # each has stacks of its own
        others = beside.submit(other_stacks, emulator)
        takeover.kept(stack, tokens, PARAMETERS)
        takeover.restored(stack, tokens, PARAMETERS)
        others.result()
    ok("all of it")


def build():
    """The release for this machine's processor: what is checked is what is deployed. `sam build` makes the same programs."""
    release.make()
    sizes = []
    for function in FUNCTIONS:
        archive = zipfile.ZipFile(release.FOLDER / "functions" / ARCHITECTURE / f"{function.lower()}.zip")
        binary, packed = archive.read("bootstrap"), archive.getinfo("bootstrap").compress_size
        bootstrap(function).parent.mkdir(parents=True, exist_ok=True)
        bootstrap(function).write_bytes(binary)
        bootstrap(function).chmod(0o755)
        sizes.append(f"{function.lower()} {len(binary):,} bytes ({packed:,} packed)")
    ok("tools/release: " + ", ".join(sizes))
    command("sam", "build", "--parameter-overrides", f"Architecture={ARCHITECTURE}",
            env=os.environ | {"SAM_CLI_TELEMETRY": "0"})
    for function in FUNCTIONS:
        built = (ROOT / ".aws-sam" / "build" / f"{function}Function" / "bootstrap").read_bytes()
        if built != bootstrap(function).read_bytes():
            raise Failed(f"sam build makes another {function} than tools/release")
    ok("sam build makes the same programs")


def bootstrap(function):
    return LOGS / "functions" / function.lower() / "bootstrap"


def other_stacks(emulator):
    older.updated(emulator)
    pasted.deployed(emulator)


def indexed(stack, tokens, week):
    PARAMETERS["AttributeIndex"] = "on"
    stack.deploy(**PARAMETERS)
    indexes.search(stack, tokens)
    indexes.move(stack, tokens)
    PARAMETERS["ConditionsIndex"] = "on"
    stack.deploy(**PARAMETERS)
    indexes.conditions(stack, tokens, week)


def redeploy(stack, tokens):
    table, before = stack.table, len(stack.items("meter"))
    stack.deploy(**PARAMETERS, RetentionDays=30)
    same("the table after the second deploy", table, stack.table)
    same("the meter's items after it", before, len(stack.items("meter")))
    new = {"device_id": "meter", "current_w": 1}
    stack.call("POST", "/readings", new, tokens["write"]).expect(201)
    newest = max(stack.items("meter"), key=lambda item: item["sk"]["S"])
    if "exp" not in newest:
        raise Failed(f"RetentionDays=30 gives a reading no expiry: {newest}")
    ok(f"a further ./deploy with RetentionDays=30 keeps all {before} readings of the meter and lets new ones expire")


def delete(stack):
    table, before = stack.table, len(stack.items("meter"))
    stack.delete()
    stacks = stack.emulator.client("cloudformation").list_stacks()["StackSummaries"]
    left = [it for it in stacks if it["StackName"] == "roomtide" and it["StackStatus"] != "DELETE_COMPLETE"]
    same("the stacks after ./deploy --remove", [], left)
    functions = stack.emulator.client("lambda").list_functions()["Functions"]
    same("the functions after ./deploy --remove", [], [it["FunctionName"] for it in functions])
    tables = stack.emulator.client("dynamodb").list_tables()["TableNames"]
    same("the tables after ./deploy --remove", [table], tables)
    same("the meter's items after ./deploy --remove", before, len(stack.items("meter")))
    queues = stack.emulator.client("sqs").list_queues().get("QueueUrls")
    same("the queues after ./deploy --remove", [stack.outputs["FailuresUrl"]], queues)
    ok(f"./deploy --remove removes the stack; the table with all {before} readings of the meter stays, and the failures queue")


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"{seconds()}  FAILED  {failure}")
