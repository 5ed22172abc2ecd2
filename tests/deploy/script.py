"""The script `deploy` against an AWS CLI that is played: accounts and answers that no emulator has. Deploys nothing."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = (ROOT / "template.yaml").read_text()
WITHOUT_FUNCTION_URLS = re.findall(r"!Equals \[!Ref AWS::Region, ([a-z0-9-]+)\]", TEMPLATE)

# What the played AWS CLI runs: `PLAYED` is a file with the account, and all arguments are written beside it. `refused`
# has errors that always come, `fails` errors that come one after the other, `then` what an operation changes of the account. It runs
# 2,500 times, so Python starts without the site's packages.
AWS = r'''#!PYTHON -IS
import fcntl, json, os, sys, time
words = sys.argv[1:]
place = os.environ["PLAYED"]
lock = open(place + ".lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
account = json.load(open(place))
# Version 2 asks for each argument, and gives up where standard input is no terminal.
if os.environ.get("AWS_CLI_AUTO_PROMPT") == "on":
    print("\naws: [ERROR]: ", file=sys.stderr)
    sys.exit(255)
with open(place + ".arguments", "a") as log:
    log.write(json.dumps(words) + "\n")
operation = " ".join(words[:2])
def option(name):
    return words[words.index(name) + 1] if name in words else ""
query = option("--query")
def end(text, code=0):
    json.dump(account, open(place, "w"))
    if account["note"]: print(account["note"], file=sys.stderr)
    # Version 2 of the AWS CLI writes an error as JSON, in which its code is between quotes, where it is told so.
    if code and os.environ.get("AWS_CLI_ERROR_FORMAT") == "json":
        text = json.dumps({"Code": text.partition("(")[2].partition(")")[0], "Message": text.partition(": ")[2]})
    print(text, file=sys.stderr if code else sys.stdout)
    sys.exit(code)
account.update(account["then"].get(operation, {}))
if operation in account["refused"]:
    end(account["refused"][operation], 254)
if account["fails"].get(operation):
    end(account["fails"][operation].pop(0), 254)
if operation == "cloudformation describe-stacks":
    if account["status"] is None:
        end("An error occurred (ValidationError): Stack with id roomtide does not exist", 254)
    if "StackStatus" in query: end((account["statuses"].pop(0) if account["statuses"] else account["status"]) + "\tarn:stack")
    if "Description" in query: end(account["description"])
    if account["status"] == "ROLLBACK_COMPLETE" and "Outputs" in query: end("None")
    if "Auth" in query: end("on")
    if "Parameters" in query: end("\n".join(f"{name}\t{value}" for name, value in account["parameters"].items()) or "None")
    end({"TableName": "the-table", "MqttPolicy": "the-policy", "PageUrl": "https://page.example/", "IngestUrl": "https://ingest.example"}.get(query.split("'")[1], "None"))
if operation == "cloudformation create-change-set":
    account["status"] = account["status"] or "REVIEW_IN_PROGRESS"
    account["change_sets"].append("arn:" + option("--change-set-name"))
    end(account["change_sets"][-1])
if operation == "cloudformation list-change-sets":
    end(sum(it not in query for it in account["change_sets"]))
if operation == "cloudformation delete-change-set":
    account["change_sets"] = [it for it in account["change_sets"] if it != option("--change-set-name")]
if operation == "cloudformation describe-stack-events":
    # Words between quotes are what is asked for.
    end(account["kept"] if "DELETE_SKIPPED" in query else account["reasons"])
if operation == "s3api head-object" and option("--key") not in account["objects"]:
    end("An error occurred (404) when calling the HeadObject operation: Not Found", 254)
if operation == "s3api put-object":
    account["objects"].append(option("--key"))
if operation == "cloudformation execute-change-set":
    if option("--change-set-name") not in account["change_sets"]:
        end("An error occurred (ChangeSetNotFound) when calling the ExecuteChangeSet operation: ChangeSet does not exist", 254)
    account["change_sets"] = []
    account["status"] = account["becomes"]
    if account["lost"]:
        account["lost"].pop()
        end('Read timeout on endpoint URL: "https://cloudformation.eu-west-1.amazonaws.com/"', 255)
if operation == "cloudformation delete-stack":
    # By its id: under the name there may be another stack by now.
    if option("--stack-name") != "arn:stack": end("which stack?", 254)
    account["status"] = None
if operation == "dynamodb transact-write-items":
    request, items = option("--client-request-token"), option("--transact-items")
    if account["requests"].setdefault(request, items) != items:
        end("An error occurred (IdempotentParameterMismatchException) when calling the TransactWriteItems operation", 254)
    account["answers"]["dynamodb query"] = "3"
    json.dump(account, open(place, "w"))
    time.sleep(account["slow"])
    if account["lost_tokens"]:
        account["lost_tokens"].pop()
        end('Read timeout on endpoint URL: "https://dynamodb.eu-west-1.amazonaws.com/"', 255)
end(account["answers"].get(operation + " " + query, account["answers"].get(operation, "")))
'''

# The id of the table, which is as long as the token of a request may be.
TABLE_ID = "12345678-1234-1234-1234-123456789012"
ANSWERS = {
    "sts get-caller-identity": "123456789012",
    "lambda get-account-settings": "1000\t900",
    "cloudformation describe-change-set Status": "CREATE_COMPLETE",
    "cloudformation describe-change-set": "Add\tTable\tAWS::DynamoDB::Table\tNone",
    "dynamodb list-tables": "the-table\tother-table",
    "dynamodb describe-table": "20\t3",
    "dynamodb describe-table Table.TableId": TABLE_ID,
    "dynamodb query": "0",
}


def main():
    with tempfile.TemporaryDirectory() as folder:
        release(Path(folder))
        first_time(Path(folder))
        small_accounts(Path(folder))
        updates(Path(folder))
        removal(Path(folder))
        waiting(Path(folder))
        taken_back(Path(folder))
        odd_states(Path(folder))
        templates(Path(folder))
        notes(Path(folder))
        two_runs(Path(folder))
        tokens_once(Path(folder))
        unknown_parameters(Path(folder))
        requests(Path(folder))
        refusals(Path(folder))
        settings_of_version_2(Path(folder))
        called_from_elsewhere(Path(folder))
    arguments_of_release()
    print("the script deploy does what it should with accounts that are played")


def release(folder):
    """A folder like that of a release, without programs but for one that makes tokens."""
    (folder / "functions" / "arm64").mkdir(parents=True)
    for function in ("alerting", "fetching", "ingest", "query", "registry", "rollup"):
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
        (folder / "deploy", None), (programs / "aws", AWS.replace("PYTHON", sys.executable, 1)), (programs / "sleep", "#!/bin/sh\n"),
        (programs / "roomtide", f'#!/bin/sh\nif [ "$1" = qr ]; then echo "QR of $(cat)"; exit; fi\n{lines}'),
    ):
        if text:
            path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


class Run:
    """The script, on a terminal of its own."""

    def __init__(self, folder, *words, region="eu-west-1", terminal=True, env=None, cwd=None):
        env = {"PATH": f"{folder}/programs:/usr/bin:/bin", "PLAYED": str(folder / "account"), "HOME": str(folder)} | (env or {})
        def on_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            # Whoever runs this check in the background has them ignored, and then no script can trap them.
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)

        self.ours, theirs = pty.openpty()
        into = theirs if terminal else subprocess.PIPE
        # In another directory it is called by its path from there.
        script = (folder / "deploy").relative_to(cwd) if cwd else folder / "deploy"
        self.process = subprocess.Popen(
            [script, "--region", region, *words], env=env, stdin=theirs, stdout=into, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=on_terminal, cwd=cwd)
        os.close(theirs)
        self.source = self.ours if terminal else self.process.stdout.fileno()
        self.shown = ""

    def read(self):
        """Reads on; False after the end."""
        if not select.select([self.source], [], [], 60)[0]:
            raise AssertionError(f"nothing more is shown:\n{self.shown}")
        try:
            part = os.read(self.source, 65536)
        except OSError:
            part = b""
        self.shown += part.decode()
        return bool(part)

    def until(self, text):
        while text not in self.shown:
            assert self.read(), f"not shown: {text}\n{self.shown}"

    def send(self, text):
        os.write(self.ours, text.encode())

    def end(self, expect):
        """What the terminal showed."""
        while self.read():
            pass
        code = self.process.wait()
        os.close(self.ours)
        assert code == expect, f"{self.process.args}: {code}, not {expect}:\n{self.shown}"
        return self.shown


def play(folder, status=None, parameters=None, becomes="CREATE_COMPLETE", refused=None, account=None, **answers):
    """Begins a new account."""
    answers = ANSWERS | {name.replace("_", " ", 1).replace("_", "-"): text for name, text in answers.items()}
    (folder / "account").write_text(json.dumps({
        "status": status, "parameters": parameters or {}, "becomes": becomes, "refused": refused or {}, "answers": answers,
        "statuses": [], "fails": {}, "then": {}, "note": "", "change_sets": [], "requests": {}, "slow": 0, "lost": [], "lost_tokens": [], "objects": [],
        "description": "Roomtide - time series", "kept": "None", "reasons": "None"} | (account or {})))
    (folder / "account.arguments").unlink(missing_ok=True)


def called(folder):
    """The arguments of each call of the AWS CLI."""
    arguments = folder / "account.arguments"
    return [json.loads(line) for line in arguments.read_text().splitlines()] if arguments.exists() else []


def account_of(folder):
    return json.loads((folder / "account").read_text())


def run(folder, *words, region="eu-west-1", expect=0, answer="y\n", terminal=True, env=None, cwd=None, **played):
    """What the terminal showed, and the arguments of each call of the AWS CLI."""
    play(folder, **played)
    process = Run(folder, *words, region=region, terminal=terminal, env=env, cwd=cwd)
    process.send(answer)
    return process.end(expect), called(folder)


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
        # The functions of alerts compete for them too.
        assert ("--parameter Front=http-api" in shown) == (instances is None), shown
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
    has(shown, "table       0.67", "Tokens are there already; none is made", "ReservedConcurrency is 0", "ReservedConcurrency=10")
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


THROTTLED = "An error occurred (Throttling) when calling the DescribeStacks operation (reached max retries: 4): Rate exceeded"
EXPIRED = "An error occurred (ExpiredToken) when calling the DescribeStacks operation: The security token included in the request is expired"
UNREACHABLE = 'Could not connect to the endpoint URL: "https://cloudformation.eu-west-1.amazonaws.com/"'


def waiting(folder):
    """A stack is done when AWS says so, whatever fails meanwhile."""
    describe, execute, delete = (f"cloudformation {it}" for it in ("describe-stacks", "execute-change-set", "delete-stack"))

    def failing(operation, *errors, **then):
        return {"then": {operation: {"statuses": ["CREATE_IN_PROGRESS"], "fails": {describe: errors}, **then}}}

    for error in (THROTTLED, UNREACHABLE, THROTTLED.replace("Throttling", "RequestLimitExceeded"), THROTTLED.replace("Throttling", "503")):
        shown, _ = run(folder, account=failing(execute, error, error))
        has(shown, "roomtide is deployed", "rt_secret-admin")
    # Asked again, but not for ever.
    for errors in ([EXPIRED], [THROTTLED] * 5):
        shown, calls = run(folder, account=failing(execute, *errors), expect=1)
        has(shown, "cannot be described: An error occurred", errors[0][-20:], "AWS goes on; the same command again")
        assert "is deployed" not in shown and "ended as" not in shown, shown
    shown, _ = run(folder, expect=1, account={"fails": {describe: [EXPIRED]}})
    has(shown, "the stack roomtide cannot be described", "ExpiredToken")
    # A write may have been done without an answer, so it is not sent again.
    shown, calls = run(folder, expect=1, refused={"cloudformation create-change-set": UNREACHABLE})
    has(shown, "the change set is refused", "Could not connect")
    assert operations(calls).count("create-change-set") == 1

    # AWS alone says that a stack is gone: a profile that does not exist is no answer about it.
    absent = "The source profile other referenced in the profile default does not exist."
    for errors, code in (([THROTTLED], 0), ([EXPIRED], 1), ([THROTTLED] * 5, 1), ([absent], 1)):
        shown, _ = run(folder, "--remove", status="UPDATE_COMPLETE", expect=code, account=failing(delete, *errors, status="DELETE_IN_PROGRESS"))
        assert ("roomtide is deleted" in shown) == (code == 0), shown
    shown, _ = run(
        folder, "--remove", status="UPDATE_COMPLETE", expect=1, refused={delete: "An error occurred (AccessDenied) when calling DeleteStack"})
    has(shown, "AccessDenied")
    assert "is deleted" not in shown, shown
    play(folder, status="UPDATE_COMPLETE", becomes="UPDATE_IN_PROGRESS")
    stopped = Run(folder, "--yes")
    stopped.until("...")
    stopped.send("\x03")
    has(stopped.end(130), "interrupted; AWS goes on; the same command again says how it ended")
    # The same command waits for the end, and says it.
    shown, _ = run(
        folder, status="UPDATE_ROLLBACK_COMPLETE", becomes="UPDATE_COMPLETE", dynamodb_query="3",
        account={"statuses": ["UPDATE_IN_PROGRESS"] * 3, "reasons": "QueryFunction\tno such code"})
    has(shown, "is being changed (UPDATE_IN_PROGRESS); this waits for its end", "was taken back, because of", "no such code", "is deployed")
    # Whether AWS has begun is looked up.
    shown, _ = run(folder, account={"lost": [1]})
    has(shown, "roomtide is deployed", "rt_secret-admin")
    shown, _ = run(folder, expect=1, refused={"cloudformation execute-change-set": UNREACHABLE})
    has(shown, "it is not known whether AWS changes the stack", "./deploy again says how it ended")


def taken_back(folder):
    """A run that ends before AWS began leaves no change set and no empty stack, however it ends."""
    for signal_or_key in ("\x03", signal.SIGTERM, signal.SIGHUP):
        play(folder)
        asked = Run(folder)
        asked.until("Deploy?")
        if isinstance(signal_or_key, str):
            asked.send(signal_or_key)
        else:
            os.killpg(asked.process.pid, signal_or_key)
        has(asked.end(130), "interrupted")
        assert account_of(folder)["change_sets"] == [] and account_of(folder)["status"] is None, account_of(folder)
    denied = "An error occurred (AccessDenied) when calling"
    for operation in ("describe-change-set", "execute-change-set"):
        shown, _ = run(folder, expect=1, refused={f"cloudformation {operation}": denied})
        has(shown, "AccessDenied")
        assert account_of(folder)["change_sets"] == [] and account_of(folder)["status"] is None, account_of(folder)
    # Without a terminal there is no answer.
    play(folder)
    done = subprocess.run(
        [folder / "deploy", "--region", "eu-west-1"], env={"PATH": f"{folder}/programs:/usr/bin:/bin", "PLAYED": str(folder / "account"), "HOME": str(folder)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 1, done
    has(done.stdout, "--yes answers it without one", "Nothing is deployed by this run")
    assert account_of(folder)["change_sets"] == [] and account_of(folder)["status"] is None, account_of(folder)


def odd_states(folder):
    """What CloudFormation does not change is not uploaded to, and what a failed first deploy keeps is named."""
    for status, todo in (
        ("UPDATE_ROLLBACK_FAILED", "aws cloudformation continue-update-rollback --stack-name roomtide --region eu-west-1"),
        ("UPDATE_FAILED", "aws cloudformation rollback-stack"),
        ("ROLLBACK_FAILED", "./deploy --remove --stack-name roomtide"),
        ("DELETE_FAILED", "./deploy --remove --stack-name roomtide"),
    ):
        shown, calls = run(folder, status=status, expect=1, account={"reasons": "Table\tin use"})
        has(shown, f"roomtide is {status}", todo, "in use")
        assert "put-object" not in operations(calls), status
    kept = {"kept": "AWS::DynamoDB::Table\troomtide-Table-1", "reasons": "Domain\tno such certificate"}
    names = ("AWS::DynamoDB::Table\troomtide-Table-1", "These stay")
    shown, _ = run(folder, expect=1, becomes="ROLLBACK_COMPLETE", account=kept)
    has(shown, "ended as ROLLBACK_COMPLETE", "no such certificate", *names)
    shown, _ = run(folder, expect=1, status="ROLLBACK_COMPLETE", account=kept)
    has(shown, "the first deploy of roomtide failed", "no such certificate", *names)
    shown, _ = run(folder, "--remove", status="ROLLBACK_COMPLETE", account=kept)
    has(shown, "which is ROLLBACK_COMPLETE", *names, "roomtide is deleted")
    # A stack of somebody else.
    shown, calls = run(folder, "--remove", "--yes", status="UPDATE_COMPLETE", expect=1, account={"description": "billing of production"})
    has(shown, "is not Roomtide's", "billing of production")
    assert "delete-stack" not in operations(calls)


def templates(folder):
    """A template that has changed is deployed, also if the functions have not."""
    url = lambda calls: next(it[it.index("--template-url") + 1] for it in calls if it[1] == "create-change-set")
    _, calls = run(folder)
    before = url(calls)
    template = folder / "template.json"
    text = template.read_text()
    template.write_text(text + " ")
    _, calls = run(folder, account={"objects": account_of(folder)["objects"]})
    template.write_text(text)
    assert url(calls) != before and operations(calls).count("put-object") == 1, calls
    shown, calls = run(folder, status="UPDATE_COMPLETE", expect=1, **{"cloudformation_describe-change-set": "Remove\tTable\tAWS::DynamoDB::Table\tNone"})
    has(shown, "would take the table out of the stack")
    assert "execute-change-set" not in operations(calls)


def notes(folder):
    """What the AWS CLI writes to standard error beside an answer is no part of it, and is shown once."""
    note = "Note: AWS CLI version 1, the latest major version of the AWS CLI, is in maintenance mode."
    shown, calls = run(folder, account={"note": note})
    has(shown, "roomtide is deployed", "https://page.example/#token=rt_secret-read")
    assert shown.count(note) == 1, shown
    assert given(calls) == {"ReservedConcurrency": "10", "CodeBucket": "roomtide-code-123456789012-eu-west-1"}, given(calls)
    shown, calls = run(
        folder, status="UPDATE_COMPLETE", parameters={"Architecture": "arm64"}, becomes="UPDATE_COMPLETE", dynamodb_query="3", account={"note": note})
    assert given(calls)["Architecture"] is True, given(calls)


def two_runs(folder):
    """Two runs at once: what the one has deployed, the other neither deletes nor changes."""
    for answer, said in (("n\n", "Another run has deployed roomtide meanwhile (CREATE_COMPLETE); it stays"), ("\x04", "it stays"), ("y\n", "another run was first: the stack is CREATE_COMPLETE")):
        play(folder)
        late = Run(folder)
        late.until("Deploy?")
        first = Run(folder)
        first.until("Deploy?")
        first.send("y\n")
        has(first.end(0), "roomtide is deployed", "rt_secret-admin")
        late.send(answer)
        shown = late.end(1)
        has(shown, said)
        assert "is deployed." not in shown and "rt_secret" not in shown, shown
        assert account_of(folder)["status"] == "CREATE_COMPLETE" and "delete-stack" not in operations(called(folder))
    # While the other still asks, its change set needs the stack; the last one to say no deletes it.
    play(folder)
    both = [Run(folder), Run(folder)]
    for each in both:
        each.until("Deploy?")
    for each, status in zip(both, ("REVIEW_IN_PROGRESS", None)):
        each.send("n\n")
        has(each.end(1), "Nothing is deployed by this run")
        assert account_of(folder)["status"] == status, account_of(folder)
    # The same of a stack that there was before: the other's change set is gone.
    play(folder, status="UPDATE_COMPLETE", becomes="UPDATE_COMPLETE", dynamodb_query="3")
    both = [Run(folder), Run(folder)]
    for each in both:
        each.until("Deploy?")
    for each, code, said in zip(both, (0, 1), ("is deployed", "another run was first: the stack is UPDATE_COMPLETE")):
        each.send("y\n")
        has(each.end(code), said)
    # A change set that says nothing leaves no empty stack either.
    failed = {"cloudformation_describe-change-set Status": "FAILED", "cloudformation_describe-change-set StatusReason": "no such template"}
    shown, calls = run(folder, expect=1, **failed)
    has(shown, "the change set is refused: no such template")
    assert account_of(folder)["status"] is None and account_of(folder)["change_sets"] == []


def tokens_once(folder):
    """Three tokens and no more, each shown to somebody."""
    request = lambda calls: [it[it.index("--client-request-token") + 1] for it in calls if it[1] == "transact-write-items"]
    play(folder, account={"slow": 2})
    process = Run(folder, "--yes")
    while "transact-write-items" not in operations(called(folder)):
        time.sleep(0.05)
    time.sleep(0.3)
    process.send("\x03\x1c")
    has(process.end(0), "rt_secret-admin", "rt_secret-read", "rt_secret-write", "A first reading")
    assert request(called(folder)) == [TABLE_ID]
    # The answer is lost, and the same request is sent again.
    shown, calls = run(folder, account={"lost_tokens": [1]})
    has(shown, "rt_secret-admin")
    assert request(calls) == [TABLE_ID] * 2 and len(account_of(folder)["requests"]) == 1
    shown, _ = run(folder, expect=1, account={"lost_tokens": [1] * 9})
    has(shown, "it is not known whether the tokens are stored")
    assert "rt_secret" not in shown, shown
    # Another run has stored its tokens after this one has counted them.
    shown, _ = run(folder, expect=1, account={"requests": {TABLE_ID: "[other items]"}})
    has(shown, "another run of ./deploy makes the first tokens")
    assert "rt_secret" not in shown, shown
    # Whoever has lost them is told how to make others, with this table.
    shown, calls = run(folder, status="UPDATE_COMPLETE", becomes="UPDATE_COMPLETE", dynamodb_query="3")
    has(shown, f"AWS_REGION=eu-west-1 {folder}/programs/roomtide token create --scope admin --name me --table the-table", 'eval "$(aws configure export-credentials')
    assert request(calls) == [] and "rt_secret" not in shown, shown
    # What is no count is not taken for one.
    shown, calls = run(folder, expect=1, refused={"dynamodb query": "An error occurred (AccessDeniedException) when calling Query"})
    has(shown, "AccessDeniedException")
    assert request(calls) == [] and "Tokens are there" not in shown, shown


def unknown_parameters(folder):
    """Nothing that is given is ignored, and nothing is taken for another thing."""
    for name in ("B.lling", "Billing.*", "billing", "Bill"):
        shown, calls = run(folder, "--parameter", f"{name}=on-demand", expect=1)
        has(shown, f"--parameter {name}: the template has no such parameter; it has: Architecture, Front, DomainName, Billing")
        assert "create-bucket" not in operations(calls) and "put-object" not in operations(calls)
    for value in ("a\tb", "a\nb", "a\rb", "\x1b[31m"):
        shown, calls = run(folder, "--parameter", f"AllowedOrigins={value}", expect=2)
        has(shown, "--parameter AllowedOrigins: a tab, a line break or another control character")
        assert calls == []
    for value in ("a b  c", 'x"y\\z', "it's $HOME `id`", "*", "a=b=c", "", "é"):
        _, calls = run(folder, "--parameter", f"AllowedOrigins={value}")
        assert given(calls)["AllowedOrigins"] == value, given(calls)
    for words, why in ((["--parameter", "CodeBucket=mine"], "this script sets it"), (["--remove", "--parameter", "Billing=on-demand"], "--remove changes no parameter")):
        shown, calls = run(folder, *words, expect=2)
        has(shown, why)
        assert calls == []
    # Keys of objects begin with the version, so without it they would begin with a slash.
    for text in (None, ""):
        (folder / "VERSION").write_text(text) if text is not None else (folder / "VERSION").unlink()
        shown, calls = run(folder, expect=1)
        has(shown, "VERSION is missing")
        assert "put-object" not in operations(calls)
    (folder / "VERSION").write_text("0.1.0-abc\n")


def requests(folder):
    """What requests cost, where they arrive."""
    # Which they are: tests/deploy/regions.py.
    assert len(WITHOUT_FUNCTION_URLS) > 10, WITHOUT_FUNCTION_URLS
    # The script looks for its region in the template, so no other may stand there.
    assert set(re.findall(r"\b[a-z]{2}(?:-[a-z]+)+-[0-9]\b", TEMPLATE)) == set(WITHOUT_FUNCTION_URLS)
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
        (["--stack-name", ""], 2, "--stack-name needs a value"),
        (["--region", ""], 2, "--region needs a value"),
        (["--region"], 2, "--region needs a value"),
        (["--parameter", ""], 2, "--parameter needs a value"),
        (["--force"], 2, "unknown option --force"),
        (["--remove"], 1, "there is no stack roomtide in eu-west-1"),
    ):
        shown, calls = run(folder, *words, expect=code)
        has(shown, why)
        assert "create-bucket" not in operations(calls), "a bucket is made before the options are read"
    shown, _ = run(folder, expect=1, refused={"sts get-caller-identity": "Unable to locate credentials"})
    has(shown, "no credentials")
    # Without a bound that it knows, it deploys only what the owner has chosen.
    shown, calls = run(folder, expect=1, refused={"lambda get-account-settings": "An error occurred (AccessDeniedException) when calling"})
    has(shown, "ReservedConcurrency cannot be chosen", "AccessDeniedException", "--parameter ReservedConcurrency=N")
    assert "create-bucket" not in operations(calls) and "create-change-set" not in operations(calls)
    _, calls = run(folder, "--parameter", "ReservedConcurrency=0", refused={"lambda get-account-settings": "AccessDenied"})
    assert given(calls)["ReservedConcurrency"] == "0"
    # What only informs is said to be missing.
    for operation in ("list-tables", "describe-table"):
        shown, _ = run(folder, answer="n\n", expect=1, refused={f"dynamodb {operation}": "An error occurred (AccessDeniedException)"})
        has(shown, "them is not known: An error occurred (AccessDeniedException)", "Deploy?")
    # A bucket that is there, but somebody else's, is not made.
    shown, calls = run(folder, expect=1, refused={"s3api head-bucket": "An error occurred (403) when calling the HeadBucket operation: Forbidden"})
    has(shown, "the bucket roomtide-code-123456789012-eu-west-1 cannot be used", "Forbidden")
    assert "create-bucket" not in operations(calls)
    _, calls = run(folder, refused={"s3api head-bucket": "An error occurred (404) when calling the HeadBucket operation: Not Found"})
    assert "create-bucket" in operations(calls)
    shown, _ = run(folder, expect=1, refused={"cloudformation create-change-set": "Rules: RetentionDays is 0"})
    has(shown, "RetentionDays is 0", "the change set is refused")
    shown, _ = run(folder, expect=1, refused={"dynamodb transact-write-items": "AccessDenied"})
    has(shown, "the tokens cannot be stored")
    assert "rt_secret" not in shown, "a token is shown that is not stored"
    shown, _ = run(folder, expect=1, refused={"sts get-caller-identity": UNREACHABLE})
    has(shown, "AWS does not answer in the region eu-west-1")
    for count in ("", "<html>"):
        shown, _ = run(folder, expect=1, status="UPDATE_COMPLETE", becomes="UPDATE_COMPLETE", dynamodb_query=count)
        has(shown, "does not say how many tokens its table has")


def settings_of_version_2(folder):
    """An owner's settings of the AWS CLI change nothing: the script reads what errors say, and answers no prompt."""
    for setting in ({"AWS_CLI_ERROR_FORMAT": "json"}, {"AWS_CLI_AUTO_PROMPT": "on"}, {"AWS_PAGER": "less"}):
        shown, _ = run(folder, env=setting, refused={"s3api head-bucket": "An error occurred (404) when calling the HeadBucket operation: Not Found"})
        has(shown, "is made; it keeps the code of each version", "roomtide is deployed", "rt_secret-admin")


def called_from_elsewhere(folder):
    """The script's own folder is the release, whatever else has its name in CDPATH."""
    with tempfile.TemporaryDirectory() as other:
        (Path(other) / folder.name).mkdir()
        shown, _ = run(folder, answer="n\n", expect=1, env={"CDPATH": other}, cwd=folder.parent)
        has(shown, "Nothing is deployed")


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
