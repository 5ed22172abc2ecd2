"""The deployed system as its owner sees it: the stack, its API and its tokens. Checks nothing."""

import functools
import gzip
import json
import os
import re
import time
import urllib.error
import urllib.request
from decimal import Decimal
from pathlib import Path

import boto3

import release
from release import ARCHITECTURE, REGION
from processes import LOGS, ROOT, Failed, command, free_port, scratch, server

NAME = "roomtide"


class Emulator:
    """AWS on this machine, with the functions' permissions enforced."""

    def __init__(self):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.scratch = scratch()
        # Nothing of the caller's own AWS account may reach the commands.
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
            "SAM_CLI_TELEMETRY": "0",
            "TMPDIR": str(self.scratch),
        }
        own = self.env | {
            "AUTH": "true", "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(self.port),
            "IOT_MTLS_ENABLED": "0", "MINISTACK_HOST": "localhost", "MINISTACK_REGION": REGION,
            "STATE_DIR": str(self.scratch),
        }
        python = ROOT / "target" / "tools" / "emulator" / "bin" / "python"
        self.process, self.log = server(
            "emulator", [python, ROOT / "tests" / "deploy" / "emulator.py"], own, self.answers)

    def answers(self):
        try:
            return urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=5).status == 200
        except OSError:
            return False

    def client(self, service, **credentials):
        credentials = credentials or {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        return boto3.client(service, endpoint_url=self.url, region_name=REGION, **credentials)

    def function_logs(self):
        """Everything that the functions have written, and API Gateway."""
        logs = self.client("logs")
        groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
        pages = logs.get_paginator("filter_log_events")
        events = (event for group in groups for page in pages.paginate(logGroupName=group) for event in page["events"])
        return "\n".join(event["message"] for event in events)


@functools.cache
def command_line():
    """The program `roomtide`, with the features that `cargo test --workspace` has built it with."""
    program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "roomtide"
    if not program.exists():
        raise Failed("there is no program; build it with: cargo test --workspace --no-run")
    return program


class Stack:
    """Roomtide, deployed."""

    def __init__(self, emulator, name=NAME):
        self.emulator = emulator
        self.name = name
        self.outputs = {}
        self.first_tokens = {}

    def deploy(self, **parameters):
        """`./deploy` of the release. It shows tokens the first time only."""
        words = [word for name, value in (parameters | {"Architecture": ARCHITECTURE}).items() for word in ("--parameter", f"{name}={value}")]
        shown = release.deploy(self.emulator, "--stack-name", self.name, *words)
        tokens = dict(re.findall(r"^  (admin|read|write) +(rt_\S+)  ", shown, re.MULTILINE))
        if tokens and self.first_tokens:
            raise Failed(f"a further ./deploy of {self.name} makes tokens again")
        self.first_tokens = self.first_tokens or tokens
        self.look()

    def look(self):
        """Reads the outputs; what CloudFormation tells of the stack."""
        described = self.emulator.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"][0]
        self.outputs = {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}
        return described

    def delete(self):
        return release.deploy(self.emulator, "--remove", "--stack-name", self.name)

    @property
    def table(self):
        return self.outputs["TableName"]

    @property
    def api(self):
        """Where the emulator answers for the API: its own name for it is no address of this machine."""
        api_id = self.outputs["ApiUrl"].split("//")[1].split(".")[0]
        return f"{self.emulator.url}/_aws/execute-api/{api_id}/$default"

    def function_url(self, output):
        """Where the emulator answers for the function URL in an output."""
        url_id = self.outputs[output].removeprefix("https://").split(".")[0]
        return f"{self.emulator.url}/_aws/lambda-url/{url_id}"

    def resource(self, logical_id):
        """The name of a resource in the account."""
        client = self.emulator.client("cloudformation")
        found = client.describe_stack_resource(StackName=self.name, LogicalResourceId=logical_id)
        return found["StackResourceDetail"]["PhysicalResourceId"]

    def token(self, *words):
        """`roomtide token`, on the deployed table."""
        return self.roomtide("token", *words)

    def roomtide(self, *words):
        """The command, on the deployed table with ordinary credentials."""
        env = {**self.emulator.env, "AWS_REGION": REGION, "AWS_ENDPOINT_URL": self.emulator.url}
        return command(command_line(), *words, "--table", self.table, env=env)

    def items(self, partition):
        """All items of a partition, around the API."""
        pages = self.emulator.client("dynamodb").get_paginator("query").paginate(
            TableName=self.table, KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": partition}}, ConsistentRead=True)
        return [item for page in pages for item in page["Items"]]

    def call(self, method, path, body=None, token=None, headers=None, url=None):
        """A request to the API, or to another address. The emulator is one process, and other checks keep it busy: a
        question that had no time left is asked again, as 503 says."""
        for _ in range(6):
            answer = self.call_once(method, path, body, token, headers, url)
            if method != "GET" or answer.status != 503:
                break
            time.sleep(5)
        return answer

    def call_once(self, method, path, body, token, headers, url):
        headers = dict(headers or {})
        if token:
            headers.setdefault("Authorization", f"Bearer {token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        request = urllib.request.Request((url or self.api) + path, data=body, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                body = response.read()
                if response.headers["Content-Encoding"] == "gzip":
                    body = gzip.decompress(body)
                return Answer(request, response.status, body)
        except urllib.error.HTTPError as error:
            return Answer(request, error.code, error.read())

    def all(self, path, token):
        """What a list says, page by page, and how many pages that were."""
        rows, pages, cursor = [], 0, ""
        while True:
            page = self.call("GET", path + cursor, token=token).expect(200)
            rows += page["data"]
            pages += 1
            if not page["has_more"]:
                return rows, pages
            cursor = ("&" if "?" in path else "?") + "cursor=" + page["next_cursor"]


class Answer:
    """What came back."""

    def __init__(self, request, status, body):
        self.status = status
        self.body = body
        # Without the query string: a token may stand in it.
        self.asked = f"{request.get_method()} {request.selector.split('/$default')[-1].split('?')[0]}"

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.text, parse_float=Decimal)

    def expect(self, *statuses):
        """The body, if the status is one of these."""
        if self.status not in statuses:
            raise Failed(f"{self.asked}: expected {' or '.join(map(str, statuses))}, got {self.status} {self.text[:500]}")
        return self.json
