"""The script `deploy` against an AWS CLI that is played: accounts and answers that no emulator has. Deploys nothing."""

import json
import os
import pty
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = (ROOT / "template.yaml").read_text()
WITHOUT_FUNCTION_URLS = re.findall(r"!Equals \[!Ref AWS::Region, ([a-z0-9-]+)\]", TEMPLATE)

# What the played AWS CLI runs: `PLAYED` is a file with the account, and all arguments are written beside it.
AWS = r'''#!/usr/bin/env python3
import json, os, sys
words = sys.argv[1:]
place = os.environ["PLAYED"]
account = json.load(open(place))
with open(place + ".arguments", "a") as log:
    log.write(json.dumps(words) + "\n")
operation = " ".join(words[:2])
query = words[words.index("--query") + 1] if "--query" in words else ""
def end(text, code=0):
    print(text, file=sys.stderr if code else sys.stdout)
    sys.exit(code)
if operation in account["refused"]:
    end(account["refused"][operation], 254)
if operation == "cloudformation describe-stacks":
    if account["status"] is None:
        end("An error occurred (ValidationError): Stack with id roomtide does not exist", 254)
    if "StackStatus" in query: end(account["status"])
    if "Auth" in query: end("on")
    if "Parameters" in query: end("\n".join(f"{name}\t{value}" for name, value in account["parameters"].items()) or "None")
    end({"TableName": "the-table", "MqttPolicy": "the-policy", "PageUrl": "https://page.example/", "IngestUrl": "https://ingest.example"}.get(query.split("'")[1], "None"))
if operation == "cloudformation create-change-set":
    account["status"] = account["status"] or "REVIEW_IN_PROGRESS"
if operation == "cloudformation execute-change-set":
    account["status"] = account["becomes"]
if operation == "cloudformation delete-stack":
    account["status"] = None
if operation == "dynamodb transact-write-items":
    account["answers"]["dynamodb query"] = "3"
json.dump(account, open(place, "w"))
end(account["answers"].get(operation + " " + query, account["answers"].get(operation, "")))
'''

ANSWERS = {
    "sts get-caller-identity": "123456789012",
    "lambda get-account-settings": "1000\t900",
    "cloudformation create-change-set": "arn:change-set",
    "cloudformation describe-change-set Status": "CREATE_COMPLETE",
    "cloudformation describe-change-set": "Add\tTable\tAWS::DynamoDB::Table\tNone",
    "dynamodb list-tables": "the-table\tother-table",
    "dynamodb describe-table": "20\t3",
    "dynamodb query": "0",
}


def main():
    with tempfile.TemporaryDirectory() as folder:
        release(Path(folder))
        first_time(Path(folder))
        small_accounts(Path(folder))
        updates(Path(folder))
        removal(Path(folder))
        requests(Path(folder))
        refusals(Path(folder))
    arguments_of_release()
    print("the script deploy does what it should with accounts that are played")


def release(folder):
    """A folder like that of a release, without programs but for one that makes tokens."""
    (folder / "functions" / "arm64").mkdir(parents=True)
    for function in ("ingest", "query", "registry", "rollup"):
        (folder / "functions" / "arm64" / f"{function}.zip").write_text(function)
    (folder / "template.json").write_text(json.dumps([{"Fn::Equals": [{"Ref": "AWS::Region"}, it]} for it in WITHOUT_FUNCTION_URLS]))
    names = ["Architecture=arm64", "Front=both", "DomainName=", "Billing=provisioned", "RoomIndex=on", "PointInTimeRecovery=on", "ReservedConcurrency=0", "AllowedOrigins=*", "CodeBucket="]
    (folder / "parameters").write_text("\n".join(names) + "\n")
    (folder / "VERSION").write_text("0.1.0-abc\n")
    (folder / "deploy").write_text((ROOT / "deploy").read_text())
    item = '{"pk":{"S":"TOKEN"},"sk":{"S":"HASH"}}'
    lines = "".join(f'echo \'{{"scope":"{it}","token":"rt_secret-{it}","item":{item}}}\'\n' for it in ("admin", "read", "write"))
    programs = folder / "programs"
    programs.mkdir()
    for path, text in (
        (folder / "deploy", None), (programs / "aws", AWS),
        (programs / "roomtide", f'#!/bin/sh\nif [ "$1" = qr ]; then echo "QR of $(cat)"; exit; fi\n{lines}'),
    ):
        if text:
            path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def run(folder, *words, region="eu-west-1", expect=0, answer="y\n", terminal=True, status=None, parameters=None, becomes="CREATE_COMPLETE",
        refused=None, **answers):
    """What the terminal showed, and the arguments of each call of the AWS CLI."""
    account = folder / "account"
    answers = ANSWERS | {name.replace("_", " ", 1).replace("_", "-"): text for name, text in answers.items()}
    account.write_text(json.dumps({
        "status": status, "parameters": parameters or {}, "becomes": becomes, "refused": refused or {}, "answers": answers}))
    arguments = folder / "account.arguments"
    arguments.unlink(missing_ok=True)
    env = {"PATH": f"{folder}/programs:/usr/bin:/bin", "PLAYED": str(account), "HOME": str(folder)}
    ours, theirs = pty.openpty()
    into = theirs if terminal else subprocess.PIPE
    process = subprocess.Popen([folder / "deploy", "--region", region, *words], env=env, stdin=theirs, stdout=into, stderr=subprocess.STDOUT)
    os.close(theirs)
    os.write(ours, answer.encode())
    shown = b"" if terminal else process.stdout.read()
    while terminal:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        shown += part
    os.close(ours)
    text = shown.decode()
    assert process.wait() == expect, f"{words}: {process.returncode}, not {expect}:\n{text}"
    calls = [json.loads(line) for line in arguments.read_text().splitlines()] if arguments.exists() else []
    return text, calls


def given(calls):
    """The parameters of the change set; True stands for the previous value."""
    call = next(it for it in calls if it[1] == "create-change-set")
    return {it["ParameterKey"]: it.get("ParameterValue", True) for it in json.loads(call[call.index("--parameters") + 1])}


def operations(calls):
    return [it[1] for it in calls]


def first_time(folder):
    shown, calls = run(folder)
    has(shown, "dollars a month", "table       0.00", "other-table has 23 write units", "roomtide is deployed", "rt_secret-admin",
        "https://page.example/#token=rt_secret-read", "QR of https://page.example/#token=rt_secret-read", "https://ingest.example/readings")
    assert "the-table has" not in shown, shown
    assert given(calls) == {"ReservedConcurrency": "10", "CodeBucket": "roomtide-code-123456789012-eu-west-1"}, given(calls)
    assert "rt_secret" not in json.dumps(calls), "a token is an argument of a program"
    assert operations(calls).count("transact-write-items") == 1
    bucket = next(it for it in calls if it[1] == "put-public-access-block")
    assert "BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true" in bucket, bucket
    # Without a terminal nobody sees the tokens, so none is made; --yes alone deploys.
    shown, calls = run(folder, "--yes", terminal=False, expect=1)
    has(shown, "no terminal to show tokens on")
    assert "transact-write-items" not in operations(calls) and "execute-change-set" in operations(calls)
    shown, calls = run(folder, answer="n\n", expect=1)
    has(shown, "Nothing is deployed", "aws s3 rb s3://roomtide-code-123456789012-eu-west-1 --force")
    assert 0 <= shown.find("go into the private bucket roomtide-code-123456789012-eu-west-1") < shown.find("Deploy? [y/N]"), shown
    assert "execute-change-set" not in operations(calls) and "delete-stack" in operations(calls)


def small_accounts(folder):
    # A new account has 10, and AWS keeps 100 unreserved. In the last one other functions have reserved the others.
    for limit, unreserved, instances in (
        (10, 10, None), (100, 100, None), (101, 101, None), (110, 110, "5"), (1000, 1000, "10"), (1000, 100, None)):
        shown, calls = run(folder, lambda_get_account_settings=f"{limit}\t{unreserved}")
        assert given(calls).get("ReservedConcurrency") == instances, (limit, given(calls))
        has(shown, f"account has {limit} " if instances is None else f"of the account's {limit}")
    _, calls = run(folder, "--parameter", "ReservedConcurrency=7", lambda_get_account_settings="10\t10")
    assert given(calls)["ReservedConcurrency"] == "7"


def updates(folder):
    old = {"Architecture": "arm64", "Billing": "on-demand", "ReservedConcurrency": "0", "Gone": "1", "AllowedOrigins": "a"}
    shown, calls = run(
        folder, "--parameter", 'AllowedOrigins=https://a.example,https://"b"', status="UPDATE_COMPLETE", parameters=old,
        becomes="UPDATE_COMPLETE", dynamodb_query="3")
    assert given(calls) == {
        "Architecture": True, "Billing": True, "ReservedConcurrency": True, "AllowedOrigins": 'https://a.example,https://"b"',
        "CodeBucket": "roomtide-code-123456789012-eu-west-1"}, given(calls)
    has(shown, "table       0.65", "Tokens are there already; none is made", "ReservedConcurrency is 0", "ReservedConcurrency=10")
    assert "other-table has" not in shown and "transact-write-items" not in operations(calls)
    # What has not changed is not asked about.
    answers = {
        "cloudformation_describe-change-set Status": "FAILED",
        "cloudformation_describe-change-set StatusReason": "The submitted information didn't contain changes.",
    }
    shown, calls = run(folder, status="UPDATE_COMPLETE", parameters=old, dynamodb_query="1", **answers)
    has(shown, "nothing to change")
    assert "execute-change-set" not in operations(calls)
    shown, calls = run(
        folder, status="UPDATE_COMPLETE", parameters=old, expect=1,
        **{"cloudformation_describe-change-set": "Modify\tTable\tAWS::DynamoDB::Table\tTrue"})
    has(shown, "would replace the table")
    assert "execute-change-set" not in operations(calls)
    for parameters in ({"ReservedConcurrency": "3"}, {"ReservedConcurrency": "0", "Front": "http-api"}):
        shown, calls = run(folder, status="UPDATE_COMPLETE", parameters=old | parameters, becomes="UPDATE_COMPLETE", dynamodb_query="3")
        assert "Concurrency" not in shown, shown
    # The stack of a table that was taken over gets its functions now.
    shown, calls = run(
        folder, status="IMPORT_COMPLETE", parameters={"Billing": "provisioned"}, becomes="UPDATE_COMPLETE", dynamodb_query="3")
    assert given(calls)["ReservedConcurrency"] == "10", given(calls)


def removal(folder):
    shown, calls = run(folder, "--remove", status="UPDATE_COMPLETE")
    has(shown, "the table the-table, with all readings", "the bucket roomtide-code-", "the policy the-policy of IoT Core", "roomtide is deleted")
    assert "None" not in shown, shown
    shown, calls = run(folder, "--remove", status="UPDATE_COMPLETE", answer="n\n", expect=1)
    has(shown, "Nothing is deleted")
    assert "delete-stack" not in operations(calls)


def requests(folder):
    """What requests cost, where they arrive."""
    assert len(WITHOUT_FUNCTION_URLS) == 11, WITHOUT_FUNCTION_URLS
    # The script looks for its region in the template, so no other may stand there.
    assert set(re.findall(r"\b[a-z]{2}-[a-z]+-[0-9]\b", TEMPLATE)) == set(WITHOUT_FUNCTION_URLS)
    both, urls, api = "0.00  to function URLs; 0.43 if", "0.00  to function URLs\r\n", "0.43  to the HTTP API\r\n"
    for words, region, costs in (
        ([], "eu-west-1", both),
        (["Front=function-urls"], "eu-west-1", urls),
        (["Front=http-api"], "eu-west-1", api),
        (["DomainName=roomtide.example.org"], "eu-west-1", api),
        *(([], it, api) for it in (WITHOUT_FUNCTION_URLS[0], WITHOUT_FUNCTION_URLS[-1])),
        (["Front=function-urls"], "eu-south-2", api),
        ([], "eu-south-1", both),
    ):
        shown, _ = run(folder, *(it for word in words for it in ("--parameter", word)), region=region, answer="n\n", expect=1)
        has(shown, f"requests    {costs}")


def refusals(folder):
    for words, code, why in (
        (["--parameter", "Nope=1"], 1, "no such parameter"),
        (["--parameter", "Nope"], 2, "expected NAME=VALUE"),
        (["--parameter", "Architecture=x86_64"], 1, "no functions for Architecture=x86_64, only for: arm64; choose one by --parameter Architecture"),
        (["--stack-name", "a b"], 2, "letters, digits and hyphens"),
        (["--stack-name"], 2, "--stack-name needs a value"),
        (["--force"], 2, "unknown option --force"),
        (["--remove"], 1, "there is no stack roomtide in eu-west-1"),
    ):
        shown, calls = run(folder, *words, expect=code)
        has(shown, why)
        assert "create-bucket" not in operations(calls), "a bucket is made before the options are read"
    shown, _ = run(folder, expect=1, refused={"sts get-caller-identity": "Unable to locate credentials"})
    has(shown, "no credentials")
    shown, _ = run(folder, expect=1, refused={"cloudformation create-change-set": "Rules: RetentionDays is 0"})
    has(shown, "RetentionDays is 0", "the change set is refused")
    shown, _ = run(folder, expect=1, refused={"dynamodb transact-write-items": "AccessDenied"})
    has(shown, "the tokens cannot be stored")
    assert "rt_secret" not in shown, "a token is shown that is not stored"
    shown, _ = run(folder, expect=1, becomes="ROLLBACK_COMPLETE", **{"cloudformation_describe-stack-events": "Table\tno units left"})
    has(shown, "ended as ROLLBACK_COMPLETE", "no units left")
    shown, _ = run(folder, expect=1, status="ROLLBACK_COMPLETE")
    has(shown, "--remove")


def arguments_of_release():
    """`tools/release`, as far as it builds nothing."""
    for words, code, why in ((["--help"], 0, "arm64 or x86_64"), (["arm"], 2, "arm: expected arm64, x86_64 or --help"), (["arm64", "--all"], 2, "--all: expected")):
        done = subprocess.run([ROOT / "tools" / "release", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == code, done
        has(done.stdout, why)


def has(shown, *texts):
    for text in texts:
        assert text in shown, f"not shown: {text}\n{shown}"


if __name__ == "__main__":
    sys.exit(main())
