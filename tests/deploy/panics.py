"""The built binaries when their code panics, under Lambda's own Runtime Interface Emulator: one request ends, the process goes on.

No code panics on purpose, so the operating system is made to refuse what the code takes for granted: the
thread in which the name of the table's host is looked up. Tokio panics where it cannot start one.
"""

import json
import resource
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import rie
from processes import Failed, end
from report import same

# So large that the C library gives it back when its thread ends, instead of keeping it for the next one.
STACK = 64 << 20
# Enough for everything but such a stack.
SPARE = 16 << 20
# Tokio ends a thread that had nothing to do for 10 seconds.
IDLE = 11

REQUESTS = {
    "Ingest": ("POST", "/readings", json.dumps({"device_id": "d", "timestamp": 1768147200, "t": 1}), 201),
    "Query": ("GET", "/devices/nobody", None, 404),
}


class EmptyTable(BaseHTTPRequestHandler):
    """A table that takes everything, holds nothing, and closes each connection, so that its name is looked up again."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        answers = {
            "BatchGetItem": {"Responses": {}, "UnprocessedKeys": {}},
            "BatchWriteItem": {"UnprocessedItems": {}},
            "Query": {"Items": [], "Count": 0, "ScannedCount": 0},
        }
        body = json.dumps(answers.get(self.headers["X-Amz-Target"].split(".")[1], {})).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def run(emulator, bootstraps):
    """Each function's answer to a request in which its code panics, and to the next one."""
    table = ThreadingHTTPServer(("127.0.0.1", 0), EmptyTable)
    threading.Thread(target=table.serve_forever, daemon=True).start()
    for function, (method, path, body, status) in REQUESTS.items():
        url, process = rie.start(emulator, bootstraps[function], "empty", {
            "AWS_ENDPOINT_URL": f"http://localhost:{table.server_port}", "RUST_MIN_STACK": str(STACK),
        })

        def ask():
            return rie.invoke(url, json.dumps(event(method, path, body)).encode())

        same(f"the answer of {function}", status, ask().get("statusCode"))
        number = process_of(bootstraps[function])
        time.sleep(IDLE)
        memory = resource.prlimit(number, resource.RLIMIT_AS)
        resource.prlimit(number, resource.RLIMIT_AS, (size_of(number) + SPARE, memory[1]))
        answer = ask()
        resource.prlimit(number, resource.RLIMIT_AS, memory)
        if answer.get("statusCode") != 500 or "urn:roomtide:problem:internal" not in answer.get("body", ""):
            raise Failed(f"{function} panics and answers {answer}")
        same(f"the next answer of {function}", status, ask().get("statusCode"))
        same(f"the process of {function}", number, process_of(bootstraps[function]))
        end(process)
    table.shutdown()


def event(method, path, body):
    """A request as API Gateway hands it on."""
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "check"}
    return {
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "body": body, "isBase64Encoded": False,
        "headers": {"content-type": "application/json"},
        "requestContext": {
            "accountId": "1", "apiId": "a", "domainName": "d", "domainPrefix": "d", "http": http, "requestId": "panic",
            "routeKey": "$default", "stage": "$default", "time": "11/Jan/2026:16:00:00 +0000", "timeEpoch": 1768147200000,
        },
    }


def process_of(program):
    """The one process that runs a program."""
    found = []
    for link in Path("/proc").glob("[0-9]*/exe"):
        try:
            if link.readlink() == program:
                found.append(int(link.parent.name))
        except OSError:  # it has ended, or is somebody else's
            continue
    if len(found) != 1:
        raise Failed(f"one process runs {program}: {found}")
    return found[0]


def size_of(number):
    """The bytes of a process's address space."""
    return int(Path(f"/proc/{number}/statm").read_text().split()[0]) * resource.getpagesize()
