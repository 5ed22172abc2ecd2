"""Measures the local system: readings per second, and readings lost to SIGKILL."""

import atexit
import contextlib
import http.client
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import build
from readings import DEVICES, body, device, readings, timestamp

READINGS, BATCH = 100_000, 500
# One sender that waits for each answer, and several that keep the server busy.
SENDERS = [1, 4]


class Server:
    """A running `roomtide` with its data in a folder."""

    def __init__(self, folder, *options):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        with (build.TARGET / "roomtide.log").open("ab") as log:
            self.process = subprocess.Popen(
                [build.roomtide(), "--empty", "--port", str(self.port), "--data-dir", folder, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        atexit.register(self.kill)
        self.repeated = 0
        deadline = time.monotonic() + 30
        while True:
            try:
                self.get("/health")
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"roomtide does not start; its log is {log.name}") from None
                time.sleep(0.02)

    def get(self, path):
        return urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60).read()

    def put(self, path, document):
        body = json.dumps(document).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="PUT")
        return urllib.request.urlopen(request, timeout=60).read()

    def post(self, bodies, senders, stored=None):
        """Posts all bodies. Given `stored`, calls it with the index of each acknowledged one and lets the server die."""
        left, lock = iter(enumerate(bodies)), threading.Lock()

        def send():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            with contextlib.closing(connection):
                while True:
                    with lock:
                        number, body = next(left, (None, None))
                    if body is None:
                        return
                    try:
                        status, said = request(connection, body)
                        while status == 503:  # the machine is too busy; the same readings again change nothing
                            self.repeated += 1
                            status, said = request(connection, body)
                    except (OSError, http.client.HTTPException):
                        if stored is None:
                            raise
                        return
                    if status != 201:
                        raise RuntimeError(f"POST /readings: {status} {said[:500]}")
                    if stored is not None:
                        stored(number)

        with ThreadPoolExecutor(senders) as pool:
            for sender in [pool.submit(send) for _ in range(senders)]:
                sender.result()

    def found(self):
        """Device and timestamp of every stored reading."""
        found = set()
        for number in range(DEVICES):
            path = f"/devices/{device(number)}/readings?from={timestamp(-1)}&to={timestamp(READINGS)}&limit=10000"
            cursor = ""
            while True:
                page = json.loads(self.get(path + cursor))
                found.update((device(number), row["timestamp"]) for row in page["data"])
                if not page["has_more"]:
                    break
                cursor = f"&cursor={page['next_cursor']}"
        return found

    def kill(self):
        self.process.kill()
        self.process.wait()


def request(connection, body):
    connection.request("POST", "/readings", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def throughput(report, args, _):
    """Readings per second through POST /readings, compared with SQLite alone."""
    batches = [body(readings(BATCH, first)) for first in range(0, READINGS, BATCH)]
    taken = {senders: [] for senders in SENDERS}
    alone, size, repeated = [], 0, 0
    for _ in range(args.rounds or 3):
        alone.append(sqlite(batches))
        for senders in SENDERS:
            with folder() as data:
                server = Server(data)
                started = time.monotonic()
                server.post(batches, senders)
                taken[senders].append(READINGS / (time.monotonic() - started))
                server.kill()
                repeated += server.repeated
                size = sum(file.stat().st_size for file in data.iterdir())
    report.title(f"{READINGS:,} readings into the system on one machine, {BATCH} a POST")
    for senders in SENDERS:
        report.ratio(f"{senders} at a time, to rows put into SQLite alone", taken[senders], alone, "readings a second")
    report.line(f"{size / READINGS:,.0f} bytes of files a reading")
    if repeated:
        report.line(f"{repeated:,} requests were answered 503 and repeated: the machine was too busy")


def sqlite(batches):
    """Readings per second into plain SQLite: one row per reading, one transaction per batch, write-ahead log."""
    with folder() as data:
        data.mkdir()
        row = lambda reading: (reading["device_id"], reading["timestamp"], json.dumps(reading))
        batches = [list(map(row, json.loads(batch))) for batch in batches]
        with contextlib.closing(sqlite3.connect(data / "alone.db")) as connection:
            connection.executescript("""
                PRAGMA journal_mode = WAL;
                PRAGMA synchronous = NORMAL;
                CREATE TABLE item (pk TEXT, sk TEXT, item TEXT, PRIMARY KEY (pk, sk)) WITHOUT ROWID;
            """)
            started = time.monotonic()
            for batch in batches:
                with connection:
                    connection.executemany("INSERT OR REPLACE INTO item VALUES (?, ?, ?)", batch)
            return READINGS / (time.monotonic() - started)


def kill(report, args, _):
    """Kills the server while it stores, restarts it and counts the acknowledged readings that are missing."""
    batches = [readings(BATCH, first) for first in range(0, READINGS, BATCH)]
    report.title("SIGKILL while readings are stored")
    lost = 0
    for _ in range(args.rounds or 3):
        acknowledged, half = [], threading.Event()

        def stored(number):
            acknowledged.append(number)
            if len(acknowledged) >= len(batches) // 2:
                half.set()

        with folder() as data:
            server = Server(data)
            with ThreadPoolExecutor(1) as pool:
                sending = pool.submit(server.post, map(body, batches), max(SENDERS), stored)
                while not half.wait(0.1):
                    if sending.done():
                        sending.result()
                server.kill()
                sending.result()
            restarted = Server(data)
            found = restarted.found()
            restarted.kill()
        sent = {(it["device_id"], it["timestamp"]) for number in acknowledged for it in batches[number]}
        lost += len(sent - found)
        report.line(f"{len(sent):,} acknowledged, {len(found):,} found, {len(sent - found):,} lost")
    if lost:
        raise RuntimeError(f"{lost:,} acknowledged readings were lost")


@contextlib.contextmanager
def folder():
    """A folder on the disk, removed afterwards."""
    place = build.TARGET / f"data-{os.getpid()}"
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
