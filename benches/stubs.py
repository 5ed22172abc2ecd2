"""Stubs of the Lambda Runtime API and of DynamoDB, and a certificate for TLS. No conditions, no errors."""

import atexit
import collections
import json
import os
import queue
import re
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import build

# What the deployed functions have in their environment for the C library.
MALLOC = dict(re.findall(r'(MALLOC_\w+): "(\d+)"', (build.ROOT / "template.yaml").read_text()))


class Server:
    """An HTTP/1.1 server with a thread per connection. Subclasses implement `answer(path, headers, body)`."""

    def __init__(self, tls=None):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.tls = tls
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self.serve, args=[connection], daemon=True).start()

    def serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as stream:
                while line := stream.readline():
                    headers = {}
                    while header := stream.readline().strip():
                        name, value = header.decode().split(":", 1)
                        headers[name.lower()] = value.strip()
                    body = stream.read(int(headers.get("content-length", 0)))
                    more, answer = self.answer(line.decode().split()[1], headers, body)
                    head = "".join(f"{name}: {value}\r\n" for name, value in more.items())
                    connection.sendall(
                        f"HTTP/1.1 200 OK\r\n{head}content-length: {len(answer)}\r\n\r\n".encode() + answer)
        except OSError:
            pass  # the function has ended

    def close(self):
        self.socket.close()


class Runtime(Server):
    """One instance of a function and its Lambda Runtime API."""

    def __init__(self, program, env, log):
        super().__init__()
        self.asked, self.events = queue.SimpleQueue(), queue.SimpleQueue()
        self.said, self.invocations = None, 0
        env = env | MALLOC | {
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_LAMBDA_FUNCTION_NAME": program.parent.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST", "AWS_LAMBDA_LOG_GROUP_NAME": "logs",
            "AWS_LAMBDA_LOG_STREAM_NAME": "stream", "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self.port}",
        }
        with Path(log).open("ab") as output:
            started = time.perf_counter()
            self.process = subprocess.Popen(
                [program], env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        atexit.register(self.process.kill)
        try:
            self.start_seconds = self.asked.get(timeout=10) - started
        except queue.Empty:
            self.end()
            raise RuntimeError(f"{program} does not ask for an invocation; its log is {log}") from None

    def answer(self, path, _, body):
        if not path.endswith("/invocation/next"):
            self.said = (path, body)
            return {}, b""
        self.asked.put(time.perf_counter())
        event = self.events.get()
        self.invocations += 1
        return {
            "lambda-runtime-aws-request-id": f"00000000-0000-0000-0000-{self.invocations:012}",
            "lambda-runtime-deadline-ms": int(time.time() * 1000) + 25_000,
            "lambda-runtime-invoked-function-arn": "arn:aws:lambda:eu-west-1:123456789012:function:it",
            "content-type": "application/json",
        }, event

    def invoke(self, event):
        """Invokes the function, waits until it asks for the next event, and returns its response."""
        self.events.put(event)
        self.asked.get(timeout=60)
        path, body = self.said
        if not path.endswith("/response"):
            raise RuntimeError(f"the function failed: {body.decode()}")
        return json.loads(body)

    def cpu_seconds(self):
        """User and kernel CPU time of all threads of the process."""
        return time.clock_gettime(~self.process.pid << 3 | 2)  # as clock_getcpuclockid(3) makes it

    def end(self):
        self.process.kill()
        self.process.wait()
        self.close()


class DynamoDb(Server):
    """A table that stores registry items (`PutItem`) and drops readings (`BatchWriteItem`, `UpdateItem`,
    `BatchExecuteStatement`)."""

    def __init__(self, tls=None):
        self.items = {}
        self.batches = None
        self.requests = collections.Counter()
        self.delay = 0  # seconds before an answer
        super().__init__(tls)

    def answer(self, _, headers, body):
        operation = headers["x-amz-target"].split(".")[1]
        self.requests[operation] += 1
        time.sleep(self.delay)
        if operation == "BatchWriteItem" and self.batches is None:
            said = {"UnprocessedItems": {}}
        else:
            said = getattr(self, operation)(json.loads(body))
        consumed = {"TableName": "table", "CapacityUnits": 1}
        said["ConsumedCapacity"] = [consumed] if operation.startswith("Batch") else consumed
        return {"content-type": "application/x-amz-json-1.0"}, json.dumps(said).encode()

    def BatchWriteItem(self, asked):
        [requests] = asked["RequestItems"].values()
        self.batches.append([request["PutRequest"]["Item"] for request in requests])
        return {"UnprocessedItems": {}}

    def PutItem(self, asked):
        self.items[key(asked["Item"])] = asked["Item"]
        return {}

    def UpdateItem(self, _):
        return {}

    def BatchExecuteStatement(self, asked):
        return {"Responses": [{} for _ in asked["Statements"]]}

    def Query(self, asked):
        values = {name: value["S"] for name, value in asked["ExpressionAttributeValues"].items()}
        partition = values.pop(":p")
        ends = sorted(values.values()) or [""]  # from the first on, to the last if there are two
        found = [item for (pk, sk), item in sorted(self.items.items())
                 if pk == partition and sk >= ends[0] and (len(ends) == 1 or sk <= ends[-1])]
        found = found[:asked.get("Limit")]
        return {"Items": found, "Count": len(found), "ScannedCount": len(found)}

    def BatchGetItem(self, asked):
        [(table, wanted)] = asked["RequestItems"].items()
        found = [self.items[key(it)] for it in wanted["Keys"] if key(it) in self.items]
        return {"Responses": {table: found}, "UnprocessedKeys": {}}

    def stored(self, send):
        """Calls `send()` and returns the batches that it wrote."""
        self.batches = []
        send()
        batches, self.batches = self.batches, None
        return batches


def key(item):
    return item["pk"]["S"], item["sk"]["S"]


# The memory with which a function has one vCPU: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
WHOLE = 1769


class CpuShare:
    """A share of one CPU for processes, by a control group: at 256 MB a function has 256/1769 of a vCPU."""

    PERIOD = 20_000  # microseconds

    def __init__(self, share):
        quota = round(self.PERIOD * share)
        root = Path("/sys/fs/cgroup")
        name = f"roomtide-benches-{os.getpid()}"
        if (root / "cgroup.controllers").exists():
            self.group = root / name
            settings = {"cpu.max": f"{quota} {self.PERIOD}"}
        else:
            self.group = root / "cpu" / name
            settings = {"cpu.cfs_period_us": self.PERIOD, "cpu.cfs_quota_us": quota}
        self.group.mkdir()
        try:
            for file, value in settings.items():
                (self.group / file).write_text(str(value))
        except OSError:
            self.end()
            raise

    def add(self, process):
        (self.group / "cgroup.procs").write_text(str(process.pid))

    def end(self):
        """Removes the group, whose processes have ended."""
        self.group.rmdir()


class Authority:
    """A throw-away certificate authority and a certificate for localhost, with RSA keys like Amazon's."""

    def __init__(self, folder):
        self.root = folder / "root.pem"
        root_key, self.leaf, self.leaf_key = folder / "root.key", folder / "leaf.pem", folder / "leaf.key"
        config = folder / "openssl.cnf"
        config.write_text("[req]\ndistinguished_name = name\n[name]\n")
        make = ["openssl", "req", "-config", config, "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        self.openssl(*make, "-subj", "/CN=root", "-keyout", root_key, "-out", self.root,
                     "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=keyCertSign")
        self.openssl(*make, "-subj", "/CN=localhost", "-keyout", self.leaf_key, "-out", self.leaf,
                     "-CA", self.root, "-CAkey", root_key, "-addext", "subjectAltName=DNS:localhost",
                     "-addext", "basicConstraints=critical,CA:FALSE")

    def openssl(self, *words):
        ran = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if ran.returncode != 0:
            raise RuntimeError(f"openssl: {ran.stderr}")

    def server(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.leaf, self.leaf_key)
        return context
