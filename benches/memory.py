"""How long query takes with the share of a processor that each size of memory has.

    python3 benches/memory.py PATH_OF_QUERYS_BOOTSTRAP

Lambda gives a function with 1,769 MB one processor and a smaller one a share of it:
https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html. Here the program gets that share by being stopped
for the rest of each 20 ms; the table, the sample home on this machine, is never stopped. Prints the median of nine, and
what a million such calls cost. Not Lambda: its processors and its network are others.
"""

import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "target" / "tools" / "sam"
SIZES = [128, 256, 512, 1024, 1769]
WHOLE = 1769
PERIOD = 0.02
GB_SECOND = 0.0000133334
QUERIES = {
    "nine rooms by hour, a week": ("/series", "metric=temperature&every=1h&fn=mean,min,max&rooms=1&from=-7d&to=now"),
    "a meter by 15 minutes, three weeks": ("/devices/meter/series", "metric=current_w&every=15m&fn=mean,min,max&from=-21d&to=now"),
}


def main(bootstrap):
    with tempfile.TemporaryDirectory() as folder:
        server, engine, key = home(folder)
        function, address = start(bootstrap, engine, key, folder)
        try:
            print("MB    " + "   ".join(QUERIES))
            for size in SIZES:
                figures = [measure(address, bootstrap, query, size) for query in QUERIES.values()]
                print(f"{size:<6}" + "   ".join(f"{took * 1000:7.0f} ms, {took * size / 1024 * GB_SECOND * 1e6:5.2f} dollars a million" for took in figures))
        finally:
            function.kill()
            server.kill()


def home(folder):
    """A server with the sample home, and where its engine answers to which key."""
    program = ROOT / "target" / "debug" / "roomtide"
    words = [program, "--port", "0", "--data-dir", Path(folder) / "data", "--print-engine-key"]
    server = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)
    said = ""
    for line in server.stdout:
        said += line
        if "Try" in line:
            break
    engine, key = re.search(r"engine +(\S+) .*access key (\w+)", said).groups()
    time.sleep(60)  # the sample home's rollups follow
    return server, engine, key


def start(bootstrap, engine, key, folder):
    rapid = next(TOOLS.glob("lib/python*/site-packages/samcli/local/rapid/aws-lambda-rie-x86_64"))
    program = Path(folder) / "rie"
    shutil.copy(rapid, program)
    program.chmod(0o755)
    address, runtime = (f"127.0.0.1:{free_port()}" for _ in range(2))
    words = [program, "--runtime-interface-emulator-address", address, "--runtime-api-address", runtime, bootstrap]
    env = os.environ | {
        "AUTH": "off", "AWS_LAMBDA_FUNCTION_TIMEOUT": "60", "AWS_REGION": "us-east-1", "TABLE_NAME": "roomtide", "STACK_NAME": "bench",
        "AWS_ENDPOINT_URL": engine, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": "local", "REGISTRY_MAX_AGE_SECONDS": "3600",
    }
    process = subprocess.Popen(list(map(str, words)), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while socket.socket().connect_ex(("127.0.0.1", int(address.split(":")[1]))):
        time.sleep(0.1)
    return process, address


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def measure(address, bootstrap, query, size):
    invoke(address, query)
    pid = int(subprocess.check_output(["pgrep", "-nf", f"^{bootstrap}"], text=True))
    ends = threading.Event()
    thread = threading.Thread(target=share, args=(pid, min(size / WHOLE, 1), ends))
    thread.start()
    try:
        return statistics.median(invoke(address, query) for _ in range(9))
    finally:
        ends.set()
        thread.join()


def share(pid, part, ends):
    """Lets a process run for a part of each period."""
    while part < 1 and not ends.is_set():
        os.kill(pid, signal.SIGCONT)
        time.sleep(PERIOD * part)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(PERIOD * (1 - part))
    os.kill(pid, signal.SIGCONT)


def invoke(address, query):
    path, parameters = query
    event = {
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": parameters, "headers": {"accept-encoding": "gzip"},
        "requestContext": {"http": {"method": "GET", "path": path, "sourceIp": "127.0.0.1", "protocol": "HTTP/1.1", "userAgent": "bench"}, "requestId": "r", "timeEpoch": 0},
        "isBase64Encoded": False,
    }
    request = urllib.request.Request(f"http://{address}/2015-03-31/functions/function/invocations", json.dumps(event).encode())
    started = time.monotonic()
    answer = json.load(urllib.request.urlopen(request, timeout=120))
    took = time.monotonic() - started
    if answer.get("statusCode") != 200:
        sys.exit(f"{path} answers {answer}")
    return took


if __name__ == "__main__":
    main(sys.argv[1])
